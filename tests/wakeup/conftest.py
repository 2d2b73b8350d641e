"""A Castle with the fake embedder and a clock that tests turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from castle import Castle
from castle.novelty import backfill
from castle.wakeup import WakeUp
from tests.conftest import TurnedClock
from tests.store.filer import file

DAY = 86_400_000_000
NOON = 1_700_000_000_000_000


@pytest.fixture
def castle(tmp_path: Path, clock: TurnedClock) -> Iterator[Castle]:
    with Castle(tmp_path / "palace", embedder="fake", clock=clock) as opened:
        opened._palace(create=True)
        yield opened


def put(
    castle: Castle,
    said: str,
    *,
    wing: str = "shop",
    room: str = "general",
    days_ago: float = 0,
    kind: str = "message",
    path: str = "",
) -> str:
    """File one drawer and return its id."""
    file(
        castle._palace().ledger,
        [said],
        path=path or f"talk-{abs(hash((said, wing, room)))}.jsonl",
        wing=wing,
        room=room,
        authored_at=int(NOON - days_ago * DAY),
        kind=kind,
    )
    return castle.list_drawers(wing=wing, room=room, kinds=[kind], limit=10_000).drawers[-1].id


def woken(castle: Castle, wing: str | None = None) -> WakeUp:
    """Score what was filed, and wake up."""
    backfill(castle._palace())
    return castle.wake_up(wing)


STEMS = "lantern harbour orchard violin granite copper meadow saddle thimble walnut"


def told(number: int, stems: str = STEMS) -> str:
    """Return a text that shares hardly a word with those of other numbers."""
    return " ".join(f"{stem}{number}" for stem in stems.split()) + "."
