"""The tools of the knowledge graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from castle.mcp.answers import Answer, FactItem, FactsAnswer, Item, Next
from castle.mcp.budget import result
from castle.mcp.quoting import harmless
from castle.mcp.tools.base import MOST_PATH, Limit, Offset, Palace, offered, page, short, time_of

if TYPE_CHECKING:
    from castle.store.graph_values import Fact, Facts

MOST_EVIDENCE = 5
"""How many drawers and sources of a fact are named."""

ADAPTER = "mcp"

Predicate = Annotated[str, Field(description="how the two are related, as works_at")]


class AddedAnswer(Answer):
    """What is recorded now; ``ignored`` parameters had no effect.

    ``outcome`` is added, known, widened to an earlier start, or dated, which gives it its first start.
    """

    success: bool
    triple_id: str
    outcome: str
    fact: str
    valid_from: str = ""
    valid_to: str = ""
    state: str
    evidence: int
    ignored: list[str] = []


class EndedAnswer(Answer):
    """A fact that ended, and when."""

    success: bool
    triple_id: str
    fact: str
    valid_from: str = ""
    ended: str


class PredicateItem(Item):
    """How many facts have a predicate."""

    predicate: str
    facts: int


class KgStatsAnswer(Answer):
    """The graph in numbers; ``hidden`` facts rest on forgotten drawers only and are in no other count.

    ``total`` counts the types of relationships, those of most facts first.
    """

    entities: int
    facts: int
    current: int
    ended: int
    future: int
    hidden: int
    evidence: int
    total: int
    offset: int
    next_offset: Next = None
    relationship_types: dict[str, int]


class Graph(Palace):
    """Facts with their times and their evidence."""

    @offered("core")
    def kg_query(
        self,
        entity: Annotated[str, Field(description="a person, project or thing")],
        as_of: Annotated[str, Field(description="what held at this ISO date or time")] = "",
        direction: Literal["outgoing", "incoming", "both"] = "both",
        as_recorded: Annotated[str, Field(description="what the graph said at this date or time")] = "",
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, FactsAnswer]:
        """Ask the knowledge graph what is known about an entity, with dates and evidence."""
        with self._asked() as castle:
            facts = castle.kg.query(
                entity,
                as_of=as_of or None,
                direction=direction,
                as_recorded=as_recorded or None,
                limit=limit,
                offset=offset,
            )
        return _facts(facts, entity)

    @offered("core", "adds")
    def kg_add(
        self,
        subject: str,
        predicate: Predicate,
        object: str,
        valid_from: Annotated[str, Field(description="since this ISO date or time")] = "",
        valid_to: Annotated[str, Field(description="until it, the first day without")] = "",
        source_closet: Annotated[str, Field(description="no effect: closets are made anew")] = "",
        source_file: Annotated[str, Field(description="file or other source that says so")] = "",
        source_drawer_id: Annotated[str, Field(description="drawer that says so")] = "",
    ) -> Annotated[CallToolResult, AddedAnswer]:
        """Record a fact; one that is known already is found, not doubled. End what it replaces first."""
        with self._asked() as castle:
            added = castle.kg.add(
                subject,
                predicate,
                object,
                valid_from=valid_from or None,
                valid_to=valid_to or None,
                drawer=source_drawer_id or None,
                source=source_file or None,
                adapter=ADAPTER,
            )
        fact = added.fact
        return result(
            AddedAnswer(
                success=True,
                triple_id=fact.id,
                outcome=added.outcome,
                fact=harmless(fact.sentence),
                valid_from=time_of(fact.valid_from),
                valid_to=time_of(fact.valid_to),
                state=fact.state,
                evidence=len(fact.evidence),
                ignored=["source_closet"] if source_closet else [],
            )
        )

    @offered("standard", "changes")
    def kg_invalidate(
        self,
        subject: str,
        predicate: Predicate,
        object: str,
        ended: Annotated[str, Field(description="ISO time, or first day without it; else now")] = "",
    ) -> Annotated[CallToolResult, EndedAnswer]:
        """End a fact that does not hold any more; what held before stays known."""
        with self._asked() as castle:
            fact = castle.kg.invalidate(subject, predicate, object, ended=ended or None)
        return result(
            EndedAnswer(
                success=True,
                triple_id=fact.id,
                fact=harmless(fact.sentence),
                valid_from=time_of(fact.valid_from),
                ended=time_of(fact.valid_to),
            )
        )

    @offered("standard")
    def kg_timeline(
        self,
        entity: Annotated[str, Field(description="only facts about this person or thing")] = "",
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, FactsAnswer]:
        """List facts in the order in which they began, those without a date last."""
        with self._asked() as castle:
            facts = castle.kg.timeline(entity or None, limit=limit, offset=offset)
        return _facts(facts, entity)

    @offered("all")
    def kg_stats(self, offset: Offset = 0) -> Annotated[CallToolResult, KgStatsAnswer]:
        """Count the entities, facts and types of relationships of the knowledge graph."""
        with self._asked() as castle:
            stats = castle.kg.stats()
        types = [PredicateItem(predicate=name, facts=count) for name, count in stats.predicates.items()]

        def answer(total: int, start: int, following: int | None, items: list[PredicateItem]) -> Answer:
            return KgStatsAnswer(
                entities=stats.entities,
                facts=stats.facts,
                current=stats.current,
                ended=stats.ended,
                future=stats.future,
                hidden=stats.hidden,
                evidence=stats.evidence,
                total=total,
                offset=start,
                next_offset=following,
                relationship_types={item.predicate: item.facts for item in items},
            )

        return page(types[offset:], len(types), offset, answer)


def _facts(facts: Facts, entity: str) -> CallToolResult:
    def answer(total: int, start: int, following: int | None, items: list[FactItem]) -> FactsAnswer:
        return FactsAnswer(
            entity=harmless(facts.entity or entity),
            total=total,
            offset=start,
            next_offset=following,
            hidden=facts.hidden,
            facts=items,
        )

    return page([_fact(fact) for fact in facts.facts], facts.total, facts.offset, answer)


def _fact(fact: Fact) -> FactItem:
    drawers = [item.drawer for item in fact.evidence if item.drawer is not None]
    sources = dict.fromkeys(item.source for item in fact.evidence if item.source)
    return FactItem(
        triple_id=fact.id,
        subject=harmless(fact.subject),
        predicate=fact.predicate,
        object=harmless(fact.object),
        valid_from=time_of(fact.valid_from),
        valid_to=time_of(fact.valid_to),
        state=fact.state,
        direction=fact.direction or "",
        confidence=fact.confidence,
        evidence_state=fact.evidence_state,
        evidence=len(fact.evidence),
        drawer_ids=drawers[:MOST_EVIDENCE],
        sources=[harmless(short(source, MOST_PATH)) for source in list(sources)[:MOST_EVIDENCE]],
        recorded_at=time_of(fact.recorded_at),
    )
