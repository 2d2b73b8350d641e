"""The fact checker: what in the knowledge graph cannot be, may be out of date, or has two names.

It reports and changes nothing. Facts whose evidence is all forgotten are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, and_, case, func, not_, or_, select, union_all

from castle.errors import UsageError
from castle.store.graph_reading import LIVE, facts_where, holds_clause, visible_clause
from castle.store.graph_tables import entities, evidence, triples
from castle.store.graph_values import DAY, Fact, Span, high, low, show_moment, show_validity
from castle.store.ledger import Ledger
from castle.store.schema import drawers
from castle.text.near import near_names

IssueKind = Literal["contradiction", "stale", "similar names"]

STALE_AFTER_DAYS = 365

CHANGING = frozenset(
    "age based_in current_version default_branch employed_by has_status headquartered_in "
    "job_title latest_version lives_in located_in managed_by led_by maintained_by married_to owned_by "
    "reports_to resides_in spouse_of status version works_at works_for".split()
)
"""Predicates with one object at a time, whose object may change."""

LASTING = frozenset(
    "birthday born_at born_in born_on created_on date_of_birth died_in died_on founded_in "
    "founded_on released_on".split()
)
"""Predicates with one object for ever."""

SINGLE_VALUED = CHANGING | LASTING
"""Predicates of which a subject can have one object at a time."""

SYMMETRIC = frozenset({"married_to", "spouse_of"})
"""Single-valued predicates that say the same when subject and object change places."""

ONE_WAY = frozenset(
    "ancestor_of child_of contains daughter_of descendant_of father_of grandchild_of grandparent_of led_by "
    "managed_by manages mother_of older_than owned_by owns parent_of part_of replaces reports_to son_of "
    "successor_of younger_than".split()
)
"""Predicates that cannot hold both ways at once."""

OPPOSITES: Mapping[str, str] = {
    "disagrees_with": "agrees_with",
    "dislikes": "likes",
    "distrusts": "trusts",
    "hates": "loves",
    "opposes": "supports",
    "rejects": "accepts",
    "disabled_in": "enabled_in",
    "incompatible_with": "compatible_with",
}
"""Predicates that deny another one; so does ``not_`` before any predicate."""

_NOT = "not_"


@dataclass(frozen=True, slots=True)
class Issue:
    """Something to look at: in words, with the ids of the facts or entities it is about."""

    kind: IssueKind
    detail: str
    about: tuple[str, ...]


def check(ledger: Ledger, *, stale_after_days: int = STALE_AFTER_DAYS) -> list[Issue]:
    """Return what is doubtful in the graph of a ledger: contradictions, stale facts, similar names.

    A changing fact is stale when nobody stated it for ``stale_after_days`` (0: never).
    """
    if stale_after_days < 0:
        raise UsageError(f"{stale_after_days} days are less than none")
    with ledger.read() as cx:
        now = ledger.clock()
        return [
            *contradictions(cx, now),
            *stale_facts(cx, now, stale_after_days * DAY),
            *similar_names(cx),
        ]


def contradictions(cx: Connection, now: int) -> Iterator[Issue]:
    """Yield groups of facts, not yet ended, that cannot hold at the same time."""
    yield from _two_objects(_open_facts(cx, now, triples.c.predicate.in_(sorted(SINGLE_VALUED))))
    negated = triples.c.predicate.startswith(_NOT, autoescape=True)
    denials = _open_facts(cx, now, or_(triples.c.predicate.in_(sorted(OPPOSITES)), negated))
    denied = {_denied(fact.predicate) for fact in denials}
    affirmed = _by_triple(_open_facts(cx, now, triples.c.predicate.in_(sorted(denied))))
    for fact in denials:
        for other in affirmed.get((fact.subject_id, _denied(fact.predicate), fact.object_id), ()):
            yield from _clash("cannot both hold", fact, other)
    one_way = _open_facts(cx, now, triples.c.predicate.in_(sorted(ONE_WAY)))
    reverse = _by_triple(one_way)
    for fact in one_way:
        if fact.subject_id < fact.object_id:
            for other in reverse.get((fact.object_id, fact.predicate, fact.subject_id), ()):
                yield from _clash("cannot hold both ways", fact, other)


def _open_facts(cx: Connection, now: int, condition: ColumnElement[bool]) -> list[Fact]:
    lasts = or_(triples.c.valid_to.is_(None), triples.c.valid_to > now)
    return facts_where(cx, and_(LIVE, visible_clause(), lasts, condition), now)


def _denied(predicate: str) -> str:
    return OPPOSITES.get(predicate) or predicate.removeprefix(_NOT)


def _by_triple(facts: Sequence[Fact]) -> dict[tuple[str, str, str], list[Fact]]:
    found: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in facts:
        found.setdefault((fact.subject_id, fact.predicate, fact.object_id), []).append(fact)
    return found


def _two_objects(facts: Sequence[Fact]) -> Iterator[Issue]:
    groups: dict[tuple[str, str], list[tuple[str, Fact]]] = {}
    for fact in facts:
        groups.setdefault((fact.subject_id, fact.predicate), []).append((fact.object_id, fact))
        if fact.predicate in SYMMETRIC:
            groups.setdefault((fact.object_id, fact.predicate), []).append((fact.subject_id, fact))
    for (_, predicate), members in groups.items():
        clashing = [
            fact
            for value, fact in members
            if any(value != other and _overlap(fact, against) for other, against in members)
        ]
        if clashing:
            said = "; ".join(_described(fact) for fact in clashing)
            about = tuple(fact.id for fact in clashing)
            yield Issue("contradiction", f"only one {predicate} can hold at a time: {said}", about)


def _clash(why: str, one: Fact, other: Fact) -> Iterator[Issue]:
    if _overlap(one, other):
        said = f"{_described(one)}; {_described(other)}"
        yield Issue("contradiction", f"{why}: {said}", (one.id, other.id))


def _overlap(one: Fact, other: Fact) -> bool:
    starts = max(low(one.valid_from), low(other.valid_from))
    return starts < min(high(one.valid_to), high(other.valid_to))


def _described(fact: Fact) -> str:
    return f"{fact.sentence}, {show_validity(fact.valid_from, fact.valid_to)}"


def stale_facts(cx: Connection, now: int, after: int) -> Iterator[Issue]:
    """Yield facts that their evidence does not bear any more; ``after`` is in microseconds, 0 for never."""
    seen = and_(LIVE, visible_clause())
    here = and_(seen, holds_clause(Span(now, now + 1)))
    shown = drawers.c.state != "forgotten"
    standing = _has_evidence(or_(evidence.c.drawer.is_(None), drawers.c.state == "current"))
    for fact in facts_where(cx, and_(here, not_(standing)), now):
        yield _stale(fact, "no current drawer says so any more")
    later = and_(shown, evidence.c.valid_to_text.is_(None), drawers.c.authored_at >= triples.c.valid_to)
    for fact in facts_where(cx, and_(seen, triples.c.valid_to <= now, _has_evidence(later)), now):
        yield _stale(fact, "a drawer written after that end still says so")
    if not after:
        return
    since = now - after
    stated = case((evidence.c.drawer.is_(None), evidence.c.confirmed_at), else_=drawers.c.authored_at)
    confirmed = _has_evidence(and_(or_(evidence.c.drawer.is_(None), shown), stated >= since))
    began = or_(triples.c.valid_from.is_(None), triples.c.valid_from < since)
    changing = triples.c.predicate.in_(sorted(CHANGING))
    for fact in facts_where(cx, and_(here, changing, began, standing, not_(confirmed)), now):
        yield _stale(fact, f"nobody has said so since {show_moment(since // DAY * DAY)}")


def _has_evidence(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    rows = evidence.outerjoin(drawers, drawers.c.rid == evidence.c.drawer)
    query = select(evidence.c.rid).select_from(rows).where(evidence.c.triple == triples.c.id, condition)
    return query.exists()


def _stale(fact: Fact, why: str) -> Issue:
    return Issue("stale", f"{_described(fact)}: {why}", (fact.id,))


def similar_names(cx: Connection) -> Iterator[Issue]:
    """Yield pairs of entities whose names differ in case, accents and punctuation, or by a letter or two.

    One edit (a letter more, less or other, or two exchanged) counts from five letters on, two from ten; names
    with different digits are different.
    """
    seen = and_(LIVE, visible_clause())
    used = union_all(select(triples.c.subject).where(seen), select(triples.c.object).where(seen)).subquery()
    query = (
        select(entities.c.id, entities.c.name, func.count())
        .join(used, used.c[0] == entities.c.id)
        .group_by(entities.c.id)
        .order_by(entities.c.id)
    )
    named = {id_: (name, count) for id_, name, count in cx.execute(query)}
    for one, other, why in near_names({id_: name for id_, (name, _) in named.items()}):
        counted = " and ".join(
            f"{name} ({count} fact{'' if count == 1 else 's'})" for name, count in (named[one], named[other])
        )
        yield Issue("similar names", f"{counted} may be one: {why}", (one, other))
