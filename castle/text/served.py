"""The text as it is shown, indexed and embedded: every sealed span is masked."""

from __future__ import annotations

from collections.abc import Iterable

from castle.records import SealedSpan
from castle.text.secrets import find_secrets


def served_text(text: str, sealed: Iterable[SealedSpan]) -> str:
    """Mask the sealed spans of a text.

    Spans reach from ``start`` to ``end`` in characters of ``text``; where spans overlap, the first masks what
    both cover.
    """
    pieces: list[str] = []
    done = 0
    for span in sorted(sealed, key=lambda span: (span.start, span.end)):
        if span.end <= done:
            continue
        pieces.append(text[done : max(done, span.start)])
        pieces.append(span.mask)
        done = span.end
    pieces.append(text[done:])
    return "".join(pieces)


def mask_secrets(text: str, salt: bytes) -> str:
    """Find the secrets in a text and mask them."""
    return served_text(text, find_secrets(text, salt))
