from __future__ import annotations

import re

from castle.clients.docs import PLACE, page
from castle.clients.events import EVENTS
from castle.clients.table import CLIENTS


def test_the_page_is_current() -> None:
    assert PLACE.read_text(encoding="utf-8") == page(), "run `python -m castle.clients.docs`"


def test_the_page_names_every_client_event_and_source() -> None:
    text = page()
    for known in CLIENTS:
        assert known.title in text and known.shown in text
        assert f"--with {known.name}" in text
    assert {event.event for events in EVENTS.values() for event in events} <= set(
        re.findall(r"`(\w+)`", text)
    )
