"""What an agent is told to do for a task, as Markdown: one file for each, in this package."""

from __future__ import annotations

from importlib import resources

from castle.errors import UsageError

NAMES = ("init", "search", "mine", "status", "doctor", "help")
"""Every task there are instructions for."""


def text(name: str) -> str:
    """Return the instructions for a task as Markdown; raises UsageError for a name not in ``NAMES``."""
    if name not in NAMES:
        raise UsageError(_unknown(name))
    return resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), NAMES, n=1, cutoff=0.5)
    if near:
        return f"there are no instructions {name!r}: did you mean `castle instructions {near[0]}`?"
    return f"there are no instructions {name!r}: choose one of {', '.join(NAMES)}"
