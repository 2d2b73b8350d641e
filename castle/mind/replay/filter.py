"""The fourth and fifth stage of replay: hypotheses are checked, and those that pass go into the pool."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from castle.mind.nearby import Near, distance_for, nearest_facts
from castle.mind.replay import pool
from castle.mind.replay.constraints import (
    BANAL,
    CROSS_DOMAIN,
    MOST_CONFIDENCE,
    RELATED,
    STABLE_CYCLES,
    Check,
    cross_domain,
    cycle_cap,
    initial_confidence,
    no_contradiction,
    not_banal,
    rejection_memory,
    stability,
    two_sources,
    within,
)
from castle.mind.replay.pairs import Raw
from castle.mind.thresholds import calibrated
from castle.store.mind_edges import neighbours
from castle.store.mind_hypotheses import Hypothesis, add_hypothesis, hypotheses, seen_again
from castle.store.mind_index import by_vector
from castle.store.mind_rows import norm_hash
from castle.store.mind_values import Fact, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

NEAREST = 5
STABILITY_BONUS = 0.2
_KNOWN = 50
_NEGATION = re.compile(
    r"\b(?:not?|never|none|cannot|without|\w+n['’]t|nicht|kein\w*|nie|jamais|nunca)\b", re.I
)


class Filter:
    """Takes the hypotheses of one cycle, in one transaction."""

    def __init__(
        self,
        palace: Palace,
        cx: Connection,
        cycle: int,
        actor: str,
        now: int,
        witnesses: Mapping[str, Sequence[str]],
        facts: Mapping[str, Fact],
        topics: Mapping[str, Sequence[str]],
    ) -> None:
        self.added = self.again = 0
        self.ids: list[str] = []
        self.checks: list[Check] = []
        self._palace = palace
        self._cx = cx
        self._cycle = cycle
        self._actor = actor
        self._now = now
        self._witnesses = witnesses
        self._facts = facts
        self._topics = topics

    def take(self, raw: Raw, vector: NDArray[np.float32] | None) -> bool:
        """Check one hypothesis, and add it to the pool or note that it was seen again; false if it is out."""
        checks = self._checked(raw, vector)
        self.checks += checks
        if not all(check.passed for check in checks):
            return False
        held = self._held(raw.text, vector)
        if held is not None and held.status in ("pending", "confirmed"):
            self._see_again(held)
            return True
        cap = cycle_cap(self.added)
        self.checks.append(cap)
        if held is not None or not cap.passed:
            return False
        self._add(raw)
        return True

    def _checked(self, raw: Raw, vector: NDArray[np.float32] | None) -> list[Check]:
        first, second = (self._witnesses[id_] for id_ in raw.pair.seeds)
        near = nearest_facts(self._palace, self._cx, raw.text, vector, NEAREST)
        return [
            cross_domain(raw.pair.similarity, self._limit(CROSS_DOMAIN)),
            two_sources(first, second),
            self._contradiction(raw, near),
            not_banal(self._banality(raw.text, near, vector), self._limit(BANAL)),
            rejection_memory(self._to_rejected(raw.text, vector), self._limit(RELATED)),
            initial_confidence(within(raw.confidence)),
        ]

    def _limit(self, cosine: float) -> float:
        return calibrated(self._cx, self._palace.identity.identity, cosine)

    def _contradiction(self, raw: Raw, near: Sequence[Near]) -> Check:
        """Look at firm beliefs about the same: whether they contradict its ends, or say the opposite."""
        related = distance_for(self._palace, self._cx, 1 - RELATED)
        ends = {*raw.pair.nodes, *(("fact", id_) for id_ in raw.pair.seeds)}
        opposed: dict[str, float] = {}
        believed: dict[str, float] = {}
        for one in near:
            believed[one.fact.id] = one.fact.confidence
            opposed[one.fact.id] = self._opposition(one.fact.id, ends)
        for id_ in raw.pair.seeds:
            for edge in neighbours(self._cx, "fact", id_, self._now):
                if edge.kind == "fact" and edge.relation == "contradicts" and edge.id in self._facts:
                    believed[edge.id] = self._facts[edge.id].confidence
                    opposed[edge.id] = self._opposition(edge.id, ends)
        denied = [
            one.fact.id
            for one in near
            if one.distance <= related and _denies(one.fact.statement) != _denies(raw.text)
        ]
        return no_contradiction(believed, opposed, denied)

    def _opposition(self, fact: str, ends: set[tuple[str, str]]) -> float:
        weights = [
            -abs(edge.weight)
            for edge in neighbours(self._cx, "fact", fact, self._now)
            if edge.relation == "contradicts" and (edge.kind, edge.id) in ends
        ]
        return min(weights, default=0.0)

    def _banality(self, text: str, near: Sequence[Near], vector: NDArray[np.float32] | None) -> float:
        digest = norm_hash(text)
        if any(norm_hash(one.fact.statement) == digest for one in near):
            return 1.0
        return 0.0 if vector is None or not near else 1 - near[0].distance

    def _to_rejected(self, text: str, vector: NDArray[np.float32] | None) -> list[float]:
        """Return similarities to rejected hypotheses."""
        digest = norm_hash(text)
        gone = {one.id: one for one in hypotheses(self._cx, statuses=("rejected",))}
        if any(norm_hash(one.text) == digest for one in gone.values()):
            return [1.0]
        if vector is None:
            return []
        found = by_vector(self._palace, self._cx, vector, ("hypothesis",), _KNOWN)
        return [m.score for m in found if m.id in gone]

    def _held(self, text: str, vector: NDArray[np.float32] | None) -> Hypothesis | None:
        """Return the hypothesis that says the same, whatever became of it."""
        digest = norm_hash(text)
        known = {one.id: one for one in hypotheses(self._cx)}
        same = [one for one in known.values() if norm_hash(one.text) == digest and one.status != "expired"]
        if same or vector is None:
            return same[0] if same else None
        found = by_vector(self._palace, self._cx, vector, ("hypothesis",), _KNOWN)
        near = [known[m.id] for m in found if m.score > self._limit(BANAL) and m.id in known]
        return next((one for one in near if one.status != "expired"), None)

    def _see_again(self, held: Hypothesis) -> None:
        """Note that one more cycle came to a hypothesis: three of them make it stable."""
        cycles = len({*held.cycles, self._cycle})
        check = stability(cycles, confirmed=held.status == "confirmed")
        self.checks.append(check)
        confidence = held.confidence
        if held.status == "pending" and held.stability < STABLE_CYCLES <= cycles:
            confidence = max(confidence, min(confidence + STABILITY_BONUS, MOST_CONFIDENCE))
        seen_again(self._cx, held, self._cycle, confidence, pool.expiry(self._now))
        self.again += 1
        self.ids.append(held.id)

    def _add(self, raw: Raw) -> None:
        seeds = raw.pair.seeds
        wings = {self._facts[id_].wing for id_ in seeds}
        sources = [
            *(Source("fact", id_, session=id_) for id_ in seeds),
            *(Source(kind, id_, session=id_) for kind, id_ in raw.pair.nodes if id_ not in seeds),
        ]
        made = add_hypothesis(
            self._cx,
            raw.text,
            rationale=raw.rationale,
            confidence=within(raw.confidence),
            wing=wings.pop() if len(wings) == 1 else None,
            cycle=self._cycle,
            seeds=seeds,
            nodes=[id_ for _, id_ in raw.pair.nodes],
            pair=raw.pair.texts,
            topics=sorted({topic for id_ in seeds for topic in self._topics[id_]}),
            sources=sources,
            metadata={"cross_domain_sim": round(raw.pair.similarity, 4), "method": raw.method},
            expires_at=pool.expiry(self._now),
            actor=self._actor,
            now=self._now,
        )
        self.added += 1
        self.ids.append(made.id)


def _denies(text: str) -> bool:
    return _NEGATION.search(text) is not None
