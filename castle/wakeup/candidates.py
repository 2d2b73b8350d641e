"""The drawers that may be shown at wake-up, and all that ranking them needs but their texts.

They are the pinned ones, the newest of each room, the most used and the most novel: as many whether the
palace holds a thousand drawers or a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from castle.store import use
from castle.store.ledger import batches
from castle.store.novelty import STANDING, in_force, stands
from castle.store.novelty_tables import novelty
from castle.store.schema import drawers, sources

MOST_ROOMS = 100
NEWEST = 600
"""Of all rooms together; each has its share of them."""
LEAST_OF_ROOM = 6
MOST_USED = 50
MOST_NOVEL = 50


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drawer before it is ranked; ``size`` counts the characters of its text.

    ``pinned_at`` is None where it is not pinned, ``novelty`` where it has no score.
    """

    rid: int
    id: str
    wing: str
    room: str
    kind: str
    role: str
    source: int
    path: str
    sha256: bytes
    authored_at: int
    size: int
    uses: int
    novelty: float | None
    pinned_at: int | None

    @property
    def place(self) -> tuple[str, str]:
        """Its wing and room."""
        return self.wing, self.room


def candidates(cx: Connection, wing: str | None) -> list[Candidate]:
    """Return the candidates of a wing, or of all wings, each once."""
    pinned = use.pinned_rids(cx, wing)
    rooms = use.recent_rooms(cx, wing, MOST_ROOMS)
    share = max(LEAST_OF_ROOM, NEWEST // max(1, len(rooms)))
    rids = list(pinned)
    for room in rooms:
        rids += use.newest_of_room(cx, room.wing, room.room, share)
    rids += use.most_used(cx, wing, MOST_USED)
    rids += use.most_novel(cx, wing, MOST_NOVEL)
    return _described(cx, list(dict.fromkeys(rids)), pinned)


def _described(cx: Connection, rids: Sequence[int], pinned: dict[int, int]) -> list[Candidate]:
    used = use.uses_of(cx, rids)
    columns = (
        drawers.c.rid,
        drawers.c.id,
        drawers.c.wing,
        drawers.c.room,
        drawers.c.kind,
        drawers.c.role,
        drawers.c.source,
        sources.c.path,
        drawers.c.sha256,
        drawers.c.authored_at,
        func.length(drawers.c.text).label("size"),
    )
    joined = select(*columns).select_from(drawers.join(sources, drawers.c.source == sources.c.id))
    rows = [row for part in batches(rids) for row in cx.execute(joined.where(drawers.c.rid.in_(part)))]
    scored = _novelty_of(cx, rids)
    return [
        Candidate(*row, uses=used.get(row.rid, 0), novelty=scored.get(row.rid), pinned_at=pinned.get(row.rid))
        for row in rows
    ]


def _novelty_of(cx: Connection, rids: Sequence[int]) -> dict[int, float]:
    """Return the scores that still hold, looked up by the table's own key whatever the planner knows."""
    found: dict[int, float] = {}
    if in_force(cx):
        query = select(novelty.c.drawer, novelty.c.score).select_from(STANDING).where(stands())
        for part in batches(rids):
            found |= {row.drawer: row.score for row in cx.execute(query.where(novelty.c.drawer.in_(part)))}
    return found
