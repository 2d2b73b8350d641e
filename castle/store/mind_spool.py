"""Noting a transcript in the spool of a palace, as the hooks of agents do, for a server that was told of it.

The line and the way it is written are those of ``castle.hooks.spool``, which servers may not import.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from castle.errors import PalaceError
from castle.store.spool import FILE, FOLDER

_TRIES = 50


def note_transcript(root: Path, event: Mapping[str, object]) -> None:
    """Add one line to the spool and see it on disk; raises PalaceError.

    A line that went into a file which a drainer has taken away meanwhile is written again; it may come twice.
    """
    path = root / FOLDER / FILE
    line = json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        for _ in range(_TRIES):
            if _written(path, line):
                return
    except OSError as error:
        raise PalaceError(f"{path} cannot be written: {error.strerror or error}") from error
    raise PalaceError(f"{path} is being replaced all the time")


def _written(path: Path, line: bytes) -> bool:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"):
        flags |= getattr(os, name, 0)
    with os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size:
            file.seek(size - 1)
            line = line if file.read(1) == b"\n" else b"\n" + line
        data = line
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())
        try:
            return os.path.samestat(os.fstat(file.fileno()), path.stat())
        except FileNotFoundError:
            return False
