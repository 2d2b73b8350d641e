"""Transcripts that are plain text: an exact partition of the file into turns, line by line.

The turn at the end of the file may still grow. It is delivered as it stands, and the last checkpoint lies
before it: the next reading delivers it again, longer, under the same id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from castle.mine.formats.base import (
    Broken,
    Checkpoint,
    Event,
    Kind,
    Message,
    Role,
    SessionInfo,
    Transcript,
)
from castle.mine.formats.lines import MAX_LINE, Line, decode, raw_lines
from castle.mine.formats.slices import Piece, messages
from castle.mine.formats.values import READ_ERRORS, mapping, string


@dataclass(frozen=True, slots=True)
class Turn:
    """What a line begins or goes on with.

    ``starts`` opens a new message, ``session`` a new session of that name; ``closed`` is for the classifier's
    own use from one line to the next.
    """

    role: Role
    kind: Kind = "message"
    starts: bool = False
    closed: bool = False
    session: str = ""
    started_at: int | None = None


_NAMES = 8

Classify: TypeAlias = Callable[[str, Turn | None], Turn]
"""Tell what a line is, given the turn before it; None where a reading begins."""


class _Partition:
    """Collects lines into turns and numbers them within their session."""

    def __init__(self, state: Mapping[str, Any], first: Turn) -> None:
        self.session = string(state.get("session"))
        self.started_at: int | None = state.get("started_at")
        self.ordinal: int = state.get("ordinal", 0)
        self.counts: dict[str, int] = dict(mapping(state.get("counts")))
        self.told = state.get("told") is True
        known = mapping(state.get("turn"))
        self.opening = Turn(cast(Role, known["role"]), cast(Kind, known["kind"])) if known else first
        self.turn: Turn | None = None
        self.lines: list[str] = []
        self.escaped = False

    def state(self, line: int, turn: Turn) -> dict[str, object]:
        """Return what a reading must know that begins with ``turn`` at this line."""
        return {
            "session": self.session,
            "started_at": self.started_at,
            "ordinal": self.ordinal,
            "counts": dict(self.counts),
            "told": self.told,
            "turn": {"role": turn.role, "kind": turn.kind},
            "line": line,
        }

    def take(self, line: Line, position: int, turn: Turn, text: str, escaped: bool) -> Iterator[Event]:
        """Add a line; deliver the open turn first if this line starts another."""
        if self.turn is None and not turn.starts:
            turn = self.opening
        if self.turn is None or turn.starts:
            if self.lines:
                yield from self.deliver()
                yield Checkpoint(position, self.state(line.number, turn))
            self._begin(turn)
        self.turn = replace(turn, starts=False)
        self.lines.append(text)
        self.escaped = self.escaped or escaped

    def _begin(self, turn: Turn) -> None:
        if turn.session:
            count = self.counts.pop(turn.session, 0) + 1
            self.counts[turn.session] = count
            # Sessions that share a name follow each other closely, so the last few names are enough.
            self.counts = dict(list(self.counts.items())[-_NAMES:])
            self.session = turn.session if count == 1 else f"{turn.session} #{count}"
            self.started_at, self.ordinal, self.told = turn.started_at, 0, False
        self.lines, self.escaped = [], False

    def deliver(self) -> Iterator[Event]:
        """Deliver the open turn."""
        if self.turn is None:
            return
        if not self.told:
            self.told = True
            yield SessionInfo(self.session, started_at=self.started_at)
        self.ordinal += 1
        shell = Message(
            session=self.session,
            id=f"{self.session}/{self.ordinal}" if self.session else str(self.ordinal),
            whole="",
            parent="",
            role=self.turn.role,
            kind=self.turn.kind,
            text="",
            timestamp=self.started_at,
            escaped=self.escaped,
        )
        yield from messages(shell, [Piece("", "".join(self.lines))])


def read_turns(
    transcript: Transcript,
    classify: Classify,
    first: Turn,
    from_offset: int,
    state: Mapping[str, object] | None,
) -> Iterator[Event]:
    """Partition a text file from an offset, which must be 0 or that of a checkpoint.

    ``first`` is the turn of what stands before the first line that starts one.
    """
    known = mapping(state)
    part = _Partition(known, first)
    position = from_offset
    try:
        with transcript.open() as stream:
            for line in raw_lines(stream, from_offset, known.get("line", 1)):
                if line.too_long:
                    yield Broken(line.number, f"line of more than {MAX_LINE} bytes")
                else:
                    text, escaped = decode(line.data + b"\n" if line.terminated else line.data)
                    yield from part.take(line, position, classify(text, part.turn), text, escaped)
                position = line.end
            yield from part.deliver()
    except READ_ERRORS as error:
        yield Broken(0, f"cannot be read: {error}", "file", transcript.address)
