"""MemorySystem: the mind as a Python program uses it, in one object that needs no settings.

    from castle.mind import MemorySystem

    ms = MemorySystem("agent.db")
    ms.save("User prefers dark theme", memory_type="semantic", confidence=0.9)
    ms.recall("Which theme?")
    ms.shutdown()

Every call answers {"status": "ok", "data": …} or {"status": "error", "error": …}.
"""

from __future__ import annotations

import getpass
import threading
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from castle import config
from castle.clock import Clock, system_clock
from castle.errors import CastleError, UsageError
from castle.mind import envelopes
from castle.mind.envelopes import as_object, failed, ok
from castle.mind.mind import Mind
from castle.mind.models import llm_settings, named_provider
from castle.mind.procedural import EXPLORE_RATIO, TOP_K
from castle.mind.seeding import read_seed
from castle.mind.thresholds import TRIGGER

if TYPE_CHECKING:
    from castle.llm.base import Provider

DATABASES = (".db", ".sqlite", ".sqlite3")
"""Endings of a path that named a database; the palace is a directory beside it."""
MINILM = "all-MiniLM-L6-v2"
LOADING = "the embedder is being loaded; words only"

Method = TypeVar("Method", bound=Callable[..., dict[str, Any]])


def _answered(method: Method) -> Method:
    """Turn what is raised on purpose into an answer, and so a text that is none."""
    taken = signature(method)
    texts = [name for name, one in taken.parameters.items() if one.annotation == "str"]

    @wraps(method)
    def answer(*args: Any, **kwargs: Any) -> dict[str, Any]:
        given = taken.bind(*args, **kwargs).arguments
        try:
            for name in texts:
                if not isinstance(given.get(name, ""), str):
                    raise UsageError(f"{name} is a text, not {type(given[name]).__name__}")
            return method(*args, **kwargs)
        except CastleError as error:
            return failed(error)

    return cast(Method, answer)


class MemorySystem:
    """A mind of its own.

    ``db_path`` is a directory; of a path that ends like a database, the one beside it that ends in
    ``.palace``, and a database of the former kind that stands there is imported. The embedder is loaded in
    the background; until it is there, words decide. There is a language model only where one is named: by
    ``llm_client``, by ``llm_api_key`` or ``llm_base_url`` with ``llm_backend``, or in the settings.
    """

    def __init__(
        self,
        db_path: Path | str = "cell_mem.db",
        *,
        seed_config_path: Path | str | None = None,
        embedding_model_name: str = MINILM,
        embedding_device: str = "auto",
        llm_client: Provider | None = None,
        llm_backend: str = "openai",
        llm_api_key: str | None = None,
        llm_daily_limit: int = 100,
        llm_model: str | None = None,
        llm_base_url: str | None = None,
        wing: str = "",
        actor: str | None = None,
        clock: Clock = system_clock,
        background: bool = True,
    ) -> None:
        from castle.search.engines import engines_of
        from castle.search.options import options_of
        from castle.store.palace import Palace

        path = Path(db_path)
        old = path if path.suffix in DATABASES else None
        root = path.with_suffix(".palace") if old is not None else path
        embedder = None if embedding_model_name == MINILM else embedding_model_name
        flags = llm_settings(llm_backend, llm_api_key, llm_model, llm_base_url)
        self.settings = config.load(
            {**flags, "palace_path": str(root.absolute()), "embedder_model": embedder}
        )
        self.palace = Palace(
            root.absolute(), create=True, embedder=embedder, device=embedding_device, clock=clock
        )
        engines = engines_of(self.settings, self.palace)
        self.mind = Mind(
            self.palace,
            actor=actor or _user(),
            halls=self.settings.hall_keywords,
            wing=wing,
            options=options_of(self.settings, mode="fast"),
            engines=lambda: engines,
            provider=lambda: llm_client or named_provider(self.settings),
            daily_calls=llm_daily_limit,
            profile=self.settings.consolidation_profile,
        )
        self._loader: threading.Thread | None = None
        if background:
            self._load()
        if old is not None and old.is_file():
            self.import_database(old)
        if seed_config_path is not None:
            self.mind.seed(read_seed(Path(seed_config_path)), str(seed_config_path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def wait_ready(self, seconds: float = 60.0) -> bool:
        """Wait for the embedder; false where it is not there after ``seconds``."""
        if self._loader is not None:
            self._loader.join(seconds)
        return not self.palace.unready

    def shutdown(self) -> None:
        """Close the palace."""
        if self._loader is not None:
            self._loader.join()
        self.palace.close()

    @_answered
    def save(
        self,
        content: str,
        memory_type: str = "episodic",
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Keep a text in mind; options may be given as a mapping or by name."""
        saved = self.mind.save(content, memory_type, {**(options or {}), **more})
        return ok(as_object(saved.memory), reinforced=saved.reinforced, notes=saved.notes)

    @_answered
    def recall(self, query: str, options: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Recall what all layers hold about a query."""
        return envelopes.recalled(self.mind.recall(query, {**(options or {}), **more}))

    @_answered
    def get(self, memory_id: str) -> dict[str, Any]:
        """Return a memory and its history."""
        memory, told = self.mind.get(memory_id)
        return ok(as_object(memory), history=told)

    def status(self) -> dict[str, Any]:
        """Return what the mind holds, in numbers."""
        try:
            return self.mind.status()
        except CastleError as error:
            return {"layers": {}, "health": "error", "reasons": [str(error)]}

    @_answered
    def associate(
        self,
        source_id: str,
        target_id: str,
        weight: float = 1.0,
        relation_type: str = "associated_with",
        *,
        relation: str | None = None,
    ) -> dict[str, Any]:
        """Join two memories. ``related_to`` is another word for ``associated_with``."""
        named = relation or relation_type
        known = "associated_with" if named == "related_to" else named
        return ok(self.mind.associate(source_id, target_id, weight, known))

    @_answered
    def forget(
        self, memory_id: str, reason: str = "", expire: bool = False, force: bool = False
    ) -> dict[str, Any]:
        """Put a memory into cold storage, or note that it holds no longer."""
        return ok(envelopes.kept(self.mind.forget(memory_id, reason=reason, expire=expire, force=force)))

    @_answered
    def restore(self, memory_id: str, reason: str = "") -> dict[str, Any]:
        """Call a memory back."""
        return ok(envelopes.kept(self.mind.restore(memory_id, reason=reason)))

    @_answered
    def pin(self, memory_id: str, pinned: bool = True, reason: str = "") -> dict[str, Any]:
        """Pin a memory, or let go of it."""
        return ok(envelopes.kept(self.mind.pin(memory_id, pinned, reason=reason)))

    @_answered
    def cold(self, query: str = "", limit: int = 20, offset: int = 0) -> dict[str, Any]:
        """List or search cold storage."""
        found = self.mind.cold(query, limit=limit, offset=offset)
        return ok([as_object(memory) for memory in found.memories], total=found.total, offset=found.offset)

    @_answered
    def session_end(self, session_id: str, completed: tuple[str, ...] = ()) -> dict[str, Any]:
        """End a session: decide what becomes of its working items."""
        return ok(self.mind.session_end(session_id, completed=completed))

    @_answered
    def save_procedural(
        self,
        template_content: str,
        trigger_condition: str | None = None,
        task_type: str | None = None,
        source_episode_ids: list[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Learn a way of doing something."""
        options = {
            "trigger_condition": trigger_condition,
            "task_type": task_type,
            "source_episode_ids": source_episode_ids,
            "metadata": metadata,
        }
        return ok(as_object(self.mind.save(template_content, "procedural", options).memory))

    @_answered
    def match_procedural(
        self,
        context_text: str,
        threshold: float = TRIGGER,
        top_k: int = TOP_K,
        explore_ratio: float = EXPLORE_RATIO,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Return the procedures that a situation calls to mind."""
        found = self.mind.match_procedures(
            context_text, threshold=threshold, top_k=top_k, explore_ratio=explore_ratio, seed=seed
        )
        shown = [
            {
                "template": as_object(one.template),
                "similarity": one.similarity,
                "matched": list(one.matched),
                "explore": one.explore,
            }
            for one in found
        ]
        return ok(shown, count=len(shown))

    @_answered
    def record_procedural_outcome(
        self, proc_id: str, success: bool, session: str = "", note: str = ""
    ) -> dict[str, Any]:
        """Note how a procedure went."""
        return ok(as_object(self.mind.record_outcome(proc_id, success, session=session, note=note)))

    @_answered
    def consolidate(
        self, wing: str | None = None, dry_run: bool = False, force: bool = False
    ) -> dict[str, Any]:
        """Run one cycle of consolidation."""
        return ok(self.mind.consolidate(wing=wing, dry_run=dry_run, force=force))

    @_answered
    def verify(
        self, entry_id: str | None = None, environment: Mapping[str, Any] | None = None, dry_run: bool = False
    ) -> dict[str, Any]:
        """Check the condition of a memory, or all of them."""
        return ok(self.mind.verify(entry_id, environment, dry_run=dry_run))

    def verify_all(self, environment: Mapping[str, Any]) -> dict[str, Any]:
        """Check every condition."""
        return self.verify(None, environment)

    @_answered
    def check_environment(self, current_env: Mapping[str, Any], merge: bool = False) -> dict[str, Any]:
        """Compare an environment with the last one, and verify what depends on it."""
        return ok(self.mind.check_environment(current_env, merge=merge))

    @_answered
    def reflect(
        self,
        task_description: str | None = None,
        outcome: str = "failure",
        dimensions: str = "failure",
        *,
        task: str | None = None,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Think about how something went."""
        given = task_description or task
        if not given:
            raise UsageError("task_description is empty: say what was to be done")
        told = self.mind.reflect(given, outcome=outcome.lower(), dimensions=dimensions, apply=apply)
        return ok(told)

    @_answered
    def replay(self, theme_text: str | None = None, seed: int | None = None) -> dict[str, Any]:
        """Look for hypotheses that join what is far apart."""
        return ok(self.mind.replay(theme_text, seed=seed))

    @_answered
    def creative_pool_status(self, status: str | None = None) -> dict[str, Any]:
        """List hypotheses."""
        return ok(self.mind.creative_pool(status))

    @_answered
    def record_hypothesis_feedback(self, hypothesis_id: str, confirmed: bool) -> dict[str, Any]:
        """Say whether a hypothesis is right."""
        return ok(self.mind.hypothesis_feedback(hypothesis_id, confirmed))

    @_answered
    def extract_preferences(self, session_id: str | None = None, limit: int = 50) -> dict[str, Any]:
        """Look through the latest episodes for what the user prefers."""
        return ok(self.mind.extract_preferences(limit, session_id))

    @_answered
    def get_preferences(
        self,
        context_text: str | None = None,
        min_confidence: float = 0.3,
        preference_type: str | None = None,
    ) -> dict[str, Any]:
        """List preferences."""
        return ok(self.mind.get_preferences(context_text, min_confidence, preference_type))

    @_answered
    def check_preference_conflicts(self) -> dict[str, Any]:
        """List preferences that speak against each other."""
        return ok(self.mind.check_preference_conflicts())

    @_answered
    def inject_preference(
        self,
        preference_text: str,
        preference_type: str = "general",
        confidence: float = 0.7,
        trigger_context: str | None = None,
        falsifiable_condition: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Keep a preference that somebody states."""
        told = self.mind.inject_preference(
            preference_text, preference_type, confidence, trigger_context, falsifiable_condition
        )
        return ok(told)

    @_answered
    def record_preference_feedback(self, preference_id: str, confirmed: bool) -> dict[str, Any]:
        """Say whether a preference is right."""
        return ok(self.mind.record_preference_feedback(preference_id, confirmed))

    @_answered
    def seed(self, path: Path | str) -> dict[str, Any]:
        """Believe the facts of a seed file; the same file again changes nothing."""
        return ok(self.mind.seed(read_seed(Path(path))))

    @_answered
    def import_database(self, path: Path | str) -> dict[str, Any]:
        """Take over what a database of the former kind holds; the same one again adds nothing."""
        return ok(self.mind.import_database(Path(path)))

    def _load(self) -> None:
        """Load the embedder in a thread; until it is there, words decide."""
        self.palace.unready = LOADING

        def work() -> None:
            try:
                _ = self.palace.embedder
            except Exception as error:  # the edge of a thread: whatever it is, recalls tell it
                self.palace.unready = f"the embedder cannot be loaded; words only: {error}"
            else:
                self.palace.unready = ""

        self._loader = threading.Thread(target=work, name="castle-mind-models", daemon=True)
        self._loader.start()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
