"""Sessions that a recorder of agents wrote turn by turn: JSONL, an event a line, a file for each session.

    {"type": "turn", "session_id": "s", "turn_id": "t1", "user_message": "...", "assistant_message": "..."}

A turn is what was asked and what was answered; where it has ``tool_calls``, the answer is what tools were
told and gave back. ``session_start`` says where a session was held, ``context`` what it was given to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castle.mine.formats.base import Event, Message, NoMessage, Role, SessionInfo, Transcript
from castle.mine.formats.lines import Line, head_objects, read_jsonl
from castle.mine.formats.slices import Piece, messages
from castle.mine.formats.values import derived_id, micros, name_of, string

_TURN = "turn"
_SAID: Sequence[tuple[Role, str]] = (("user", "user_message"), ("assistant", "assistant_message"))
_SILENT = ("session_start", "session_end")
_USED = frozenset({"type", "session_id", "timestamp", "turn_id", "tool_calls", *(key for _, key in _SAID)})


class _Reader:
    """Turns records into events; nothing is remembered between them."""

    def state(self) -> dict[str, object]:
        """Return nothing: each record says what it is about."""
        return {}

    def record(self, value: Mapping[str, Any], line: Line, escaped: bool) -> Iterator[Event]:
        """Return the events of one record."""
        session, kind = name_of(value.get("session_id")), value.get("type")
        if kind == "session_start":
            platform = string(value.get("platform"))
            about = {"platform": platform} if platform else {}
            start = micros(value.get("timestamp"))
            yield SessionInfo(session, cwd=string(value.get("cwd")), started_at=start, metadata=about)
        spoken = list(self._spoken(value, session, line, escaped))
        yield from spoken
        if not spoken and kind not in _SILENT:
            yield NoMessage(line.number, str(kind)[:60])

    def _spoken(self, value: Mapping[str, Any], session: str, line: Line, escaped: bool) -> Iterator[Message]:
        native = name_of(value.get("turn_id")) or derived_id(session, line.data.strip())
        given: Sequence[tuple[Role, str]] = ()
        if value.get("type") == _TURN:
            given = _SAID
        elif value.get("type") == "context":
            given = (("system", "content"),)
        for role, key in given:
            tool = role == "assistant" and bool(value.get("tool_calls"))
            named = f"{native}:{role}"
            shell = Message(
                session=session,
                id=named,
                whole=named,
                parent="",
                role=role,
                kind="tool" if tool else "injected" if role == "system" else "message",
                text="",
                timestamp=micros(value.get("timestamp")),
                metadata={name: item for name, item in value.items() if name not in _USED and name != key},
                escaped=escaped,
            )
            yield from messages(shell, [Piece("", string(value.get(key)))])


class Recorded:
    """The recorder's format."""

    name = "recorded"
    incremental = True
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Look at the first record: how a session began, or a turn."""
        first = next(iter(head_objects(head)), {})
        if not name_of(first.get("session_id")):
            return False
        begins = first.get("type") == "session_start" and "platform" in first
        return begins or (first.get("type") == _TURN and any(key in first for _, key in _SAID))

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every file is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the events of a file from an offset."""
        return read_jsonl(transcript, _Reader(), from_offset, state)
