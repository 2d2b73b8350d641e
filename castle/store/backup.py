"""Backup: the palace in one file, taken while others write.

The file is a ZIP archive of the ledger, of the spool, of reviews and of ``identity.txt``, with a manifest
that says what they must come to. Indexes are not in it: they are built again from the ledger, whose cache of
vectors spares them the model. The ledger is copied in steps from one snapshot, so that writers wait for
nothing and the copy is one moment of the palace.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO

from sqlalchemy import Connection

from castle.clock import parse_iso, to_iso
from castle.errors import PalaceError, RefusedError, UsageError
from castle.store.drafts import draft_beside, reason, remove_left, see_on_disk, telling
from castle.store.ledger import FILE_NAME, Ledger
from castle.store.purged import note_copy
from castle.store.reviews import ARCHIVE as REVIEWS
from castle.store.reviews import pack
from castle.store.spool import FAILED, FILE, FOLDER, RESERVE, UNREADABLE

FORMAT = 1
MANIFEST = "manifest.json"
IDENTITY = "identity.txt"
EVENTS = f"{FOLDER}/{FILE}"
MEMBERS = (FILE_NAME, EVENTS, f"{FOLDER}/{UNREADABLE}", f"{FOLDER}/{FAILED}", REVIEWS, IDENTITY)
"""Every name that an archive may hold beside its manifest."""

PIECE = 1 << 20
_PAGES = 1024
_TRIES = 20
_LEVEL = 1
_CANNOT = "no backup can be written to"

Progress = Callable[[str, int, int], None]
"""Called with what is done, how much of it is, and how much there is."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup as it stands on disk: what it holds, and the hash of the whole file.

    ``events`` of hooks were waiting in the spool. ``identity`` says whether ``identity.txt`` is in it.
    """

    path: str
    bytes: int
    sha256: str
    created_at: int
    schema: int
    sources: int
    drawers: int
    events: int
    identity: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """What one member of an archive must come to."""

    size: int
    sha256: str


def backup(
    ledger: Ledger, target: Path, identity: Path, *, force: bool = False, progress: Progress | None = None
) -> Backup:
    """Write the palace of ``ledger`` into the file ``target`` and prove what was written.

    ``identity`` is the user's ``identity.txt``, which need not exist. Raises RefusedError when ``target`` is
    there and ``force`` is false, UsageError for a place inside the palace, PalaceError when the copy is not
    whole or cannot be written; nothing is left behind then.
    """
    target = target.absolute()
    remove_left(target)
    _check_target(ledger.root, target, force)
    note_copy(ledger, target)  # before it is made: a process that is killed over it leaves one, too
    tell = progress or (lambda *_: None)
    with telling(_CANNOT, target), draft_beside(target) as draft:
        files = _spool(ledger.root, draft)
        if pack(ledger.root, draft / REVIEWS):
            files[REVIEWS] = draft / REVIEWS
        copy = draft / FILE_NAME
        counts = _copy(ledger, copy, target, tell)
        check_ledger(copy, counts)
        files[FILE_NAME] = copy
        if identity.is_file():
            files[IDENTITY] = identity
        now = ledger.clock()
        archive = draft / "archive"
        manifest = _archive(archive, files, counts, now, tell)
        copy.unlink()
        digest = _prove(archive, manifest, tell)
        see_on_disk(archive)
        if target.exists() and not force:
            raise _exists(target)
        size = archive.stat().st_size
        archive.replace(target)
        see_on_disk(target.parent)
    return Backup(
        path=str(target),
        bytes=size,
        sha256=digest,
        created_at=now,
        schema=int(str(manifest["schema"])),
        sources=counts["sources"],
        drawers=counts["drawers"],
        events=int(str(manifest["spool_events"])),
        identity=IDENTITY in files,
    )


def check_ledger(path: Path, counts: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return the rows of every table of a ledger that nobody uses, after SQLite has looked it through.

    Raises PalaceError when it is damaged, is no ledger, or does not hold ``counts``.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as cx:
            wrong = [line for (line,) in cx.execute("PRAGMA quick_check(3)") if line != "ok"]
            other = cx.execute(
                "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
            ).fetchall()
            found = count_tables(cx)
    except sqlite3.Error as error:
        raise PalaceError(f"the ledger in it is damaged: {error}") from error
    if wrong:
        raise PalaceError(f"the ledger in it is damaged: {'; '.join(wrong)}")
    if other or not {"meta", "sources", "drawers"} <= found.keys():
        raise PalaceError("what is in it is no ledger of Castle")
    if counts is not None and found != dict(counts):
        differing = sorted(
            name for name in found.keys() | counts.keys() if found.get(name) != counts.get(name)
        )
        raise PalaceError(f"the ledger in it does not hold what it should in {', '.join(differing[:5])}")
    return found


def count_tables(cx: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows each table holds."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    names = [name for (name,) in cx.execute(query)]
    return {name: cx.execute(f'SELECT count(*) FROM "{_quoted(name)}"').fetchone()[0] for name in names}  # noqa: S608


def _quoted(name: str) -> str:
    return name.replace('"', '""')


def _check_target(root: Path, target: Path, force: bool) -> None:
    if target.is_dir():
        raise UsageError(f"{target} is a directory: name the file that the backup is to be")
    if not target.parent.is_dir():
        raise UsageError(f"there is no directory {target.parent}: make it first")
    if root.resolve() in (target.parent.resolve(), *target.parent.resolve().parents):
        raise UsageError(f"{target} is inside the palace, and would be lost with it: name another place")
    if target.exists() and not force:
        raise _exists(target)


def _exists(target: Path) -> RefusedError:
    return RefusedError(f"{target} exists: name another file, or overwrite it with --force")


def _spool(root: Path, draft: Path) -> dict[str, Path]:
    """Copy what hooks have noted, before the ledger is copied: an event is in both rather than in neither."""
    found: dict[str, Path] = {}
    contents = {EVENTS: b"".join(line + b"\n" for line in spool_lines(root))}
    for name in (UNREADABLE, FAILED):
        try:
            contents[f"{FOLDER}/{name}"] = (root / FOLDER / name).read_bytes()
        except FileNotFoundError:
            continue
    for name, content in contents.items():
        if content:
            place = draft / name.replace("/", "-")
            place.write_bytes(content)
            found[name] = place
    return found


def spool_lines(root: Path) -> list[bytes]:
    """Return the events that wait in a spool, each once, while hooks add to it and a drainer takes from it.

    What hooks append to is read first: when it is taken away meanwhile, it is among the files read next.
    """
    folder = root / FOLDER
    for _ in range(_TRIES):
        try:
            written = [folder / name for name in (RESERVE, FILE)]
            last = [line for file in written if file.is_file() for line in _lines(file)]
            taken = [line for file in sorted(folder.glob("drain-*.jsonl")) for line in _lines(file)]
        except FileNotFoundError:
            continue
        return list(dict.fromkeys((*taken, *last)))
    raise PalaceError(f"the events in {folder} change all the time: run the command again")


def _lines(file: Path) -> list[bytes]:
    """Return the lines of a file that are complete."""
    return [line for line in file.read_bytes().split(b"\n")[:-1] if line.strip()]


def _copy(ledger: Ledger, place: Path, target: Path, tell: Progress) -> dict[str, int]:
    """Copy one snapshot of the ledger; return how many rows each table holds in it."""
    place.touch(mode=0o600)

    def step(_status: int, left: int, total: int) -> None:
        tell("ledger", total - left, total)

    with ledger.read() as cx, closing(sqlite3.connect(place)) as copy:
        live = _raw(cx)
        counts = count_tables(live)  # the first look begins the snapshot, which the copy then stays in
        try:
            live.backup(copy, pages=_PAGES, progress=step, sleep=0)
        except sqlite3.Error as error:  # said here, where it is known that it is not about the palace
            raise PalaceError(f"{_CANNOT} {target}: {reason(error)}; nothing was changed") from error
    see_on_disk(place)
    return counts


def _raw(cx: Connection) -> sqlite3.Connection:
    connection = cx.connection.dbapi_connection
    assert isinstance(connection, sqlite3.Connection)
    return connection


def _archive(
    archive: Path, files: Mapping[str, Path], counts: Mapping[str, int], now: int, tell: Progress
) -> dict[str, object]:
    """Put the files into the archive; return the manifest that goes with them."""
    total = sum(path.stat().st_size for path in files.values())
    done = 0
    entries: dict[str, dict[str, object]] = {}
    archive.touch(mode=0o600)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as out:
        for name, path in files.items():
            digest, size = hashlib.sha256(), 0
            with path.open("rb") as source, out.open(name, "w", force_zip64=True) as member:
                while piece := source.read(PIECE):
                    digest.update(piece)
                    size += len(piece)
                    member.write(piece)
                    done += len(piece)
                    tell("archive", done, total)
            entries[name] = {"size": size, "sha256": digest.hexdigest()}
        manifest = {
            "castle_backup": FORMAT,
            "created_at": to_iso(now),
            "castle": version("cognitive-castle"),
            "sqlite": sqlite3.sqlite_version,
            **_about(files[FILE_NAME]),
            "spool_events": len(files[EVENTS].read_bytes().splitlines()) if EVENTS in files else 0,
            "not_included": "indexes: they are built again from the ledger",
            "counts": dict(counts),
            "files": entries,
        }
        out.writestr(MANIFEST, json.dumps(manifest, indent=1))
    return manifest


def schema_in(path: Path) -> int:
    """Return the schema of a ledger that nobody uses; 0 when it does not say."""
    try:
        return int(str(_about(path)["schema"]))
    except (sqlite3.Error, KeyError, ValueError):
        return 0


def _about(path: Path) -> dict[str, object]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as cx:
        known = dict(
            cx.execute("SELECT key, value FROM meta WHERE key IN ('schema_version', 'seq', 'embedder')")
        )
    return {
        "schema": int(known["schema_version"]),
        "seq": int(known["seq"]),
        "embedder": json.loads(known.get("embedder") or "{}"),
    }


def _prove(archive: Path, manifest: Mapping[str, object], tell: Progress) -> str:
    """Read the archive back, compare every member with the manifest, and return the hash of the file."""
    with opened(archive) as found:
        if found.manifest != manifest:
            raise PalaceError(f"{archive} is not what was written to it: the disk may be failing")
        for name in found.entries:
            for _ in found.pieces(name, tell):
                pass
    with archive.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that was opened; its members can be read, compared with the manifest on the way."""

    path: Path
    manifest: Mapping[str, object]
    entries: Mapping[str, Entry]
    counts: Mapping[str, int]
    schema: int
    created_at: int
    zip: zipfile.ZipFile

    def pieces(self, name: str, tell: Progress) -> Iterator[bytes]:
        """Yield the content of a member; raises PalaceError at its end when it is not what it should be."""
        entry = self.entries[name]
        digest, size = hashlib.sha256(), 0
        with _sound(self.path):
            member = self.zip.open(name)
        with member:
            while piece := self._piece(member):
                digest.update(piece)
                size += len(piece)
                if size > entry.size:
                    break
                tell("reading", size, entry.size)
                yield piece
        if (size, digest.hexdigest()) != (entry.size, entry.sha256):
            raise PalaceError(
                f"{self.path} is damaged: {name} in it is not what was backed up; nothing was changed"
            )

    def _piece(self, member: IO[bytes]) -> bytes:
        with _sound(self.path):
            return member.read(PIECE)


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open a backup and read its manifest. Raises PalaceError for one that is damaged or none at all."""
    with _sound(path):
        file = zipfile.ZipFile(path)
    with file:
        with _sound(path):
            names = [info.filename for info in file.infolist()]
            if any(
                info.compress_type not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)
                for info in file.infolist()
            ):
                raise ValueError("it is packed in another way")
            if MANIFEST not in names or file.getinfo(MANIFEST).file_size > PIECE:
                raise ValueError("it has no manifest")
            manifest = json.loads(file.read(MANIFEST))
            if not isinstance(manifest, dict) or type(manifest.get("castle_backup")) is not int:
                raise ValueError("its manifest is not Castle's")
        if manifest["castle_backup"] > FORMAT:
            raise PalaceError(
                f"{path} was made by a newer Castle: upgrade with `pip install -U cognitive-castle`"
            )
        with _sound(path):
            entries = {
                name: Entry(int(entry["size"]), str(entry["sha256"]))
                for name, entry in manifest["files"].items()
            }
            counts = {str(name): int(count) for name, count in manifest["counts"].items()}
            if not {FILE_NAME} <= set(entries) & set(names):
                raise ValueError("it holds no ledger")
            if sorted(names) != sorted((*entries, MANIFEST)) or not set(entries) <= set(MEMBERS):
                raise ValueError("its files are not those that its manifest names")
            schema, created = int(manifest["schema"]), parse_iso(str(manifest["created_at"]))
            archive = Archive(path, manifest, entries, counts, schema, created, file)
        yield archive


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Turn what a file that is no archive gives rise to into one line for the user."""
    try:
        yield
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}") from error
    except (
        zipfile.BadZipFile,
        OSError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RuntimeError,
        RecursionError,
        OverflowError,
        zlib.error,
        struct.error,
    ) as error:
        why = str(error) or type(error).__name__
        raise PalaceError(
            f"{path} is no backup of Castle, or a damaged one ({why}); nothing was changed"
        ) from error
