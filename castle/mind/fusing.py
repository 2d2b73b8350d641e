"""One ranking out of those of the layers.

Weighted reciprocal ranks (Cormack, Clarke and Büttcher, SIGIR 2009), K = 60: what is found counts by its
place in the ranking of its layer, and by its place among everything that is near by meaning, which one
embedder measures and so is comparable. Layers weigh: semantic and episodic 1, procedural 0.8, working 0.6
times its attention, what associations lead to 0.5. Ranks say nothing of how far apart two things are, so a
score is cut, to a half at most, for what is far from the query beside the nearest and holds few of its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

K = 60.0
WEIGHTS: Mapping[str, float] = {
    "fact": 1.0,
    "drawer": 1.0,
    "pending": 1.0,
    "procedure": 0.8,
    "working": 0.6,
}
GRAPH_WEIGHT = 0.5

Key = tuple[str, str]


@dataclass(slots=True)
class Found:
    """Something on its way to being recalled: its ranks and scores by list, and the words that it holds."""

    key: Key
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    matched: tuple[str, ...] = ()
    cosine: float | None = None
    score: float = 0.0


class Fusion:
    """Everything that the layers found."""

    def __init__(self) -> None:
        self.found: dict[Key, Found] = {}

    def add(
        self,
        name: str,
        key: Key,
        rank: int,
        score: float,
        matched: Sequence[str] = (),
        cosine: float | None = None,
    ) -> Found:
        """Note a place in a ranking; the better one where a thing is there twice."""
        one = self.found.setdefault(key, Found(key))
        if rank <= one.ranks.get(name, rank):
            one.ranks[name] = rank
            one.scores[name] = round(score, 6)
        one.matched = tuple(dict.fromkeys((*one.matched, *matched)))
        if cosine is not None:
            one.cosine = max(cosine, one.cosine if one.cosine is not None else -1.0)
        return one

    def move(self, key: Key, to: Key) -> None:
        """Let what was found as one thing count for another, of which it is the wording."""
        one = self.found.pop(key, None)
        if one is None:
            return
        for name, rank in one.ranks.items():
            self.add(name, to, rank, one.scores[name], one.matched, one.cosine)

    def ranked(self, attention: Mapping[str, float], asked: int = 0) -> list[Found]:
        """Return everything, best first.

        ``attention`` is that of working items, by id; ``asked`` how many words of the query say something.
        """
        nearest = max((one.cosine or 0.0 for one in self.found.values()), default=0.0)
        near = [one for one in self.found.values() if (one.cosine or 0.0) > 0]
        for rank, one in enumerate(sorted(near, key=lambda one: (-(one.cosine or 0.0), one.key)), start=1):
            one.ranks["meaning"] = rank
            one.scores["meaning"] = round(one.cosine or 0.0, 6)
        for one in self.found.values():
            kind, id_ = one.key
            weight = WEIGHTS[kind] * (attention.get(id_, 0.0) if kind == "working" else 1.0)
            places = [1 / (K + rank) for name, rank in one.ranks.items() if name in ("layer", "meaning")]
            graph = [GRAPH_WEIGHT / (K + rank) for name, rank in one.ranks.items() if name == "graph"]
            near_by = max(one.cosine or 0.0, 0.0) / nearest if nearest > 0 else 0.0
            share = min(len(one.matched) / asked, 1.0) if asked else 0.0
            one.score = weight * sum(places) * (1 + max(near_by, share)) / 2 + sum(graph)
        return sorted(self.found.values(), key=lambda one: (-one.score, one.key))


def joined(*rankings: Sequence[Key]) -> list[Key]:
    """Return the order that several rankings of one layer give together, by reciprocal ranks."""
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
    return sorted(scores, key=lambda key: (-scores[key], key))
