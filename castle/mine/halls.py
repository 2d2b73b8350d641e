"""Halls: the kind of content a text is, by the words in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from castle.mine.rooms import GENERAL, Words

JUDGED_CHARACTERS = 3000


def hall_for(text: str, keywords: Mapping[str, Sequence[str]]) -> str:
    """Return the hall most of whose distinct keywords occur, as whole words, in the first 3,000 characters.

    The first of equals wins; without any it is "general".
    """
    head = Words(text[:JUDGED_CHARACTERS])
    best, most = GENERAL, 0
    for hall, words in keywords.items():
        count = head.distinct(tuple(dict.fromkeys(words)))
        if count > most:
            best, most = hall, count
    return best
