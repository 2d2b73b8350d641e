"""Castle's own interchange format: JSONL, one message a line, for conversations that come from anywhere.

    {"session": "standup-7", "id": "m1", "role": "user", "text": "The harbour is closed."}

``session``, ``role`` and ``text`` are needed. ``id`` names the message in its session; without one it gets a
hash of session and line. ``speaker``, ``time``, ``parent``, ``kind``, ``tool`` and ``thread`` belong to the
message, ``title`` and ``cwd`` to its session; other keys are kept with the message. A message whose
``kind`` is not given is of kind ``tool`` when it has a ``tool`` or that role, else of kind ``message``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from castle.mine.formats.base import (
    Broken,
    Event,
    Kind,
    Message,
    NoMessage,
    Role,
    SessionInfo,
    Transcript,
)
from castle.mine.formats.items import head_keys
from castle.mine.formats.lines import Line, head_objects, read_jsonl
from castle.mine.formats.slices import Piece, messages
from castle.mine.formats.values import derived_id, mapping, micros, name_of, sequence, string

_NEEDED = frozenset({"session", "role", "text"})
_KNOWN = _NEEDED | {"id", "speaker", "time", "parent", "kind", "tool", "thread", "title", "cwd"}
_ROLES: Sequence[Role] = get_args(Role)
_KINDS: Sequence[Kind] = get_args(Kind)
_SESSIONS = 64


class _Reader:
    """Turns records into events; remembers what it told of the sessions it met last."""

    def __init__(self, state: Mapping[str, object] | None) -> None:
        self._told = {
            session: [string(item) for item in sequence(told)]
            for session, told in mapping(mapping(state).get("told")).items()
        }

    def state(self) -> dict[str, object]:
        """Return what was told of the last sessions."""
        for session in list(self._told)[:-_SESSIONS]:
            del self._told[session]
        return {"told": dict(self._told)}

    def record(self, value: Mapping[str, Any], line: Line, escaped: bool) -> Iterator[Event]:
        """Return the events of one record."""
        session, problem = name_of(value.get("session")), _problem(value)
        if problem:
            yield Broken(line.number, problem)
            return
        yield from self._about(session, value)
        native = name_of(value.get("id")) or derived_id(session, line.data.strip())
        time = value.get("time")
        shell = Message(
            session=session,
            id=native,
            whole=native,
            parent=name_of(value.get("parent")),
            role=value["role"],
            kind=_kind(value),
            text="",
            speaker=name_of(value.get("speaker")),
            timestamp=micros(time),
            tool=string(value.get("tool")),
            thread=name_of(value.get("thread")),
            metadata={key: item for key, item in value.items() if not _is_used(key, item)},
            escaped=escaped,
        )
        found = list(messages(shell, [Piece("", value["text"])]))
        yield from found
        if not found:
            yield NoMessage(line.number, "a message without text")
        if time is not None and shell.timestamp is None:
            yield Broken(line.number, f"filed without its time: {time!r:.60} is no ISO time")

    def _about(self, session: str, value: Mapping[str, Any]) -> Iterator[Event]:
        """Tell title and working directory of a session when they are new."""
        old = self._told.get(session, ["", ""])
        new = [string(value.get(key)) or known for key, known in zip(("title", "cwd"), old, strict=True)]
        if new != old:
            self._told.pop(session, None)
            self._told[session] = new
            yield SessionInfo(session, title=new[0], cwd=new[1])


def _problem(value: Mapping[str, Any]) -> str:
    """Say why a record is no message, "" when it is one."""
    missing = sorted(_NEEDED - value.keys())
    if missing:
        return f"a message without {', '.join(missing)}"
    if not name_of(value["session"]):
        return "session is no name"
    if value["role"] not in _ROLES:
        return f"role {value['role']!r:.60} is none of {', '.join(_ROLES)}"
    if not isinstance(value["text"], str):
        return "text is no string"
    if value.get("kind") not in (None, *_KINDS):
        return f"kind {value['kind']!r:.60} is none of {', '.join(_KINDS)}"
    return ""


def _is_used(key: str, item: object) -> bool:
    """Whether a field has its own place in a message or session; a known one of the wrong type has none."""
    return key in _KNOWN and (item is None or isinstance(item, str | int))


def _kind(value: Mapping[str, Any]) -> Kind:
    kind: Kind | None = value.get("kind")
    return kind or ("tool" if value["role"] == "tool" or string(value.get("tool")) else "message")


class Messages:
    """The interchange format."""

    name = "messages"
    incremental = True
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Look for the needed keys in the first record."""
        found = head_objects(head)
        if found:
            return _is_message(found[0])
        # The first line may be longer than the head: then its keys must do.
        is_line = b"\n" not in head and head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
        keys = head_keys(head) if is_line else frozenset()
        return keys <= _KNOWN and "session" in keys and not keys.isdisjoint({"role", "text"})

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every file is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the events of a file from an offset."""
        return read_jsonl(transcript, _Reader(state), from_offset, state)


def _is_message(value: Mapping[str, Any]) -> bool:
    return (
        value.keys() >= _NEEDED
        and name_of(value["session"]) != ""
        and value["role"] in _ROLES
        and isinstance(value["text"], str)
    )
