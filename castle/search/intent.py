"""What kind of memory a query asks for, and what kind a room holds."""

from __future__ import annotations

import re
from typing import Literal

MemoryType = Literal["decision", "milestone", "preference", "problem", "emotional"]

# The first that matches wins: "what did we decide about the bug" asks for a decision, not for a problem.
_INTENTS: tuple[tuple[MemoryType, re.Pattern[str]], ...] = (
    (
        "decision",
        re.compile(
            r"\bwhat\s+(?:did|do)\s+(?:\w+\s+)?(?:decide|choose|pick)\b"
            r"|\b(?:decision|decided)\s+(?:about|on|for)\b"
            r"|\bwhat(?:['’]s|\s+is|\s+was)\s+(?:the|our|my)\s+(?:decision|choice|pick)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "milestone",
        re.compile(
            # The gap is bounded so that a long text of "when did" takes linear time.
            r"\bwhen\s+(?:did|was|were)\b.{0,200}?"
            r"\b(?:ship(?:ped)?|released?|launch(?:ed)?|merged?|deploy(?:ed)?)\b"
            r"|\b(?:milestones?|shipped|released|launched|deployed)\b",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        "preference",
        re.compile(r"\bprefer\w*|\bmy\s+(?:preference|style|favou?rite)s?\b", re.IGNORECASE),
    ),
    (
        "problem",
        re.compile(
            r"\b(?:problems?|issues?|bugs?|errors?|broken|failing|crash(?:e[sd]|ing)?)\b"
            r"|\bwhat\s+(?:went\s+wrong|broke)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "emotional",
        re.compile(r"\b(?:feel|feels|felt|feelings?|emotions?|emotional(?:ly)?)\b", re.IGNORECASE),
    ),
)

_ROOMS: dict[str, MemoryType] = {
    "decision": "decision",
    "decisions": "decision",
    "milestone": "milestone",
    "milestones": "milestone",
    "preference": "preference",
    "preferences": "preference",
    "problem": "problem",
    "problems": "problem",
    "emotional": "emotional",
}


def query_intent(query: str) -> MemoryType | None:
    """Name the type of memory an English query asks for, or None; the first pattern that matches decides."""
    return next((intent for intent, pattern in _INTENTS if pattern.search(query)), None)


def room_type(room: str) -> MemoryType | None:
    """Name the type of memory a room of this name holds, or None."""
    return _ROOMS.get(room.casefold())
