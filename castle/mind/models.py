"""The language model of the mind: asked where it can be, and told where it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castle.llm.budget import Purpose, for_purpose

if TYPE_CHECKING:
    from castle.llm.base import Provider
    from castle.store.palace import Palace


def usable(
    llm: Provider | None, palace: Palace, purpose: Purpose, without: str
) -> tuple[Provider | None, list[str]]:
    """Return a model with the budget of a purpose, and nothing to note; or None and why, in one line.

    ``without`` says what is done when there is none.
    """
    if llm is None:
        return None, [f"no language model is configured: {without}"]
    provider = for_purpose(llm, palace.ledger, purpose)
    reason = provider.available()
    return (None, [f"{reason}: {without}"]) if reason else (provider, [])
