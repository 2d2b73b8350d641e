"""The mind: what an agent believes, can do and prefers, over the same palace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from castle.mind.system import MemorySystem

__all__ = ["MemorySystem"]


def __getattr__(name: str) -> object:
    """Load what the package exports when it is first asked for: the rest of it needs less."""
    if name == "MemorySystem":
        from castle.mind.system import MemorySystem

        return MemorySystem
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
