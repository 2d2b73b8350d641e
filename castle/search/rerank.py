"""Stage 3: the best of the fused candidates in the order in which a cross-encoder finds them relevant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from castle.errors import UnreadableError
from castle.models.base import Comparer, CrossEncoder, checked_scores
from castle.search.candidates import Candidate, ranked
from castle.search.fusion import log_odds, probability

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STAGE = "cross-encoder"


@dataclass(frozen=True, slots=True)
class Absent:
    """The cross-encoder of a search that has to do without models; ``why`` is what it says of itself."""

    why: str
    identity: str = "absent"
    confident: float = 0.0
    blend: float = 0.0
    reason: str = ""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raise UnreadableError: this reads nothing."""
        raise UnreadableError(self.why)


def rerank(
    query: str,
    candidates: Sequence[Candidate],
    texts: Mapping[str, str],
    encoder: CrossEncoder,
    k: int,
    blend: float | None = None,
    *,
    compared: bool = False,
) -> list[Candidate]:
    """Rank the first ``k`` candidates by relevance; the others follow in their order.

    ``texts`` holds the text of at least the first ``k`` by id. Scores become relevances in [0, 1]: odds of
    relevance r / (1 - r), divided by exp(blend * (1 - f)) for a fused score that is f times the best one;
    ``blend`` is the encoder's own unless given.
    With ``compared``, an encoder that is able to compares what it read; the best relevance stays what it was.
    What was not read gets at most the least relevance found, in proportion to its fused score. Equal scores
    keep their order. Raises ModelError when the encoder fails.
    """
    head, tail = candidates[:k], candidates[k:]
    if not head:
        return list(candidates)
    given = [texts[candidate.id] for candidate in head]
    relevances = checked_scores(encoder.score(query, given), len(head), encoder.identity)
    blend = encoder.blend if blend is None else blend
    best = max(candidate.score for candidate in head)
    against = [blend * (1.0 - _share(candidate.score, best)) for candidate in head]
    scores = [_lowered(float(r), less) for r, less in zip(relevances, against, strict=True)]
    if compared and isinstance(encoder, Comparer):
        odds = encoder.compare(query, [[text] for text in given])
        scores = _apart(scores, [float(value) - less for value, less in zip(odds, against, strict=True)])
    read = [candidate.but(score=score) for candidate, score in zip(head, scores, strict=True)]
    least = min(candidate.score for candidate in read)
    highest = max((candidate.score for candidate in tail), default=0.0)
    unread = [candidate.but(score=least * _share(candidate.score, highest)) for candidate in tail]
    return [*ranked(read, STAGE), *unread]


def confident(candidates: Sequence[Candidate], encoder: CrossEncoder) -> bool:
    """Say whether a reranked list holds a match; without a measured threshold every list does."""
    return max((candidate.score for candidate in candidates), default=0.0) >= encoder.confident


def _share(score: float, best: float) -> float:
    return score / best if best > 0 else 1.0


def _lowered(relevance: float, less: float) -> float:
    """Lower the log odds of a relevance: the pooling of log odds (Genest and Zidek, 1986)."""
    against = (1.0 - relevance) * math.exp(less)
    return relevance / (relevance + against)


def _apart(scores: Sequence[float], odds: Sequence[float]) -> list[float]:
    """Return relevances with these log odds, shifted so that the best one stays; none stays none."""
    best = max(scores)
    if best <= 0:
        return list(scores)
    shift = log_odds(best) - max(value for value, score in zip(odds, scores, strict=True) if score > 0)
    return [
        probability(value + shift) if score > 0 else 0.0 for value, score in zip(odds, scores, strict=True)
    ]
