"""Cognitive Castle: a local-first, verbatim memory for AI agents and the people who work with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from castle.service import Castle

__version__ = "0.1.0"
__all__ = ["Castle", "__version__"]


def __getattr__(name: str) -> object:
    """Import the service when it is first asked for, so that ``import castle`` costs nothing."""
    if name == "Castle":
        from castle.service import Castle

        return Castle
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
