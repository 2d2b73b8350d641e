"""The mind over one open palace: every verb, once. The service, the tools and the Python API call these.

What needs an extra that is not installed, or a language model that is not configured, says so in one line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castle.errors import PalaceError, UsageError
from castle.llm.budget import DAILY_CALLS, Budget, Metered
from castle.mind.asking import Recalled, read
from castle.mind.associating import associate
from castle.mind.conditions import verifying
from castle.mind.consolidation import cycle
from castle.mind.consolidation.scoring import ProfileName
from castle.mind.environment.checking import check_environment
from castle.mind.given import short, shown
from castle.mind.importing import WING, Imported, import_database
from castle.mind.keeping import Cold, Keeper, Kept
from castle.mind.objects import Memory, memory_of
from castle.mind.preferences import learning
from castle.mind.procedural import EXPLORE_RATIO, TOP_K, Better, Trigger, better_variants, match, triggered
from castle.mind.recalling import Recaller
from castle.mind.reflection import reflecting
from castle.mind.replay import pool, replaying
from castle.mind.report import status
from castle.mind.saving import Saved, Saver
from castle.mind.seeding import Seeded, seed
from castle.mind.sessions import Ended, end
from castle.mind.thresholds import TRIGGER
from castle.mind.working import complete
from castle.search.options import Options
from castle.search.refine import Engines
from castle.store.mind_edges import neighbours
from castle.store.mind_index import embed_missing
from castle.store.mind_procedures import record_outcome
from castle.store.mind_rows import resolve
from castle.store.mind_values import Edge
from castle.store.mind_working import count_items

if TYPE_CHECKING:
    from castle.llm.base import Provider
    from castle.mine.notes import Halls
    from castle.store.palace import Palace

DEFAULT_WING = "memory"
HASTE_SECONDS = 2.0
"""How long a question spends on what has no vector yet."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A procedure that a situation calls to mind: ``similarity`` is None where words brought it."""

    template: Memory
    similarity: float | None
    matched: tuple[str, ...] = ()
    explore: bool = False


class Mind:
    """What one actor remembers in a palace.

    ``wing`` is where things go that name none: CASTLE_PROJECT where it is set, otherwise ``memory``.
    ``provider`` gives the language model, None where there is none that was asked for. ``profile`` is how
    consolidation weighs episodes.
    """

    def __init__(
        self,
        palace: Palace,
        *,
        actor: str,
        halls: Halls,
        wing: str = "",
        options: Options | None = None,
        engines: Callable[[], Engines] | None = None,
        provider: Callable[[], Provider | None] = lambda: None,
        daily_calls: int = DAILY_CALLS,
        profile: ProfileName = "default",
    ) -> None:
        self.palace = palace
        self.actor = actor
        self.wing = wing or os.environ.get("CASTLE_PROJECT") or DEFAULT_WING
        self._options = options or Options(mode="fast")
        self._engines = engines
        self._provider = provider
        self._profile: ProfileName = profile
        self._budget = Budget(palace.ledger, daily_calls)
        self._saver = Saver(palace, halls=halls, actor=actor, wing=self.wing)
        self._keeper = Keeper(palace, actor)

    # Keeping in mind, and calling to mind

    def save(
        self, content: str, memory_type: str = "episodic", options: Mapping[str, Any] | None = None
    ) -> Saved:
        """Keep a text in mind: working, episodic, semantic or procedural; see ``castle.mind.saving``."""
        return self._saver.save(content, memory_type, options or {})

    def recall(self, query: str, options: Mapping[str, Any] | None = None, *, session: str = "") -> Recalled:
        """Recall what all layers hold about a query; see ``castle.mind.asking`` for the options."""
        engines = Engines() if self._engines is None else self._engines()
        recaller = Recaller(
            self.palace,
            options=self._options,
            engines=engines,
            actor=self.actor,
            preferring=self._preferring,
        )
        return recaller.recall(query, read(options or {}), session)

    def get(self, id_: str) -> tuple[Memory, list[dict[str, Any]]]:
        """Return a memory and every change of it."""
        return self._keeper.get(id_)

    def related(self, id_: str) -> list[Edge]:
        """Return what a memory is joined to, the strongest first."""
        with self.palace.ledger.read() as cx:
            return neighbours(cx, *resolve(cx, id_), self.palace.ledger.clock())

    def associate(
        self,
        source_id: str,
        target_id: str,
        weight: float = 1.0,
        relation_type: str = "associated_with",
    ) -> dict[str, Any]:
        """Join two memories; ``weight`` in [-1, 1] is negative for what speaks against each other.

        One of them may be a fact of the graph. Where a fact contradicts it, by -0.3 or less, it is suggested
        to end it.
        """
        return associate(self.palace, source_id, target_id, weight, relation_type)

    # Forgetting, and calling back

    def forget(self, id_: str, *, reason: str = "", expire: bool = False, force: bool = False) -> Kept:
        """Put a memory into cold storage, or note that it holds no longer; nothing is deleted."""
        return self._keeper.forget(id_, reason=self._shown(reason), expired=expire, force=force)

    def restore(self, id_: str, *, reason: str = "") -> Kept:
        """Call a memory back."""
        return self._keeper.restore(id_, reason=self._shown(reason))

    def pin(self, id_: str, pinned: bool = True, *, reason: str = "") -> Kept:
        """Pin a memory, so that it is never forgotten by itself, or let go of it."""
        return self._keeper.pin(id_, pinned, reason=self._shown(reason))

    def cold(self, query: str = "", *, limit: int = 20, offset: int = 0) -> Cold:
        """List or search cold storage."""
        return self._keeper.cold(query, limit=limit, offset=offset)

    # Working memory

    def complete(self, ids: Sequence[str]) -> int:
        """Note that the task of working items is done; returns of how many."""
        with self.palace.ledger.write() as cx:
            return complete(cx, [resolve(cx, id_)[1] for id_ in ids])

    def session_end(self, session_id: str, *, completed: Sequence[str] = ()) -> Ended:
        """End a session: what is attended and open stays in mind, what was done or used is filed.

        ``completed`` names items whose task is done. A kill in between loses nothing: what was filed is
        known, and the next call goes on.
        """
        session_id = short("session_id", self._shown(session_id).strip())
        if not session_id:
            raise UsageError("session_id is empty: name the session that ends")
        if completed:
            self.complete(completed)
        return end(self.palace, self._saver, session_id, actor=self.actor)

    def working_count(self) -> int:
        """Return how much is in mind at the moment."""
        with self.palace.ledger.read() as cx:
            return count_items(cx)

    # Procedures

    def match_procedures(
        self,
        context_text: str,
        *,
        threshold: float = TRIGGER,
        top_k: int = TOP_K,
        explore_ratio: float = EXPLORE_RATIO,
        seed: int | None = None,
        wing: str | None = None,
    ) -> list[Matched]:
        """Return the procedures that a situation calls to mind, best first or, a fifth of the time, another.

        By words where there is no embedder yet. ``explore_ratio`` 0 never puts another one first.
        """
        if not context_text.strip():
            raise UsageError("the situation is empty: say what is to be done")
        if not 0 <= explore_ratio <= 1 or not -1 <= threshold <= 1 or top_k < 1:
            raise UsageError("threshold is in [-1, 1], explore_ratio in [0, 1], top_k at least 1")
        palace, now = self.palace, self.palace.ledger.clock()
        vector = None
        if not palace.unready:
            vector = palace.space.embedder.embed_query(context_text)
            if not palace.ledger.read_only:
                with suppress(PalaceError):
                    embed_missing(palace, seconds=HASTE_SECONDS)
        with palace.ledger.read() as cx:
            found = match(
                palace,
                cx,
                context_text,
                vector,
                threshold=threshold,
                top_k=top_k,
                explore_ratio=explore_ratio,
                seed=seed,
                wing=wing,
            )
            matched = [self._matched(cx, one, now) for one in found]
        if found and not palace.ledger.read_only:
            with suppress(PalaceError), palace.ledger.write() as cx:
                triggered(cx, found, now)
        return matched

    def record_outcome(
        self, procedure_id: str, success: bool, *, session: str = "", note: str = ""
    ) -> Memory:
        """Note how a procedure went: its weight times 1.05 or 0.85, one more success or failure."""
        palace, now = self.palace, self.palace.ledger.clock()
        session, note = short("session_id", self._shown(session)), self._shown(note)
        with palace.ledger.write() as cx:
            kind, id_ = resolve(cx, procedure_id)
            if kind != "procedure":
                raise UsageError(f"{procedure_id} is a {kind}: only procedures have outcomes")
            found = record_outcome(cx, id_, success, actor=self.actor, now=now, session=session, note=note)
            memory = memory_of(cx, "procedure", id_, palace.salt, now)
        if found.preference:
            learning.implicit_feedback(palace, found.preference, success, actor=self.actor)
        return memory

    def better_variants(self, procedure_id: str) -> list[Better]:
        """Return which variants of a procedure surely do better than which others."""
        with self.palace.ledger.read() as cx:
            return better_variants(cx, resolve(cx, procedure_id)[1])

    # Facts that came from elsewhere

    def seed(self, knowledge: object, name: str = "") -> Seeded:
        """Believe the facts of a seed file, called ``name``; the same file again changes nothing."""
        return seed(self._saver, self.palace, knowledge, actor=self.actor, name=name)

    def import_database(self, path: Path, *, wing: str | None = None) -> Imported:
        """Take over what a database of the former kind holds; the same one again adds nothing."""
        return import_database(self.palace, self._saver, path, actor=self.actor, wing=wing or WING)

    # What other parts do

    def status(self) -> dict[str, Any]:
        """Return what the mind holds, in numbers, and whether anything is not in order."""
        return status(self.palace, self._budget, self._provider())

    def consolidate(
        self, *, wing: str | None = None, dry_run: bool = False, force: bool = False
    ) -> dict[str, Any]:
        """Run one cycle: score episodes, dim or put away what counts little, find patterns."""
        return cycle.consolidate(
            self.palace,
            wing=wing,
            dry_run=dry_run,
            force=force,
            llm=self.metered(),
            actor=self.actor,
            profile=self._profile,
        )

    def consolidate_if_due(self) -> dict[str, Any] | None:
        """Run a cycle if one is due; None where none is, or it cannot be written."""
        if self.palace.ledger.read_only or not cycle.should_run(self.palace):
            return None
        return self.consolidate()

    def verify(
        self,
        entry_id: str | None = None,
        environment: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        wing: str | None = None,
    ) -> dict[str, Any]:
        """Check the condition of one memory, or all, and expire what is met."""
        if entry_id is not None:
            with self.palace.ledger.read() as cx:
                entry_id = resolve(cx, entry_id)[1]
        return verifying.verify(
            self.palace, entry_id, environment, dry_run=dry_run, wing=wing, actor=self.actor
        )

    def check_environment(
        self, environment: Mapping[str, Any], *, wing: str | None = None, merge: bool = False
    ) -> dict[str, Any]:
        """Compare an environment with the last one of a wing, and verify what depends on it."""
        return check_environment(
            self.palace, environment, wing=wing or self.wing, merge=merge, actor=self.actor
        )

    def reflect(
        self,
        task_description: str,
        *,
        outcome: str = "failure",
        dimensions: str = "failure",
        apply: bool = False,
        wing: str | None = None,
    ) -> dict[str, Any]:
        """Think about how something went; changes nothing unless ``apply`` is true."""
        return reflecting.reflect(
            self.palace,
            task_description,
            outcome=outcome,
            dimensions=dimensions,
            apply=apply,
            llm=self.metered(),
            wing=wing,
            actor=self.actor,
        )

    def replay(
        self,
        theme_text: str | None = None,
        *,
        seed: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> dict[str, Any]:
        """Look for hypotheses that join what is far apart."""
        return replaying.replay(
            self.palace, theme_text, llm=self.metered(), seed=seed, progress=progress, actor=self.actor
        )

    def creative_pool(self, status: str | None = None) -> dict[str, Any]:
        """List hypotheses, the pending ones unless another status is named."""
        return pool.creative_pool(self.palace, status)

    def hypothesis_feedback(self, hypothesis_id: str, confirmed: bool) -> dict[str, Any]:
        """Say whether a hypothesis is right."""
        return pool.hypothesis_feedback(self.palace, hypothesis_id, confirmed, actor=self.actor)

    def extract_preferences(self, limit: int = 50, session: str | None = None) -> dict[str, Any]:
        """Look through the latest episodes for what the user prefers."""
        return learning.extract(
            self.palace, llm=self.metered(), limit=limit, session=session, actor=self.actor
        )

    def get_preferences(
        self,
        context_text: str | None = None,
        min_confidence: float = 0.3,
        preference_type: str | None = None,
    ) -> dict[str, Any]:
        """List preferences, those that fit a context first."""
        return learning.preferences(
            self.palace,
            context_text=context_text,
            min_confidence=min_confidence,
            preference_type=preference_type,
        )

    def check_preference_conflicts(self) -> dict[str, Any]:
        """List preferences that speak against each other; changes nothing."""
        return learning.conflicts(self.palace)

    def inject_preference(
        self,
        preference_text: str,
        preference_type: str = "general",
        confidence: float = 0.7,
        trigger_context: str | None = None,
        falsifiable_condition: Mapping[str, Any] | None = None,
        wing: str | None = None,
    ) -> dict[str, Any]:
        """Keep a preference that somebody states."""
        return learning.inject(
            self.palace,
            preference_text,
            preference_type=preference_type,
            confidence=confidence,
            trigger_context=trigger_context,
            falsifiable_condition=falsifiable_condition,
            wing=wing,
            actor=self.actor,
        )

    def record_preference_feedback(self, preference_id: str, confirmed: bool) -> dict[str, Any]:
        """Say whether a preference is right."""
        return learning.feedback(self.palace, preference_id, confirmed, actor=self.actor)

    def metered(self) -> Provider | None:
        """Return the language model with the budget that its purposes share."""
        found = self._provider()
        return None if found is None else Metered(found, self._budget)

    def _shown(self, text: str) -> str:
        """Return what somebody gave beside a memory, as it may be stored."""
        return str(shown(text, self.palace.salt))

    def _preferring(
        self, query: str, vector: Any, wing: str | None, now: int
    ) -> tuple[Mapping[str, Any], ...]:
        if self.palace.ledger.read_only:
            return ()
        return learning.for_recall(self.palace, query, vector, wing=wing, now=now)

    def _matched(self, cx: Any, one: Trigger, now: int) -> Matched:
        memory = memory_of(cx, "procedure", one.procedure.id, self.palace.salt, now)
        return Matched(memory, one.similarity, one.matched, one.explore)
