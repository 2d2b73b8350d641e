"""Tokens: how long a text is for a model.

Counted are the word pieces of the built-in embedder's vocabulary; its model is not loaded. What that
vocabulary does not know is one piece to it however long it is, and white space and what is not seen are none;
here the one is counted by its bytes, and no token is taken to stand for more than some bytes.
"""

from __future__ import annotations

import re

UNKNOWN = 100
"""The id of the piece that stands for what the vocabulary does not know."""
UNKNOWN_BYTES = 3
MOST_BYTES = 8

_SURROGATES = re.compile("[\ud800-\udfff]")


def count(text: str) -> int:
    """Return the number of tokens of a text; any string will do."""
    from castle.text.wordpiece import tokenizer

    text = _SURROGATES.sub("\ufffd", text)
    found = tokenizer().encode(text, add_special_tokens=False)
    pieces = sum(
        -(-len(text[start:end].encode("utf-8")) // UNKNOWN_BYTES) if piece == UNKNOWN else 1
        for piece, (start, end) in zip(found.ids, found.offsets, strict=True)
    )
    return max(pieces, -(-len(text.encode("utf-8")) // MOST_BYTES))


def cut(text: str, most: int) -> str:
    """Return the longest beginning of a text with ``most`` tokens, to the end of a line or word if near."""
    if count(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    kept = text[:low]
    for ends in ("\n", " "):
        end = kept.rfind(ends)
        if end >= 0.8 * low:
            return kept[:end]
    return kept
