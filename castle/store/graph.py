"""The temporal knowledge graph: who and what, related how, from when to when, and how we know.

The facts of one subject, predicate and object never overlap in time: a statement that fits a recorded fact
joins it as further evidence, one that contradicts its end is refused. Nothing recorded is deleted; every
change is a new version of the fact, and ``as_recorded`` asks for what the graph said at an earlier time.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, and_, func, insert, not_, select

from castle.errors import RefusedError, UsageError
from castle.store.graph_reading import (
    LIVE,
    about_clause,
    current_first,
    fact,
    holds_clause,
    one_entity,
    page,
    recorded_clause,
    resolve,
    visible_clause,
)
from castle.store.graph_tables import entities, entity_aliases, evidence, triples
from castle.store.graph_values import (
    Added,
    Direction,
    Fact,
    Facts,
    GraphStats,
    Span,
    Superseded,
    clean_name,
    entity_id,
    make_claim,
    parse_span,
    predicate_id,
    without_secret,
)
from castle.store.graph_writing import add_fact, close_version, end_fact, recorded_facts
from castle.store.ledger import Ledger

DIRECTIONS: tuple[Direction, ...] = ("outgoing", "incoming", "both")


class Graph:
    """The knowledge graph of a ledger; ``actor`` is who is recorded for what is written through it.

    Every time is an ISO date or date-time. A date as a bound is the first instant of its day: ``valid_to``
    and ``ended`` name the first day on which a fact does not hold any more. A date in ``as_of`` is the whole
    day, in ``as_recorded`` its last instant.
    """

    def __init__(self, ledger: Ledger, *, actor: str = "unknown") -> None:
        self._ledger = ledger
        self._actor = actor

    def add(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        valid_from: str | None = None,
        valid_to: str | None = None,
        confidence: float = 1.0,
        drawer: str | None = None,
        source: str | None = None,
        adapter: str = "",
        actor: str | None = None,
    ) -> Added:
        """Record a fact, or find it recorded.

        A statement with the same end as an overlapping fact of the same triple joins it: an earlier start
        widens that fact, a first start dates it, everything else leaves it as it is (``known``); what was
        stated is kept as evidence. ``drawer`` is a drawer's id or its beginning. Raises RefusedError when a
        recorded fact ends otherwise, NotFoundError for an unknown drawer, UsageError for what cannot be
        recorded.
        """
        claim = make_claim(
            subject,
            predicate,
            object,
            valid_from=valid_from,
            valid_to=valid_to,
            confidence=confidence,
            source=source or "",
            adapter=adapter,
        )
        with self._ledger.write() as cx:
            return add_fact(cx, claim, self._ledger.clock(), actor or self._actor, drawer)

    def invalidate(
        self, subject: str, predicate: str, object: str, *, ended: str | None = None, actor: str | None = None
    ) -> Fact:
        """End a fact, now unless ``ended`` says when; return its new version.

        Raises NotFoundError when no fact holds that could end then, RefusedError when it only begins later.
        """
        at = None if ended is None else parse_span("ended", ended).start
        with self._ledger.write() as cx:
            now = self._ledger.clock()
            rid = end_fact(cx, (subject, predicate, object), at, ended, now, actor or self._actor)
            return fact(cx, rid, now)

    def retract(
        self, subject: str, predicate: str, object: str, *, actor: str | None = None
    ) -> tuple[Fact, ...]:
        """Take back facts that never held; they stay in what was recorded. Raises NotFoundError."""
        with self._ledger.write() as cx:
            now = self._ledger.clock()
            rows = recorded_facts(cx, (subject, predicate, object))
            for row in rows:
                close_version(cx, row, now, actor or self._actor)
            return tuple(fact(cx, row.rid, now) for row in rows)

    def supersede(
        self,
        subject: str,
        predicate: str,
        old: str,
        new: str,
        *,
        at: str | None = None,
        confidence: float = 1.0,
        drawer: str | None = None,
        source: str | None = None,
        actor: str | None = None,
    ) -> Superseded:
        """End one fact and begin another at the same moment, now unless ``at`` says when, in one transaction.

        Raises what ``add`` and ``invalidate`` raise; then neither has happened.
        """
        moment = None if at is None else parse_span("at", at).start
        claim = make_claim(subject, predicate, new, confidence=confidence, source=source or "")
        who = actor or self._actor
        with self._ledger.write() as cx:
            now = self._ledger.clock()
            start = now if moment is None else moment
            if (resolve(cx, old) or entity_id(old)) == (resolve(cx, new) or entity_id(new)):
                raise UsageError(f"{old} and {new} are the same: name what comes after {old}")
            rid = end_fact(cx, (subject, predicate, old), moment, at, now, who)
            begun = replace(claim, start=start, start_text=None if at is None else at.strip())
            added = add_fact(cx, begun, now, who, drawer)
            return Superseded(fact(cx, rid, now), added)

    def query(
        self,
        entity: str,
        *,
        as_of: str | None = None,
        direction: Direction = "both",
        as_recorded: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Facts:
        """Return the facts about an entity: what holds first, then what will, then what did.

        ``as_of`` keeps those that held at that time. Raises NotFoundError when the graph does not know the
        entity.
        """
        if direction not in DIRECTIONS:
            raise UsageError(f"direction {direction!r} is none of {', '.join(DIRECTIONS)}")
        condition = _asked(as_of, as_recorded)
        with self._ledger.read() as cx:
            now = self._ledger.clock()
            id_ = one_entity(cx, entity)
            return page(
                cx,
                and_(condition, about_clause(id_, direction)),
                now,
                order=current_first(now),
                limit=limit,
                offset=offset,
                entity=id_,
            )

    def relationship(
        self,
        predicate: str,
        as_of: str | None = None,
        *,
        as_recorded: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Facts:
        """Return the facts with a predicate, what holds first."""
        condition = and_(_asked(as_of, as_recorded), triples.c.predicate == predicate_id(predicate))
        with self._ledger.read() as cx:
            now = self._ledger.clock()
            return page(cx, condition, now, order=current_first(now), limit=limit, offset=offset)

    def timeline(self, entity: str | None = None, *, limit: int | None = None, offset: int = 0) -> Facts:
        """Return facts in the order in which they began, those without a start last.

        Raises NotFoundError when the graph does not know the entity.
        """
        with self._ledger.read() as cx:
            now = self._ledger.clock()
            id_ = None if entity is None else one_entity(cx, entity)
            condition = LIVE if id_ is None else and_(LIVE, about_clause(id_))
            return page(cx, condition, now, limit=limit, offset=offset, entity=id_)

    def stats(self) -> GraphStats:
        """Return the graph in numbers."""
        with self._ledger.read() as cx:
            now = self._ledger.clock()
            seen = and_(LIVE, visible_clause())
            here = holds_clause(Span(now, now + 1))
            predicates = (
                select(triples.c.predicate, func.count())
                .where(seen)
                .group_by(triples.c.predicate)
                .order_by(func.count().desc(), triples.c.predicate)
            )
            return GraphStats(
                entities=cx.execute(select(func.count()).select_from(entities)).scalar_one(),
                facts=_count(cx, seen),
                current=_count(cx, and_(seen, here)),
                ended=_count(cx, and_(seen, triples.c.valid_to <= now)),
                future=_count(cx, and_(seen, triples.c.valid_from > now)),
                hidden=_count(cx, and_(LIVE, not_(visible_clause()))),
                evidence=cx.execute(select(func.count()).select_from(evidence)).scalar_one(),
                predicates={name: count for name, count in cx.execute(predicates)},
            )

    def add_alias(self, entity: str, alias: str) -> None:
        """Let another name stand for an entity; raises NotFoundError, or RefusedError when it is taken."""
        name = without_secret("alias", clean_name("alias", alias))
        with self._ledger.write() as cx:
            id_ = one_entity(cx, entity)
            taken = resolve(cx, name)
            if taken == id_:
                return
            if taken is not None:
                raise RefusedError(
                    f"{name} is already another entity: `castle kg query` shows what is known of it"
                )
            cx.execute(insert(entity_aliases).values(alias=entity_id(name), name=name, entity=id_))


def _asked(as_of: str | None, as_recorded: str | None) -> ColumnElement[bool]:
    known = None if as_recorded is None else parse_span("as_recorded", as_recorded).end - 1
    condition = recorded_clause(known)
    return condition if as_of is None else and_(condition, holds_clause(parse_span("as_of", as_of)))


def _count(cx: Connection, condition: ColumnElement[bool]) -> int:
    return cx.execute(select(func.count()).select_from(triples).where(condition)).scalar_one()
