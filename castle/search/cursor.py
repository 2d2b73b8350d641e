"""The cursor of a search: where the next page begins, and what the first one was made with."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import asdict, astuple, dataclass

from castle.errors import UsageError

_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a ranking.

    ``asked`` identifies the question with everything it is limited to; ``block`` candidates at a time are
    read by the cross-encoder, ``depth`` are recalled by each list; ``now`` is the time of the first page and
    ``head`` the last change that the palace had then.
    """

    asked: str
    offset: int
    block: int
    depth: int
    now: int
    head: int

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
        numbers = (cursor.offset, cursor.block, cursor.depth)
        if not isinstance(cursor.asked, str) or not all(
            isinstance(number, int) for number in (*numbers, cursor.now, cursor.head)
        ):
            raise ValueError(text)
        if not all(0 <= number <= _MOST for number in numbers) or not cursor.block or not cursor.depth:
            raise ValueError(text)
    except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError):
        raise UsageError("the cursor is damaged: give it as the page before printed it") from None
    return cursor


def foreign() -> UsageError:
    """Return the error for a cursor that belongs to another question."""
    return UsageError("the cursor belongs to another question: leave it out to begin anew")


def fingerprint(*parts: object) -> str:
    """Return what identifies a question: a short hash over its parts."""
    shown = [asdict(part) if hasattr(part, "__dataclass_fields__") else part for part in parts]  # type: ignore[call-overload]
    return hashlib.sha256(json.dumps(shown, sort_keys=True, default=str).encode("utf-8")).hexdigest()[:16]
