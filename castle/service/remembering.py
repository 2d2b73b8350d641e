"""Remembering: the verbs of the mind, over the palace that is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castle.arguments import legal, user
from castle.service.searching import Searching

if TYPE_CHECKING:
    from castle.llm.base import Provider
    from castle.mind.asking import Recalled
    from castle.mind.exporting import TakenIn
    from castle.mind.importing import Imported
    from castle.mind.keeping import Cold, Kept
    from castle.mind.mind import Matched, Mind
    from castle.mind.objects import Memory
    from castle.mind.saving import Saved
    from castle.mind.seeding import Seeded
    from castle.mind.sessions import Ended
    from castle.store.mind_values import Edge


class Remembering(Searching):
    """What an agent believes, can do, prefers and is working on; see docs/mind.md."""

    def memory_save(
        self,
        content: str,
        memory_type: str = "episodic",
        options: Mapping[str, Any] | None = None,
    ) -> Saved:
        """Keep a text in mind: working, episodic, semantic or procedural. Loads no model.

        All but working items are filed word for word. Raises UsageError for an option that the type does not
        have; see ``castle.mind.saving.OPTIONS``.
        """
        return self._mind(create=True).save(content, memory_type, options)

    def memory_recall(self, query: str, options: Mapping[str, Any] | None = None) -> Recalled:
        """Recall what all layers hold about a query; see ``castle.mind.asking`` for the options."""
        return self._mind().recall(legal(query), options)

    def memory_get(self, memory_id: str) -> tuple[Memory, list[dict[str, Any]]]:
        """Return a memory and every change of it, the oldest first."""
        return self._mind().get(memory_id)

    def memory_related(self, memory_id: str) -> list[Edge]:
        """Return what a memory or a drawer is joined to, the strongest first.

        That is associations, what it rests on and what rests on it, facts of the graph that hold now, tunnels
        and halls.
        """
        return self._mind().related(memory_id)

    def memory_status(self) -> dict[str, Any]:
        """Return what the mind holds, in numbers."""
        return self._mind().status()

    def memory_associate(
        self,
        source_id: str,
        target_id: str,
        weight: float = 1.0,
        relation_type: str = "associated_with",
    ) -> dict[str, Any]:
        """Join two memories; ``weight`` in [-1, 1]."""
        return self._mind().associate(source_id, target_id, weight, relation_type)

    def memory_forget(
        self, memory_id: str, *, reason: str = "", expire: bool = False, force: bool = False
    ) -> Kept:
        """Put a memory into cold storage, or note that it holds no longer; nothing is deleted."""
        return self._mind().forget(memory_id, reason=reason, expire=expire, force=force)

    def memory_restore(self, memory_id: str, *, reason: str = "") -> Kept:
        """Call a memory back from cold storage, or note that it holds after all."""
        return self._mind().restore(memory_id, reason=reason)

    def memory_pin(self, memory_id: str, pinned: bool = True, *, reason: str = "") -> Kept:
        """Pin a memory, so that it is never forgotten by itself, or let go of it."""
        return self._mind().pin(memory_id, pinned, reason=reason)

    def memory_cold(self, query: str = "", *, limit: int = 20, offset: int = 0) -> Cold:
        """List what is in cold storage, with a query that which holds one of its words."""
        return self._mind().cold(query, limit=limit, offset=offset)

    def memory_session_end(self, session_id: str, *, completed: Sequence[str] = ()) -> Ended:
        """End a session: what is attended stays in mind, what was done or used is filed."""
        return self._mind().session_end(session_id, completed=completed)

    def memory_match_procedures(
        self,
        context_text: str,
        *,
        threshold: float = 0.65,
        top_k: int = 5,
        explore_ratio: float = 0.2,
        seed: int | None = None,
    ) -> list[Matched]:
        """Return the procedures that a situation calls to mind."""
        return self._mind().match_procedures(
            legal(context_text), threshold=threshold, top_k=top_k, explore_ratio=explore_ratio, seed=seed
        )

    def memory_record_outcome(
        self, procedure_id: str, success: bool, *, session_id: str = "", note: str = ""
    ) -> Memory:
        """Note how a procedure went."""
        return self._mind().record_outcome(procedure_id, success, session=session_id, note=note)

    def memory_consolidate(
        self, *, wing: str | None = None, dry_run: bool = False, force: bool = False
    ) -> dict[str, Any]:
        """Run one cycle of consolidation."""
        return self._mind().consolidate(wing=wing, dry_run=dry_run, force=force)

    def memory_verify(
        self,
        entry_id: str | None = None,
        environment: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Check the condition of a memory, or all of them, and expire what is met."""
        return self._mind().verify(entry_id, environment, dry_run=dry_run)

    def memory_check_environment(
        self, environment: Mapping[str, Any], *, wing: str | None = None, merge: bool = False
    ) -> dict[str, Any]:
        """Compare an environment with the last one of a wing, and verify what depends on it."""
        return self._mind().check_environment(environment, wing=wing, merge=merge)

    def memory_reflect(
        self,
        task_description: str,
        *,
        outcome: str = "failure",
        dimensions: str = "failure",
        apply: bool = False,
    ) -> dict[str, Any]:
        """Think about how something went; proposes, and changes nothing unless ``apply`` is true."""
        return self._mind().reflect(task_description, outcome=outcome, dimensions=dimensions, apply=apply)

    def memory_replay(
        self,
        theme_text: str | None = None,
        *,
        seed: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> dict[str, Any]:
        """Look for hypotheses that join what is far apart."""
        return self._mind().replay(theme_text, seed=seed, progress=progress)

    def memory_creative_pool(self, status: str | None = None) -> dict[str, Any]:
        """List hypotheses, the pending ones unless another status is named."""
        return self._mind().creative_pool(status)

    def memory_hypothesis_feedback(self, hypothesis_id: str, confirmed: bool) -> dict[str, Any]:
        """Say whether a hypothesis is right."""
        return self._mind().hypothesis_feedback(hypothesis_id, confirmed)

    def memory_extract_preferences(self, *, limit: int = 50, session: str | None = None) -> dict[str, Any]:
        """Look through the latest episodes for what the user prefers."""
        return self._mind().extract_preferences(limit, session)

    def memory_get_preferences(
        self,
        context_text: str | None = None,
        *,
        min_confidence: float = 0.3,
        preference_type: str | None = None,
    ) -> dict[str, Any]:
        """List preferences, those that fit a context first."""
        return self._mind().get_preferences(context_text, min_confidence, preference_type)

    def memory_check_preference_conflicts(self) -> dict[str, Any]:
        """List preferences that speak against each other; changes nothing."""
        return self._mind().check_preference_conflicts()

    def memory_inject_preference(
        self,
        preference_text: str,
        *,
        preference_type: str = "general",
        confidence: float = 0.7,
        trigger_context: str | None = None,
        falsifiable_condition: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Keep a preference that somebody states."""
        return self._mind(create=True).inject_preference(
            preference_text, preference_type, confidence, trigger_context, falsifiable_condition
        )

    def memory_record_preference_feedback(self, preference_id: str, confirmed: bool) -> dict[str, Any]:
        """Say whether a preference is right."""
        return self._mind().record_preference_feedback(preference_id, confirmed)

    def memory_seed(self, path: Path | str) -> Seeded:
        """Believe the facts of a seed file; the same file again changes nothing."""
        from castle.mind.seeding import read_seed

        return self._mind(create=True).seed(read_seed(Path(path)), str(path))

    def memory_import(self, path: Path | str, *, wing: str | None = None) -> Imported:
        """Take over a database of the memory that the mind follows; the same one again adds nothing.

        Sessions that its recorder wrote are transcripts as others are: file them before, with ``mine``.
        """
        return self._mind(create=True).import_database(Path(path), wing=wing)

    def memory_export(self, path: Path | str) -> dict[str, int]:
        """Write everything that the mind holds beside the drawers as JSON lines; returns rows by table."""
        from castle.mind.exporting import export

        return export(self._palace(), Path(path))

    def memory_take_in(self, path: Path | str) -> TakenIn:
        """Add what an export of a mind holds and this one lacks; the same file again adds nothing."""
        from castle.mind.exporting import take_in

        return take_in(self._palace(create=True), Path(path))

    def _mind(self, *, create: bool = False) -> Mind:
        """Return the mind of the palace that is open."""
        from castle.mind.mind import Mind
        from castle.search.options import options_of

        return Mind(
            self._palace(create=create),
            actor=user(),
            halls=self.settings.hall_keywords,
            options=options_of(self.settings, mode="fast"),
            engines=self._engines,
            provider=self._named_provider,
            daily_calls=self.settings.llm_daily_calls,
            profile=self.settings.consolidation_profile,
        )

    def _named_provider(self) -> Provider | None:
        from castle.mind.models import named_provider

        return named_provider(self.settings)
