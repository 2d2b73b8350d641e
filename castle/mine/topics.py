"""Topics of a conversation: the room an exchange belongs to, and the type of memory a message is."""

from __future__ import annotations

import re

GENERAL = "general"
HEAD_CHARACTERS = 3000

_ROOMS = {
    "technical": "api bug build code compile crash database debug deploy error exception server test",
    "architecture": "architecture component design interface layer module pattern schema service structure",
    "planning": "deadline goal milestone next plan priority release roadmap schedule sprint",
    "decisions": "agreed choose chose chosen decide decided decision instead prefer switched trade-off",
    "problems": "blocked broken fail failed failing failure fix fixed issue problem regression stuck",
}
_TYPES = {
    "decision": "agreed chose chosen decided decision instead opted picked settled switched went",
    "preference": "always favourite favorite hate like love never prefer prefers rather style usually want",
    "milestone": "achieved completed deployed done finally finished launched merged released shipped works",
    "problem": "blocked broken bug crash crashed error exception fail failed failing issue problem wrong",
    "emotional": "afraid angry anxious excited feel feeling felt frustrated glad happy proud sad worried",
}
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_LEAST = 2


def room_of(text: str) -> str:
    """Return the room most of whose words occur in the first 3,000 characters; the first of equals wins."""
    return _best(text, _ROOMS, 1) or GENERAL


def memory_type(text: str) -> str:
    """Return decision, preference, milestone, problem or emotional; "" when fewer than two words say so."""
    return _best(text, _TYPES, _LEAST)


def _best(text: str, groups: dict[str, str], least: int) -> str:
    said = set(_WORD.findall(text[:HEAD_CHARACTERS].casefold()))
    best, most = "", least - 1
    for name, words in groups.items():
        count = len(said.intersection(words.split()))
        if count > most:
            best, most = name, count
    return best
