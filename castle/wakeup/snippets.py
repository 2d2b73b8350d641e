"""Drawers in a line: the beginning of a text, who said it, when, and where it stands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from castle.clock import to_iso

SHORT = 200
"""Characters of a drawer at wake-up."""
LONGER = 300
"""Characters of a drawer in a listing or a recall."""
MOST_NAME = 60

_ID = re.compile(r"([0-9a-fA-F]{8})-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+")


def one_line(text: str) -> str:
    """Return a text on one line, without characters that act instead of being seen."""
    return " ".join(_UNSEEN.sub(" ", text).split())


def snippet(text: str, length: int) -> str:
    """Return the beginning of a text on one line, cut at a word where one ends near."""
    line = one_line(text)
    if len(line) <= length:
        return line
    kept = line[: length - 1]
    space = kept.rfind(" ")
    return f"{kept[:space] if space >= 0.8 * length else kept}…"


def around(text: str, matched: Iterable[str], length: int) -> str:
    """Return the part of a text, on one line, that begins shortly before the first of the words matched."""
    line = one_line(text)
    if len(line) <= length:
        return line
    lower = line.lower()
    places = [at for word in matched if (at := lower.find(word.lower())) >= 0]
    start = max(0, min(min(places, default=0) - length // 4, len(line) - length))
    if start:
        start = line.find(" ", start, start + 40) + 1 or start
    return f"{'…' if start else ''}{snippet(line[start:], length)}"


def name_of(path: str) -> str:
    """Return the last part of a path, an id in it by its beginning."""
    name = os.path.basename(path.replace("\\", "/")) or path  # noqa: PTH119  (a path of any system)
    return snippet(_ID.sub(r"\1", name), MOST_NAME)


def day(moment: int) -> str:
    """Return the day of a time, "" for none."""
    return to_iso(moment)[:10] if moment > 0 else ""
