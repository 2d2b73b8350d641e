"""What passes from stage to stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from castle.records import StageScore


@dataclass(frozen=True)
class Candidate:
    """A drawer on its way to becoming a hit.

    ``stages`` holds its rank and score in each list it was on and after each stage that ranked it;
    ``boosts`` names the factors that priors put on its score.
    """

    id: str
    sha256: str
    score: float = 0.0
    stages: Mapping[str, StageScore] = field(default_factory=dict)
    matched: tuple[str, ...] = ()
    boosts: Mapping[str, float] = field(default_factory=dict)
    entity_match: bool = False
    soar_tags: tuple[str, ...] = ()
    soar_boost: float = 1.0
    score_pre_soar: float | None = None
    quality_score: float | None = None
    quality_tier: str | None = None
    quality_boost: float = 1.0
    score_pre_quality: float | None = None

    def but(self, **values: Any) -> Candidate:
        """Return a copy with other values. A search makes a thousand; ``replace`` takes ten times as long."""
        copy = object.__new__(Candidate)
        object.__setattr__(copy, "__dict__", self.__dict__ | values)
        return copy


_BLANK = Candidate("", "")


def recalled(id_: str, sha256: str, score: float, **values: Any) -> Candidate:
    """Return a new candidate; the initialiser of a frozen class takes three times as long."""
    return _BLANK.but(id=id_, sha256=sha256, score=score, **values)


def ranked(candidates: Sequence[Candidate], stage: str) -> list[Candidate]:
    """Sort by descending score, equal scores in the order given, and note each one's rank and score."""
    ordered = sorted(candidates, key=lambda candidate: -candidate.score)
    return [
        candidate.but(stages={**candidate.stages, stage: StageScore(rank, candidate.score)})
        for rank, candidate in enumerate(ordered, start=1)
    ]


def boosted(candidates: Sequence[Candidate], factors: Mapping[str, float], stage: str) -> list[Candidate]:
    """Multiply scores by factors, note them under the stage's name, and rank; a missing factor is 1.

    Scores are capped at 1 after they were sorted, so that those beyond it keep their order.
    """
    scores = {c.id: c.score * factors.get(c.id, 1.0) for c in candidates}
    ordered = sorted(candidates, key=lambda candidate: -scores[candidate.id])
    return [
        c.but(
            score=min(scores[c.id], 1.0),
            boosts={**c.boosts, stage: factors[c.id]} if c.id in factors else c.boosts,
            stages={**c.stages, stage: StageScore(rank, min(scores[c.id], 1.0))},
        )
        for rank, c in enumerate(ordered, start=1)
    ]
