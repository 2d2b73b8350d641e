"""Writing the knowledge graph, always inside the caller's write transaction.

The live facts of one subject, predicate and object never overlap in time. A change ends the live version of a
fact and inserts the next one.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Row, and_, func, insert, select, update

from castle.errors import NotFoundError, RefusedError
from castle.store.graph_reading import LIVE, fact, holds_clause, resolve
from castle.store.graph_tables import entities, evidence, triples
from castle.store.graph_values import (
    Added,
    Claim,
    Outcome,
    Span,
    clean_name,
    entity_id,
    fact_id,
    high,
    low,
    predicate_id,
    show_moment,
    show_validity,
    state_at,
)
from castle.store.reading import full_id
from castle.store.schema import drawers

TripleRow = Row[tuple[object, ...]]


def add_fact(cx: Connection, claim: Claim, now: int, actor: str, drawer: str | None = None) -> Added:
    """Record a claim inside a write transaction; see ``Graph.add``."""
    rid = None if drawer is None else _ground(cx, drawer)
    subject = ensure_entity(cx, claim.subject, now, actor)
    object_ = ensure_entity(cx, claim.object, now, actor)
    rows = _live(cx, subject, claim.predicate, object_, Span(low(claim.start), high(claim.end)))
    outcome, row = _joined(claim, rows)
    if row is None:
        id_ = _new_id(cx, subject, claim.predicate, object_)
        version = _insert(
            cx,
            id=id_,
            subject=subject,
            predicate=claim.predicate,
            object=object_,
            valid_from=claim.start,
            valid_to=claim.end,
            valid_from_text=claim.start_text,
            valid_to_text=claim.end_text,
            created_at=now,
            recorded_at=now,
            recorded_by=actor,
        )
    else:
        id_, version = row.id, row.rid
        if outcome != "known":
            changed = {"valid_from": claim.start, "valid_from_text": claim.start_text}
            version = _revise(cx, row, now, actor, changed)
    _note(cx, id_, claim, rid, now, actor)
    return Added(outcome, fact(cx, version, now))


def ensure_entity(cx: Connection, name: str, now: int, actor: str, type: str = "unknown") -> str:
    """Return the id of the entity a name or alias stands for, recording it when it is new."""
    known = resolve(cx, name)
    if known is not None:
        return known
    id_ = entity_id(name)
    cx.execute(insert(entities).values(id=id_, name=name, type=type, created_at=now, created_by=actor))
    return id_


def _joined(claim: Claim, rows: Sequence[TripleRow]) -> tuple[Outcome, TripleRow | None]:
    """Choose the fact that a claim belongs to; ``rows`` are those it overlaps with, by start."""
    if not rows:
        return "added", None
    for row in rows:
        if row.valid_to != claim.end:
            continue
        if claim.start is None or low(row.valid_from) <= claim.start:
            return ("dated", row) if row.valid_from is None and claim.start is not None else ("known", row)
        if len(rows) == 1:
            return "widened", row
    # The rows do not overlap with each other, so that one at most shares the claim's end.
    raise _contradiction(claim, [row for row in rows if row.valid_to != claim.end][-1])


def _contradiction(claim: Claim, row: TripleRow) -> RefusedError:
    triple = (claim.subject, claim.predicate, claim.object)
    if claim.end is not None and claim.end < high(row.valid_to):
        command = shlex.join(["castle", "kg", "invalidate", *triple, "--ended", show_moment(claim.end)])
        hint = f"end it with `{command}`"
    else:
        hint = f"say since when it holds again, at or after {show_moment(row.valid_to)}, with --valid-from"
    return RefusedError(
        f"{' '.join(triple)} is recorded {show_validity(row.valid_from, row.valid_to)}, not "
        f"{show_validity(claim.start, claim.end)}: {hint}, or take it back with `castle kg retract`"
    )


def end_fact(
    cx: Connection,
    triple: tuple[str, str, str],
    moment: int | None,
    text: str | None,
    now: int,
    actor: str,
) -> int:
    """End the fact that holds at a moment (None: now) and return the row of its new version."""
    at = now if moment is None else moment
    rows = recorded_facts(cx, triple)
    what = " ".join(triple)
    for row in rows:
        if low(row.valid_from) < at < high(row.valid_to):
            changed = {"valid_to": at, "valid_to_text": None if text is None else text.strip()}
            return _revise(cx, row, now, actor, changed)
    later = [row for row in rows if state_at(row.valid_from, row.valid_to, at - 1) == "future"]
    if later:
        raise RefusedError(
            f"{what} begins at {show_moment(later[0].valid_from)}, not before {show_moment(at)}: "
            "name a later end, or take it back with `castle kg retract`"
        )
    raise NotFoundError(
        f"{what} ended already at {show_moment(rows[-1].valid_to)}: `castle kg timeline` shows when what held"
    )


def recorded_facts(cx: Connection, triple: tuple[str, str, str]) -> list[TripleRow]:
    """Return every live fact of a triple by start; raises NotFoundError when there is none."""
    subject, predicate, object_ = triple
    ids = [resolve(cx, clean_name("subject", subject)), resolve(cx, clean_name("object", object_))]
    known = predicate_id(predicate)
    rows = _live(cx, ids[0], known, ids[1], None) if ids[0] and ids[1] else []
    if not rows:
        raise NotFoundError(
            f"the graph holds no fact {subject} {known} {object_}: `castle kg query` shows what it does hold"
        )
    return rows


def _live(cx: Connection, subject: str, predicate: str, object_: str, span: Span | None) -> list[TripleRow]:
    condition = and_(
        LIVE,
        triples.c.subject == subject,
        triples.c.predicate == predicate,
        triples.c.object == object_,
    )
    if span is not None:
        condition = and_(condition, holds_clause(span))
    query = select(triples).where(condition).order_by(triples.c.valid_from.asc().nulls_first())
    return list(cx.execute(query))


def _revise(cx: Connection, row: TripleRow, now: int, actor: str, changed: Mapping[str, object]) -> int:
    """End a version and write the next one."""
    close_version(cx, row, now, actor)
    values = {**row._mapping, **changed}
    del values["rid"], values["ended_at"], values["ended_by"]
    return _insert(cx, **{**values, "recorded_at": max(now, row.recorded_at), "recorded_by": actor})


def close_version(cx: Connection, row: TripleRow, now: int, actor: str) -> None:
    """End a version of a fact, which stays readable as what was recorded."""
    ended = {"ended_at": max(now, row.recorded_at), "ended_by": actor}
    cx.execute(update(triples).where(triples.c.rid == row.rid).values(**ended))


def _insert(cx: Connection, **values: object) -> int:
    rid: int = cx.execute(insert(triples).values(**values).returning(triples.c.rid)).scalar_one()
    return rid


def _note(cx: Connection, id_: str, claim: Claim, drawer: int | None, now: int, actor: str) -> None:
    """Keep a statement as evidence; the same one again only moves the time of its confirmation."""
    said = {
        "triple": id_,
        "drawer": drawer,
        "source": claim.source,
        "adapter": claim.adapter,
        "actor": actor,
        "confidence": claim.confidence,
        "valid_from_text": claim.start_text,
        "valid_to_text": claim.end_text,
    }
    same = and_(*(evidence.c[name].is_not_distinct_from(value) for name, value in said.items()))
    known = cx.execute(select(evidence.c.rid).where(same)).scalar()
    if known is None:
        cx.execute(insert(evidence).values(**said, recorded_at=now, confirmed_at=now))
    elif drawer is None:
        cx.execute(update(evidence).where(evidence.c.rid == known).values(confirmed_at=now))


def _ground(cx: Connection, given: str) -> int:
    """Return the row of the drawer that is named as evidence."""
    id_ = full_id(cx, given)
    row = cx.execute(select(drawers.c.rid, drawers.c.state).where(drawers.c.id == id_)).one()
    if row.state == "forgotten":
        raise RefusedError(f"drawer {id_} is forgotten: bring it back with `castle restore {id_}` first")
    return int(row.rid)


def _new_id(cx: Connection, subject: str, predicate: str, object_: str) -> str:
    """Return the id of the next fact of a triple; those taken back keep theirs."""
    query = select(func.count(triples.c.id.distinct())).where(
        triples.c.subject == subject, triples.c.predicate == predicate, triples.c.object == object_
    )
    return fact_id(subject, predicate, object_, cx.execute(query).scalar_one())
