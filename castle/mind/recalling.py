"""Recall: what the mind holds about a query, from all of its layers.

Episodes come through the palace's search, the rest from the tables of the mind; without an embedder words
alone decide. Where something was stated and what was stated is one hit. What is cold or has expired is left
out unless it is asked for, and counted. Looking is noted afterwards, in one short write that may fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from castle.clock import parse_iso
from castle.errors import CastleError, ModelError, PalaceError, UsageError
from castle.mind.accesses import note
from castle.mind.asking import Asked, Recalled
from castle.mind.fusing import Fusion, Key, joined
from castle.mind.objects import (
    LAYERS,
    Memory,
    key_of,
    memory_of,
    of_episode,
    of_fact,
    of_pending,
    of_procedure,
    of_working,
)
from castle.mind.procedural import Trigger, match
from castle.mind.working import attention
from castle.records import Scope
from castle.search.options import Options
from castle.search.pipeline import FEW_LATE, search
from castle.search.refine import Engines
from castle.search.retention import retention
from castle.store.catchup import missing
from castle.store.mind_edges import activate, contradictions
from castle.store.mind_episodes import episodes_by_id, stated_by
from castle.store.mind_facts import facts
from castle.store.mind_index import (
    by_vector,
    by_words,
    count_words,
    drawer_vectors,
    embed_missing,
    waiting,
)
from castle.store.mind_ingest import PENDING, queued_by_id, session_row
from castle.store.mind_procedures import procedures
from castle.store.mind_rows import norm_hash, sources_of
from castle.store.mind_suggestions import suggestions
from castle.store.mind_values import EPISODE_KINDS, KINDS
from castle.store.mind_working import items
from castle.store.projection import legal_text
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

POOL = 30
EMBEDDED_AT_ONCE = 256
"""Things without a vector that a recall embeds before it looks."""
EMBED_SECONDS = 2.0
MOST_PROCEDURES = 3
MOST_QUERY = 100_000
_HASTE = 0.5
_LAYERS = {**LAYERS, PENDING: "episodic"}

Preferring = Callable[[str, Any, str | None, int], tuple[Mapping[str, Any], ...]]
"""Gives what is preferred about a query and its vector, in a wing, at a time."""


class Recaller:
    """Recalls from one palace."""

    def __init__(
        self,
        palace: Palace,
        *,
        options: Options,
        engines: Engines,
        actor: str,
        preferring: Preferring | None = None,
    ) -> None:
        self._palace = palace
        self._options = options
        self._engines = engines
        self._actor = actor
        self._preferring = preferring

    def recall(self, query: str, asked: Asked, session: str = "") -> Recalled:
        """Recall what the mind holds about a query; any text that is not blank is one."""
        query = legal_text(query)
        if not query.strip():
            raise UsageError("the query is empty: say what is to be recalled")
        if len(query) > MOST_QUERY:
            raise UsageError(f"the query has {len(query)} characters, {MOST_QUERY} are the most")
        run = _Run(self._palace, query, asked)
        run.prepare()
        fusion = Fusion()
        if "episodic" in asked.layers or {"semantic", "procedural"} & set(asked.layers):
            run.episodes(fusion, self._options, self._engines)
        with self._palace.ledger.read() as cx:
            run.rest(cx, fusion)
            run.fold(cx, fusion)
            if asked.strategy == "two_pass":
                run.associate(cx, fusion)
            found = run.chosen(cx, fusion)
            procedures = run.procedures(cx)
            keys = [key_of(one) for one in found]
            pairs = contradictions(cx, keys, run.now) if keys else []
            stated = [one.id for one in found if one.layer == "semantic"]
            raised = suggestions(cx, run.now, facts=stated) if stated else []
        found = _with_conflicts(found, pairs)
        note(
            self._palace,
            query,
            run.vector,
            found,
            run.reached,
            session=session,
            actor=self._actor,
            now=run.now,
        )
        preferences = self._preferring(query, run.vector, asked.wing, run.now) if self._preferring else ()
        return Recalled(
            query=mask_secrets(query, self._palace.salt),
            memories=tuple(found),
            fallback=run.vector is None or bool(run.late),
            degraded=tuple(dict.fromkeys(run.degraded)),
            hidden=dict(run.hidden),
            preferences=preferences,
            procedures=tuple(procedures),
            conflicts=tuple((one[1], other[1]) for one, other in pairs),
            suggestions=tuple(raised),
        )


class _Run:
    """One recall on its way."""

    def __init__(self, palace: Palace, query: str, asked: Asked) -> None:
        self.palace = palace
        self.query = query
        self.asked = asked
        self.now = palace.ledger.clock()
        self.vector: NDArray[np.float32] | None = None
        self.late = 0
        self.degraded: list[str] = []
        self.hidden: Counter[str] = Counter()
        self.reached: list[Key] = []
        self.pool = max(3 * asked.top_k, POOL)
        self._attention: dict[str, float] = {}
        self._words = count_words(query)
        self._triggers: list[Trigger] | None = None

    def prepare(self) -> None:
        """Embed the query, and what waits for it; say so where there is no embedder now."""
        palace = self.palace
        if palace.unready:
            self.degraded.append(palace.unready)
            return
        try:
            self.vector = palace.space.embedder.embed_query(self.query)
            if not palace.ledger.read_only:
                embed_missing(palace, EMBEDDED_AT_ONCE, _HASTE, seconds=EMBED_SECONDS)
        except PalaceError:
            pass
        except ModelError as error:
            self.degraded.append(f"words only: {error}")
        with palace.ledger.read() as cx:
            self.late = waiting(cx, palace.identity.identity)
        if self.late:
            self.degraded.append(f"{self.late} things have no vector yet and are found by words only")

    def episodes(self, fusion: Fusion, options: Options, engines: Engines) -> None:
        """Ask the palace's search for conversations, notes and diary entries."""
        asked = self.asked
        scope = Scope(wing=asked.wing, since=asked.since, until=asked.until, kinds=EPISODE_KINDS)
        options = replace(options, mode="fast", now=self.now)
        if self._few_late():
            options = replace(options, catch_up_ms=0)
        if asked.strategy == "direct" and self.vector is not None:
            options = replace(options, weights={**options.weights, "lexical": 0.0, "graph": 0.0})
        result = search(self.palace, self.query, scope, self.pool, options, engines)
        self.degraded += result.degraded
        near = {hit.id: stage.score for hit in result.hits if (stage := hit.stages.get("dense")) is not None}
        near = {} if self.vector is None else near
        near |= self._near([hit.id for hit in result.hits if hit.id not in near])
        for rank, hit in enumerate(result.hits, start=1):
            fusion.add("layer", ("drawer", hit.id), rank, hit.score, hit.matched, near.get(hit.id))

    def _near(self, ids: Sequence[str]) -> dict[str, float]:
        """Return how near those drawers are to the query that words alone have brought."""
        vector = self.vector
        if vector is None or not ids:
            return {}
        with self.palace.ledger.read() as cx:
            held = drawer_vectors(self.palace, cx, ids)
        return {id_: float(one @ vector) for id_, one in held.items()}

    def _few_late(self) -> bool:
        """Whether so few drawers wait for the index of words that they are read where they stand."""
        lexicon = self.palace.lexicon
        with suppress(CastleError):
            there = self.vector is None and lexicon.watermark() is not None
            return there and missing(self.palace, lexicon) <= FEW_LATE
        return False

    def rest(self, cx: Connection, fusion: Fusion) -> None:
        """Look for facts, procedures and working items."""
        layers = self.asked.layers
        if "episodic" in layers:
            self._kind(cx, fusion, PENDING)
        if "semantic" in layers:
            self._kind(cx, fusion, "fact")
        if "procedural" in layers:
            self._triggers = match(self.palace, cx, self.query, self.vector, top_k=self.pool)
            for rank, one in enumerate(self._triggers, start=1):
                key = ("procedure", one.procedure.id)
                fusion.add("layer", key, rank, one.similarity or 0.0, one.matched, one.similarity)
        if "working" in layers:
            self._attention = {item.id: attention(item, self.now) for item in items(cx)}
            self._kind(cx, fusion, "working")

    def _kind(self, cx: Connection, fusion: Fusion, kind: str) -> None:
        near = by_vector(self.palace, cx, self.vector, (kind,), self.pool) if self.vector is not None else []
        go_by_words = self.vector is None or self.asked.strategy != "direct"
        said = by_words(cx, self.query, (kind,), self.pool) if go_by_words else []
        matched = {m.id: m.matched for m in said}
        cosines = {m.id: m.score for m in near}
        order = joined([(kind, m.id) for m in near], [(kind, m.id) for m in said])
        for rank, key in enumerate(order, start=1):
            id_ = key[1]
            fusion.add("layer", key, rank, 0.0, matched.get(id_, ()), cosines.get(id_))

    def fold(self, cx: Connection, fusion: Fusion) -> None:
        """Let the drawers in which something was stated count for what was stated."""
        drawers = [id_ for kind, id_ in fusion.found if kind == "drawer"]
        for drawer, owners in stated_by(cx, drawers).items():
            key = ("drawer", drawer)
            wanted = [owner for owner in owners if _layer(owner[0]) in self.asked.layers]
            if wanted:
                fusion.move(key, wanted[0])
            else:
                fusion.found.pop(key, None)
        if "episodic" not in self.asked.layers:
            for key in [key for key in fusion.found if key[0] == "drawer"]:
                del fusion.found[key]

    def associate(self, cx: Connection, fusion: Fusion) -> None:
        """Add what associations lead to from what was found."""
        best = fusion.ranked(self._attention, self._words)[: max(2 * self.asked.top_k, 20)]
        seeds = {one.key: 1.0 for one in best}
        for rank, (key, value) in enumerate(activate(cx, seeds, self.now).items(), start=1):
            if key[0] in ("drawer", "fact", "procedure") and _layer(key[0]) in self.asked.layers:
                fusion.add("graph", key, rank, value)
                self.reached.append(key)

    def chosen(self, cx: Connection, fusion: Fusion) -> list[Memory]:
        """Return the best of what may be shown; associations have a fifth of the places if they need them."""
        ranked = fusion.ranked(self._attention, self._words)
        loaded = self._loaded(cx, [one.key for one in ranked])
        direct: list[Memory] = []
        led: list[Memory] = []
        said: set[str] = set()
        for one in ranked:
            memory = loaded.get(one.key)
            if memory is None or not self._may_show(memory):
                continue
            digest = norm_hash(memory.content)
            if digest not in said:
                said.add(digest)
                told: dict[str, object] = {
                    n: {"rank": r, "score": one.scores[n]} for n, r in one.ranks.items()
                }
                told["words"] = list(one.matched)
                score = one.score * retention(memory.state, _scored(memory))
                (direct if "layer" in one.ranks else led).append(replace(memory, score=score, why=told))
        direct.sort(key=lambda memory: (-memory.score, memory.id))
        kept = led[: max(1, self.asked.top_k // 5)] if led else []
        room = max(self.asked.top_k - len(kept), 0)
        return [self._whole(cx, memory) for memory in [*direct[:room], *kept][: self.asked.top_k]]

    def procedures(self, cx: Connection) -> list[Memory]:
        """Return what the situation calls to mind of ways of doing something."""
        wing = self.asked.wing
        found = self._triggers
        if found is None:
            found = match(self.palace, cx, self.query, self.vector, top_k=MOST_PROCEDURES, wing=wing)
        usable = [one.procedure for one in found if wing is None or one.procedure.wing in (None, wing)]
        return [of_procedure(one, sources_of(cx, "procedure", one.id)) for one in usable[:MOST_PROCEDURES]]

    def _loaded(self, cx: Connection, keys: Sequence[Key]) -> dict[Key, Memory]:
        """Return things by their keys, as far as they are still there, without what they rest on."""
        ids = {kind: [id_ for one, id_ in keys if one == kind] for kind in KINDS}
        everything: dict[str, Any] = {"include_expired": True, "include_cold": True, "limit": len(keys) or 1}
        found = {("drawer", id_): of_episode(e) for id_, e in episodes_by_id(cx, ids["drawer"]).items()}
        for fact in facts(cx, ids=ids["fact"], **everything):
            found["fact", fact.id] = of_fact(fact)
        for procedure in procedures(cx, ids=ids["procedure"], **everything):
            found["procedure", procedure.id] = of_procedure(procedure)
        if ids["working"]:
            for item in items(cx):
                found["working", item.id] = of_working(item, self.palace.salt, self.now)
        for id_, one in queued_by_id(cx, [id_ for kind, id_ in keys if kind == PENDING]).items():
            wing = str((session_row(cx, one.session) or {}).get("wing") or "")
            found[PENDING, id_] = of_pending(one, self.palace.salt, wing)
        return found

    def _whole(self, cx: Connection, memory: Memory) -> Memory:
        """Return a memory with what it rests on."""
        if memory.layer not in ("semantic", "procedural"):
            return memory
        whole = memory_of(cx, *key_of(memory), self.palace.salt, self.now)
        return replace(whole, score=memory.score, why=memory.why)

    def _may_show(self, memory: Memory) -> bool:
        asked = self.asked
        if not _fits(memory, asked):
            return False
        reasons = (
            ("cold", memory.state == "cold" and not asked.include_cold),
            ("expired", memory.expired and not asked.include_expired),
            ("unsure", memory.layer == "semantic" and memory.confidence < asked.min_confidence),
        )
        for reason, holds in reasons:
            if holds:
                self.hidden[reason] += 1
                return False
        return True


def _fits(memory: Memory, asked: Asked) -> bool:
    """Whether a memory is in the wing, of the session, with the tags and of the time that were asked for."""
    if asked.wing is not None and memory.wing not in ("", asked.wing):
        return False
    if asked.session and memory.session_id != asked.session:
        return False
    if asked.tags and not set(asked.tags) <= set(memory.tags):
        return False
    at = parse_iso(memory.event_at or memory.created_at)
    if asked.since is not None and at < asked.since:
        return False
    return asked.until is None or at <= asked.until


def _scored(memory: Memory) -> float | None:
    return memory.consolidation_score or None if memory.layer == "episodic" else None


def _layer(kind: str) -> str:
    return {
        "drawer": "episodic",
        PENDING: "episodic",
        "fact": "semantic",
        "procedure": "procedural",
        "working": "working",
    }[kind]


def _with_conflicts(found: list[Memory], pairs: Iterable[tuple[Key, Key]]) -> list[Memory]:
    against: dict[str, list[str]] = {}
    for one, other in pairs:
        against.setdefault(one[1], []).append(other[1])
        against.setdefault(other[1], []).append(one[1])
    return [replace(one, conflicts=tuple(against.get(one.id, ()))) for one in found]
