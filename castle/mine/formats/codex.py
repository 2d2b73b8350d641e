"""Codex: rollout JSONL under ``~/.codex/sessions``; also the older form without ``payload``.

Ids: calls have their ``call_id`` and outputs ``call_id#output``; everything else gets a hash of session and
line. A message that stands in the file both as ``response_item`` and as ``event_msg`` is delivered once,
where it comes first. Encrypted reasoning holds no text and is counted as no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castle.mine.formats.base import (
    Attachment,
    Broken,
    Event,
    Kind,
    Message,
    NoMessage,
    Role,
    SessionInfo,
    Transcript,
)
from castle.mine.formats.lines import Line, head_objects, read_jsonl
from castle.mine.formats.slices import Injected, Piece, messages
from castle.mine.formats.values import (
    derived_id,
    linked,
    mapping,
    mappings,
    micros,
    said,
    sequence,
    small,
    string,
)

INJECTED = Injected(
    tags=frozenset(
        "environment_context user_instructions INSTRUCTIONS permissions collaboration_mode turn_aborted "
        "subagent_notification skill user_shell_command".split()
    ),
    starts=(
        "# AGENTS.md instructions",
        "<user_instructions>",
        "<permissions instructions>",
        "<turn_aborted>",
    ),
    preambles=(
        ("\n# Files mentioned by the user:", "## My request for Codex:\n"),
        ("# Files mentioned by the user:", "## My request for Codex:\n"),
        ("# Context from my IDE setup:", "## My request for Codex:\n"),
    ),
)

_LINE_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_SPOKEN: dict[str, tuple[str, Role, Kind]] = {
    "user_message": ("message", "user", "message"),
    "agent_message": ("message", "assistant", "message"),
    "agent_reasoning": ("text", "assistant", "thinking"),
    "agent_reasoning_raw_content": ("text", "assistant", "thinking"),
}
_FILE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_WINDOW = 64


class _Reader:
    """Turns records into events; remembers which texts still await their second form, and the open calls."""

    def __init__(self, stem: str, state: Mapping[str, object] | None) -> None:
        known = mapping(state)
        found = _FILE_ID.search(stem)
        self._session = string(known.get("session")) or (found.group() if found else stem)
        self._met = known.get("met") is True
        self._model = string(known.get("model"))
        self._cwd = string(known.get("cwd"))
        self._unpaired = [string(item) for item in sequence(known.get("unpaired"))]
        self._calls = {key: string(name) for key, name in mapping(known.get("calls")).items()}

    def state(self) -> dict[str, object]:
        """Return what a later reading must know."""
        for call in list(self._calls)[:-_WINDOW]:
            del self._calls[call]
        return {
            "session": self._session,
            "met": self._met,
            "model": self._model,
            "cwd": self._cwd,
            "unpaired": self._unpaired[-_WINDOW:],
            "calls": dict(self._calls),
        }

    def record(self, value: Mapping[str, Any], line: Line, escaped: bool) -> Iterator[Event]:
        """Return the events of one record."""
        what = string(value.get("type"))
        body = mapping(value.get("payload")) if what in _LINE_TYPES else value
        shell = self._shell(value, line, escaped)
        if what == "session_meta" or (not what and "instructions" in value and "id" in value):
            yield from self._meta(body, shell, line)
        elif what == "turn_context":
            yield from self._turn(body, line)
        elif what == "compacted":
            yield from self._told(
                shell("system", "injected"), [Piece("", string(body.get("message")))], line, what
            )
        elif what == "event_msg":
            yield from self._event(body, shell, line)
        elif what == "response_item" or ("payload" not in value and what):
            yield from self._item(body, shell, line)
        elif "record_type" in value or what:
            yield NoMessage(line.number, what or string(value.get("record_type")))
        else:
            yield Broken(line.number, "a record without a type")

    def _shell(self, value: Mapping[str, Any], line: Line, escaped: bool) -> _Shell:
        about = small(model=self._model, cwd=self._cwd)
        return _Shell(self, line, micros(value.get("timestamp")), about, escaped)

    @property
    def session(self) -> str:
        """The id of the session."""
        return self._session

    def _meta(self, body: Mapping[str, Any], shell: _Shell, line: Line) -> Iterator[Event]:
        if self._met:
            # A forked session repeats the records of its parent, its session_meta among them.
            yield NoMessage(line.number, "session_meta of the parent")
            return
        self._met = True
        self._session = string(body.get("id")) or self._session
        self._cwd = string(body.get("cwd"))
        git = mapping(body.get("git"))
        yield SessionInfo(
            self._session,
            cwd=self._cwd,
            git_branch=string(git.get("branch")),
            project=string(git.get("repository_url")),
            started_at=micros(body.get("timestamp")),
            parent=string(body.get("forked_from_id")),
            metadata=small(
                version=string(body.get("cli_version")),
                originator=string(body.get("originator")),
                commit=string(git.get("commit_hash")),
            ),
        )
        base = body.get("base_instructions")
        texts = [string(mapping(base).get("text")) or string(base), string(body.get("instructions"))]
        pieces = [Piece(f"b{index}" if index else "", text) for index, text in enumerate(texts)]
        yield from messages(shell("system", "injected"), pieces)

    def _turn(self, body: Mapping[str, Any], line: Line) -> Iterator[Event]:
        self._model = string(body.get("model")) or self._model
        cwd = string(body.get("cwd"))
        if cwd and cwd != self._cwd:
            self._cwd = cwd
            yield SessionInfo(self._session, cwd=cwd)
        yield NoMessage(line.number, "turn_context")

    def _told(self, shell: Message, pieces: Sequence[Piece], line: Line, what: str) -> Iterator[Event]:
        found = list(messages(shell, pieces, INJECTED))
        yield from found
        if not found:
            yield NoMessage(line.number, f"{what} without text")

    def _again(self, form: str, role: str, text: str) -> bool:
        """Tell whether this text completes a pair of response_item and event_msg; else remember it."""
        key = derived_id(role, text.strip())
        other = ("event:" if form == "item:" else "item:") + key
        if other in self._unpaired:
            self._unpaired.remove(other)
            return True
        self._unpaired = [*self._unpaired, form + key][-_WINDOW:]
        return False

    def _event(self, body: Mapping[str, Any], shell: _Shell, line: Line) -> Iterator[Event]:
        what = string(body.get("type"))
        if what not in _SPOKEN:
            yield NoMessage(line.number, f"event_msg/{what}")
            return
        field, role, kind = _SPOKEN[what]
        text = string(body.get(field))
        if text and self._again("event:", kind + role, text):
            yield NoMessage(line.number, f"event_msg/{what}, repeats a response_item")
            return
        pieces = [Piece("", text)]
        for index, image in enumerate((*sequence(body.get("images")), *sequence(body.get("local_images")))):
            pieces.append(Piece(f"i{index}", "", attachments=(linked(image, "image"),)))
        yield from self._told(shell(role, kind), pieces, line, what)

    def _item(self, body: Mapping[str, Any], shell: _Shell, line: Line) -> Iterator[Event]:
        what = string(body.get("type"))
        if what == "message":
            yield from self._message(body, shell, line)
        elif what == "reasoning":
            yield from self._reasoning(body, shell, line)
        elif what.endswith("_output"):
            yield from self._output(body, shell, line)
        elif what.endswith("_call"):
            yield from self._call(body, shell, line)
        else:
            yield NoMessage(line.number, f"response_item/{what}")

    def _message(self, body: Mapping[str, Any], shell: _Shell, line: Line) -> Iterator[Event]:
        role = string(body.get("role"))
        pieces = _content(body.get("content"))
        whole = "".join(piece.text for piece in pieces)
        if role not in ("user", "assistant"):
            yield from self._told(shell("system", "injected"), pieces, line, "message")
        elif whole and self._again("item:", "message" + role, whole):
            yield NoMessage(line.number, "response_item/message, repeats an event_msg")
        else:
            speaker: Role = "user" if role == "user" else "assistant"
            yield from self._told(shell(speaker, "message"), pieces, line, "message")

    def _reasoning(self, body: Mapping[str, Any], shell: _Shell, line: Line) -> Iterator[Event]:
        parts = [*mappings(body.get("summary")), *mappings(body.get("content"))]
        pieces = []
        for index, part in enumerate(parts):
            text = string(part.get("text"))
            if text and not self._again("item:", "thinkingassistant", text):
                pieces.append(Piece(f"b{index}" if index else "", text))
        found = list(messages(shell("assistant", "thinking"), pieces))
        yield from found
        if not found:
            yield NoMessage(
                line.number, "reasoning, repeats an event_msg" if parts else "reasoning, encrypted"
            )

    def _call(self, body: Mapping[str, Any], shell: _Shell, line: Line) -> Iterator[Event]:
        name = string(body.get("name")) or string(body.get("type")).removesuffix("_call")
        namespace = string(body.get("namespace"))
        tool = f"{namespace}{name}" if namespace else name
        call = string(body.get("call_id")) or string(body.get("id"))
        if call:
            self._calls[call] = tool
        rest = {
            key: item
            for key, item in body.items()
            if key not in ("type", "call_id", "id", "name", "namespace")
        }
        text = next(
            (said(body[key]) for key in ("arguments", "input", "action") if body.get(key) is not None),
            said(rest),
        )
        yield from self._told(shell("assistant", "tool", call, tool), [Piece("", text)], line, "call")

    def _output(self, body: Mapping[str, Any], shell: _Shell, line: Line) -> Iterator[Event]:
        call = string(body.get("call_id"))
        output = body.get("output", body.get("tools"))
        if isinstance(output, dict) and "content" in output:
            output = output["content"]
        pieces = _content(output) if isinstance(output, list) else [Piece("", said(output))]
        tool = self._calls.pop(call, "")
        record = shell("tool", "tool", f"{call}#output" if call else "", tool, parent=call)
        yield from self._told(record, pieces, line, "output")


class _Shell:
    """Makes the record that the messages of one line share."""

    def __init__(
        self, reader: _Reader, line: Line, timestamp: int | None, about: Mapping[str, object], escaped: bool
    ) -> None:
        self._reader, self._line, self._timestamp = reader, line, timestamp
        self._about, self._escaped = about, escaped

    def __call__(self, role: Role, kind: Kind, native: str = "", tool: str = "", parent: str = "") -> Message:
        session = self._reader.session
        record = native or derived_id(session, self._line.data.strip())
        return Message(
            session=session,
            id=record,
            whole=record,
            parent=parent,
            role=role,
            kind=kind,
            text="",
            timestamp=self._timestamp,
            tool=tool,
            metadata=self._about,
            escaped=self._escaped,
        )


def _content(content: object) -> list[Piece]:
    """Turn a list of text and image parts into pieces; parts of other types are kept as JSON."""
    if isinstance(content, str):
        return [Piece("", content)]
    pieces = []
    for index, part in enumerate(sequence(content)):
        label = f"b{index}" if index else ""
        fields = mapping(part)
        if isinstance(fields.get("text"), str):
            pieces.append(Piece(label, fields["text"]))
        elif string(fields.get("type")).endswith("image"):
            url = fields.get("image_url")
            file = linked(mapping(url).get("url") or url) if url else Attachment("", "", None, said(part))
            pieces.append(Piece(label, "", attachments=(file,)))
        else:
            pieces.append(Piece(label, said(part)))
    return pieces


class Codex:
    """Codex's rollout files."""

    name = "codex"
    incremental = True
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Look for a rollout record among the first lines."""
        for value in head_objects(head):
            if string(value.get("type")) in _LINE_TYPES and isinstance(value.get("payload"), dict):
                return True
            if "record_type" in value or (
                value.get("type") == "message" and "role" in value and "content" in value
            ):
                return "rollout" in name or "record_type" in value
        return b"\n" not in head and re.match(rb'\s*\{[^{]*"type"\s*:\s*"session_meta"', head) is not None

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every file is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the events of a file from an offset."""
        return read_jsonl(transcript, _Reader(transcript.stem, state), from_offset, state)
