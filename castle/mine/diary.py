"""Diaries: entries that agents write one by one, and folders with a file for each day.

An entry is appended to the one source that its agent has in a wing, cut into drawers where it is long. A day
file is a source; a changed file is its next revision, so that what it said before stays in the history.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from sqlalchemy import Connection, Select, func, select

from castle.clock import to_iso, to_micros
from castle.config import check_name
from castle.errors import UsageError
from castle.mine.encodings import SNIFF_BYTES, Binary, sniff
from castle.mine.layout import layout_of
from castle.mine.project import TRIES, index, source_key
from castle.mine.read import SourceReader, unreadable
from castle.mine.report import MineReport, Progress
from castle.mine.rooms import normalize_wing
from castle.mine.walk import Found, walk
from castle.records import Skipped
from castle.store.filing import Filing, NewDrawer, OvertakenError, Place, Version, ensure_source
from castle.store.palace import Palace
from castle.store.places import present_name
from castle.store.projects import Project, path_text, register
from castle.store.purge_guard import refuse
from castle.store.purged import lines_of
from castle.store.schema import drawers, revisions, sources
from castle.store.sealing import shown
from castle.text.chunk import chunks

KIND = "diary"
ROOM = "diary"
HALL = "hall_diary"
DAY_ROOM = "daily"
DAY_WING = "diary"
GENERAL = "general"
NORMALIZER = "diary/1"
MOST_CHARACTERS = 100_000

_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)[^/]*\.md", re.IGNORECASE)
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """A diary entry; ``content`` is served text, ``drawers`` are the ids that hold it in order."""

    id: str
    agent: str
    wing: str
    topic: str
    date: str
    timestamp: str
    content: str
    drawers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """The newest entries of an agent, and how many there are."""

    agent: str
    total: int
    entries: tuple[Entry, ...]


def write(palace: Palace, agent: str, text: str, *, topic: str = GENERAL, wing: str | None = None) -> Entry:
    """File an entry of an agent's diary, by default in the agent's own wing, and return it.

    The indexes are not brought up to date here; every search does so.
    Raises UsageError for a blank or too long text, ConfigError for a name that cannot be one.
    """
    _check(text)
    name = _agent(agent)
    check_name("topic", topic)
    given = check_name("wing", wing) if wing else own_wing(name)
    ledger = palace.ledger
    pieces = list(chunks([text], name="entry.md", salt=palace.salt))
    with ledger.write() as cx:
        refuse(cx, text)
        present = present_name(cx, given)
        place = Place(f"diary:{name}:{given}", KIND, f"diary of {name}", f"diary of {name}", present, ROOM)
        source = ensure_source(cx, place)
        base = cx.execute(select(sources.c.revision).where(sources.c.id == source)).scalar_one()
        now = ledger.clock()
        id_ = hashlib.sha256(f"{place.key}\n{base + 1}".encode()).hexdigest()[:24]
        items = [
            NewDrawer(
                chunk,
                None,
                HALL,
                KIND,
                f"{name} › {topic}",
                now,
                role="assistant",
                speaker=name,
                message_id=id_,
                metadata={"topic": topic},
            )
            for chunk in pieces
        ]
        filing = Filing(ledger, place, base, append=True)
        filing.stage(cx, items, name)
        filing.complete(cx, Version(b"", 0, "", NORMALIZER, "utf-8", now, name))
        (entry,) = _entries(cx, name, [id_])
    return entry


def read(palace: Palace, agent: str, *, last: int = 10, wing: str | None = None) -> Entries:
    """Return an agent's last entries, newest first, from all wings or from one."""
    name = _agent(agent)
    with palace.ledger.read() as cx:
        terms = [
            drawers.c.source.in_(_sources_of(name)),
            drawers.c.state == "current",
            drawers.c.seq.is_not(None),
        ]
        if wing:
            terms.append(drawers.c.wing == present_name(cx, wing))
        total = cx.execute(select(func.count(drawers.c.message_id.distinct())).where(*terms)).scalar() or 0
        newest = (
            select(drawers.c.message_id)
            .where(*terms)
            .group_by(drawers.c.message_id)
            .order_by(func.max(drawers.c.authored_at).desc(), func.max(drawers.c.rid).desc())
            .limit(last)
        )
        ids = [id_ for (id_,) in cx.execute(newest)]
        return Entries(name, total, tuple(_entries(cx, name, ids)))


def own_wing(agent: str) -> str:
    """Return the wing that an agent's diary goes to by default."""
    return f"wing_{normalize_wing(agent)}"


def ingest(
    palace: Palace, directory: Path, *, wing: str = DAY_WING, progress: Progress | None = None
) -> MineReport:
    """File the day files (``YYYY-MM-DD*.md``) below a directory, each as a source that keeps its revisions.

    Raises UsageError when there is no such directory.
    """
    if not directory.is_dir():
        raise UsageError(f"no directory {directory}: name the one that the day files are in")
    layout = layout_of(directory, check_name("wing", wing))
    with palace.ledger.write() as cx:
        project = register(cx, layout.marks, palace.ledger.clock())
        present = present_name(cx, layout.wing)
    run = _Ingest(palace, project, present)
    found = list(walk(layout.root, ignore=False))
    for number, entry in enumerate(found, start=1):
        run.consider(entry)
        if progress is not None:
            progress("filing", number, len(found))
    index(palace, progress or (lambda *_: None))
    return run.report()


class _Ingest:
    """One run over a folder of day files."""

    def __init__(self, palace: Palace, project: Project, wing: str) -> None:
        self._palace = palace
        self._project = project
        self._wing = wing
        self._counts: Counter[str] = Counter()
        self._skipped: list[Skipped] = []
        self._ignored: list[Skipped] = []
        self._notes: list[str] = []

    def consider(self, entry: Found | Skipped) -> None:
        """File a day file, report anything else."""
        if isinstance(entry, Skipped):
            (self._ignored if entry.reason.startswith("ignored") else self._skipped).append(entry)
            return
        day = day_of(entry.relative)
        if day is None:
            self._ignored.append(Skipped(entry.relative, "ignored: its name is not YYYY-MM-DD….md"))
            return
        self._counts["files"] += 1
        for _ in range(TRIES):
            try:
                if self._file(entry, day):
                    return
            except OvertakenError:
                continue
        self._skipped.append(Skipped(entry.relative, "changed", "it kept changing while it was read"))

    def report(self) -> MineReport:
        """Say what was done."""
        counts = self._counts
        return MineReport(
            self._wing,
            files=counts["files"],
            new=counts["new"],
            changed=counts["changed"],
            unchanged=counts["unchanged"],
            drawers_new=counts["drawers_new"],
            drawers_kept=counts["drawers_kept"],
            drawers_superseded=counts["drawers_superseded"],
            rooms={DAY_ROOM: counts["files"]},
            skipped=tuple(self._skipped),
            ignored=tuple(self._ignored),
            notes=tuple(self._notes),
        )

    def _file(self, found: Found, day: date) -> bool:
        """File the state a file is in; False when it changed while it was read."""
        key = "day-" + source_key(self._project, found.raw)
        known = self._known(key)
        if known is not None and known.forgotten_at is not None:
            reason = "ignored: forgotten, `castle restore --source` brings it back"
            self._ignored.append(Skipped(found.relative, reason))
            return True
        opened = found.open()
        if isinstance(opened, Skipped):
            self._skipped.append(opened)
            return True
        try:
            with opened as file:
                kind = sniff(file.read(SNIFF_BYTES), found.relative)
                file.seek(0)
                if isinstance(kind, Binary):
                    self._skipped.append(Skipped(found.relative, kind.reason))
                    return True
                reader = SourceReader(file, kind)
                items = list(self._drawers(reader, day, found.relative))
                if reader.changed:
                    return False
        except OSError as error:
            self._skipped.append(unreadable(found.relative, error))
            return True
        self._notes += [f"{found.relative}: {note}" for note in reader.notes]
        sha = bytes.fromhex(reader.sha256)
        if known is not None and known.gone_at is None and known.sha256 == sha and known.wing == self._wing:
            self._counts["unchanged"] += 1
            return True
        place = Place(key, "day", path_text(found.path), found.relative, self._wing, DAY_ROOM)
        version = Version(sha, reader.size, "", NORMALIZER, reader.encoding, _noon(day), "diary")
        filing = Filing(self._palace.ledger, place, known.revision if known is not None else 0)
        with self._palace.ledger.write() as cx:
            filing.stage(cx, items, "diary")
            filed = filing.complete(cx, version)
        self._counts[filed.change] += 1
        self._counts["drawers_new"] += filed.new
        self._counts["drawers_kept"] += filed.kept
        self._counts["drawers_superseded"] += filed.superseded
        if filed.purged:
            self._ignored.append(Skipped(found.relative, "purged", lines_of(filed.purged)))
        return True

    def _known(self, key: str) -> Any:
        latest = (revisions.c.source == sources.c.id) & (revisions.c.number == sources.c.revision)
        query = select(sources, revisions.c.sha256).select_from(sources.outerjoin(revisions, latest))
        with self._palace.ledger.read() as cx:
            return cx.execute(query.where(sources.c.key == key)).first()

    def _drawers(self, reader: SourceReader, day: date, name: str) -> Iterator[NewDrawer]:
        texts = (block.text for block in reader.blocks())
        for chunk in chunks(texts, name=name, salt=self._palace.salt):
            raw = reader.raw_of(chunk.start, chunk.end)
            context = " › ".join((day.isoformat(), *chunk.headings))
            yield NewDrawer(chunk, raw, HALL, KIND, context, _noon(day))
            reader.release(chunk.end)


def day_of(relative: str) -> date | None:
    """Return the day that a file is about by its name, None for one that is no day file."""
    match = _DAY.fullmatch(PurePosixPath(relative).name)
    try:
        return date.fromisoformat(match.group(1)) if match else None
    except ValueError:
        return None


def _noon(day: date) -> int:
    """Return the middle of a day in UTC, which is that day in nearly every zone."""
    return to_micros(datetime(day.year, day.month, day.day, 12, tzinfo=UTC))


def _sources_of(agent: str) -> Select[tuple[int]]:
    """Select the sources that hold an agent's entries, one for each wing they were given."""
    of_agent = sources.c.key.startswith(f"diary:{agent}:", autoescape=True)
    return select(sources.c.id).where(sources.c.kind == KIND, of_agent)


def _entries(cx: Connection, agent: str, ids: list[str]) -> list[Entry]:
    """Return entries in the order of their ids, each of the drawers that are current."""
    found: dict[str, Entry] = {}
    query = (
        select(drawers)
        .where(
            drawers.c.source.in_(_sources_of(agent)),
            drawers.c.message_id.in_(ids),
            drawers.c.state == "current",
        )
        .order_by(drawers.c.rid)
    )
    for row in cx.execute(query):
        text = shown(cx, row)
        entry = found.get(row.message_id)
        if entry is None:
            stamp = to_iso(row.authored_at)
            found[row.message_id] = Entry(
                row.message_id,
                row.speaker,
                row.wing,
                _topic(row.metadata),
                stamp[:10],
                stamp,
                text,
                (row.id,),
            )
        else:
            found[row.message_id] = replace(
                entry, content=entry.content + text, drawers=(*entry.drawers, row.id)
            )
    return [found[id_] for id_ in ids if id_ in found]


def _topic(stored: str | None) -> str:
    return str(json.loads(stored).get("topic", GENERAL)) if stored else GENERAL


def _agent(name: str) -> str:
    return check_name("agent", name.strip().lower())


def _check(text: str) -> None:
    if not text.strip():
        raise UsageError("the entry is empty: write what is worth remembering")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"the entry has {len(text):,} characters, {MOST_CHARACTERS:,} are the most: file it as a document"
        )
    if _NO_TEXT.search(text):
        raise UsageError("the entry holds NUL or broken Unicode: a diary is plain text")
