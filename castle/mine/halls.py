"""Halls: the kind of content a text is, by the words in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from castle.mine.rooms import GENERAL, occurrences

JUDGED_CHARACTERS = 3000

HALL_KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "emotions": (
        "afraid",
        "angry",
        "anxious",
        "excited",
        "feel",
        "feeling",
        "feelings",
        "grateful",
        "happy",
        "hope",
        "joy",
        "lonely",
        "love",
        "proud",
        "sad",
        "worried",
    ),
    "consciousness": (
        "aware",
        "awareness",
        "conscious",
        "consciousness",
        "existence",
        "experience",
        "meditation",
        "mind",
        "perception",
        "qualia",
        "self-awareness",
        "sentience",
        "soul",
    ),
    "memory": (
        "archive",
        "forget",
        "forgot",
        "forgotten",
        "memories",
        "memory",
        "recall",
        "recalled",
        "remember",
        "remembered",
        "reminder",
        "reminiscence",
    ),
    "technical": (
        "algorithm",
        "api",
        "bug",
        "code",
        "compiler",
        "config",
        "database",
        "debug",
        "deploy",
        "error",
        "function",
        "library",
        "python",
        "server",
        "test",
    ),
    "identity": (
        "belief",
        "beliefs",
        "character",
        "identity",
        "persona",
        "personality",
        "preferences",
        "principles",
        "pronouns",
        "self",
        "values",
        "who i am",
    ),
    "family": (
        "aunt",
        "brother",
        "children",
        "daughter",
        "father",
        "grandmother",
        "husband",
        "kids",
        "mother",
        "parents",
        "sister",
        "son",
        "uncle",
        "wedding",
        "wife",
    ),
    "creative": (
        "art",
        "compose",
        "creative",
        "drawing",
        "fiction",
        "lyrics",
        "melody",
        "novel",
        "painting",
        "poem",
        "poetry",
        "sketch",
        "song",
        "story",
    ),
}
"""The halls and their words; the order breaks ties."""


def hall_for(text: str, keywords: Mapping[str, Sequence[str]] = HALL_KEYWORDS) -> str:
    """Return the hall most of whose distinct keywords occur, as whole words, in the first 3,000 characters.

    The first of equals wins; without any it is "general".
    """
    head = text[:JUDGED_CHARACTERS]
    best, most = GENERAL, 0
    for hall, words in keywords.items():
        count = sum(occurrences(word, head) > 0 for word in dict.fromkeys(words))
        if count > most:
            best, most = hall, count
    return best
