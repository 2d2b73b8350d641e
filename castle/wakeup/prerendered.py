"""Wake-ups that are written beforehand, for hooks that must not open the palace.

``<palace>/wakeup.json`` holds the general text and one for each directory that was worked in last:
``{"v": 1, "rendered_at": microseconds, "general": text, "places": {directory: text}, "of": state}``. Every
text is wrapped as recalled. ``of`` stands for everything that the texts are made from, so that what has not
changed is not written again.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from castle.config import Settings
from castle.config.files import replace
from castle.config.load import surroundings
from castle.mine.formats import recall_block
from castle.store.ledger import get_value
from castle.store.novelty_tables import META_KEY
from castle.store.palace import Palace
from castle.store.use import pinned
from castle.wakeup.identity import state_of
from castle.wakeup.layers import wake_up
from castle.wakeup.places import active_places

FILE_NAME = "wakeup.json"
BUDGET = 600
"""The most tokens of a text, its wrapping included."""
MOST_PLACES = 20
VERSION = 1


def prerender(palace: Palace, settings: Settings) -> bool:
    """Write the wake-ups that hooks print; return whether there was anything to write.

    Raises PalaceError, and ConfigError when the file cannot be written.
    """
    path = palace.root / FILE_NAME
    state = _state(palace, settings)
    if _written(path) == state:
        return False
    with palace.ledger.read() as cx:
        places = active_places(cx, MOST_PLACES, str(surroundings().user_home))
    texts = {
        wing: recall_block(wake_up(palace, settings, wing, BUDGET).text)
        for wing in (None, *dict.fromkeys(place.wing for place in places))
    }
    document = {
        "v": VERSION,
        "rendered_at": palace.ledger.clock(),
        "general": texts[None],
        "places": {place.directory: texts[place.wing] for place in places},
        "of": state,
    }
    # A lone surrogate has no UTF-8; as an escape of JSON it is read back as what it was.
    replace(path, json.dumps(document).encode("ascii"), 0o600)
    return True


def _state(palace: Palace, settings: Settings) -> str:
    """Return what stands for all that a rendering depends on; reads a few rows."""
    with palace.ledger.read() as cx:
        pins = [(pin.id, pin.pinned_at) for pin in pinned(cx)]
        novelty = get_value(cx, META_KEY)
    lineage = palace.ledger.lineage(palace.ledger.head())
    parts = (VERSION, lineage, pins, novelty, state_of(settings.home), settings.recency_tau_days)
    return hashlib.sha256(json.dumps(parts).encode("utf-8")).hexdigest()[:32]


def _written(path: Path) -> str:
    """Return the state that a file was rendered from, "" for one that is missing or damaged."""
    try:
        document = json.loads(path.read_bytes())
        return str(document["of"]) if isinstance(document["places"], dict) else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""
