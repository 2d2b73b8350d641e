"""Parts of the mind that are loaded only when they are asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from castle.errors import CastleError


def part(name: str) -> Any:
    """Return a module of the mind, None where this version has none of that name."""
    known = find_spec(f"castle.mind.{name}")
    return None if known is None else import_module(f"castle.mind.{name}")


def needed(name: str) -> Any:
    """Return a module of the mind; raises CastleError where this version has none of that name."""
    found = part(name)
    if found is None:
        raise CastleError(f"{name} is not part of this Castle: `pip install -U cognitive-castle`")
    return found
