"""opencode: ``storage/session/<project>/<id>.json`` with the messages and parts in folders beside it.

One transcript is one session, known by its session file. Ids: the message's id; its parts are ``id#<part
id>``, the first one just the message's id. Sessions with a ``parentID`` were run by an agent: their words
are of kind ``subagent``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castle.mine.formats.base import (
    Broken,
    Event,
    Message,
    NoMessage,
    Role,
    SessionInfo,
    Transcript,
)
from castle.mine.formats.items import load_document
from castle.mine.formats.slices import Injected, Piece, messages
from castle.mine.formats.values import (
    READ_ERRORS,
    linked,
    mapping,
    mappings,
    micros,
    said,
    sequence,
    small,
    string,
)

INJECTED = Injected(tags=frozenset({"system-reminder"}))

_SESSION = re.compile(r"(?:^|/)session/[^/]+/([^/]+)\.json$")
_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction"})


def _under(names: Sequence[str], prefix: str) -> list[str]:
    """Return the names that begin with a prefix; ``names`` are sorted."""
    start = bisect_left(names, prefix)
    end = start
    while end < len(names) and names[end].startswith(prefix):
        end += 1
    return list(names[start:end])


def _base(name: str) -> str:
    """Return the storage folder of a session file, with its slash."""
    found = re.search(r"(?:^|.*/)(?=session/[^/]+/[^/]+\.json$)", name)
    return found.group() if found else ""


class _Session:
    """Reads one session from its files."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._names = transcript.box.names()
        self._base = _base(transcript.name)

    def _load(self, name: str) -> tuple[Mapping[str, Any], bool] | Broken:
        try:
            with self._transcript.box.open(name) as stream:
                value, escaped = load_document(stream)
        except (*READ_ERRORS, ValueError) as error:
            return Broken(0, f"cannot be read: {error}", "file", self._transcript.box.address(name))
        if not isinstance(value, dict):
            return Broken(0, "not a JSON object", "file", self._transcript.box.address(name))
        return value, escaped

    def events(self) -> Iterator[Event]:
        """Return the session's messages in the order in which they were made."""
        loaded = self._load(self._transcript.name)
        if isinstance(loaded, Broken):
            yield loaded
        about = {} if isinstance(loaded, Broken) else loaded[0]
        session = string(about.get("id")) or self._transcript.stem
        yield SessionInfo(
            session,
            title=string(about.get("title")),
            cwd=string(about.get("directory")),
            project=string(about.get("projectID")),
            started_at=micros(mapping(about.get("time")).get("created")),
            parent=string(about.get("parentID")),
            metadata=small(version=string(about.get("version"))),
        )
        turns: list[tuple[int, str, Mapping[str, Any], bool]] = []
        for name in _under(self._names, f"{self._base}message/{session}/"):
            turn = self._load(name)
            if isinstance(turn, Broken):
                yield turn
                continue
            native = string(turn[0].get("id")) or name.rsplit("/", 1)[-1].removesuffix(".json")
            created = micros(mapping(turn[0].get("time")).get("created")) or 0
            turns.append((created, native, *turn))
        for created, native, value, escaped in sorted(turns, key=lambda one: (one[0], one[1])):
            yield from self._turn(
                session, native, created or None, value, escaped, bool(about.get("parentID"))
            )

    def _turn(
        self,
        session: str,
        native: str,
        created: int | None,
        value: Mapping[str, Any],
        escaped: bool,
        nested: bool,
    ) -> Iterator[Event]:
        role: Role = "user" if value.get("role") == "user" else "assistant"
        model = string(value.get("modelID")) or string(mapping(value.get("model")).get("modelID"))
        shell = Message(
            session=session,
            id=native,
            whole=native,
            parent=string(value.get("parentID")),
            role=role,
            kind="subagent" if nested else "message",
            text="",
            timestamp=created,
            thread=session if nested else "",
            metadata=small(
                model=model,
                provider=string(value.get("providerID")),
                agent=string(value.get("agent")) or string(value.get("mode")),
                cwd=string(mapping(value.get("path")).get("cwd")),
            ),
            escaped=escaped,
        )
        pieces: list[Piece] = []
        for part in self._parts(native, [string(one) for one in sequence(value.get("parts"))]):
            if isinstance(part, Broken):
                yield part
                continue
            pieces.extend(_pieces(part, bool(pieces)))
        error = mapping(value.get("error"))
        if error:
            pieces.append(Piece("error", said(error), "injected", "system"))
        found = list(messages(shell, pieces, INJECTED))
        yield from found
        if not found:
            yield NoMessage(0, "message without text")

    def _parts(self, native: str, listed: Sequence[str]) -> Iterator[Mapping[str, Any] | Broken]:
        """Return a message's parts: the listed ones in that order, then the others by id."""
        prefix = f"{self._base}part/{native}/"
        names = {name[len(prefix) :].removesuffix(".json"): name for name in _under(self._names, prefix)}
        for key in [*(one for one in listed if one in names), *(one for one in names if one not in listed)]:
            loaded = self._load(names[key])
            yield loaded if isinstance(loaded, Broken) else {"id": key, **loaded[0]}


def _pieces(part: Mapping[str, Any], follows: bool) -> list[Piece]:
    what = string(part.get("type"))
    label = string(part.get("id")) if follows else ""
    if what in _SILENT:
        return []
    if what == "text":
        by_host = part.get("synthetic") is True or part.get("ignored") is True
        return [Piece(label, string(part.get("text")), "injected" if by_host else None)]
    if what == "reasoning":
        return [Piece(label, string(part.get("text")), "thinking")]
    if what == "tool":
        return _tool(part, label)
    if what == "file":
        file = linked(part.get("url"), string(part.get("mime")), string(part.get("filename")))
        return [Piece(label, "", attachments=(file,))]
    if what == "subtask":
        return [Piece(label, string(part.get("prompt")), "subagent", tool=string(part.get("agent")))]
    return [Piece(label, said(dict(part)), "tool")]


def _tool(part: Mapping[str, Any], label: str) -> list[Piece]:
    tool = string(part.get("tool"))
    state = mapping(part.get("state"))
    about = small(tool_use_id=string(part.get("callID")), status=string(state.get("status")))
    files = tuple(
        linked(one.get("url"), string(one.get("mime")), string(one.get("filename")))
        for one in mappings(state.get("attachments"))
    )
    start = label or string(part.get("id"))
    return [
        Piece(label, said(state.get("input")) or "{}", "tool", "assistant", tool, metadata=about),
        Piece(f"{start}.output", said(state.get("output")), "tool", "tool", tool, files, about),
        Piece(f"{start}.error", said(state.get("error")), "tool", "tool", tool, metadata=about),
    ]


class OpenCode:
    """opencode's storage folder."""

    name = "opencode"
    incremental = False
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Return False: a session is made of many files."""
        return False

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Find session files that have a folder of messages beside them."""
        found: dict[str, Sequence[str]] = {}
        for name in names:
            match = _SESSION.search(name)
            if match is None:
                continue
            base = _base(name)
            turns = _under(names, f"{base}message/{match[1]}/")
            parts = [
                one
                for turn in turns
                for one in _under(names, f"{base}part/{turn.rsplit('/', 1)[-1].removesuffix('.json')}/")
            ]
            if turns:
                found[name] = [name, *turns, *parts]
        return found

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the messages of one session."""
        return _Session(transcript).events()
