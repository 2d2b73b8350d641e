"""Generative replay: hypotheses from what is known but far apart, in five stages.

1. Seeds are drawn among the latest 200 facts; recent, moving, seldom used ones more often, and such that are
   near to the theme. One of them is far from it.
2. From each a walk of three steps at the most follows associations.
3. Places of two walks that are not alike are paired, and a language model, or a shared word, gives a
   sentence.
4. Ten constraints keep noise out; each cycle tells what they let pass.
5. What is left goes into the creative pool, where only a person can make a fact of it.

Insights are never seeds: what replay made does not feed replay. The same ``seed`` over the same facts gives
the same draws.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from castle.errors import UsageError
from castle.llm.base import LlmError, Provider
from castle.mind.models import usable
from castle.mind.nearby import embed_waiting, vector_of
from castle.mind.replay import pool
from castle.mind.replay.constraints import (
    CROSS_DOMAIN,
    NAMES,
    PER_CYCLE,
    REMOTE,
    Check,
    bounded_walk,
    remote_seed,
)
from castle.mind.replay.filter import Filter
from castle.mind.replay.pairs import Pair, Raw, by_link, by_model, pairs
from castle.mind.replay.walk import Key, Walk, sample, similarity, topics_of, walk, weight
from castle.mind.thresholds import calibrated
from castle.store.mind_cycles import begin_cycle, count_cycles, end_cycle, last_cycles
from castle.store.mind_episodes import episodes_by_id
from castle.store.mind_facts import facts
from castle.store.mind_hypotheses import hypotheses
from castle.store.mind_index import drawer_vectors, vectors_of, waiting
from castle.store.mind_procedures import procedures
from castle.store.mind_rows import lease, new_holder, release, sources_of
from castle.store.mind_values import Fact
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

JOB = "replay"
LATEST = 200
NARROW, NARROW_AFTER = 50, 3
"""Latest facts that are drawn from after three cycles in a row that came to nothing."""
REMEMBERED_CYCLES = 100
"""Cycles whose seeds count as used."""
LEASE_SECONDS = 300.0
SEED_ORIGINS = ("user", "seed", "import", "pattern", "preference")
WITHOUT_MODEL = "pairs are joined by shared words only"


def replay(
    palace: Palace,
    theme_text: str | None = None,
    *,
    llm: Provider | None = None,
    seed: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    actor: str,
) -> dict[str, Any]:
    """Run one cycle and return what it came to; ``seed`` makes the draws repeatable.

    What has no vector yet gets one first, for some seconds; a cycle after that goes on with the rest.
    Raises UsageError for a blank theme.
    """
    if theme_text is not None and not theme_text.strip():
        raise UsageError("the theme is empty: leave it out, or say what it is")
    theme = None if theme_text is None else mask_secrets(theme_text, palace.salt)
    drawn = secrets.randbelow(2**31) if seed is None else seed
    holder = new_holder()
    with palace.ledger.write() as cx:
        if not lease(cx, JOB, holder, LEASE_SECONDS, palace.ledger.clock()):
            return _told(drawn, note="another process is replaying")
    try:
        return _Run(palace, theme, llm, drawn, actor).go(progress)
    finally:
        with palace.ledger.write() as cx:
            release(cx, JOB, holder)


@dataclass(slots=True)
class _Known:
    """What a cycle goes by: facts and their vectors, what was used, and what was rejected."""

    facts: list[Fact]
    vectors: dict[str, NDArray[np.float32]]
    used: Counter[str]
    streak: int
    refused: set[str]
    valence: dict[str, float]
    witnesses: dict[str, list[str]] = field(default_factory=dict)


class _Run:
    """One cycle on its way."""

    def __init__(
        self, palace: Palace, theme: str | None, llm: Provider | None, seed: int, actor: str
    ) -> None:
        self.palace = palace
        self.theme = theme
        self.llm, self.notes = usable(llm, palace, "replay", WITHOUT_MODEL)
        self.seed = seed
        self.drawn = random.Random(seed)
        self.actor = actor
        self.now = palace.ledger.clock()
        self.checks: list[Check] = []

    def go(self, progress: Callable[[str, int, int], None] | None = None) -> dict[str, Any]:
        """Go through the five stages."""
        vector = None if self.theme is None else vector_of(self.palace, self.theme)
        told = None if progress is None else partial(progress, "embedding")
        embedded = embed_waiting(self.palace, told)
        if not embedded:
            self.notes.append("no embedder is there: what is alike is told by shared words")
        with self.palace.ledger.read() as cx:
            left = waiting(cx, self.palace.identity.identity) if embedded else 0
            if left:
                self.notes.append(f"{left:,} memories have no vector yet: the next run goes on with them")
            known = self._known(cx)
            if len(known.facts) < 2:
                return _told(self.seed, note="there are fewer than two facts to start from")
            identity = self.palace.identity.identity
            seeds = self._seeds(known, vector, calibrated(cx, identity, REMOTE))
            walks = [walk(cx, ("fact", id_), self.now, self.drawn) for id_ in seeds]
            self.checks += [bounded_walk(one.depths) for one in walks]
            found = self._pairs(cx, known, walks)
            known.witnesses = {id_: _witnesses(cx, id_) for id_ in seeds}
        raw = self._raw(found)
        return self._pool(known, seeds, walks, raw)

    def _known(self, cx: Connection) -> _Known:
        last = last_cycles(cx, JOB, REMEMBERED_CYCLES)
        streak = int(last[0].result.get("empty_cycles_streak", 0)) if last else 0
        every = facts(cx, origins=SEED_ORIGINS, limit=10_000)
        latest = sorted(every, key=lambda fact: (-fact.updated_at, fact.id))
        latest = latest[: NARROW if streak >= NARROW_AFTER else LATEST]
        refused = {topic for one in hypotheses(cx, statuses=("rejected",)) for topic in one.topics}
        return _Known(
            facts=latest,
            vectors=vectors_of(self.palace, cx, "fact", [fact.id for fact in latest]),
            used=Counter(id_ for cycle in last for id_ in cycle.result.get("seeds", ())),
            streak=streak,
            refused=refused,
            valence=_valences(cx, latest),
        )

    def _seeds(self, known: _Known, vector: NDArray[np.float32] | None, remote: float) -> list[str]:
        """Draw the seeds, one of them less alike than ``remote``."""
        texts = {fact.id: fact.statement for fact in known.facts}
        vectors = dict(known.vectors)
        if self.theme is not None:
            texts[""] = self.theme
            if vector is not None:
                vectors[""] = vector
        raw = similarity(vectors, texts)
        to_theme = {fact.id: raw("", fact.id) for fact in known.facts} if self.theme is not None else None
        weights = {
            fact.id: weight(
                fact,
                self.now,
                valence=known.valence.get(fact.id, 0.0),
                used=known.used[fact.id],
                refused=known.refused,
                near=None if to_theme is None else to_theme[fact.id],
            )
            for fact in known.facts
        }
        seeds = sample(weights, self.drawn, raw, to_theme, remote=remote)
        anchored = [raw(seeds[0], id_) for id_ in seeds[1:]]
        far = anchored if to_theme is None else [to_theme[id_] for id_ in seeds]
        self.checks.append(remote_seed(far, remote))
        return seeds

    def _pairs(self, cx: Connection, known: _Known, walks: Sequence[Walk]) -> list[Pair]:
        keys = list(dict.fromkeys(key for one in walks for key in one.keys))
        texts = _texts(cx, keys)
        by_kind = {kind: [id_ for k, id_ in keys if k == kind] for kind in ("fact", "drawer", "procedure")}
        vectors = {
            **vectors_of(self.palace, cx, "fact", by_kind["fact"]),
            **vectors_of(self.palace, cx, "procedure", by_kind["procedure"]),
            **drawer_vectors(self.palace, cx, by_kind["drawer"]),
        }
        raw = similarity(vectors, {id_: text for (_, id_), text in texts.items()})
        alike = {(one, other): raw(one[1], other[1]) for one in keys for other in keys if one != other}
        limit = calibrated(cx, self.palace.identity.identity, CROSS_DOMAIN)
        return pairs(walks, texts, alike, limit)

    def _raw(self, found: Sequence[Pair]) -> list[Raw]:
        if not found:
            self.notes.append("no two places on the walks are far apart")
            return []
        if self.llm is None:
            return by_link(found)
        try:
            return by_model(found, self.llm)
        except LlmError as error:
            self.notes.append(f"pairs are joined by shared words only: {error}")
            return by_link(found)

    def _pool(
        self, known: _Known, seeds: Sequence[str], walks: Sequence[Walk], raw: Sequence[Raw]
    ) -> dict[str, Any]:
        by_id = {fact.id: fact for fact in known.facts}
        topics = {id_: topics_of(by_id[id_]) for id_ in seeds}
        made = [vector_of(self.palace, one.text) for one in raw]
        with self.palace.ledger.write() as cx:
            cycle = count_cycles(cx, JOB) + 1
            rid = begin_cycle(cx, JOB, None, len(known.facts), self.now)
            expired = pool.tidy(cx, self.now, coming=min(len(raw), PER_CYCLE))
            sieve = Filter(self.palace, cx, cycle, self.actor, self.now, known.witnesses, by_id, topics)
            for one, vector in zip(raw, made, strict=True):
                sieve.take(one, vector)
            self.checks += sieve.checks
            told = {
                **_told(self.seed),
                "hypotheses_generated": sieve.added,
                "hypotheses_seen_again": sieve.again,
                "hypotheses": sieve.ids,
                "seeds_found": len(seeds),
                "seeds": list(seeds),
                "concept_sets": [[id_ for _, id_ in one.keys] for one in walks],
                "raw_hypotheses": len(raw),
                "filtered_hypotheses": len(raw) - sieve.added - sieve.again,
                "expired": expired,
                "cycle": cycle,
                "empty_cycles_streak": 0 if sieve.added or sieve.again else known.streak + 1,
                "constraints": _summary(self.checks),
                "notes": list(dict.fromkeys(self.notes)),
            }
            end_cycle(cx, rid, told, self.palace.ledger.clock())
        embed_waiting(self.palace, seconds=0.0)
        return told


def _summary(checks: Sequence[Check]) -> dict[str, dict[str, int]]:
    """Return for each of the ten constraints how often it passed and failed."""
    counts = {name: {"passed": 0, "failed": 0} for name in NAMES}
    for check in checks:
        counts[check.name]["passed" if check.passed else "failed"] += 1
    return counts


def _told(seed: int, note: str = "") -> dict[str, Any]:
    return {
        "hypotheses_generated": 0,
        "hypotheses_seen_again": 0,
        "hypotheses": [],
        "seeds_found": 0,
        "concept_sets": [],
        "raw_hypotheses": 0,
        "filtered_hypotheses": 0,
        "cycle": None,
        "empty_cycles_streak": 0,
        "seed": seed,
        "notes": [note] if note else [],
    }


def _texts(cx: Connection, keys: Sequence[Key]) -> dict[Key, str]:
    def ids(kind: str) -> list[str]:
        return [id_ for k, id_ in keys if k == kind]

    said: dict[Key, str] = {("fact", one.id): one.statement for one in facts(cx, ids=ids("fact"))}
    said.update({("procedure", one.id): one.content for one in procedures(cx, ids=ids("procedure"))})
    drawers = episodes_by_id(cx, ids("drawer"))
    said.update({("drawer", id_): one.text for id_, one in drawers.items() if one.state != "cold"})
    return said


def _valences(cx: Connection, found: Sequence[Fact]) -> dict[str, float]:
    """Return for each fact the mean valence of the episodes that it rests on."""
    resting = {
        fact.id: [
            *([fact.drawer] if fact.drawer else []),
            *(source.id for source in sources_of(cx, "fact", fact.id) if source.kind == "drawer"),
        ]
        for fact in found
    }
    known = episodes_by_id(cx, sorted({id_ for ids in resting.values() for id_ in ids}), texts=False)
    felt: Mapping[str, list[float]] = {
        fact: [known[id_].valence for id_ in ids if id_ in known] for fact, ids in resting.items()
    }
    return {fact: sum(values) / len(values) for fact, values in felt.items() if values}


def _witnesses(cx: Connection, fact: str) -> list[str]:
    """Return what tells a fact's evidence apart from another one's: sessions and drawers, or the fact."""
    told = {source.session or source.id for source in sources_of(cx, "fact", fact)}
    return sorted(told) or [fact]
