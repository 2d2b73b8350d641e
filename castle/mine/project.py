"""The project miner: every text file under a directory, filed word for word and kept up with."""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import select

from castle.config import Settings
from castle.mine.encodings import SNIFF_BYTES, Binary, sniff
from castle.mine.halls import hall_for
from castle.mine.layout import Layout, layout_of
from castle.mine.read import Block, SourceReader, unreadable
from castle.mine.report import MineReport, Progress
from castle.mine.rooms import room_for
from castle.mine.walk import Found, walk
from castle.records import Skipped
from castle.store.ahead import Ahead
from castle.store.catchup import catch_up_lexicon, catch_up_vectors
from castle.store.drawer_rows import Coming
from castle.store.filing import Filed, Filing, NewDrawer, Place, Version, end_source, mark_seen
from castle.store.palace import Palace
from castle.store.places import present_name
from castle.store.projects import Project, find_project, path_text, register
from castle.store.purged import lines_of, with_gaps
from castle.store.schema import revisions, sources
from castle.text.chunk import chunks
from castle.text.names.locales import locales

Told = Callable[[], None]
"""Called when something has been filed."""

NORMALIZER = "project/1"
KIND = "file"
HEAD_CHARACTERS = 3000
BATCH = 1000
TRIES = 3
RACY_NS = 2_000_000_000
"""A file written so shortly before it was read may be written again without its time moving."""


@dataclass(frozen=True, slots=True)
class MineOptions:
    """What a run of the miner was asked for; ``limit`` 0 reads everything."""

    wing: str | None = None
    gitignore: bool = True
    include_ignored: tuple[str, ...] = ()
    agent: str = "cognitive-castle"
    limit: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A file that was read and waits to be filed with others in one transaction."""

    found: Found
    filing: Filing
    items: list[NewDrawer]
    version: Version
    place: Place


def mine(
    palace: Palace | None,
    path: Path,
    options: MineOptions,
    settings: Settings,
    progress: Progress | None = None,
) -> MineReport:
    """File what is new or changed under ``path``, then bring the indexes up to date.

    ``palace`` None is a dry run without a palace. Raises UsageError when there is nothing at ``path``,
    ConfigError for a setting or a castle.yaml that cannot be followed.
    """
    started = time.monotonic()
    locales(settings.entity_languages)
    tell = progress or (lambda *_: None)
    miner = Miner(palace, layout_of(path, options.wing), options, settings, tell)
    interrupted = False
    try:
        if palace is None or options.dry_run:
            miner.run()
        else:
            index(palace, tell, miner.run)
    except KeyboardInterrupt:
        miner.flush()
        interrupted = True
    return replace(miner.report(), seconds=time.monotonic() - started, interrupted=interrupted)


def index(palace: Palace, tell: Progress, run: Callable[[Told], None] = lambda told: None) -> None:
    """Run a miner, then bring words and vectors up to date with the ledger.

    Vectors are made meanwhile of what the miner tells to have been filed, as far as the embedder allows.
    """
    with Ahead(palace) as ahead:
        run(ahead.go_on)
        catch_up_lexicon(palace, progress=lambda done, total: tell("indexing words", done, total))
        palace.vectors.watermark()  # what the table needs is imported while the model is at work
    catch_up_vectors(palace, progress=lambda done, total: tell("embedding", done, total))


def source_key(project: Project, raw: bytes) -> str:
    """Return the key of a file: its place in its project, in hex where its name is not UTF-8."""
    place = os.fsencode(project.prefix) + b"/" + raw if project.prefix else raw
    try:
        return f"file:{project.id}:{place.decode('utf-8')}"
    except UnicodeDecodeError:
        return f"file-raw:{project.id}:{place.hex()}"


class Miner:
    """One run over one project."""

    def __init__(
        self,
        palace: Palace | None,
        layout: Layout,
        options: MineOptions,
        settings: Settings,
        tell: Progress,
    ) -> None:
        self._palace = palace
        self._layout = layout
        self._options = options
        self._settings = settings
        self._tell = tell
        self._told: Told = lambda: None
        self._wing = layout.wing
        self._project = Project("", "")
        self._known: dict[str, Any] = {}
        self._with_gaps: set[int] = set()
        self._salt = palace.salt if palace is not None else b""
        self._waiting: list[_Prepared] = []
        self._waiting_drawers = 0
        self._touched: list[tuple[int, dict[str, str]]] = []
        self._again: list[Found] = []
        self._counts: Counter[str] = Counter()
        self._rooms: Counter[str] = Counter()
        self._skipped: list[Skipped] = []
        self._ignored: list[Skipped] = []
        self._planned: list[tuple[str, str, int]] = []
        self._notes: list[str] = list(layout.notes)
        rules = repr([(room.name, room.keywords) for room in layout.rooms])
        self._rules = hashlib.sha256(rules.encode("utf-8", "backslashreplace")).hexdigest()[:8]

    def run(self, told: Told = lambda: None) -> None:
        """Walk, read and file; ``told`` is called after each transaction."""
        self._told = told
        self._load()
        files = list(self._files())
        for number, found in enumerate(files, start=1):
            self._consider(found)
            self._tell("filing", number, len(files))
        self.flush()
        for _ in range(TRIES):
            if not self._again:
                break
            again, self._again = self._again, []
            self._load()
            for found in again:
                self._consider(found)
            self.flush()
        for found in self._again:
            self._skipped.append(Skipped(found.relative, "changed", "other processes keep filing it"))
        if self._counts["left"]:
            left = self._counts["left"]
            self._notes.append(f"--limit left {left:,} file{'' if left == 1 else 's'} for another run")

    def report(self) -> MineReport:
        """Say what has been done so far."""
        count = self._counts
        return MineReport(
            wing=self._wing,
            files=count["files"],
            new=count["new"],
            changed=count["changed"],
            unchanged=count["unchanged"],
            drawers_new=count["drawers_new"],
            drawers_kept=count["drawers_kept"],
            drawers_superseded=count["drawers_superseded"],
            rooms=dict(self._rooms),
            skipped=tuple(self._skipped),
            ignored=tuple(self._ignored),
            planned=tuple(self._planned),
            notes=tuple(self._notes),
            dry_run=self._options.dry_run,
        )

    def flush(self) -> None:
        """File everything that waits, in one transaction."""
        waiting, self._waiting, self._waiting_drawers = self._waiting, [], 0
        touched, self._touched = self._touched, []
        if self._palace is None or self._options.dry_run or not (waiting or touched):
            return
        done: list[tuple[Place, Filed]] = []
        overtaken: list[Found] = []
        coming = Coming()
        with self._palace.ledger.write() as cx:
            for source, now in touched:
                mark_seen(cx, source, **now)
            for prepared in waiting:
                if prepared.filing.overtaken(cx):
                    overtaken.append(prepared.found)
                    continue
                prepared.filing.stage(cx, prepared.items, self._options.agent)
                done.append((prepared.place, prepared.filing.complete(cx, prepared.version, coming)))
            coming.begin(cx)
        self._again += overtaken
        self._counts["files"] -= len(overtaken)
        for place, filed in done:
            self._count(place, filed)
        self._told()

    def _load(self) -> None:
        """Learn what the ledger knows about the project, and register it unless nothing is to be written."""
        if self._palace is None:
            return
        ledger = self._palace.ledger
        if self._options.dry_run:
            with ledger.read() as cx:
                self._project = find_project(cx, self._layout.marks) or self._project
                self._wing = present_name(cx, self._layout.wing)
        else:
            with ledger.write() as cx:
                self._project = register(cx, self._layout.marks, ledger.clock())
                self._wing = present_name(cx, self._layout.wing)
        latest = (revisions.c.source == sources.c.id) & (revisions.c.number == sources.c.revision)
        query = (
            select(sources, revisions.c.sha256, revisions.c.normalizer)
            .select_from(sources.outerjoin(revisions, latest))
            .where(sources.c.project == self._project.id)
        )
        with ledger.read() as cx:
            self._known = {row.key: row for row in cx.execute(query)}
            self._with_gaps = with_gaps(cx)

    def _files(self) -> Iterator[Found]:
        for entry in walk(
            self._layout.root,
            ignore=self._options.gitignore,
            include_ignored=[str(self._layout.base / path) for path in self._options.include_ignored],
            patterns=self._layout.ignore,
            only=self._layout.only,
        ):
            if isinstance(entry, Found):
                yield entry
            elif entry.reason.startswith("ignored"):
                self._ignored.append(entry)
            else:
                self._skipped.append(entry)

    def _consider(self, found: Found) -> None:
        """Pass over a file that has not changed, read any other."""
        self._counts["files"] += 1
        known = self._known.get(source_key(self._project, found.raw))
        if known is not None and known.forgotten_at is not None:
            reason = "ignored: forgotten, `castle restore --source` brings it back"
            self._ignored.append(Skipped(found.relative, reason))
            return
        signature = self._signature(found)
        if known is not None and known.gone_at is None and signature and known.signature == signature:
            self._unchanged(known, self._place(found, known.room), signature)
            return
        if self._options.limit and self._counts["read"] >= self._options.limit:
            self._counts["left"] += 1
            return
        self._counts["read"] += 1
        for _ in range(TRIES):
            if self._read(found, known):
                return
        self._skipped.append(Skipped(found.relative, "changed", "it kept changing while it was read"))

    def _read(self, found: Found, known: Any) -> bool:
        """Read a file and put it with those that wait; False when it changed meanwhile."""
        opened = found.open()
        if isinstance(opened, Skipped):
            self._skipped.append(opened)
            return True
        with opened as file:
            try:
                return self._file(found, known, file)
            except OSError as error:
                self._skipped.append(unreadable(found.relative, error))
                return True

    def _file(self, found: Found, known: Any, file: BinaryIO) -> bool:
        signature = self._signature(found)
        same = _holds(known, file)
        kind = sniff(file.read(SNIFF_BYTES), found.relative)
        file.seek(0)
        if isinstance(kind, Binary):
            self._skipped.append(Skipped(found.relative, kind.reason))
            self._end(known)
            return True
        reader = SourceReader(file, kind)
        blocks = reader.blocks()
        first = next(blocks, None)
        head = first.text[:HEAD_CHARACTERS] if first else ""
        place = self._place(found, room_for(found.relative, head, self._layout.rooms))
        if same:
            self._unchanged(known, place, signature)
            return True
        filing = self._filing(place, known)
        hall = hall_for(head, self._settings.hall_keywords)
        items: list[NewDrawer] = []
        count = 0
        for item in self._drawers(found, reader, chain([first] if first else [], blocks), hall):
            items.append(item)
            count += 1
            if len(items) == BATCH:
                self._stage(filing, items)
                items = []
        if reader.changed:
            return False
        self._notes += [f"{found.relative}: {note}" for note in reader.notes]
        if filing is None:
            self._planned.append((place.title, place.room, count))
            self._count(place, Filed("new" if known is None else "changed", 0, count))
            return True
        version = Version(
            bytes.fromhex(reader.sha256),
            reader.size,
            signature,
            NORMALIZER,
            reader.encoding,
            found.mtime_ns // 1000,
            self._options.agent,
        )
        self._waiting.append(_Prepared(found, filing, items, version, place))
        self._waiting_drawers += len(items)
        if max(self._waiting_drawers, len(self._waiting)) >= BATCH:
            self.flush()
        return True

    def _end(self, known: Any) -> None:
        """Supersede the text of a file that holds none any more."""
        if known is None or known.gone_at is not None or self._palace is None or self._options.dry_run:
            return
        with self._palace.ledger.write() as cx:
            ended = end_source(cx, self._palace.ledger, known.id, self._options.agent)
        self._counts["drawers_superseded"] += ended

    def _drawers(
        self, found: Found, reader: SourceReader, blocks: Iterable[Block], hall: str
    ) -> Iterator[NewDrawer]:
        authored_at = found.mtime_ns // 1000
        texts = (block.text for block in blocks)
        for chunk in chunks(texts, name=found.relative, salt=self._salt):
            raw = reader.raw_of(chunk.start, chunk.end)
            yield NewDrawer(chunk, raw, hall, KIND, " › ".join(chunk.headings), authored_at)
            reader.release(chunk.end)

    def _filing(self, place: Place, known: Any) -> Filing | None:
        if self._palace is None or self._options.dry_run:
            return None
        return Filing(self._palace.ledger, place, known.revision if known is not None else 0)

    def _stage(self, filing: Filing | None, items: list[NewDrawer]) -> None:
        if filing is not None and self._palace is not None:
            with self._palace.ledger.write() as cx:
                filing.stage(cx, items, self._options.agent)

    def _unchanged(self, known: Any, place: Place, signature: str) -> None:
        """Count a source whose content is filed already, and note what else about it has changed."""
        now = {"path": place.path, "wing": place.wing, "room": place.room, "signature": signature}
        if any(getattr(known, name) != value for name, value in now.items()):
            self._touched.append((known.id, now))
            if len(self._touched) >= BATCH:
                self.flush()
        self._counts["unchanged"] += 1
        self._rooms[place.room] += 1
        if known.id in self._with_gaps:
            self._ignored.append(Skipped(place.title, "purged", "parts of it are not filed again"))

    def _count(self, place: Place, filed: Filed) -> None:
        self._counts[filed.change] += 1
        self._counts["drawers_new"] += filed.new
        self._counts["drawers_kept"] += filed.kept
        self._counts["drawers_superseded"] += filed.superseded
        self._rooms[place.room] += 1
        if filed.purged:
            self._ignored.append(Skipped(place.title, "purged", lines_of(filed.purged)))

    def _place(self, found: Found, room: str) -> Place:
        prefix = f"{self._project.prefix}/" if self._project.prefix else ""
        return Place(
            key=source_key(self._project, found.raw),
            kind=KIND,
            path=path_text(found.path),
            title=prefix + found.relative,
            wing=self._wing,
            room=room,
            project=self._project.id,
        )

    def _signature(self, found: Found) -> str:
        """Return what tells that a file need not be read again; "" when it must be in any case."""
        if time.time_ns() - found.mtime_ns < RACY_NS:
            return ""
        return f"{NORMALIZER} {self._rules} {found.signature}"


def _holds(known: Any, file: BinaryIO) -> bool:
    """Whether the ledger's current revision of the source has just the content of the file."""
    if known is None or known.gone_at is not None or known.normalizer != NORMALIZER:
        return False
    digest = hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]
    file.seek(0)
    return bool(digest == known.sha256)
