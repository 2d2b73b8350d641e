"""The edge to the native libraries: whatever they raise becomes one of two errors of ours."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from castle.errors import CastleError
from castle.store.projection import ProjectionBlocked, ProjectionBusy, ProjectionUnavailable

# Numbers of the operating system that speak of the surroundings, not of the content. The last three are those
# of Windows for: access denied, in use, disk full.
_AROUND = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE}
_AROUND |= {errno.ENOMEM, errno.EIO, 5, 32, 112}
_CODE = re.compile(r"os error (\d+)|Os \{ code: (\d+)")
# Where in the sources of a library an error was made, on the machine that it was built on.
_RUST = re.compile(r",?\s*[^\s,]*[/\\][^\s,]*\.rs:\d+(:\d+)?")
_ROOM = 1_000_000


@contextmanager
def native_edge(name: str, place: Path) -> Iterator[None]:
    """Turn errors and panics of Tantivy, LanceDB and Arrow into ProjectionUnavailable or ProjectionBlocked.

    The libraries raise ValueError, RuntimeError and OSError for damaged files and for a full disk alike, with
    the operating system's number in the text, and a Rust panic arrives as a BaseException.
    """
    try:
        yield
    except CastleError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        whole = " ".join(_RUST.sub("", str(error)).split())
        summary = whole[:200] or type(error).__name__
        if "LockBusy" in whole:
            raise ProjectionBusy(f"the {name} at {place} is being written by another process") from error
        code = error.errno if isinstance(error, OSError) else None
        if code is None and (found := _CODE.search(whole)):
            code = int(found[1] or found[2])
        if code in _AROUND:
            raise ProjectionBlocked(f"the {name} at {place} cannot be used now: {summary}") from error
        if is_full(place):
            raise ProjectionBlocked(f"the {name} at {place} cannot be written: the disk is full") from error
        message = f"the {name} at {place} cannot be used ({summary}): run castle repair"
        raise ProjectionUnavailable(message) from error


def is_full(place: Path) -> bool:
    """Whether the disk has hardly any room: a native library that dies of it does not say so."""
    there = next((path for path in (place, *place.parents) if path.exists()), None)
    return there is not None and shutil.disk_usage(there).free < _ROOM
