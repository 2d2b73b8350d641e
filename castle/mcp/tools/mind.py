"""The tools of the mind: what an agent believes, can do, prefers and is working on.

They answer ``{"status": "ok", "data": …}`` or ``{"status": "error", "error": …}``, and their parameters have
the names and defaults that their callers know; ``memory_status`` answers the report itself. What is recalled
is quoted, and shortened or left out where it has no room, which is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import ConfigDict, Field

from castle.mcp.answers import Answer
from castle.mcp.budget import BUDGET, ENVELOPE, size
from castle.mcp.quoting import harmless
from castle.mcp.tools.base import Palace, must_exist, offered

if TYPE_CHECKING:
    from castle.mind.objects import Memory
    from castle.service import Castle

LENGTHS = (100_000, 8_000, 4_000, 2_000, 1_000, 500, 160)
"""Characters of a content that are shown, the most for which there is room."""
MOST_NAMED = 20
"""Drawers and sources of a memory that are named."""
_ALWAYS = ("id", "content", "memory_type", "created_at", "state")
_ONLY = {
    "working": ("attention_score", "zone", "base_priority", "relevance", "was_referenced", "task_completed"),
    "episodic": ("valence", "consolidation_score", "was_in_wm"),
    "semantic": ("confidence", "lifecycle"),
    "procedural": ("lifecycle",),
}
_SHARED = frozenset(name for names in _ONLY.values() for name in names)

MemoryType = Literal["working", "episodic", "semantic", "procedural"]
MemoryId = Annotated[str, Field(description="its id")]
Environment = Annotated[
    dict[str, Any], Field(description='such as {"node_version": "20", "package.json": {"react": "19.0"}}')
]
Items = Annotated[list[str], Field(description="working items whose task is done")]
Options = Annotated[dict[str, Any], Field(description="see the description of the tool")]


class MemoryAnswer(Answer):
    """``data``, or the ``error``; what stands beside it depends on the tool."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    status: str
    data: Any = None
    error: str = ""


class Mind(Palace):
    """What the mind does."""

    @offered("memory", "adds")
    def memory_save(
        self,
        content: str,
        memory_type: MemoryType = "episodic",
        options: Options = {},  # noqa: B006  (a schema's default, never written to)
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Keep words in mind, exactly as they are.

        episodic: what happened (session_id, task_id, valence, outcome_valence). semantic: a fact (confidence,
        0 unless given; falsifiable_condition, source_references, triple_ids). procedural: how something is
        done (trigger_condition, task_type, source_episode_ids, variant_of). working: for this session
        (session_id, base_priority).
        All: wing, tags, metadata.
        """

        def work(castle: Castle) -> dict[str, Any]:
            must_exist(castle)
            saved = castle.memory_save(content, memory_type, options)
            told = {"reinforced": saved.reinforced, "notes": list(saved.notes)}
            return {"data": saved.memory, **{name: value for name, value in told.items() if value}}

        return self._enveloped(work)

    @offered("memory")
    def memory_recall(
        self,
        query: str,
        options: Options = {},  # noqa: B006  (a schema's default, never written to)
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Recall what the mind holds about a query, from all layers, best first.

        options: memory_type, top_k (10), strategy (direct, rrf_fusion, two_pass), min_confidence, wing,
        session_id, tags, since, until, include_cold, include_expired. Quote only drawers, by drawer_ids.
        """

        def work(castle: Castle) -> dict[str, Any]:
            found = castle.memory_recall(query, options)
            beside = {
                "preferences": list(found.preferences),
                "procedures": list(found.procedures),
                "conflicts": [list(pair) for pair in found.conflicts],
                "suggestions": list(found.suggestions),
                "hidden": dict(found.hidden or {}),
                "degraded": list(found.degraded),
            }
            return {
                "data": list(found.memories),
                "count": len(found.memories),
                "fallback_fts5": found.fallback,
                **{name: value for name, value in beside.items() if value},
            }

        return self._enveloped(work)

    @offered("memory")
    def memory_status(self) -> Annotated[CallToolResult, MemoryAnswer]:
        """Say what the mind holds and whether it is in order; castle_status tells of the archive."""
        try:
            with self._asked() as castle:
                report = castle.memory_status()
        except ToolError as error:
            return _sent({"layers": {}, "health": "error", "reasons": [str(error)], "status": "error"})
        return _sent({"status": "ok", **_safe(report)})

    @offered("memory", "adds")
    def memory_associate(
        self,
        source_id: MemoryId,
        target_id: MemoryId,
        weight: Annotated[float, Field(ge=-1, le=1)] = 1.0,
        relation_type: Literal[
            "associated_with", "causes", "contradicts", "is_a", "part_of"
        ] = "associated_with",
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Join two memories; a negative weight says that they speak against each other.

        One may be a triple_id. A fact that contradicts one (-0.3 or less) raises a suggestion to end it.
        """
        return self._enveloped(
            lambda castle: {"data": castle.memory_associate(source_id, target_id, weight, relation_type)}
        )

    @offered("memory", "changes")
    def memory_forget(
        self,
        memory_id: MemoryId,
        reason: str = "",
        expire: Annotated[bool, Field(description="it holds no longer, rather than not needed now")] = False,
        force: Annotated[bool, Field(description="though it is a locked fact")] = False,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Put a memory into cold storage: castle_search still finds it, memory_cold restores it."""

        def work(castle: Castle) -> dict[str, Any]:
            from castle.mind.envelopes import kept

            return {"data": kept(castle.memory_forget(memory_id, reason=reason, expire=expire, force=force))}

        return self._enveloped(work)

    @offered("memory", "changes", idempotent=False)
    def memory_consolidate(
        self, wing: str | None = None, dry_run: bool = False, force: bool = False
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Run a cycle: score episodes, put away what counts little, find patterns."""
        return self._enveloped(
            lambda castle: {"data": castle.memory_consolidate(wing=wing, dry_run=dry_run, force=force)}
        )

    @offered("memory", "changes")
    def memory_verify(
        self,
        entry_id: str | None = None,
        environment: Environment | None = None,
        dry_run: bool = False,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Check the falsifiable condition of a memory, or of all, and expire what is met."""
        return self._enveloped(
            lambda castle: {"data": castle.memory_verify(entry_id, environment, dry_run=dry_run)}
        )

    @offered("memory", "changes", idempotent=False)
    def memory_reflect(
        self,
        task_description: str,
        outcome: str = "failure",
        dimensions: Annotated[str, Field(description="failure, strategy, gaps, process or all")] = "failure",
        apply: Annotated[bool, Field(description="do what is proposed")] = False,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Think about how a task went: causes, strategies, gaps; proposes what should change."""
        return self._enveloped(
            lambda castle: {
                "data": castle.memory_reflect(
                    task_description, outcome=outcome, dimensions=dimensions, apply=apply
                )
            }
        )

    @offered("memory", "adds", idempotent=False)
    def memory_replay(self, theme_text: str | None = None) -> Annotated[CallToolResult, MemoryAnswer]:
        """Look for hypotheses that join what is far apart; they wait in the creative pool."""
        return self._enveloped(lambda castle: {"data": castle.memory_replay(theme_text)})

    @offered("memory", "changes", idempotent=False)
    def memory_hypothesis_feedback(
        self, hypothesis_id: str, confirmed: bool
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Say whether a hypothesis is right, after asking the user."""
        return self._enveloped(
            lambda castle: {"data": castle.memory_hypothesis_feedback(hypothesis_id, confirmed)}
        )

    @offered("memory")
    def memory_creative_pool(
        self,
        status: Annotated[
            str | None, Field(description="pending if left out; confirmed, rejected, promoted")
        ] = None,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """List hypotheses."""
        return self._enveloped(lambda castle: {"data": castle.memory_creative_pool(status)})

    @offered("memory", "changes")
    def memory_check_environment(
        self,
        environment: Environment,
        wing: str | None = None,
        merge: Annotated[bool, Field(description="it is a part; what it leaves out is as before")] = False,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Compare an environment with the last one; facts whose condition it meets expire."""
        return self._enveloped(
            lambda castle: {"data": castle.memory_check_environment(environment, wing=wing, merge=merge)}
        )

    @offered("memory", "adds")
    def memory_extract_preferences(
        self, limit: Annotated[int, Field(ge=1, le=10_000)] = 50
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Look through the latest episodes for what the user prefers; only the user's own words count."""
        return self._enveloped(lambda castle: {"data": castle.memory_extract_preferences(limit=limit)})

    @offered("memory")
    def memory_get_preferences(
        self,
        context_text: str | None = None,
        min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.3,
        preference_type: str | None = None,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """List preferences, those that fit a context first."""
        return self._enveloped(
            lambda castle: {
                "data": castle.memory_get_preferences(
                    context_text, min_confidence=min_confidence, preference_type=preference_type
                )
            }
        )

    @offered("memory")
    def memory_check_preference_conflicts(self) -> Annotated[CallToolResult, MemoryAnswer]:
        """List preferences that speak against each other; changes nothing."""
        return self._enveloped(lambda castle: {"data": castle.memory_check_preference_conflicts()})

    @offered("memory", "adds")
    def memory_inject_preference(
        self,
        preference_text: str,
        preference_type: str = "general",
        confidence: Annotated[float, Field(ge=0, le=1)] = 0.7,
        trigger_context: str | None = None,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Keep a preference that the user states."""
        return self._enveloped(
            lambda castle: {
                "data": castle.memory_inject_preference(
                    preference_text,
                    preference_type=preference_type,
                    confidence=confidence,
                    trigger_context=trigger_context,
                )
            }
        )

    @offered("memory", "changes", idempotent=False)
    def memory_record_preference_feedback(
        self, preference_id: str, confirmed: bool
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Say whether a preference is right."""
        return self._enveloped(
            lambda castle: {"data": castle.memory_record_preference_feedback(preference_id, confirmed)}
        )

    @offered("memory")
    def memory_get(self, memory_id: MemoryId) -> Annotated[CallToolResult, MemoryAnswer]:
        """Show a memory by its id, with what it is joined to and every change of it."""

        def work(castle: Castle) -> dict[str, Any]:
            memory, told = castle.memory_get(memory_id)
            joined = castle.memory_related(memory.id)[:20]
            return {"data": memory, "history": told[-20:], "changes": len(told), "related": joined}

        return self._enveloped(work)

    @offered("memory", "changes", idempotent=False)
    def memory_record_outcome(
        self,
        procedure_id: str,
        success: bool,
        session_id: str = "",
        note: str = "",
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Say how a procedure went, after you followed it."""
        return self._enveloped(
            lambda castle: {
                "data": castle.memory_record_outcome(procedure_id, success, session_id=session_id, note=note)
            }
        )

    @offered("memory", "changes")
    def memory_match_procedures(
        self,
        context_text: Annotated[str, Field(description="the situation")],
        threshold: float = 0.65,
        top_k: Annotated[int, Field(ge=1, le=50)] = 5,
        explore_ratio: Annotated[float, Field(ge=0, le=1)] = 0.2,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Find ways of doing something that fit a situation; now and then a less proven one comes first."""

        def work(castle: Castle) -> dict[str, Any]:
            found = castle.memory_match_procedures(
                context_text, threshold=threshold, top_k=top_k, explore_ratio=explore_ratio
            )
            shown = [
                {
                    "template": one.template,
                    **({} if one.similarity is None else {"similarity": round(one.similarity, 4)}),
                    **({"explore": True} if one.explore else {}),
                }
                for one in found
            ]
            return {"data": shown, "count": len(shown)}

        return self._enveloped(work)

    @offered("memory", "changes")
    def memory_cold(
        self,
        action: Literal["list", "search", "restore"] = "list",
        query: str = "",
        memory_id: str = "",
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0,
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """List or search cold storage, or restore a memory from it, byte for byte."""

        def work(castle: Castle) -> dict[str, Any]:
            from castle.mind.envelopes import kept

            if action == "restore":
                return {"data": kept(castle.memory_restore(memory_id))}
            found = castle.memory_cold(query if action == "search" else "", limit=limit, offset=offset)
            return {"data": list(found.memories), "total": found.total, "offset": found.offset}

        return self._enveloped(work)

    @offered("memory", "changes")
    def memory_pin(
        self, memory_id: MemoryId, pinned: bool = True, reason: str = ""
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """Pin a memory, so that it is never forgotten by itself, or let go of it."""

        def work(castle: Castle) -> dict[str, Any]:
            from castle.mind.envelopes import kept

            return {"data": kept(castle.memory_pin(memory_id, pinned, reason=reason))}

        return self._enveloped(work)

    @offered("memory", "changes")
    def memory_session_end(
        self,
        session_id: str,
        completed: Items = [],  # noqa: B006  (a schema's default, never written to)
    ) -> Annotated[CallToolResult, MemoryAnswer]:
        """End a session: what is open stays in mind, what was done or used is filed."""
        return self._enveloped(
            lambda castle: {"data": castle.memory_session_end(session_id, completed=completed)}
        )

    def _enveloped(self, work: Callable[[Castle], dict[str, Any]]) -> CallToolResult:
        """Do a piece of work and answer with its envelope; nothing that is raised on purpose leaves it."""
        try:
            with self._asked() as castle:
                told = work(castle)
        except ToolError as error:
            return _failed(str(error))
        return _fitted(told)


def _fitted(told: Mapping[str, Any]) -> CallToolResult:
    """Return an answer within the budget: contents are shortened first, then entries are left out."""
    for length in LENGTHS:
        answer = _sent({"status": "ok", **_shown(told, length)})
        if size(answer) <= BUDGET - ENVELOPE:
            return answer
    entries = told.get("data")
    if isinstance(entries, Sequence) and not isinstance(entries, str) and len(entries) > 1:
        half = len(entries) // 2
        left = int(told.get("left_out", 0)) + len(entries) - half
        return _fitted({**told, "data": list(entries)[:half], "left_out": left})
    return answer


def _shown(value: Any, length: int) -> Any:
    from castle.mind.objects import Memory

    if isinstance(value, Memory):
        return _object(value, length)
    if isinstance(value, Mapping):
        return {str(key): _shown(item, length) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item, length) for item in value]
    return _safe(value)


def _object(memory: Memory, length: int) -> dict[str, Any]:
    """Return what is shown of a memory: what does not apply to its layer, or is empty, is left out."""
    from castle.mind.envelopes import as_object
    from castle.mine.formats import recall_block

    own = _ONLY[memory.layer]
    found = {
        name: value
        for name, value in as_object(memory).items()
        if name in _ALWAYS
        or (name in own)
        or (name not in _SHARED and name != "layer" and value not in (None, "", [], {}, False, 0.0))
    }
    for name in ("drawer_ids", "source_references"):
        if len(found.get(name, ())) > MOST_NAMED:
            found[f"{name}_left_out"] = len(found[name]) - MOST_NAMED
            found[name] = found[name][:MOST_NAMED]
    text = memory.content
    shown = {**_safe(found), "content": recall_block(text[:length])}
    if len(text) > length:
        shown["cut"] = f"{length} of {len(text)} characters: memory_get {memory.id} gives the rest"
    return shown


def _safe(value: Any) -> Any:
    """Return a value as it may be told: recorded names cannot end a quotation."""
    from castle.mind.envelopes import plain

    value = plain(value)
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, dict):
        return {key: _safe(item) for key, item in value.items()}
    return [_safe(item) for item in value] if isinstance(value, list) else value


def _failed(error: str) -> CallToolResult:
    answer = _sent({"status": "error", "error": error})
    return answer.model_copy(update={"is_error": True})


def _sent(content: dict[str, Any]) -> CallToolResult:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)
