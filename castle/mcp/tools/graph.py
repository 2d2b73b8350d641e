"""The tools of the knowledge graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from castle.mcp.answers import FactItem, FactsAnswer
from castle.mcp.tools.base import Limit, Offset, Palace, offered, page, time_of

if TYPE_CHECKING:
    from castle.store.graph_values import Fact

_DRAWERS = 5


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

        def answer(total: int, start: int, following: int | None, items: list[FactItem]) -> FactsAnswer:
            return FactsAnswer(
                entity=facts.entity or entity,
                total=total,
                offset=start,
                next_offset=following,
                hidden=facts.hidden,
                facts=items,
            )

        return page([_fact(fact) for fact in facts.facts], facts.total, offset, answer)


def _fact(fact: Fact) -> FactItem:
    drawers = [item.drawer for item in fact.evidence if item.drawer is not None]
    return FactItem(
        id=fact.id,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        valid_from=time_of(fact.valid_from),
        valid_to=time_of(fact.valid_to),
        state=fact.state,
        direction=fact.direction or "",
        confidence=fact.confidence,
        evidence_state=fact.evidence_state,
        evidence=len(fact.evidence),
        drawers=drawers[:_DRAWERS],
        recorded_at=time_of(fact.recorded_at),
    )
