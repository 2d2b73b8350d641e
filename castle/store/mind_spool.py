"""The spool of a palace: noting a transcript as hooks do, and taking what hooks noted of calls of tools.

The line and the way it is written are those of ``castle.hooks.spool``, which servers may not import.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from castle.errors import PalaceError
from castle.store.spool import FILE, FOLDER

SIGNALS = "signals.jsonl"
_TAKEN = "signals-"
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


def take_signals(root: Path) -> tuple[list[Path], list[dict[str, Any]]]:
    """Take what hooks noted of calls of tools out of their reach; return the files and what is in them.

    The files are to be removed once what they tell is kept; those that a crash has left are taken again.
    """
    folder = root / FOLDER
    for name in (f"{SIGNALS}.1", SIGNALS):
        with suppress(OSError):
            (folder / name).rename(folder / f"{_TAKEN}{secrets.token_hex(8)}.jsonl")
    files = sorted(folder.glob(f"{_TAKEN}*.jsonl"))
    found = []
    for file in files:
        with suppress(OSError):
            for line in file.read_bytes().splitlines():
                with suppress(ValueError, RecursionError):
                    if isinstance(signal := json.loads(line), dict):
                        found.append(signal)
    return files, found


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
