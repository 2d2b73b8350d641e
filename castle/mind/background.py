"""Consolidation by itself, when it is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from castle.mind.consolidation import consolidate, should_run

if TYPE_CHECKING:
    from castle.llm.base import Provider
    from castle.store.palace import Palace

ACTOR = "background"


def consolidate_if_due(palace: Palace, llm: Provider | None = None) -> dict[str, Any] | None:
    """Run a cycle if one is due, and return what it came to; None where none is, or it cannot be written."""
    if palace.ledger.read_only or not should_run(palace):
        return None
    return consolidate(palace, llm=llm, actor=ACTOR)
