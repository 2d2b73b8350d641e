"""Revealing: the exact text of a drawer with sealed spans, and the note of who saw it and when."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, insert, select

from castle.errors import RefusedError
from castle.records import SealedSpan
from castle.store.ledger import Ledger
from castle.store.reading import drawers_by_id, full_id
from castle.store.reveal_tables import reveals
from castle.store.schema import drawers


@dataclass(frozen=True, slots=True)
class Revealed:
    """The exact text of a drawer, to be shown to the person at a terminal and to nobody else."""

    id: str
    text: str
    sealed: tuple[SealedSpan, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of secrets in it, each once."""
        return tuple(dict.fromkeys(span.kind for span in self.sealed))


@dataclass(frozen=True, slots=True)
class Reveal:
    """The note of one reveal: when, who, which drawer, and the kinds of secrets it holds."""

    at: int
    actor: str
    drawer: str
    kinds: tuple[str, ...]


def find_sealed(ledger: Ledger, id_: str) -> Revealed:
    """Return what could be revealed of a drawer; ``id_`` may be a beginning of at least six characters.

    Raises NotFoundError, and RefusedError for a drawer without anything sealed.
    """
    with ledger.read() as cx:
        full = full_id(cx, id_)
        drawer = drawers_by_id(cx, [full])[full]
    if not drawer.sealed:
        raise RefusedError(f"drawer {full} holds nothing that is sealed: `castle get {full}` shows all of it")
    return Revealed(full, drawer.text, drawer.sealed)


def note_reveal(ledger: Ledger, revealed: Revealed, actor: str) -> None:
    """Note that somebody is about to see a drawer's exact text. Raises PalaceError where that cannot be."""
    with ledger.write() as cx:
        rid = select(drawers.c.rid).where(drawers.c.id == revealed.id).scalar_subquery()
        row = {"at": ledger.clock(), "actor": actor, "kinds": ",".join(revealed.kinds)}
        cx.execute(insert(reveals).values(**row, drawer=rid))


def list_reveals(ledger: Ledger, limit: int, offset: int) -> tuple[int, list[Reveal]]:
    """Return how many reveals there were and one page of them, the latest first."""
    with ledger.read() as cx:
        # A ledger of an earlier version that is read-only never gets the table.
        there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'reveals'"
        if cx.exec_driver_sql(there).first() is None:
            return 0, []
        total = cx.execute(select(func.count()).select_from(reveals)).scalar_one()
        query = (
            select(reveals.c.at, reveals.c.actor, drawers.c.id, reveals.c.kinds)
            .join(drawers, drawers.c.rid == reveals.c.drawer)
            .order_by(reveals.c.id.desc())
            .limit(limit)
            .offset(offset)
        )
        rows = cx.execute(query).all()
        return total, [Reveal(at, actor, id_, tuple(kinds.split(","))) for at, actor, id_, kinds in rows]
