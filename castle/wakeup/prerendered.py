"""Wake-ups that are written beforehand, for hooks that must not open the palace.

``<palace>/wakeup.json`` holds the general text and one for each directory that was worked in last:
``{"v": 1, "rendered_at": microseconds, "general": text, "places": {directory: text}, "checked": directories,
"of": ...}``. Every text is wrapped as recalled. ``checked`` are the directories in which something is
believed under a condition, to be checked when a session begins there. ``of`` says what the texts were made
from: where nothing has changed nothing is done, and a text whose wing has not changed is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, select

from castle.config import Settings
from castle.config.files import replace
from castle.config.load import surroundings
from castle.mind.waking import section
from castle.mine.formats import recall_block
from castle.store.ledger import get_value
from castle.store.mind_conditions import conditions_in
from castle.store.novelty_tables import META_KEY
from castle.store.palace import Palace
from castle.store.schema import drawers
from castle.store.use import pinned
from castle.wakeup.identity import state_of
from castle.wakeup.layers import wake_up
from castle.wakeup.places import active_places

FILE_NAME = "wakeup.json"
BUDGET = 600
"""The most tokens of a text, its wrapping included."""
MOST_PLACES = 20
VERSION = 1


@dataclass(frozen=True, slots=True)
class _Made:
    """What a rendering was made from.

    ``head`` is the last change of the ledger, and ``lineage`` proves that it is of the same history.
    ``common`` stands for what every text depends on, ``novelty`` for how far the scores have come.
    """

    head: int
    lineage: str
    common: str
    novelty: str
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)


def prerender(palace: Palace, settings: Settings) -> bool:
    """Write the wake-ups that hooks print; return whether there was anything to write.

    Raises PalaceError, and ConfigError when the file cannot be written.
    """
    path = palace.root / FILE_NAME
    with palace.ledger.read() as cx:
        places = active_places(cx, MOST_PLACES, str(surroundings().user_home))
        believed = _believed(palace, cx, {place.wing for place in places})
        checked = sorted(place.directory for place in places if conditions_in(cx, place.wing))
    made, before = _state(palace, settings, (believed, checked)), _written(path)
    if made == before:
        return False
    texts = _unchanged(palace, before, made)
    for wing in {place.wing for place in places} - texts.keys():
        texts[wing] = _text(palace, settings, wing)
    document = {
        "v": VERSION,
        "rendered_at": palace.ledger.clock(),
        "general": _text(palace, settings, None),
        "places": {place.directory: texts[place.wing] for place in places},
        "checked": checked,
        "of": {
            "head": made.head,
            "lineage": made.lineage,
            "common": made.common,
            "novelty": made.novelty,
            "identity": state_of(settings.home),
            "wings": {place.directory: place.wing for place in places},
        },
    }
    # A lone surrogate has no UTF-8; as an escape of JSON it is read back as what it was.
    replace(path, json.dumps(document).encode("ascii"), 0o600)
    return True


def knows_identity(palace: Palace, settings: Settings) -> bool:
    """Whether the file was written with the identity as it is now; cheap, and asks the palace nothing."""
    try:
        of = json.loads(_bytes(palace.root / FILE_NAME))["of"]
        return bool(of["identity"] == state_of(settings.home))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _bytes(path: Path) -> bytes:
    """Return what a regular file holds, nothing for a pipe, which would be waited for."""
    return path.read_bytes() if path.is_file() else b""


def _text(palace: Palace, settings: Settings, wing: str | None) -> str:
    return recall_block(wake_up(palace, settings, wing, BUDGET).text)


def _believed(palace: Palace, cx: Connection, wings: Iterable[str]) -> dict[str, str]:
    """Return what the mind tells of wings: it changes without any drawer that does."""
    now = palace.ledger.clock()
    told = {wing or "": section(cx, wing, BUDGET, palace.salt, now, len) for wing in (None, *sorted(wings))}
    return {wing: text for wing, text in told.items() if text}


def _state(palace: Palace, settings: Settings, mind: object) -> _Made:
    """Return what a rendering now would be made from; reads a few rows."""
    with palace.ledger.read() as cx:
        pins = [(pin.id, pin.pinned_at) for pin in pinned(cx)]
        novelty = get_value(cx, META_KEY) or ""
        head = int(get_value(cx, "seq") or 0)
    parts = (VERSION, pins, state_of(settings.home), settings.recency_tau_days, mind)
    common = hashlib.sha256(json.dumps(parts).encode("utf-8")).hexdigest()[:32]
    return _Made(head, palace.ledger.lineage(head), common, novelty)


def _unchanged(palace: Palace, before: _Made | None, made: _Made) -> dict[str, str]:
    """Return the texts that still hold, by wing: every change of a drawer has a number of its own."""
    if before is None or before.common != made.common or before.head > made.head:
        return {}
    if palace.ledger.lineage(before.head) != before.lineage:
        return {}
    with palace.ledger.read() as cx:
        changed = _wings_changed(cx, before.head)
    return {wing: text for wing, text in before.texts.items() if wing not in changed}


def _wings_changed(cx: Connection, after: int) -> set[str]:
    query = select(drawers.c.wing).where(drawers.c.seq > after).distinct()
    return {wing for (wing,) in cx.execute(query)}


def _written(path: Path) -> _Made | None:
    """Return what the file was made from, None for one that is missing or damaged."""
    try:
        document = json.loads(_bytes(path))
        of, places = document["of"], document["places"]
        texts = {str(of["wings"][directory]): str(text) for directory, text in places.items()}
        return _Made(int(of["head"]), str(of["lineage"]), str(of["common"]), str(of["novelty"]), texts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
