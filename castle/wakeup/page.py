"""Texts that never have more than a number of tokens.

What is counted is the text as an agent gets it: wrapped as recalled, and what would end the wrapping escaped.
"""

from __future__ import annotations

from collections.abc import Callable

from castle.mine.formats import recall_block
from castle.wakeup.tokens import count, cut


def wrapped_tokens(text: str) -> int:
    """Return the tokens of a text as an agent gets it."""
    return count(recall_block(text))


def longest(build: Callable[[int], str], most: int, budget: int) -> tuple[str, int]:
    """Return ``build(n)`` for as many of ``most`` entries as the budget has room for, and how many these are.

    A text without any entry that is still too long is cut.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if wrapped_tokens(build(middle)) <= budget:
            low = middle
        else:
            high = middle - 1
    return within(build(low), budget), low


def within(text: str, budget: int) -> str:
    """Return a text, or the beginning of it that the budget has room for."""
    room = budget
    while wrapped_tokens(text) > budget and text:
        room -= max(1, wrapped_tokens(text) - budget)
        text = cut(text, max(0, room))
    return text
