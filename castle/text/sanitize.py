"""The question inside a query with much else around it, and what of a query may leave the machine.

Agents put their instructions before what they look for, and an embedder sees little but these. A query of
more than ``SAFE`` characters is cut to its question, or else to its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from castle.text.served import mask_secrets

SAFE = 200
"""Characters up to which a query is left as it is."""
MAX = 250
"""Characters that a query has at most once it was cut."""
MIN = 10
"""Characters that a question or a line needs to be taken for the query."""

Method = Literal["passthrough", "question_extraction", "tail_sentence", "tail_truncation"]

_QUOTES = "\"'`“”„‘’«»「」『』"
_QUESTION_LINE = re.compile(rf"[?？][{_QUOTES}]?$")
_SENTENCE_END = re.compile(rf"[.!?]+[{_QUOTES}]?(?=\s|$)|[。！？．]+[{_QUOTES}]?|\n")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Sanitized:
    """A query and how it came about; lengths are in characters."""

    clean_query: str
    was_sanitized: bool
    original_length: int
    clean_length: int
    method: Method


def sanitize(query: str) -> Sanitized:
    """Cut a query to what is asked in it: ``SAFE`` characters are left alone, more become ``MAX`` at most."""
    text = query.strip()
    if len(text) <= SAFE:
        return Sanitized(query, False, len(query), len(query), "passthrough")
    lines = [line.strip() for line in text.splitlines()]
    method: Method = "question_extraction"
    found = _last(line for line in lines if _QUESTION_LINE.search(line))
    if found is None:
        found = _last(part for part in _sentences(text) if "?" in part or "？" in part)
    if found is None:
        method = "tail_sentence"
        found = _last(iter(lines))
    if found is None:
        method = "tail_truncation"
        found = text[-MAX:].strip()
    clean = _bounded(found)
    return Sanitized(clean, True, len(query), len(clean), method)


def served_query(text: str, salt: bytes = b"") -> str:
    """Return a query as it may be given to a model elsewhere: secrets masked, control characters blank.

    ``salt`` keys the tags of the masks, as it does those of drawers.
    """
    return _CONTROL.sub(" ", mask_secrets(text, salt))


def _last(parts: Iterator[str]) -> str | None:
    """Return the last part that is long enough."""
    found = None
    for part in parts:
        if len(part) >= MIN:
            found = part
    return found


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        yield text[start : match.end()].strip()
        start = match.end()
    yield text[start:].strip()


def _bounded(text: str) -> str:
    """Cut what is too long to its last sentence that is not, or else to its end."""
    if len(text) <= MAX:
        return text
    text = text.strip(_QUOTES + " ")
    if len(text) <= MAX:
        return text
    whole = _last(part for part in _sentences(text) if len(part) <= MAX)
    return whole if whole is not None else text[-MAX:].strip()
