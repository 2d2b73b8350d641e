"""The tools that say how new a text is, and which drawers say little new."""

from __future__ import annotations

from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from castle.mcp.answers import Answer, Next, Quoted
from castle.mcp.budget import fitted
from castle.mcp.quoting import harmless
from castle.mcp.tools.base import MOST_PATH, Limit, Offset, Palace, Wing, offered, page, short


class NeighbourItem(Quoted):
    """A drawer that is near; ``content`` is its beginning."""

    cosine: float
    wing: str
    room: str


class InfoScoreAnswer(Answer):
    """How new a text would be: low below 0.1, medium below 0.5, else high; ``left_out`` had no room."""

    novelty: float
    band: str
    total: int
    left_out: int = 0
    behind: Annotated[int, Field(description="drawers that could not be compared with")] = 0
    neighbours: list[NeighbourItem]


class CandidateItem(Quoted):
    """A drawer that adds little to an earlier one."""

    novelty: float
    wing: str
    room: str
    source: str
    nearest_drawer_id: str
    nearest_source: str


class PruneAnswer(Answer):
    """One page of candidates, the least novel first, of the ``sampled`` drawers of ``drawers``."""

    threshold: float
    drawers: int
    sampled: int
    unscored: Annotated[int, Field(description="drawers without a score yet")] = 0
    total: int
    offset: int
    next_offset: Next = None
    candidates: list[CandidateItem]


class Novelty(Palace):
    """What would be new, and what is not."""

    @offered("all")
    def info_score(
        self,
        text: Annotated[str, Field(description="what you would file")],
        wing: Annotated[str, Field(description="compare only with this wing")] = "",
        top_k: Annotated[Limit, Field(description="neighbours to show")] = 5,
    ) -> Annotated[CallToolResult, InfoScoreAnswer]:
        """Say how new a text would be beside what is filed. It says nothing about truth; files nothing."""
        with self._asked_with_models() as castle:
            found = castle.info_score(text, wing=wing or None, top_k=top_k)
        items = [
            NeighbourItem(
                drawer_id=near.id,
                content=near.text,
                cosine=round(near.cosine, 4),
                wing=near.wing,
                room=near.room,
            )
            for near in found.neighbours
        ]

        def answer(neighbours: list[NeighbourItem]) -> InfoScoreAnswer:
            return InfoScoreAnswer(
                novelty=round(found.novelty, 4),
                band=found.band,
                total=len(items),
                left_out=len(items) - len(neighbours),
                behind=found.behind,
                neighbours=neighbours,
            )

        return fitted(items, answer)

    @offered("all")
    def prune_suggest(
        self,
        sample: Annotated[int, Field(ge=0, description="drawers to look at, by chance; 0 is all")] = 200,
        threshold: Annotated[float, Field(ge=0, le=1, description="list what is less novel")] = 0.1,
        wing: Wing = "",
        seed: Annotated[int, Field(description="for the sample: the same one again")] = 42,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, PruneAnswer]:
        """List drawers that add little to what was filed before them, for you to look at; changes nothing."""
        with self._asked() as castle:
            found = castle.prune_suggest(threshold=threshold, wing=wing or None, sample=sample, seed=seed)
        items = [
            CandidateItem(
                drawer_id=one.id,
                content=one.text,
                novelty=round(one.novelty, 4),
                wing=one.wing,
                room=one.room,
                source=harmless(short(one.source, MOST_PATH)),
                nearest_drawer_id=one.nearest,
                nearest_source=harmless(short(one.nearest_source, MOST_PATH)),
            )
            for one in found.suggestions[offset : offset + limit]
        ]

        def answer(total: int, start: int, following: int | None, shown: list[CandidateItem]) -> PruneAnswer:
            return PruneAnswer(
                threshold=found.threshold,
                drawers=found.drawers,
                sampled=found.examined,
                unscored=found.unscored,
                total=total,
                offset=start,
                next_offset=following,
                candidates=shown,
            )

        return page(items, len(found.suggestions), offset, answer)
