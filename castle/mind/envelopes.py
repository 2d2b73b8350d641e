"""Answers as callers of the tools know them: ``status`` and ``data``, or ``status`` and ``error``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from castle.mind.asking import Recalled
from castle.mind.keeping import Kept
from castle.mind.objects import Memory

_NONE_IF_EMPTY = (
    "last_accessed_at",
    "session_id",
    "task_id",
    "event_at",
    "invalidated_at",
    "zone",
)


def as_object(memory: Memory) -> dict[str, Any]:
    """Return a memory as JSON has it; what does not apply is None."""
    found = plain(memory)
    for name in _NONE_IF_EMPTY:
        found[name] = found[name] or None
    return {**found, "valid_until": None, "expired": memory.expired}


def ok(data: object, **beside: object) -> dict[str, Any]:
    """Return the envelope of a success."""
    return {"status": "ok", "data": plain(data), **{name: plain(value) for name, value in beside.items()}}


def failed(error: object) -> dict[str, Any]:
    """Return the envelope of a failure."""
    return {"status": "error", "error": str(error) or type(error).__name__}


def recalled(found: Recalled) -> dict[str, Any]:
    """Return the envelope of a recall."""
    return ok(
        [as_object(memory) for memory in found.memories],
        count=len(found.memories),
        fallback_fts5=found.fallback,
        preferences=list(found.preferences),
        procedures=[as_object(memory) for memory in found.procedures],
        conflicts=[list(pair) for pair in found.conflicts],
        suggestions=list(found.suggestions),
        hidden=dict(found.hidden or {}),
        degraded=list(found.degraded),
    )


def kept(done: Kept) -> dict[str, Any]:
    """Return what was done with a memory."""
    told: dict[str, Any] = {"action": done.action, "memory_id": done.id, "reason": done.reason}
    return {**told, "memory_type": done.kind, "state": done.state}


def plain(value: Any) -> Any:
    """Turn a value into what JSON knows."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value
