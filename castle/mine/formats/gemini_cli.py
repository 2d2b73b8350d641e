"""Gemini CLI: session files (one JSON object, or JSONL of records) and ``logs.json`` (the user's lines only).

Ids: the message's ``id``; in a log ``log-<messageId>``. Thoughts are ``id#t<n>``, calls ``id#c<n>``, their
results ``id#c<n>.result``. JSONL rewrites a message whenever it grows: what was delivered a short while
before is not delivered again. A log entry that also stands in the session's own file beside it is no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castle.mine.formats.base import (
    HEAD_BYTES,
    Broken,
    Event,
    Message,
    NoMessage,
    Role,
    SessionInfo,
    Transcript,
    Withdrawn,
)
from castle.mine.formats.items import head_keys, load_document, read_items
from castle.mine.formats.lines import Line, head_objects, read_jsonl
from castle.mine.formats.slices import Injected, Piece, messages
from castle.mine.formats.values import (
    READ_ERRORS,
    derived_id,
    embedded,
    linked,
    mapping,
    mappings,
    micros,
    name_of,
    said,
    sequence,
    small,
    string,
)

INJECTED = Injected(
    tags=frozenset({"hook_context", "session_context"}),
    fences=(("\n--- Content from referenced files ---", "\n--- End of content ---"),),
    starts=("This is the Gemini CLI. We are setting up the context for our chat.",),
)

_ROLES: dict[str, Role] = {"user": "user", "gemini": "assistant", "model": "assistant"}
_HOST_TYPES = frozenset({"info", "error", "warning"})
_RECENT = 200


def _content(content: object, start: str = "") -> list[Piece]:
    """Turn a message's content (a string, a part, or a list of them) into pieces."""
    parts = content if isinstance(content, list) else [content]
    pieces = []
    for index, part in enumerate(parts):
        label = f"b{index}" if index else start
        fields = mapping(part)
        if isinstance(fields.get("text"), str):
            pieces.append(Piece(label, fields["text"], "thinking" if fields.get("thought") is True else None))
        elif "inlineData" in fields:
            data = mapping(fields["inlineData"])
            file = embedded(data.get("data"), string(data.get("mimeType")), string(data.get("displayName")))
            pieces.append(Piece(label, "", attachments=(file,)))
        elif "fileData" in fields:
            data = mapping(fields["fileData"])
            pieces.append(
                Piece(label, "", attachments=(linked(data.get("fileUri"), string(data.get("mimeType"))),))
            )
        elif "functionCall" in fields or "functionResponse" in fields:
            pieces.append(Piece(label, said(part), "tool"))
        else:
            pieces.append(Piece(label, said(part)))
    return pieces


def _thoughts(value: Mapping[str, Any]) -> Iterator[Piece]:
    for index, thought in enumerate(mappings(value.get("thoughts"))):
        about = small(subject=string(thought.get("subject")))
        text = string(thought.get("description")) or string(thought.get("subject"))
        yield Piece(f"t{index}", text, "thinking", metadata=about)


def _calls(value: Mapping[str, Any]) -> Iterator[Piece]:
    for index, call in enumerate(mappings(value.get("toolCalls"))):
        tool = string(call.get("name"))
        about = small(tool_use_id=string(call.get("id")), status=string(call.get("status")))
        known = small(tool_use_id=string(call.get("id")))
        yield Piece(f"c{index}", said(call.get("args")) or "{}", "tool", "assistant", tool, metadata=known)
        result = call.get("result") or call.get("resultDisplay")
        for number, part in enumerate(result if isinstance(result, list) else [result]):
            label = f"c{index}.result" + (f".{number}" if number else "")
            yield Piece(label, _output(part), "tool", "tool", tool, metadata=about)


def _output(part: object) -> str:
    """Return the one string of a tool's response, or all of the part as JSON."""
    response = mapping(mapping(mapping(part).get("functionResponse")).get("response"))
    only = next(iter(response.values())) if len(response) == 1 else None
    if isinstance(only, str) and next(iter(response)) in ("output", "error"):
        return only
    return said(part)


def _message(session: str, value: Mapping[str, Any], thread: str, escaped: bool) -> list[Message]:
    what = string(value.get("type"))
    native = name_of(value.get("id")) or derived_id(session, said(dict(value)))
    shell = Message(
        session=session,
        id=native,
        whole=native,
        parent="",
        role=_ROLES.get(what, "system"),
        kind="injected" if what in _HOST_TYPES else "subagent" if thread else "message",
        text="",
        timestamp=micros(value.get("timestamp")),
        thread=thread,
        metadata=small(model=string(value.get("model"))),
        escaped=escaped,
    )
    pieces = [*_thoughts(value), *_content(value.get("content")), *_calls(value)]
    return list(messages(shell, pieces, INJECTED))


def _info(value: Mapping[str, Any]) -> SessionInfo:
    folders = [string(item) for item in sequence(value.get("directories"))]
    return SessionInfo(
        string(value.get("sessionId")),
        title=string(value.get("summary")),
        cwd=folders[0] if folders else "",
        project=string(value.get("projectHash")),
        started_at=micros(value.get("startTime")),
    )


class _Reader:
    """Turns the records of a JSONL session into events; remembers what it delivered lately."""

    def __init__(self, stem: str, state: Mapping[str, object] | None) -> None:
        known = mapping(state)
        self._session = string(known.get("session")) or stem
        self._thread = string(known.get("thread"))
        self._recent = [string(item) for item in sequence(known.get("recent"))]

    def state(self) -> dict[str, object]:
        """Return session, thread and what was delivered lately."""
        return {"session": self._session, "thread": self._thread, "recent": list(self._recent)}

    def record(self, value: Mapping[str, Any], line: Line, escaped: bool) -> Iterator[Event]:
        """Return the events of one record."""
        what = string(value.get("type"))
        update = mapping(value.get("$set"))
        if isinstance(value.get("$rewindTo"), str):
            yield Withdrawn(self._session, value["$rewindTo"])
        elif update:
            if any(update.get(key) for key in ("summary", "directories")):
                yield _info({**update, "sessionId": self._session})
            for one in mappings(update.get("messages")):
                yield from self._new(one, escaped)
            if not sequence(update.get("messages")):
                yield NoMessage(line.number, "$set")
        elif what in _ROLES or what in _HOST_TYPES:
            found = list(self._new(value, escaped))
            yield from found
            if not found:
                yield NoMessage(line.number, f"{what} without new text")
        elif "sessionId" in value:
            self._session = string(value["sessionId"]) or self._session
            self._thread = self._session if value.get("kind") == "subagent" else ""
            yield _info(value)
        elif what:
            yield NoMessage(line.number, what)
        else:
            yield Broken(line.number, "a record without a type")

    def _new(self, value: Mapping[str, Any], escaped: bool) -> Iterator[Message]:
        for one in _message(self._session, value, self._thread, escaped):
            mark = derived_id(one.id, one.text)
            if mark not in self._recent:
                self._recent = [*self._recent, mark][-_RECENT:]
                yield one


class GeminiCli:
    """Gemini CLI's session files and logs."""

    name = "gemini-cli"
    incremental = True
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Look for a session's fields; a log is a list of entries with ``messageId``."""
        for value in head_objects(head):
            if value.get("type") == "session_metadata" or ("sessionId" in value and "projectHash" in value):
                return True
        keys = head_keys(head)
        is_session = not keys.isdisjoint({"projectHash", "startTime"}) and "messages" in keys
        return "sessionId" in keys and (is_session or {"messageId", "message"} <= keys)

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every file is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the events of a file; only JSONL goes on from an offset."""
        if from_offset or _is_jsonl(transcript):
            return read_jsonl(transcript, _Reader(transcript.stem, state), from_offset, state)
        log = _Log(transcript)
        return read_items(transcript, log.entry)


def _is_jsonl(transcript: Transcript) -> bool:
    try:
        with transcript.open() as stream:
            found = head_objects(stream.read(HEAD_BYTES))
    except READ_ERRORS:
        return False
    return bool(found) and not isinstance(found[0].get("messages"), list)


class _Log:
    """Reads what is not JSONL: a whole session, or the entries of a log."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._told: set[str] = set()
        self._filed: dict[str, list[str]] = {}

    def entry(self, value: Any, number: int, escaped: bool) -> Iterator[Event]:
        """Return the events of a session or of a log entry."""
        fields = mapping(value)
        session = string(fields.get("sessionId"))
        if isinstance(fields.get("messages"), list):
            yield from self._session(fields, session or self._transcript.stem, escaped)
        elif session and isinstance(fields.get("message"), str):
            yield from self._logged(fields, session, number, escaped)
        else:
            yield Broken(number, "neither a session nor a log entry", "item")

    def _session(self, fields: Mapping[str, Any], session: str, escaped: bool) -> Iterator[Event]:
        yield _info({**fields, "sessionId": session})
        thread = session if fields.get("kind") == "subagent" else ""
        for index, one in enumerate(fields["messages"], 1):
            if not isinstance(one, dict):
                yield Broken(index, "not a message", "item")
                continue
            found = _message(session, one, thread, escaped)
            yield from found
            if not found:
                yield NoMessage(index, f"{string(one.get('type'))} without text")

    def _logged(self, fields: Mapping[str, Any], session: str, number: int, escaped: bool) -> Iterator[Event]:
        if session not in self._told:
            self._told.add(session)
            self._filed[session] = self._beside(session)
            yield SessionInfo(session, started_at=micros(fields.get("timestamp")))
        if fields["message"] in self._filed[session]:
            self._filed[session].remove(fields["message"])
            yield NoMessage(number, "log entry, repeats the session's file")
            return
        entry = {**fields, "id": f"log-{name_of(fields.get('messageId'))}", "content": fields["message"]}
        yield from _message(session, entry, "", escaped)

    def _beside(self, session: str) -> list[str]:
        """List what the user said according to the session's own files in the same container."""
        said_there: list[str] = []
        box = self._transcript.box
        for name in box.names():
            if session[:8] and re.search(rf"session-[^/]*{re.escape(session[:8])}[^/]*\.json$", name):
                try:
                    with box.open(name) as stream:
                        document = mapping(load_document(stream)[0])
                except (*READ_ERRORS, ValueError):
                    continue
                if document.get("sessionId") == session:
                    users = (one for one in mappings(document.get("messages")) if one.get("type") == "user")
                    said_there += [piece.text for one in users for piece in _content(one.get("content"))]
        return said_there
