"""What the mind does with a thing as a whole: how near it is kept, whether it still holds, what is pinned.

Every step can be taken back and leaves a row of history. Nothing here touches a drawer: of an episode only
its row of state changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from castle.errors import CastleError, NotFoundError, UsageError
from castle.store.graph_reading import LIVE
from castle.store.graph_tables import entities, triples
from castle.store.graph_writing import end_fact
from castle.store.ledger import run
from castle.store.mind_rows import TABLES, note_change
from castle.store.mind_tables import mem_episodes, mem_fact_triples
from castle.store.mind_values import RETENTION, Retention
from castle.store.schema import drawers
from castle.store.use_tables import pins

NEW_EPISODE: dict[str, Any] = {
    "session": "",
    "task": "",
    "origin": "",
    "valence": 0.0,
    "valence_confidence": 0.0,
    "valence_source": "",
    "low_cycles": 0,
    "state": "active",
    "was_in_wm": False,
    "reason": "",
    "access_count": 0,
    "tags_json": "[]",
    "metadata_json": "{}",
    "projection_spec": "",
}
"""What is so of an episode about which nothing was written yet."""

STATEFUL = ("drawer", "fact", "procedure")


def episode_row(cx: Connection, id_: str, now: int, **values: Any) -> int:
    """Return the rid of a drawer that has a row of state from now on, ``values`` where it had none."""
    query = (
        "SELECT d.rid, e.drawer FROM drawers d LEFT JOIN mem_episodes e ON e.drawer = d.rid WHERE d.id = ?"
    )
    row = run(cx, query, (id_,)).fetchone()
    if row is None:
        raise NotFoundError(f"no drawer {id_}")
    rid, known = row
    if known is None:
        fresh = {**NEW_EPISODE, "drawer": rid, "created_at": now, **values}
        marks = ", ".join("?" * len(fresh))
        run(cx, f"INSERT INTO mem_episodes ({', '.join(fresh)}) VALUES ({marks})", list(fresh.values()))
    return int(rid)


def state_of(cx: Connection, kind: str, id_: str) -> tuple[str, int | None]:
    """Return the state of a thing and when it ended, (active, None) for an episode without a row."""
    table, same = _place(kind, id_)
    row = cx.execute(select(table.c.state, table.c.invalidated_at).where(same)).first()
    if row is not None:
        return row.state, row.invalidated_at
    if kind == "drawer":
        return "active", None
    raise NotFoundError(f"the mind holds no {kind} {id_}")


def set_state(
    cx: Connection, kind: str, id_: str, state: Retention, *, reason: str, actor: str, now: int
) -> bool:
    """Make a thing active, dim or cold; false where it was so already."""
    if state not in RETENTION:
        raise UsageError(f"state {state!r} is none of {', '.join(RETENTION)}")
    if kind == "drawer":
        episode_row(cx, id_, now)
    before, _ = state_of(cx, kind, id_)
    if before == state:
        return False
    table, same = _place(kind, id_)
    values: dict[str, Any] = {"state": state, "reason": reason}
    if kind == "drawer":
        values["low_cycles"] = 0
    cx.execute(update(table).where(same).values(**values))
    note_change(cx, kind, id_, "state", before, state, reason=reason, actor=actor, now=now)
    return True


def expire(cx: Connection, kind: str, id_: str, *, reason: str, actor: str, now: int) -> bool:
    """Note that a thing holds no longer; facts of the graph that are linked to it end with it.

    False where it had ended before: the time and the reason of then stay.
    """
    if kind == "drawer":
        episode_row(cx, id_, now)
    _, ended = state_of(cx, kind, id_)
    if ended is not None:
        return False
    table, same = _place(kind, id_)
    cx.execute(update(table).where(same).values(invalidated_at=now, reason=reason))
    note_change(cx, kind, id_, "expired", "", now, reason=reason, actor=actor, now=now)
    if kind == "fact":
        _end_triples(cx, id_, reason=reason, actor=actor, now=now)
    return True


def unexpire(cx: Connection, kind: str, id_: str, *, reason: str, actor: str, now: int) -> bool:
    """Note that a thing holds after all, false where it did; facts of the graph stay as they are."""
    _, ended = state_of(cx, kind, id_)
    if ended is None:
        return False
    table, same = _place(kind, id_)
    cx.execute(update(table).where(same).values(invalidated_at=None, reason=reason))
    note_change(cx, kind, id_, "expired", ended, "", reason=reason, actor=actor, now=now)
    return True


def set_pinned(
    cx: Connection, kind: str, id_: str, pinned: bool, *, reason: str, actor: str, now: int
) -> bool:
    """Pin a thing, so that it is never forgotten by itself, or let go of it; false where nothing changed.

    The pin of an episode is the palace's: a pinned drawer also stands on the page that wakes an agent up.
    """
    if kind == "drawer":
        changed = _pin_drawer(cx, id_, pinned, actor, now)
    else:
        table, same = _place(kind, id_)
        held = cx.execute(select(table.c.pinned).where(same)).scalar()
        if held is None:
            raise NotFoundError(f"the mind holds no {kind} {id_}")
        changed = bool(held) != pinned
        cx.execute(update(table).where(same).values(pinned=pinned))
    if changed:
        note_change(cx, kind, id_, "pinned", not pinned, pinned, reason=reason, actor=actor, now=now)
    return changed


def note_access(cx: Connection, kind: str, ids: Sequence[str], now: int) -> None:
    """Count that things were recalled; an episode that was a candidate for forgetting is one no longer."""
    if not ids:
        return
    if kind != "drawer":
        table = TABLES[kind]
        values: dict[str, Any] = {"access_count": table.c.access_count + 1, "last_access_at": now}
        cx.execute(update(table).where(table.c.id.in_(ids)).values(**values))
        return
    rids = list(cx.execute(select(drawers.c.rid).where(drawers.c.id.in_(ids))).scalars())
    fresh = [{**NEW_EPISODE, "drawer": rid, "created_at": now} for rid in rids]
    cx.execute(insert(mem_episodes).prefix_with("OR IGNORE"), fresh)
    counted = {"access_count": mem_episodes.c.access_count + 1, "last_access_at": now, "low_cycles": 0}
    cx.execute(update(mem_episodes).where(mem_episodes.c.drawer.in_(rids)).values(**counted))


def _pin_drawer(cx: Connection, id_: str, pinned: bool, actor: str, now: int) -> bool:
    rid = cx.execute(select(drawers.c.rid).where(drawers.c.id == id_)).scalar_one()
    if pinned:
        new = insert(pins).prefix_with("OR IGNORE").values(drawer=rid, pinned_at=now, pinned_by=actor)
        return cx.execute(new).rowcount > 0
    return cx.execute(pins.delete().where(pins.c.drawer == rid)).rowcount > 0


def _place(kind: str, id_: str) -> tuple[Any, Any]:
    if kind == "drawer":
        inside = select(drawers.c.rid).where(drawers.c.id == id_).scalar_subquery()
        return mem_episodes, mem_episodes.c.drawer == inside
    if kind not in STATEFUL:
        raise UsageError(f"a {kind} is not forgotten or pinned: only episodes, facts and procedures are")
    table = TABLES[kind]
    return table, table.c.id == id_


def _end_triples(cx: Connection, fact: str, *, reason: str, actor: str, now: int) -> None:
    subject, object_ = entities.alias(), entities.alias()
    query = (
        select(subject.c.name, triples.c.predicate, object_.c.name, mem_fact_triples.c.triple)
        .select_from(mem_fact_triples)
        .join(triples, triples.c.id == mem_fact_triples.c.triple)
        .join(subject, subject.c.id == triples.c.subject)
        .join(object_, object_.c.id == triples.c.object)
        .where(mem_fact_triples.c.fact == fact, LIVE)
    )
    for one, predicate, other, id_ in list(cx.execute(query)):
        try:
            end_fact(cx, (one, predicate, other), None, None, now, actor)
            told = "ended"
        except CastleError as error:
            told = f"not ended: {error}"
        note_change(cx, "fact", fact, f"triple {id_}", "", told, reason=reason, actor=actor, now=now)
