"""Recorded words beside those of the server: none of them can end the quotation that it stands in."""

from __future__ import annotations

LABEL = 300
"""Characters of a label that are shown at most."""


def harmless(name: str) -> str:
    """Return a name in which a closing mark of a quotation is escaped; any other is as it was."""
    from castle.mine.formats import RECALL_CLOSE, RECALL_OPEN, recall_block

    return recall_block(name).removeprefix(f"{RECALL_OPEN}\n").removesuffix(f"\n{RECALL_CLOSE}")


def quoted(text: str, longest: int = LABEL) -> str:
    """Quote what somebody wrote, ended by … where it is cut; "" for nothing."""
    from castle.mine.formats import recall_block

    if not text:
        return ""
    return recall_block(text if len(text) <= longest else f"{text[:longest]}…")
