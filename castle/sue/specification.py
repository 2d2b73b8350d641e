"""What a review reads: the chosen drawers in one text with numbered lines, each under a boundary line."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from castle.errors import UsageError

MOST_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A drawer as it was when the run was made: its served text, and what is known of it."""

    drawer: str
    text: str
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The bytes of the snapshot's file."""
        return self.text.encode("utf-8")


@dataclass(frozen=True, slots=True)
class Part:
    """Where a drawer stands in the specification: bytes ``[byte_start, byte_end)``, lines counted from 1.

    ``boundary`` is the number of the line above it, which names it. ``sha256`` is that of its snapshot.
    """

    drawer: str
    snapshot: str
    sha256: str
    metadata: Mapping[str, object]
    boundary: int
    byte_start: int
    byte_end: int
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True)
class Link:
    """Where a line of the specification comes from: ``line`` of the drawer, None for its boundary."""

    drawer: str
    snapshot: str
    sha256: str
    line: int | None
    metadata: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Specification:
    """The text of a review and the parts it consists of."""

    text: str
    parts: tuple[Part, ...]

    @property
    def lines(self) -> list[str]:
        """The lines; a line ends at a line feed and nowhere else."""
        return self.text.split("\n")[:-1]

    @property
    def sha256(self) -> str:
        """The hash of the text as UTF-8."""
        return digest(self.text.encode("utf-8"))

    def link(self, line: int) -> Link:
        """Say where a line comes from; ``line`` counts from 1 and has to be there."""
        part = self.parts[bisect_right([part.boundary for part in self.parts], line) - 1]
        within = None if line == part.boundary else line - part.line_start + 1
        return Link(part.drawer, part.snapshot, part.sha256, within, part.metadata)


def compose(snapshots: Sequence[Snapshot], mark: str) -> Specification:
    """Put snapshots one below the other.

    ``mark`` stands in every boundary, so that no text that was filed before can pass for one. Raises
    UsageError when it is longer than 100,000 bytes.
    """
    text, parts, size, line = [], [], 0, 1
    for number, one in enumerate(snapshots, 1):
        known = json.dumps({"drawer": one.drawer, **one.metadata}, ensure_ascii=False, sort_keys=True)
        head = f"----- source {number} of {len(snapshots)} [{mark}] {known}\n"
        body = one.text if one.text.endswith("\n") else f"{one.text}\n"
        start = size + len(head.encode("utf-8"))
        count = body.count("\n")
        parts.append(
            Part(
                drawer=one.drawer,
                snapshot=f"source-{number:03d}.txt",
                sha256=digest(one.content),
                metadata=one.metadata,
                boundary=line,
                byte_start=start,
                byte_end=start + len(one.content),
                line_start=line + 1,
                line_end=line + count,
            )
        )
        text += [head, body]
        size = start + len(body.encode("utf-8"))
        line += 1 + count
    if size > MOST_BYTES:
        raise UsageError(
            f"the chosen drawers come to {size:,} bytes, {MOST_BYTES:,} are the most: narrow the scope, name "
            "fewer of them"
        )
    return Specification("".join(text), tuple(parts))


def digest(data: bytes) -> str:
    """Return SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()
