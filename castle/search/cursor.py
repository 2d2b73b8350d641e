"""The cursor of a search: where the next page begins, and what the first one was made with."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import astuple, dataclass, replace

from castle.errors import UsageError

_MOST_DEPTH = 20_000
_MOST_BLOCK = 10_000
_LONG = 2**62


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a ranking.

    ``asked`` identifies the question with everything it is limited to and ranked by; ``block`` candidates at
    a time are read by the cross-encoder, ``depth`` are recalled by each list; ``now`` is the time of the
    first page and ``head`` the last change that the palace had then. ``judged`` says whether a judge put the
    first page in order, ``by_words`` whether that page had to do without models.
    """

    asked: str
    offset: int
    block: int
    depth: int
    now: int
    head: int
    judged: bool = False
    by_words: bool = False

    def encode(self) -> str:
        """Return it as one word."""
        text = json.dumps(astuple(self), separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def decode(text: str) -> Cursor:
    """Read a cursor; raises UsageError when it is none."""
    try:
        padded = text + "=" * (-len(text) % 4)
        values = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        cursor = Cursor(*values)
        flags = (cursor.judged, cursor.by_words)
        if not (type(cursor.asked) is str and {type(flag) for flag in flags} == {bool} and _whole(cursor)):
            raise ValueError(text)
    except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError):
        raise UsageError("the cursor is damaged: give it as the page before printed it") from None
    return cursor


def _whole(cursor: Cursor) -> bool:
    bounds = (
        (cursor.offset, 0, _MOST_DEPTH * 4),
        (cursor.block, 1, _MOST_BLOCK),
        (cursor.depth, 1, _MOST_DEPTH),
        (cursor.now, -_LONG, _LONG),
        (cursor.head, 0, _LONG),
    )
    # A bool is an int to Python, and true is no number.
    return all(type(number) is int and low <= number <= high for number, low, high in bounds)


def moved(cursor: str, count: int) -> str:
    """Return the cursor of what comes ``count`` results after another."""
    place = decode(cursor)
    return replace(place, offset=place.offset + count).encode()


def foreign() -> UsageError:
    """Return the error for a cursor that belongs to another question."""
    return UsageError("the cursor belongs to another question: leave it out to begin anew")


def fingerprint(*parts: object) -> str:
    """Return what identifies a question: a short hash over values that are written out in full."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
