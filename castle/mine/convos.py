"""The conversation miner: every message of every transcript, filed once, as it was said.

A file is read from where its last reading stopped, or from its start when something before that has changed.
How far it was read and what was read are recorded in one transaction, so an interrupted run goes on where it
was, and nothing is filed twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from castle.config import Settings
from castle.mine.beginning import Beginning
from castle.mine.formats import (
    Broken,
    Checkpoint,
    Message,
    NoMessage,
    Pending,
    SessionInfo,
    SessionTitle,
    Transcript,
    Unread,
    Withdrawn,
    open_container,
)
from castle.mine.project import RACY_NS, TRIES, Told, index
from castle.mine.read import existing
from castle.mine.report import ConvoReport, Progress
from castle.mine.rooms import normalize_wing
from castle.mine.turns import Exchange, legal, quoted, to_message
from castle.mine.unreadable import Unreadable
from castle.mine.whereabouts import Whereabouts
from castle.records import Skipped
from castle.store.filing import OvertakenError, Place
from castle.store.palace import Palace
from castle.store.projects import path_text
from castle.store.reading import drawers_by_id, served
from castle.store.sessions import (
    KIND,
    NewMessage,
    Reading,
    SessionFacts,
    entitle,
    grow,
    last_turn,
    note_reading,
    reading_of,
    withdraw,
)
from castle.text.names.locales import locales

BATCH_DRAWERS = 500
BATCH_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class ConvoOptions:
    """What a run was asked for; ``limit`` 0 reads every transcript."""

    wing: str | None = None
    agent: str = "cognitive-castle"
    limit: int = 0
    dry_run: bool = False
    general: bool = False


@dataclass(slots=True)
class _Session:
    """A session of the transcript being read: what is known about it and what waits to be filed."""

    info: SessionInfo
    place: Place
    exchange: Exchange
    waiting: list[NewMessage] = field(default_factory=list)
    learned: bool = False


def mine_conversations(
    palace: Palace | None,
    path: Path,
    options: ConvoOptions,
    settings: Settings,
    progress: Progress | None = None,
) -> ConvoReport:
    """File what is new in the transcripts at a path (file, folder or zip), then bring the indexes up to date.

    ``palace`` None is a dry run without a palace. Raises UsageError when there is nothing at the path,
    ConfigError for languages there is no data for.
    """
    locales(settings.entity_languages)
    path = existing(path)
    started = time.monotonic()
    tell = progress or (lambda *_: None)
    miner = ConvoMiner(palace, path, options, settings, tell)
    interrupted = False
    try:
        if palace is None or options.dry_run:
            miner.run()
        else:
            index(palace, tell, miner.run)
    except KeyboardInterrupt:
        interrupted = True
    return replace(miner.report(), seconds=time.monotonic() - started, interrupted=interrupted)


class ConvoMiner:
    """One run over one path."""

    def __init__(
        self, palace: Palace | None, path: Path, options: ConvoOptions, settings: Settings, tell: Progress
    ) -> None:
        self._palace = palace
        self._path = path
        self._options = options
        self._settings = settings
        self._tell = tell
        self._told: Told = lambda: None
        self._whereabouts = Whereabouts(options.wing, normalize_wing(self._path.stem))
        self._salt = palace.salt if palace is not None else b""
        self._sessions: dict[str, _Session] = {}
        self._titles: list[SessionTitle] = []
        self._withdrawn: list[Withdrawn] = []
        self._drawers = 0
        self._bytes = 0
        self._counts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._formats: Counter[str] = Counter()
        self._broken = Unreadable()
        self._beginning: Beginning
        self._seen_sessions: set[str] = set()
        self._skipped: list[Skipped] = []
        self._ignored: list[Skipped] = []
        self._notes: list[str] = []

    def run(self, told: Told = lambda: None) -> None:
        """Read every transcript that is found; ``told`` is called after each transaction."""
        self._told = told
        with open_container(self._path) as found:
            for entry in found:
                if isinstance(entry, Unread):
                    self._pass_over(entry)
                    continue
                if self._options.limit and self._counts["read"] >= self._options.limit:
                    self._counts["left"] += 1
                    continue
                for _ in range(TRIES):
                    try:
                        self._transcript(entry)
                        break
                    except OvertakenError:
                        self._sessions.clear()
                else:
                    self._skipped.append(Skipped(entry.address, "changed", "other processes keep filing it"))
        if self._counts["left"]:
            left = self._counts["left"]
            self._notes.append(f"--limit left {left:,} transcript{'' if left == 1 else 's'} for another run")

    def _pass_over(self, entry: Unread) -> None:
        """Note a file without a transcript: only an empty one has nothing that is left out."""
        if entry.reason == "empty":
            self._ignored.append(Skipped(entry.address, "ignored: empty"))
        else:
            self._skipped.append(Skipped(entry.address, entry.reason))

    def report(self) -> ConvoReport:
        """Say what has been done so far."""
        count = self._counts
        return ConvoReport(
            transcripts=count["transcripts"],
            unchanged=count["unchanged"],
            sessions=len(self._seen_sessions),
            sessions_new=count["sessions_new"],
            messages_new=count["messages_new"],
            messages_known=count["messages_known"],
            drawers_new=count["drawers_new"],
            drawers_superseded=count["drawers_superseded"],
            private=count["private"],
            recalled=count["recalled"],
            kinds=dict(self._kinds),
            formats=dict(self._formats),
            skipped=tuple(self._skipped),
            ignored=tuple(self._ignored),
            notes=tuple(self._notes),
            dry_run=self._options.dry_run,
        )

    def _transcript(self, transcript: Transcript) -> None:
        """Read one transcript from where its last reading stopped."""
        self._sessions.clear()
        address = path_text(transcript.address)
        before = self._reading(address, transcript.format.name)
        signature = _signature(transcript)
        if before is not None and signature and before.signature == signature:
            self._counts["transcripts"] += 1
            self._counts["unchanged"] += 1
            self._skipped += Unreadable.of(before).told(address)
            return
        offset, state, self._broken = 0, None, Unreadable()
        self._beginning = Beginning(transcript)
        if before is not None and transcript.format.incremental and before.offset and before.edge:
            if self._beginning.up_to(before.offset) == before.edge:
                offset, state = before.offset, json.loads(before.state)
                self._broken = Unreadable.of(before)
        self._counts["read"] += 1
        reached = offset
        kept: Mapping[str, object] = state or {}
        size = _size(transcript)
        for event in transcript.read(offset, state):
            if isinstance(event, Checkpoint):
                reached, kept = event.offset, event.state
                if self._is_full():
                    self._flush(transcript, self._read_to(transcript, "", reached, kept))
                    self._tell("filing", reached, size)
            else:
                self._take(event, transcript)
                if self._is_full() and not transcript.format.incremental:
                    self._flush(transcript, None)
        self._flush(transcript, self._read_to(transcript, signature, reached, kept))
        self._skipped += self._broken.told(address)
        self._counts["transcripts"] += 1
        self._formats[transcript.format.name] += 1

    def _read_to(
        self, transcript: Transcript, signature: str, offset: int, state: Mapping[str, object]
    ) -> Reading:
        kept = _json({**state, **self._broken.state})
        return Reading(transcript.format.name, signature, offset, b"", kept)

    def _take(self, event: object, transcript: Transcript) -> None:
        if isinstance(event, Message):
            self._message(event, transcript)
        elif isinstance(event, SessionInfo):
            self._learn(event, transcript)
        elif isinstance(event, SessionTitle):
            self._titles.append(event)
        elif isinstance(event, Withdrawn):
            self._withdrawn.append(event)
        elif isinstance(event, Broken):
            where = f"{event.where or transcript.address}, {event.unit} {event.position}"
            self._broken.add(path_text(where), event.reason)
        elif isinstance(event, Pending):
            self._notes.append(f"{transcript.address}: the last line is unfinished and waits for its end")
        elif isinstance(event, NoMessage):
            self._counts["no_message"] += 1

    def _message(self, message: Message, transcript: Transcript) -> None:
        session = self._session(message.session, transcript)
        item = to_message(
            message,
            session.exchange,
            salt=self._salt,
            halls=self._settings.hall_keywords,
            general=self._options.general,
        )
        session.waiting.append(item)
        self._drawers += max(1, len(item.drawers))
        self._bytes += len(item.content) + sum(len(file.data or b"") for file in item.attachments)

    def _is_full(self) -> bool:
        """Whether what waits is enough for one transaction."""
        return self._drawers >= BATCH_DRAWERS or self._bytes >= BATCH_BYTES

    def _session(self, id_: str, transcript: Transcript) -> _Session:
        known = self._sessions.get(id_)
        if known is not None:
            return known
        key = session_key(transcript, id_)
        exchange = self._last_exchange(key, transcript)
        place = Place(key, KIND, path_text(transcript.address), legal(id_) or transcript.stem, "", "")
        session = _Session(SessionInfo(id_), place, exchange)
        self._sessions[id_] = session
        return session

    def _last_exchange(self, key: str, transcript: Transcript) -> Exchange:
        """Return where the session stood when it was last filed."""
        if self._palace is None:
            return Exchange(said_at=_file_time(transcript))
        with self._palace.ledger.read() as cx:
            room, question = last_turn(cx, key)
            text = served(drawers_by_id(cx, [question])[question]) if question else ""
        return Exchange(room, quoted(text), _file_time(transcript))

    def _learn(self, info: SessionInfo, transcript: Transcript) -> None:
        session = self._session(info.id, transcript)
        before = session.info
        session.learned = True
        session.info = replace(
            before,
            title=info.title or before.title,
            cwd=info.cwd or before.cwd,
            git_branch=info.git_branch or before.git_branch,
            project=info.project or before.project,
            started_at=info.started_at or before.started_at,
            parent=info.parent or before.parent,
        )

    def _flush(self, transcript: Transcript, reading: Reading | None) -> None:
        """File what waits, together with how far the transcript has been read."""
        if self._palace is None or self._options.dry_run:
            self._plan()
            return
        grown = []
        with self._palace.ledger.write() as cx:
            for session in self._sessions.values():
                if session.waiting or session.learned:
                    place = self._placed(cx, session)
                    facts = _facts(session.info, transcript)
                    grown.append(
                        (
                            session,
                            grow(cx, self._palace.ledger, place, facts, session.waiting, self._options.agent),
                        )
                    )
            for gone in self._withdrawn:
                withdraw(cx, session_key(transcript, gone.session), legal(gone.message))
            for title in self._titles:
                entitle(cx, legal(title.message), legal(title.title))
            if reading is not None:
                edge = self._beginning.up_to(reading.offset) if transcript.format.incremental else b""
                note_reading(cx, path_text(transcript.address), replace(reading, edge=edge))
        for session, result in grown:
            if result is not None:
                self._count(session, result)
            session.waiting.clear()
            session.learned = False
        self._withdrawn.clear()
        self._titles.clear()
        self._drawers = self._bytes = 0
        self._told()

    def _placed(self, cx: Any, session: _Session) -> Place:
        wing = self._whereabouts.wing_of(cx, session.place.key, session.info.cwd, session.info.project)
        return replace(session.place, wing=wing, title=legal(session.info.title) or session.place.title)

    def _count(self, session: _Session, result: Any) -> None:
        self._seen_sessions.add(session.place.key)
        self._counts["sessions_new"] += result.first
        self._counts["messages_new"] += result.messages
        self._counts["messages_known"] += result.known
        self._counts["drawers_new"] += result.drawers
        self._counts["drawers_superseded"] += result.superseded
        if result.purged:
            session.exchange.question = ""
            self._ignored.append(
                Skipped(session.place.path, "purged", f"stretches left out: {result.purged}")
            )
        for item in session.waiting:
            self._kinds[item.kind] += 1
            if item.kind in ("private", "recalled"):
                self._counts[item.kind] += 1

    def _plan(self) -> None:
        for session in self._sessions.values():
            self._seen_sessions.add(session.place.key)
            self._counts["messages_new"] += len(session.waiting)
            self._counts["drawers_new"] += sum(len(item.drawers) for item in session.waiting)
            self._kinds.update(item.kind for item in session.waiting)
            session.waiting.clear()
        self._drawers = self._bytes = 0

    def _reading(self, address: str, format_name: str) -> Reading | None:
        if self._palace is None:
            return None
        with self._palace.ledger.read() as cx:
            reading = reading_of(cx, address)
        return reading if reading is not None and reading.format == format_name else None


def session_key(transcript: Transcript, session: str) -> str:
    """Return the key of a session: its id, with the file's place where ids mean nothing elsewhere."""
    name = transcript.format.name
    if transcript.format.global_sessions and session:
        return f"session:{name}:{legal(session)}"
    place = hashlib.sha256(os.fsencode(transcript.address)).hexdigest()[:16]
    return f"session:{name}:{place}:{legal(session)}"


def _facts(info: SessionInfo, transcript: Transcript) -> SessionFacts:
    return SessionFacts(
        legal(info.id) or legal(transcript.stem),
        transcript.format.name,
        legal(info.title),
        legal(info.cwd),
        legal(info.git_branch),
        legal(info.parent),
        info.started_at,
    )


def _json(state: Mapping[str, object]) -> str:
    return json.dumps(dict(state), ensure_ascii=True)


def _file(transcript: Transcript) -> Path | None:
    """Return the one file on disk that holds the transcript: itself, or its zip; None for a folder."""
    local = transcript.box.local(transcript.name)
    path = local if local is not None else transcript.box.path
    return path if path.is_file() else None


def _signature(transcript: Transcript) -> str:
    """Return what tells that a transcript need not be read again; "" when it must be in any case."""
    path = _file(transcript)
    if path is None:
        return ""
    status = path.stat()
    if time.time_ns() - status.st_mtime_ns < RACY_NS:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"


def _size(transcript: Transcript) -> int:
    path = _file(transcript)
    return path.stat().st_size if path is not None else 0


def _file_time(transcript: Transcript) -> int:
    """Return when the file was written, for messages that carry no time."""
    path = _file(transcript) or transcript.box.path
    return path.stat().st_mtime_ns // 1000
