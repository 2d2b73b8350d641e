"""What a recall leaves behind: that things were looked at, what that calls back, and a line in a log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, insert, select

from castle.errors import CastleError
from castle.mind.fusing import Key
from castle.mind.objects import Memory, key_of
from castle.mind.replay.pool import push_to_working
from castle.mind.working import access, refresh
from castle.store.ledger import to_json
from castle.store.mind_edges import mark_traversed
from castle.store.mind_rows import history, note_change
from castle.store.mind_state import note_access, set_state
from castle.store.mind_tables import mem_recalls
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

RECALLS_KEPT = 1_000
MOST_LOGGED = 500
"""Characters of a query that the log of recalls keeps."""
RESCUED_AFTER = 2
"""Recalls of something cold after which it is no longer."""
_HASTE = 0.5


def note(
    palace: Palace,
    query: str,
    vector: NDArray[np.float32] | None,
    found: Sequence[Memory],
    reached: Sequence[Key],
    *,
    session: str,
    actor: str,
    now: int,
) -> None:
    """Note what was looked at, and what associations led to.

    A palace that is busy or cannot be written goes without.
    """
    if palace.ledger.read_only:
        return
    with suppress(CastleError), palace.ledger.write(_HASTE) as cx:
        if vector is not None:
            refresh(palace, cx, vector, now)
            push_to_working(palace, cx, vector, now=now)
        for one in found:
            if one.layer == "working":
                access(cx, one.id, now)
        for kind in ("drawer", "fact", "procedure"):
            seen = [one for one in found if key_of(one)[0] == kind]
            note_access(cx, kind, [one.id for one in seen], now)
            for one in seen:
                if one.state == "cold":
                    _rescue(cx, kind, one.id, actor, now)
        mark_traversed(cx, reached, now)
        _log(cx, session, mask_secrets(query, palace.salt), [one.id for one in found], now)


def _rescue(cx: Connection, kind: str, id_: str, actor: str, now: int) -> None:
    note_change(cx, kind, id_, "recalled", "", "", reason="recalled while cold", actor=actor, now=now)
    count = _recalled_since_cold(cx, kind, id_)
    if count >= RESCUED_AFTER:
        reason = f"recalled {count} times while cold"
        set_state(cx, kind, id_, "active", reason=reason, actor=actor, now=now)


def _recalled_since_cold(cx: Connection, kind: str, id_: str) -> int:
    count = 0
    for change in history(cx, kind, id_):
        count = 0 if change.what == "state" else count + (change.what == "recalled")
    return count


def _log(cx: Connection, session: str, query: str, ids: list[str], now: int) -> None:
    values = {"session": session, "query": query[:MOST_LOGGED], "found_json": to_json(ids), "at": now}
    cx.execute(insert(mem_recalls).values(**values))
    last = cx.execute(select(func.max(mem_recalls.c.rid))).scalar() or 0
    cx.execute(delete(mem_recalls).where(mem_recalls.c.rid <= last - RECALLS_KEPT))
