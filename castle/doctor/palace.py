"""Checks of the palace itself, from counts and file sizes: `castle verify` proves every row."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sqlalchemy import func, select

from castle.clock import to_iso
from castle.doctor.context import Context
from castle.doctor.line import Result, bad, good, unknown, unused
from castle.errors import (
    CastleError,
    PalaceBusyError,
    PalaceError,
    PalaceNotFoundError,
    PalaceVersionError,
)
from castle.store.ledger import FILE_NAME
from castle.store.palace import TOKEN_CACHE, Palace
from castle.store.projection import Projection
from castle.store.schema import drawers

PROVEN_BYTES = 200_000_000
"""Size of a ledger up to which SQLite's own check is quick enough to be made here."""
PATIENCE_SECONDS = 2.0
CATCH_UP_SECONDS = 2.0
LEAST_FREE = 512_000_000
LONG_WAIT = 3_600_000_000
"""How long, in microseconds, an event of a hook may wait to be filed."""

_VERIFY = "castle verify"
_REPAIR = "castle repair"
_MAKE = "castle init DIR, or name another palace with --palace"
_SHOWN = 3


def palace(context: Context) -> Result:
    """The ledger opens, is of a known schema, and SQLite finds nothing wrong with it."""
    try:
        found = context.opened()
        with found.ledger.read() as cx:
            count = cx.execute(select(func.count()).where(drawers.c.state == "current")).scalar_one()
            size = found.ledger.path.stat().st_size
            wrong = []
            if size <= PROVEN_BYTES:
                wrong = [line for (line,) in cx.exec_driver_sql("PRAGMA quick_check(3)") if line != "ok"]
    except PalaceNotFoundError:
        return bad(f"there is none at {context.root}", _MAKE)
    except PalaceVersionError as error:
        return bad(str(error), "pip install -U cognitive-castle")
    except PalaceError as error:
        return bad(str(error), f"{_VERIFY}; a damaged ledger is put back from a copy")
    if wrong:
        return bad(f"{found.ledger.path} is damaged: {'; '.join(wrong)}", f"{_VERIFY} shows what is left")
    proof = "whole" if size <= PROVEN_BYTES else f"too large to be proven here: {_VERIFY}"
    schema = found.ledger.value("schema_version")
    return good(f"{context.root}, schema {schema}, {count:,} drawers, {_megabytes(size)}, {proof}")


def writes(context: Context) -> Result:
    """The ledger can be written: its lock can be had within two seconds."""
    found = context.palace()
    if found.ledger.read_only:
        return bad(f"{context.root} is read-only: nothing can be filed", f"chmod -R u+w {context.root}")
    try:
        with found.ledger.write(PATIENCE_SECONDS):
            pass
    except PalaceBusyError:
        return bad("another process has been writing for two seconds", "try again; `castle status`")
    except PalaceError as error:
        return bad(str(error), _VERIFY)
    return good("the lock of the ledger can be had")


def permissions(context: Context) -> Result:
    """Nobody but the owner can read the palace."""
    if sys.platform == "win32":
        return unknown("this system keeps permissions in another way")
    root = context.root
    if not root.is_dir():
        return unknown("there is no palace")
    wrong = [f"{root} ({_mode(root)})"] if _is_open(root) else []
    with suppress(OSError):
        wrong += [
            f"{file.name} ({_mode(file)})"
            for file in sorted(root.iterdir())
            if not file.is_symlink() and file.is_file() and _is_open(file)
        ]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        return bad(f"others can read: {', '.join(wrong[:_SHOWN])}{more}", f"chmod -R go-rwx {root}")
    if hasattr(os, "geteuid") and root.stat().st_uid != os.geteuid():
        return bad(f"{root} belongs to another user", f"chown -R $(id -u) {root}")
    return good("only for its owner")


def words(context: Context) -> Result:
    """The index of words holds every change."""
    from castle.store.catchup import catch_up_lexicon

    found = context.palace()
    return _projection(found, found.lexicon, catch_up_lexicon)


def vectors(context: Context) -> Result:
    """The table of vectors holds every change."""
    from castle.store.catchup import catch_up_vectors
    from castle.store.reindex import unfinished

    found = context.palace()
    result = _projection(found, found.vectors, catch_up_vectors)
    begun = unfinished(found)
    return result if begun is None else replace(result, detail=f"{result.detail}; {begun.told()}")


def _projection(palace: Palace, projection: Projection, catch_up: Callable[..., None]) -> Result:
    """Look how far a projection has come; what came last is brought in as a search would do it."""
    from castle.mine.drainer import at_work
    from castle.store.catchup import behind

    late = behind(palace, projection)
    whole = projection.watermark() is not None or not late
    if late and whole:
        with suppress(CastleError):
            catch_up(palace, deadline=time.monotonic() + CATCH_UP_SECONDS)
        late = behind(palace, projection)
    if late:
        what = f"{'behind' if whole else 'missing or damaged'}: {late:,} changes are not in it"
        if whole and (drainer := at_work(palace.root)) is not None:
            return unknown(
                f"{what}; a drainer is at work (process {drainer})", "castle doctor, a moment later"
            )
        return bad(what, _REPAIR)
    return good(f"up to date, {_megabytes(projection.disk_bytes())}")


def secrets(context: Context) -> Result:
    """Every drawer was read with today's rules for secrets, and no index holds what they found later."""
    from castle.store.redetect import FOUND_KEY, left
    from castle.store.reveal import list_reveals
    from castle.text.secrets import DETECTOR_VERSION

    found = context.palace()
    with found.ledger.read() as cx:
        old = left(cx)
    if old:
        return bad(
            f"{old:,} drawers were read with older rules: they are masked when shown, not yet in the indexes",
            _REPAIR,
        )
    if found.ledger.value(FOUND_KEY) is not None:
        return bad("the files of the indexes may still hold secrets that were found later", _REPAIR)
    told = f"all drawers were read with rules {DETECTOR_VERSION}"
    total, latest = list_reveals(found.ledger, 1, 0)
    if total:
        told += f"; revealed {total:,} times, last {to_iso(latest[0].at)[:16]} to {latest[0].actor}"
    return good(told)


def receipts(context: Context) -> Result:
    """The last save of every session went well."""
    from castle.clients.connect import installed
    from castle.store.receipts import failed_save, list_receipts

    with context.palace().ledger.read() as cx:
        failure = failed_save(cx, context.root)
        page = list_receipts(cx, 1, 0, None, False)
    if failure is not None and not failure.id:
        what = f"{to_iso(failure.at)[:16]}: {failure.detail}"
        return bad(what, f"castle sweep; {context.root / 'spool' / 'drain.log'} tells more")
    if failure is not None:
        what = f"{page.failing:,} not saved; the last, {to_iso(failure.at)[:16]}: {failure.detail}"
        if Path(failure.transcript).exists():
            return bad(what, "castle sweep; castle receipts --failed")
        return bad(f"{what} ({failure.transcript})", f"castle receipts --dismiss {failure.id}, if it is gone")
    if not page.receipts:
        connected = any(one.hooks for one in installed(context.home))
        help = (
            "begin a session of the agent: it is saved from then on" if connected else "castle connect AGENT"
        )
        return unused("no session was saved by a hook yet", help)
    last = page.receipts[0]
    withheld = f", {last.withheld:,} withheld (private)" if last.withheld else ""
    told = f"{last.stored:,} of {last.entries:,} entries stored{withheld}"
    return good(f"the last save, {to_iso(last.at)[:16]}: {told}")


def spool(context: Context) -> Result:
    """What hooks have noted is filed within the hour."""
    from castle.mine.drainer import at_work
    from castle.store.spool import FOLDER, in_the_way, read, waiting, written

    if trouble := in_the_way(context.root):
        return bad(f"{trouble}: what hooks note is not filed", "move that away, then castle sweep")
    if not (context.root / FOLDER).is_dir():
        return unused("no hook has noted anything yet")
    events, _ = read(written(context.root))
    count = waiting(context.root)
    if not count:
        return good("nothing waits")
    drainer = at_work(context.root)
    if drainer is not None:
        return good(f"{count:,} events wait; a drainer is at work on them (process {drainer})")
    age = context.clock() - min((event.at for event in events), default=context.clock())
    if age > LONG_WAIT:
        return bad(f"{count:,} events wait, the first for {age // LONG_WAIT:,} hours", "castle sweep")
    return good(f"{count:,} events wait to be filed")


def disk(context: Context) -> Result:
    """There is room to file more."""
    place = next(part for part in (context.root, *context.root.absolute().parents) if part.exists())
    free = shutil.disk_usage(place).free
    if free < LEAST_FREE:
        return bad(f"only {_megabytes(free)} are free at {place}", "make room; castle status")
    taken = sum(_size(context.root / name) for name in (FILE_NAME, TOKEN_CACHE))
    return good(f"{free / 1e9:,.1f} GB free; ledger and caches take {_megabytes(taken)}")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
