"""Stage 2: one ranking out of several.

Two ways: weighted reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009), and the weighted mean of
scores that were brought to [0, 1] within each list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from castle.records import StageScore
from castle.search.candidates import Candidate, recalled

SHARES = "graph"
STEEPNESS: Mapping[str, float] = {"lexical": 2.0}
"""What a list's weight is multiplied by where scores are fused, measured beside 1 and 3: BM25 tells the best
from the second best more surely than cosines do."""
EVIDENCE = 4.0
"""How much a signal of weight 1 that is missing counts against a relevance, in logarithms of odds."""
KINSHIP = 0.7
"""How much the best relevance of a session counts beside a drawer's own; .5 and 1 did nearly the same."""

_SUREST = 1.0 - 1e-9
_HIGHEST = 700.0

Signals = Mapping[str, Mapping[str, float]]
Lists = Mapping[str, Sequence[Candidate]]


def reciprocal_ranks(lists: Lists, weights: Mapping[str, float], k: float = 60.0) -> list[Candidate]:
    """Fuse by rank: the sum over lists of weight / (k + rank), ranks from 1; a list without weight counts 0.

    Sorted by descending score; ties go to more matched words, then by id.
    """
    parts = {
        name: [weights.get(name, 0.0) / (k + rank) for rank in range(1, len(members) + 1)]
        for name, members in lists.items()
    }
    return _joined(lists, parts)


def calibrated_scores(lists: Lists, weights: Mapping[str, float]) -> list[Candidate]:
    """Fuse by score: each list is scaled to [0, 1] by its extremes, absence counts 0, the mean is weighted.

    The graph's scores are shares already and stay as they are.

    Sorted by descending score in [0, 1]; ties go to more matched words, then by id.
    """
    steep = {name: weights.get(name, 0.0) * STEEPNESS.get(name, 1.0) for name in lists}
    total = sum(steep[name] for name, members in lists.items() if members) or 1.0
    parts: dict[str, list[float]] = {}
    for name, members in lists.items():
        weight = steep[name] / total
        if name == SHARES:
            parts[name] = [weight * member.score for member in members]
            continue
        low = min((member.score for member in members), default=0.0)
        width = max((member.score for member in members), default=0.0) - low
        parts[name] = [weight * ((m.score - low) / width if width else 1.0) for m in members]
    return _joined(lists, parts)


def with_signals(
    fused: Sequence[Candidate], signals: Signals, weights: Mapping[str, float]
) -> list[Candidate]:
    """Add signals, scores in [0, 1] by id, to a ranking: the weighted mean with its scores, which weigh 1.

    Scores are taken relative to the best one, which makes those of ranks comparable. A signal that speaks for
    nobody changes nothing.
    """
    spoken = {name: scores for name, scores in signals.items() if scores and weights.get(name, 0.0) > 0}
    best = max((candidate.score for candidate in fused), default=0.0)
    if not spoken or best <= 0:
        return list(fused)
    total = 1.0 + sum(weights[name] for name in spoken)
    ranks = {
        name: {id_: rank for rank, id_ in enumerate(sorted(scores, key=lambda id_: (-scores[id_], id_)), 1)}
        for name, scores in spoken.items()
    }
    parts = [(name, weights[name], scores, ranks[name]) for name, scores in spoken.items()]
    added = []
    for candidate in fused:
        id_, stages = candidate.id, dict(candidate.stages)
        score = 0.0
        for name, weight, scores, places in parts:
            if id_ in scores:
                score += weight * scores[id_]
                stages[name] = StageScore(places[id_], scores[id_])
        added.append(candidate.but(score=(candidate.score / best + score) / total, stages=stages))
    return sorted(added, key=lambda candidate: -candidate.score)


def favoured(read: Sequence[Candidate], signals: Signals, weights: Mapping[str, float]) -> list[Candidate]:
    """Let signals weigh in on relevances in [0, 1] as evidence: each multiplies the odds.

    odds = p / (1 - p) · exp(EVIDENCE · sum of weight · (signal - 1)): what all signals speak for keeps its
    relevance, the rest loses. So what is irrelevant stays so, however timely it is.
    """
    spoken = [(weights.get(name, 0.0), scores) for name, scores in signals.items() if scores]
    changed = []
    for candidate in read:
        against = sum(weight * (1.0 - scores.get(candidate.id, 0.0)) for weight, scores in spoken)
        odds = math.exp(-EVIDENCE * against)
        p = min(candidate.score, _SUREST)
        changed.append(candidate.but(score=p * odds / (1.0 - p + p * odds) if p > 0 else p))
    return sorted(changed, key=lambda candidate: -candidate.score)


def among_kin(
    read: Sequence[Candidate], signals: Signals, weights: Mapping[str, float], kin: Mapping[str, str]
) -> list[Candidate]:
    """Let what is around candidates weigh in on their relevances in [0, 1] as evidence.

    log odds = log odds + EVIDENCE · sum of weight · signal + KINSHIP · the best log odds of its kin; ``kin``
    names the group of each id. All are then shifted alike so that the best keeps the best relevance found:
    what is around says which of several is meant, not whether anything is.
    """
    if not read:
        return []
    own = {c.id: log_odds(c.score) for c in read}
    best: dict[str, float] = {}
    for id_, value in own.items():
        best[kin[id_]] = max(value, best.get(kin[id_], -math.inf))
    around = {
        id_: value
        + KINSHIP * best[kin[id_]]
        + EVIDENCE * sum(weights.get(name, 0.0) * scores.get(id_, 0.0) for name, scores in signals.items())
        for id_, value in own.items()
    }
    shift = max(own.values()) - max(around.values())
    changed = [c.but(score=probability(around[c.id] + shift)) for c in read]
    return sorted(changed, key=lambda candidate: -candidate.score)


def log_odds(p: float) -> float:
    """Return the logarithm of the odds of a probability, finite for 0 and 1 as well."""
    p = min(max(p, 1.0 - _SUREST), _SUREST)
    return math.log(p / (1.0 - p))


def probability(odds: float) -> float:
    """Return the probability with these log odds."""
    return 1.0 / (1.0 + math.exp(min(-odds, _HIGHEST)))


def _joined(lists: Lists, parts: Mapping[str, Sequence[float]]) -> list[Candidate]:
    scores: dict[str, float] = {}
    stages: dict[str, dict[str, StageScore]] = {}
    matched: dict[str, tuple[str, ...]] = {}
    named: set[str] = set()
    hashes: dict[str, str] = {}
    for name, members in lists.items():
        for rank, (member, part) in enumerate(zip(members, parts[name], strict=True), start=1):
            id_, words = member.id, member.matched
            if id_ not in scores:
                scores[id_], stages[id_], matched[id_], hashes[id_] = part, {}, words, member.sha256
            else:
                scores[id_] += part
                if words:
                    matched[id_] = tuple(dict.fromkeys((*matched[id_], *words)))
            stages[id_][name] = StageScore(rank, member.score)
            if member.entity_match:
                named.add(id_)
    ordered = sorted(scores, key=lambda id_: (-scores[id_], -len(matched[id_]), id_))
    return [
        recalled(
            id_, hashes[id_], scores[id_], stages=stages[id_], matched=matched[id_], entity_match=id_ in named
        )
        for id_ in ordered
    ]
