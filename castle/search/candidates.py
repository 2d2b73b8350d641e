"""What passes from stage to stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from castle.records import StageScore


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drawer on its way to becoming a hit; ``stages`` holds its rank and score in each list it was on."""

    id: str
    sha256: str
    score: float = 0.0
    stages: Mapping[str, StageScore] = field(default_factory=dict)
    matched: tuple[str, ...] = ()


Stage = Callable[[Sequence[Candidate]], Sequence[Candidate]]
