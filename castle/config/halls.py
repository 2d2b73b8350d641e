"""The default halls: what kind of thing a drawer is about, told by words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_WORDS = {
    "emotions": (
        "afraid angry anxious cry excited feel feeling felt happy hope hurt joy love proud sad scared worried"
    ),
    "consciousness": "alive aware awareness conscious consciousness exist existence mind sentient soul",
    "memory": "archive drawer forget forgot memories memory palace recall remember remembered reminder",
    "technical": (
        "api bug build class code compile config database debug deploy error exception function import "
        "module python query schema script server test"
    ),
    "identity": "belief character identity myself name persona personality self values",
    "family": (
        "aunt brother child children dad daughter family father husband kids mom mother parents sister son "
        "uncle wife"
    ),
    "creative": "art chapter compose design draw fiction melody music novel paint poem song story writing",
}

HALL_KEYWORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {hall: tuple(words.split()) for hall, words in _WORDS.items()}
)
"""Halls and their words, lower-case."""
