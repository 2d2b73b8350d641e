"""Whether a drainer is at work on a palace, told without touching its lock."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from castle.store.spool import FOLDER

LOCK = "drainer.lock"
"""The lock of the drainer, into which it writes its process id; taking it here would keep a hook from it."""


def at_work(root: Path) -> int | None:
    """Return the process id of the drainer of a palace, None when none runs or it cannot be told."""
    if sys.platform == "win32":  # there nobody can read what is locked
        return None
    try:
        pid = int((root / FOLDER / LOCK).read_bytes()[:20])
        if pid <= 0:
            return None
        os.kill(pid, 0)
    except PermissionError:  # there is such a process, of another user
        return None
    except (OSError, ValueError):
        return None
    return pid
