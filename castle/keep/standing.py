"""How every part of the palace stands: one line each, from counts and SQLite's own checks.

Nothing is changed. `castle verify` proves every row instead, `castle doctor` looks at everything around the
palace, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection

from castle.errors import CastleError, PalaceBusyError
from castle.records import Finding
from castle.store import migrate, novelty, redetect, reindex, spool
from castle.store.catchup import behind
from castle.store.mind_tables import MIND
from castle.store.palace import Palace
from castle.store.projection import Projection
from castle.store.receipts import failed_save
from castle.store.restoring import set_aside
from castle.store.schema import SCHEMA_VERSION, tables

PROVEN_BYTES = 200_000_000
"""Size of a ledger up to which SQLite looks through all of it here."""

GROUPS: dict[str, tuple[str, ...]] = {
    "drawers": ("drawers", "membership", "tombstones"),
    "sources": ("sources", "revisions", "projects", "project_aliases", "wing_names"),
    "conversations": ("sessions", "messages", "attachments", "blobs", "readings"),
    "graph": ("entities", "entity_aliases", "triples", "evidence"),
    "names": ("registry", "mentions", "name_backlog"),
    "tunnels": ("tunnels",),
    "closets": ("closets", "closet_lines", "closet_drawers", "aaak"),
    "use": ("pins", "uses"),
    "records": ("receipts", "reveals"),
    "vector cache": ("vectors",),
    "mind": MIND,
}
_CHANGES = ("meta", "lineage", "novelty")
"""Tables that have lines of their own, or are part of the line of the ledger."""

Progress = Callable[[str, int, int], None]
Check = Callable[[], Finding]


def standing(palace: Palace, progress: Progress | None = None) -> list[Finding]:
    """Return one finding for each part; ``failed`` says that something it promises is not in force."""
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("ledger", lambda: _ledger(palace)),
        *((name, _tables_check(palace, name, members)) for name, members in _groups()),
        ("words", lambda: _projection(palace, "words", lambda: palace.lexicon)),
        ("vectors", lambda: _projection(palace, "vectors", lambda: palace.vectors)),
        ("reindex", lambda: _reindex(palace)),
        ("novelty", lambda: _novelty(palace)),
        ("secrets", lambda: _secrets(palace)),
        ("saves", lambda: _saves(palace)),
        ("locks", lambda: _locks(palace)),
        ("copies", lambda: _copies(palace)),
    ]
    found = []
    for number, (name, check) in enumerate(checks, start=1):
        found.append(_made(name, check))
        if progress is not None:
            progress("checks", number, len(checks))
    return found


def _made(name: str, check: Check) -> Finding:
    try:
        return check()
    except PalaceBusyError as error:
        return Finding(name, "not checked", str(error))
    except CastleError as error:
        return Finding(name, "failed", str(error))
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        # Rows and files that no version of Castle wrote.
        return Finding(name, "failed", f"damaged ({type(error).__name__}: {error})")


def _groups() -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from GROUPS.items()
    named = {name for members in GROUPS.values() for name in members}
    rest = tuple(sorted(tables.tables.keys() - named - set(_CHANGES)))
    if rest:
        yield "other", rest


def _ledger(palace: Palace) -> Finding:
    size = palace.ledger.path.stat().st_size
    with palace.ledger.read() as cx:
        schema = migrate.schema_of(cx, palace.ledger.path)
        if _is_large(palace):
            return Finding("ledger", "not checked", f"schema {schema}, {size:,} bytes: {_TOO_LARGE}")
        wrong = [line for (line,) in cx.exec_driver_sql("PRAGMA quick_check(5)") if line != "ok"]
    if wrong:
        return Finding("ledger", "failed", f"{'; '.join(wrong)}: restore a backup, or see `castle verify`")
    if schema < SCHEMA_VERSION:
        return Finding("ledger", "failed", f"schema {schema} is older than {SCHEMA_VERSION}, and read-only")
    return Finding("ledger", "ok", f"schema {schema}, change {palace.ledger.head():,}, {size:,} bytes")


_TOO_LARGE = "too large to be looked through here; `castle verify` does"


def _is_large(palace: Palace) -> bool:
    return palace.ledger.path.stat().st_size > PROVEN_BYTES


def _tables_check(palace: Palace, name: str, members: tuple[str, ...]) -> Check:
    return lambda: _tables(palace, name, members)


def _tables(palace: Palace, name: str, members: tuple[str, ...]) -> Finding:
    with palace.ledger.read() as cx:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        there = {table for (table,) in cx.exec_driver_sql(query)}
        absent = [table for table in members if table not in there]
        if absent:
            return Finding(
                name, "failed", f"no table {', '.join(absent)}: the ledger is damaged or read-only"
            )
        counts = {table: _count(cx, table) for table in members}
        held = [f"{n:,} {table.removeprefix('mem_').replace('_', ' ')}" for table, n in counts.items() if n]
        told = ", ".join(held) or "nothing yet"
        if _is_large(palace):
            return Finding(name, "not checked", f"{told}; what they point at: {_TOO_LARGE}")
        lost = [row for table in members for row in cx.exec_driver_sql(f"PRAGMA foreign_key_check({table})")]
    if lost:
        first = f"{lost[0][0]} row {lost[0][1]}"
        return Finding(name, "failed", f"{told}; {len(lost):,} point at what is not there, first {first}")
    return Finding(name, "ok", told)


def _count(cx: Connection, table: str) -> int:
    return int(cx.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())  # noqa: S608


def _projection(palace: Palace, name: str, open_: Callable[[], Projection]) -> Finding:
    projection = open_()
    mark = projection.watermark()
    late = behind(palace, projection)
    with palace.ledger.read() as cx:
        query = "SELECT count(*) FROM drawers WHERE seq IS NOT NULL AND state != 'forgotten'"
        wanted = int(cx.exec_driver_sql(query).scalar_one())
    if late and mark is None:
        how = "damaged" if projection.disk_bytes() else "missing"
        return Finding(name, "failed", f"{how}, with {wanted:,} drawers to be in it: `castle repair`")
    if late:
        return Finding(
            name, "failed", f"{late:,} changes are not in it yet: the next search, or `castle repair`"
        )
    if not palace.ledger.head():
        return Finding(name, "ok", "nothing to hold yet")
    held = palace.lexicon.count() if name == "words" else palace.vectors.count()
    damaged = palace.lexicon.damaged_files() if name == "words" else []
    if damaged:
        return Finding(name, "failed", f"damaged: {', '.join(damaged[:5])}: `castle repair`")
    if held != wanted:
        return Finding(name, "failed", f"it holds {held:,} drawers, the ledger {wanted:,}: `castle repair`")
    return Finding(name, "ok", f"{held:,} drawers, up to change {mark.seq if mark else 0:,}")


def _reindex(palace: Palace) -> Finding:
    found = reindex.unfinished(palace)
    return Finding("reindex", "ok", found.told() if found is not None else "none was begun")


def _novelty(palace: Palace) -> Finding:
    with palace.ledger.read() as cx:
        total, scored = novelty.counts(cx)
        if novelty.in_force(cx) and scored and novelty.missing(cx):
            told = f"{scored:,} of {total:,} drawers have a score, and some are unknown to it"
            return Finding(
                "novelty", "not checked", f"{told}: the next search, or `castle repair --backfill-novelty`"
            )
    if scored < total:
        waits = f"{total - scored:,} of {total:,} drawers wait for a score"
        return Finding(
            "novelty", "not checked", f"{waits}: the next mine, or `castle repair --backfill-novelty`"
        )
    return Finding("novelty", "ok", f"{scored:,} drawers have a score")


def _secrets(palace: Palace) -> Finding:
    with palace.ledger.read() as cx:
        old = redetect.left(cx)
    if old:
        return Finding("secrets", "failed", f"{old:,} drawers were read with older rules: `castle repair`")
    if palace.ledger.value(redetect.FOUND_KEY) is not None:
        return Finding("secrets", "failed", "files of indexes may hold what was found later: `castle repair`")
    return Finding("secrets", "ok", "all drawers were read with today's rules")


def _saves(palace: Palace) -> Finding:
    waiting = spool.waiting(palace.root)
    with palace.ledger.read() as cx:
        failed = failed_save(cx, palace.root)
    told = f"{waiting:,} events wait to be filed"
    if failed is not None:
        return Finding("saves", "failed", f"{told}; the last save failed ({failed.detail}): `castle sweep`")
    return Finding("saves", "ok", told)


def _locks(palace: Palace) -> Finding:
    names = sorted(file.stem for file in palace.root.glob("*.lock"))
    held = []
    for name in names:
        lock = palace.lock(name)
        if lock.try_acquire():
            lock.release()
        else:
            held.append(f"{name} {lock.reason}")
    told = "; ".join(held) if held else "all are free"
    return Finding("locks", "ok", f"{told}; a lock ends with the process that has it")


def _copies(palace: Palace) -> Finding:
    copies = migrate.copies(palace.root)
    aside = set_aside(Path(palace.root).resolve())
    told = [f"{file.relative_to(palace.root)} ({file.stat().st_size:,} bytes)" for file in copies]
    told += [f"{directory} (moved aside by a restore)" for directory in aside]
    return Finding("copies", "ok", "; ".join(told) or "none from before a migration or a restore")
