"""Changes of place and visibility: forget, restore, rename a wing."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, or_, select, update

from castle.errors import NotFoundError, RefusedError
from castle.store.drawer_rows import touch
from castle.store.ledger import Ledger, batches
from castle.store.projection import legal_text
from castle.store.purged import STUB, check_not_purged
from castle.store.reading import full_id, named_source
from castle.store.schema import drawers, membership, sources, tombstones, wing_names
from castle.store.tunnel_tables import tunnels


def forget(
    ledger: Ledger, *, id_: str | None = None, source: str | None = None, wing: str | None = None, actor: str
) -> int:
    """Put a restorable tombstone on a drawer, a source's or a wing's drawers; return how many were not yet.

    Raises NotFoundError when there is no such drawer, source or wing.
    """
    with ledger.write() as cx:
        now = ledger.clock()
        condition, which = chosen(cx, id_, source, wing)
        query = select(drawers.c.rid).where(
            condition, drawers.c.state != "forgotten", drawers.c.seq.is_not(None)
        )
        rids = [rid for (rid,) in cx.execute(query)]
        touch(cx, rids, state="forgotten")
        if rids:
            cause = "drawer" if id_ is not None else "source" if source is not None else "wing"
            rows = [{"drawer": rid, "at": now, "actor": actor, "cause": cause} for rid in rids]
            cx.execute(insert(tombstones), rows)
        if which is not None:
            cx.execute(update(sources).where(which).values(forgotten_at=now))
        return len(rids)


def restore(
    ledger: Ledger, *, id_: str | None = None, source: str | None = None, wing: str | None = None
) -> int:
    """Take tombstones away again; return how many drawers are back. What was purged stays away.

    Raises NotFoundError when there is no such drawer, source or wing.
    """
    with ledger.write() as cx:
        condition, which = chosen(cx, id_, source, wing)
        rids = [
            rid
            for (rid,) in cx.execute(
                select(drawers.c.rid).where(condition, drawers.c.state == "forgotten", ~STUB)
            )
        ]
        is_member = exists().where(membership.c.drawer == drawers.c.rid, membership.c.to_revision.is_(None))
        current = {
            rid
            for batch in batches(rids)
            for (rid,) in cx.execute(select(drawers.c.rid).where(drawers.c.rid.in_(batch), is_member))
        }
        touch(cx, [rid for rid in rids if rid in current], state="current")
        touch(cx, [rid for rid in rids if rid not in current], state="superseded")
        for batch in batches(rids):
            cx.execute(delete(tombstones).where(tombstones.c.drawer.in_(batch)))
        if which is not None:
            cx.execute(update(sources).where(which).values(forgotten_at=None))
        return len(rids)


def rename_wing(ledger: Ledger, old: str, new: str, *, merge: bool = False) -> int:
    """Give a wing another name, for what it holds and for what will be filed under the old name.

    Returns how many drawers moved. Raises NotFoundError when there is no wing ``old``, RefusedError when
    there is already one called ``new`` and ``merge`` is false.
    """
    old = legal_text(old)
    with ledger.write() as cx:
        if not _holds(cx, old):
            raise NotFoundError(f"no wing {old}: `castle status` shows them")
        if old == new:
            return 0
        if _holds(cx, new) and not merge:
            raise RefusedError(f"there is already a wing {new}: join the two with --merge")
        cx.execute(delete(wing_names).where(or_(wing_names.c.old == new, wing_names.c.old == old)))
        cx.execute(update(wing_names).where(wing_names.c.new == old).values(new=new))
        cx.execute(insert(wing_names).values(old=old, new=new))
        cx.execute(update(sources).where(sources.c.wing == old).values(wing=new))
        rids = [
            rid
            for (rid,) in cx.execute(
                select(drawers.c.rid).where(drawers.c.wing == old, drawers.c.seq.is_not(None))
            )
        ]
        touch(cx, rids, wing=new)
        for column in (tunnels.c.source_wing, tunnels.c.target_wing):
            cx.execute(update(tunnels).where(column == old).values({column: new}))
        return len(rids)


def present_name(cx: Connection, wing: str) -> str:
    """Return what a wing is called since it was renamed."""
    new: str | None = cx.execute(select(wing_names.c.new).where(wing_names.c.old == wing)).scalar()
    return wing if new is None else new


def _holds(cx: Connection, wing: str) -> bool:
    query = select(sources.c.id).where(sources.c.wing == wing).limit(1)
    return cx.execute(query).first() is not None


def chosen(
    cx: Connection, id_: str | None, source: str | None, wing: str | None
) -> tuple[ColumnElement[bool], ColumnElement[bool] | None]:
    """Return the condition on drawers, and the one on sources that are meant whole."""
    if id_ is not None:
        id_ = full_id(cx, id_)
        check_not_purged(cx, id_)
        return drawers.c.id == id_, None
    if source is not None:
        which = sources.c.key == named_source(cx, source).key
    elif wing is not None:
        if not _holds(cx, wing):
            raise NotFoundError(f"no wing {wing}: `castle status` shows them")
        which = and_(sources.c.wing == wing)
    else:
        raise ValueError("one of id_, source and wing must be given")
    return drawers.c.source.in_(select(sources.c.id).where(which)), which
