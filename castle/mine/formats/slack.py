"""Slack: an export folder or zip with ``channels.json``, ``users.json`` and one file a day and channel.

A session is a channel (its id, or the folder's name if no list knows it); ids are the messages' ``ts``; a
reply's thread and parent are the ``ts`` of the message it answers. People have the role user, bots and apps
assistant. What Slack itself writes (joins, topics, pins) is ``injected`` with the role system. The strings
of a message's attachments are blocks of their own, and each attachment is kept whole as JSON beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from castle.mine.formats.base import (
    Attachment,
    Broken,
    Event,
    Message,
    NoMessage,
    Role,
    SessionInfo,
    Transcript,
)
from castle.mine.formats.items import head_keys, load_document, read_items
from castle.mine.formats.slices import Piece, messages
from castle.mine.formats.values import (
    READ_ERRORS,
    derived_id,
    json_text,
    mapping,
    mappings,
    micros,
    said,
    sequence,
    small,
    string,
)

_DAY = re.compile(r"(?:^|/)([^/]+)/\d{4}-\d{2}-\d{2}\.json$")
_LISTS = ("channels.json", "groups.json", "mpims.json", "dms.json")
_PEOPLE = frozenset({"", "me_message", "thread_broadcast", "file_share", "file_comment", "reply_broadcast"})
_BOTS = frozenset({"bot_message", "assistant_app_thread"})
_MENTION = re.compile(r"<@([A-Z0-9]+)")
_TS = re.compile(rb'"ts"\s*:\s*"\d+\.\d+"')
_STRINGS = ("pretext", "title", "text")


class _Export:
    """The lists of one export: who is who, and which folder is which channel."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self.people: dict[str, str] = {}
        self.channels: dict[str, Mapping[str, Any]] = {}

    def load(self) -> Iterator[Event]:
        """Read the lists; one that cannot be read is reported and done without."""
        present = set(self._transcript.box.names())
        for base in ("users.json", *_LISTS):
            name = self._transcript.name + base
            if name not in present:
                continue
            try:
                with self._transcript.box.open(name) as stream:
                    listed = load_document(stream)[0]
            except (*READ_ERRORS, ValueError) as error:
                yield Broken(0, f"cannot be read: {error}", "file", self._transcript.box.address(name))
                continue
            for one in mappings(listed):
                if base == "users.json":
                    self.people[string(one.get("id"))] = _person(one)
                else:
                    self.channels[string(one.get("name")) or string(one.get("id"))] = one

    def info(self, folder: str) -> SessionInfo:
        """Describe the channel of a folder."""
        channel = self.channels.get(folder, {})
        return SessionInfo(
            string(channel.get("id")) or folder,
            title=f"#{folder}" if string(channel.get("name")) or not channel else self._talk(channel),
            started_at=micros(channel.get("created")),
            metadata=small(
                topic=string(mapping(channel.get("topic")).get("value")),
                purpose=string(mapping(channel.get("purpose")).get("value")),
            ),
        )

    def _talk(self, channel: Mapping[str, Any]) -> str:
        return ", ".join(
            self.people.get(string(one), string(one)) for one in sequence(channel.get("members"))
        )

    def speaker(self, value: Mapping[str, Any]) -> str:
        """Return the best name for who wrote a message."""
        user = string(value.get("user"))
        return (
            string(value.get("username"))
            or self.people.get(user, "")
            or _person(mapping(value.get("user_profile")))
            or string(mapping(value.get("bot_profile")).get("name"))
            or user
            or string(value.get("bot_id"))
        )


def _person(user: Mapping[str, Any]) -> str:
    profile = mapping(user.get("profile"))
    names = (
        profile.get("real_name"),
        user.get("real_name"),
        profile.get("display_name"),
        user.get("display_name"),
    )
    return next((string(name) for name in names if string(name)), string(user.get("name")))


def _pieces(value: Mapping[str, Any]) -> list[Piece]:
    pieces = [Piece("", string(value.get("text")))]
    for index, one in enumerate(mappings(value.get("attachments"))):
        whole = Attachment(
            string(one.get("title")), "application/json", json_text(one).encode("utf-8", "surrogatepass")
        )
        texts = [(field, string(one.get(field))) for field in _STRINGS]
        if not any(text for _, text in texts):
            texts = [("fallback", string(one.get("fallback")))]
        for number, field in enumerate(mappings(one.get("fields"))):
            texts += [(f"f{number}.{key}", string(field.get(key))) for key in ("title", "value")]
        pieces += [Piece(f"a{index}.{field}", text) for field, text in texts if text]
        pieces.append(Piece(f"a{index}", "", attachments=(whole,)))
    files = [*mappings(value.get("files")), *([value["file"]] if isinstance(value.get("file"), dict) else [])]
    for index, one in enumerate(files):
        # Private URLs carry access tokens; the permalink names the file without one.
        ref = string(one.get("permalink")) or string(one.get("id"))
        name = string(one.get("name")) or string(one.get("title"))
        pieces.append(
            Piece(f"file{index}", "", attachments=(Attachment(name, string(one.get("mimetype")), None, ref),))
        )
        comment = string(mapping(one.get("initial_comment")).get("comment"))
        if comment and comment not in pieces[0].text:
            pieces.append(Piece(f"file{index}.comment", comment))
    if not any(piece.text or piece.attachments for piece in pieces) and value.get("blocks"):
        pieces.append(Piece("blocks", said(value["blocks"])))
    return pieces


def _message(export: _Export, session: str, value: Mapping[str, Any], escaped: bool) -> list[Message]:
    subtype = string(value.get("subtype"))
    by_host = subtype not in _PEOPLE and subtype not in _BOTS
    is_bot = subtype in _BOTS or (
        not by_host and bool(value.get("bot_profile") or not value.get("user")) and bool(value.get("bot_id"))
    )
    role: Role = "system" if by_host else "assistant" if is_bot else "user"
    native = string(value.get("ts")) or derived_id(session, json_text(dict(value)))
    thread = string(value.get("thread_ts"))
    text = string(value.get("text"))
    mentioned = {one: export.people[one] for one in _MENTION.findall(text) if one in export.people}
    comment = mapping(value.get("comment"))
    shell = Message(
        session=session,
        id=native,
        whole=native,
        parent=thread if thread != native else "",
        role=role,
        kind="injected" if by_host else "message",
        text="",
        speaker=export.speaker(value) or export.speaker(comment),
        timestamp=micros(value.get("ts")),
        thread=thread,
        metadata=small(
            user=string(value.get("user")) or string(comment.get("user")),
            subtype=subtype,
            edited=micros(mapping(value.get("edited")).get("ts")),
            mentions=mentioned,
            reactions={string(one.get("name")): one.get("count") for one in mappings(value.get("reactions"))},
        ),
        escaped=escaped,
    )
    return list(messages(shell, _pieces(value)))


class _Channel:
    """Turns the entries of one channel's files into events."""

    def __init__(self, export: _Export, session: str) -> None:
        self._export, self._session = export, session

    def entry(self, value: Any, number: int, escaped: bool) -> Iterable[Event]:
        """Return the events of one entry of a day's file."""
        if not isinstance(value, dict):
            return [Broken(number, "not a message", "item")]
        found = _message(self._export, self._session, value, escaped)
        return found or [NoMessage(number, "message without text")]


class Slack:
    """Slack's export, or a single day's file of it."""

    name = "slack"
    incremental = False
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Look for a list of messages with Slack's time stamps."""
        return {"ts", "type"} <= head_keys(head) and _TS.search(head) is not None

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Find folders that have a list of users or channels and files named after days."""
        bases = {
            name.removesuffix(base)
            for name in names
            for base in ("users.json", *_LISTS)
            if name.split("/")[-1] == base
        }
        found: dict[str, Sequence[str]] = {}
        for base in sorted(bases):
            days = [name for name in names if name.startswith(base) and _is_day(name[len(base) :])]
            if days:
                lists = [base + one for one in ("users.json", *_LISTS, "integration_logs.json")]
                found[base] = [*days, *(one for one in lists if one in set(names))]
        return found

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream an export channel by channel, each in order of its days."""
        export = _Export(transcript)
        if transcript.name and not transcript.name.endswith("/"):
            folder = _DAY.search(transcript.name) or _DAY.search(transcript.box.path.as_posix())
            info = export.info(folder[1] if folder else transcript.stem)
            yield info
            yield from read_items(transcript, _Channel(export, info.id).entry)
            return
        yield from export.load()
        base = transcript.name
        current = ""
        for name in transcript.box.names():
            if not (name.startswith(base) and _is_day(name[len(base) :])):
                continue
            info = export.info(name[len(base) :].split("/")[0])
            if info.id != current:
                current = info.id
                yield info
            day = Transcript(transcript.box, name, self)
            for event in read_items(day, _Channel(export, info.id).entry):
                yield _placed(event, day.address)


def _is_day(name: str) -> bool:
    return name.count("/") == 1 and _DAY.search(name) is not None


def _placed(event: Event, address: str) -> Event:
    if isinstance(event, Broken) and not event.where:
        return Broken(event.position, event.reason, event.unit, address)
    return event
