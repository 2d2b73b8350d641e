"""Cursor: ``state.vscdb``, a SQLite file of keys and JSON values, in the global and the workspaces' storage.

Read: ``composerData:<id>`` with ``bubbleId:<id>:<bubble>`` in ``cursorDiskKV``, and the older chat panel in
``ItemTable``. Ids: the bubble's id; ``shown`` is False for bubbles that the conversation no longer lists. The
database is opened immutable, so that nothing beside it is created; changes that still stand in its
write-ahead log are then not visible, which is reported.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
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
from castle.mine.formats.lines import decode, parse
from castle.mine.formats.slices import Injected, Piece, messages
from castle.mine.formats.values import (
    READ_ERRORS,
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

MAX_DATABASE = 1 << 30
"""A database inside a zip is read into memory; a larger one is reported and passed over."""

INJECTED = Injected(tags=frozenset({"system_reminder", "attached_files", "additional_data", "user_info"}))

_PANEL = "workbench.panel.aichat.view.aichat.chatdata"
_MAGIC = b"SQLite format 3\0"


def _connect(transcript: Transcript) -> sqlite3.Connection:
    path = transcript.box.local(transcript.name)
    if path is not None:
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    with transcript.open() as stream:
        data = bytearray(stream.read(MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        raise OSError(f"a database of more than {MAX_DATABASE} bytes inside a zip: unpack it first")
    if data[18:20] == b"\x02\x02":
        # A copy in memory has no write-ahead log; SQLite refuses to open one that is marked as having it.
        data[18:20] = b"\x01\x01"
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(bytes(data))
    except BaseException:
        connection.close()
        raise
    return connection


class _Store:
    """The two tables, read by key."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.text_factory = bytes
        self._connection = connection
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self.tables = {bytes(row[0]).decode("utf-8", "replace") for row in found}

    def keys(self, prefix: str) -> Iterator[str]:
        """List the keys of ``cursorDiskKV`` with a prefix, in order."""
        query = "SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key"
        for row in self._connection.execute(query, (prefix, prefix + "\U0010ffff")).fetchall():
            if isinstance(row[0], bytes):
                yield decode(row[0])[0]

    def value(self, table: str, key: str) -> object:
        """Return the raw value of a key, None if it is absent."""
        query = "SELECT value FROM cursorDiskKV WHERE key = ?"
        if table == "ItemTable":
            query = "SELECT value FROM ItemTable WHERE key = ?"
        row = self._connection.execute(
            query, (key.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),)
        ).fetchone()
        return row[0] if row else None


def _loaded(raw: object, key: str) -> tuple[Mapping[str, Any], bool] | Broken:
    if not isinstance(raw, bytes):
        return Broken(0, f"{key}: no value", "item")
    text, escaped = decode(raw)
    try:
        value = parse(text)
    except ValueError as error:
        return Broken(0, f"{key}: not JSON: {error}", "item")
    return (value, escaped) if isinstance(value, dict) else Broken(0, f"{key}: not a JSON object", "item")


def _pieces(bubble: Mapping[str, Any]) -> list[Piece]:
    thinking = bubble.get("thinking")
    text = string(bubble.get("text")) or string(bubble.get("rawText"))
    pieces = [
        Piece("thinking", string(mapping(thinking).get("text")) or string(thinking), "thinking"),
        Piece("", text),
    ]
    for index, block in enumerate(mappings(bubble.get("codeBlocks"))):
        code = string(block.get("content"))
        if code and code not in text:
            pieces.append(Piece(f"code{index}", code))
    call = mapping(bubble.get("toolFormerData"))
    if call:
        tool = string(call.get("name"))
        about = small(tool_use_id=string(call.get("toolCallId")), status=string(call.get("status")))
        given = said(call.get("rawArgs")) or said(call.get("params")) or "{}"
        pieces.append(Piece("call", given, "tool", "assistant", tool, metadata=about))
        pieces.append(Piece("result", said(call.get("result")), "tool", "tool", tool, metadata=about))
    for index, image in enumerate(mappings(bubble.get("images"))):
        url = image.get("url") or image.get("data") or image.get("path") or image.get("uuid")
        pieces.append(Piece(f"i{index}", "", attachments=(linked(url, "image"),)))
    return pieces


def _bubble(
    session: str, native: str, bubble: Mapping[str, Any], shown: bool, escaped: bool
) -> list[Message]:
    role: Role = "user" if bubble.get("type") in (1, "user") else "assistant"
    model = string(mapping(bubble.get("modelInfo")).get("modelName")) or string(bubble.get("modelType"))
    times = (bubble.get("createdAt"), mapping(bubble.get("timingInfo")).get("clientStartTime"))
    shell = Message(
        session=session,
        id=native,
        whole=native,
        parent="",
        role=role,
        kind="message",
        text="",
        timestamp=next((moment for moment in map(micros, times) if moment), None),
        shown=shown,
        metadata=small(model=model),
        escaped=escaped,
    )
    return list(messages(shell, _pieces(bubble), INJECTED))


def _composer(store: _Store, session: str) -> Iterator[Event]:
    """Read one conversation: the listed bubbles in order, then those that are stored but not listed."""
    loaded = _loaded(store.value("cursorDiskKV", f"composerData:{session}"), f"composerData:{session}")
    if isinstance(loaded, Broken):
        yield loaded
    about, escaped = ({}, False) if isinstance(loaded, Broken) else loaded
    yield SessionInfo(
        session,
        title=string(about.get("name")),
        git_branch=string(about.get("createdOnBranch")),
        started_at=micros(about.get("createdAt")),
        metadata=small(model=string(mapping(about.get("modelConfig")).get("modelName"))),
    )
    inline = {string(one.get("bubbleId")): one for one in mappings(about.get("conversation"))}
    inline |= {
        key: one for key, one in mapping(about.get("conversationMap")).items() if isinstance(one, dict)
    }
    listed = [string(one.get("bubbleId")) for one in mappings(about.get("fullConversationHeadersOnly"))]
    listed += [key for key in inline if key not in listed]
    prefix = f"bubbleId:{session}:"
    stored = [key.removeprefix(prefix) for key in store.keys(prefix)]
    for native in [*listed, *(key for key in stored if key not in set(listed))]:
        found: tuple[Mapping[str, Any], bool] | Broken
        if native in inline:
            found = (inline[native], escaped)
        else:
            found = _loaded(store.value("cursorDiskKV", prefix + native), prefix + native)
        if isinstance(found, Broken):
            yield found
            continue
        shown = native in listed or isinstance(loaded, Broken)
        events = _bubble(session, native, found[0], shown, found[1])
        yield from events
        if not events:
            yield NoMessage(0, "bubble without text")


def _panel(store: _Store) -> Iterator[Event]:
    """Read the older chat panel, one session a tab."""
    raw = store.value("ItemTable", _PANEL)
    if raw is None:
        return
    loaded = _loaded(raw, _PANEL)
    if isinstance(loaded, Broken):
        yield loaded
        return
    for number, tab in enumerate(mappings(loaded[0].get("tabs")), 1):
        session = name_of(tab.get("tabId")) or f"tab-{number}"
        sent = micros(tab.get("lastSendTime"))
        yield SessionInfo(session, title=string(tab.get("chatTitle")), started_at=sent)
        for index, bubble in enumerate(sequence(tab.get("bubbles"))):
            if not isinstance(bubble, dict):
                yield Broken(index + 1, f"{_PANEL}: not a bubble", "item")
                continue
            native = name_of(bubble.get("id")) or f"{session}-{index}"
            timed = {"createdAt": tab.get("lastSendTime"), **bubble}
            found: list[Event] = [*_bubble(session, native, timed, True, loaded[1])]
            yield from found or [NoMessage(index, "bubble without text")]


class Cursor:
    """Cursor's state databases."""

    name = "cursor"
    incremental = False
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Look for Cursor's table in a SQLite file."""
        return head.startswith(_MAGIC) and (b"cursorDiskKV" in head or _PANEL.encode() in head)

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every database is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the conversations of a database."""
        path = transcript.box.local(transcript.name)
        log = path.with_name(path.name + "-wal") if path is not None else None
        try:
            if log is not None and log.exists() and log.stat().st_size:
                yield Broken(
                    0,
                    "recent changes stand in its -wal file: close Cursor and mine it again",
                    "file",
                    str(log),
                )
            with closing(_connect(transcript)) as connection:
                store = _Store(connection)
                if "cursorDiskKV" in store.tables:
                    yield from self._composers(store)
                if "ItemTable" in store.tables:
                    yield from _panel(store)
        except (sqlite3.Error, *READ_ERRORS) as error:
            yield Broken(0, f"cannot be read: {error}", "file", transcript.address)

    def _composers(self, store: _Store) -> Iterator[Event]:
        known = [key.removeprefix("composerData:") for key in store.keys("composerData:")]
        orphans = {key.split(":")[1]: None for key in store.keys("bubbleId:") if key.count(":") >= 2}
        for session in [*known, *(one for one in orphans if one not in set(known))]:
            try:
                events = list(_composer(store, session))
            except RecursionError:
                events = [Broken(0, f"composerData:{session}: nested too deeply", "item")]
            yield from events
