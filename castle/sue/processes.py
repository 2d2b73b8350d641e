"""Processes by their number and the time they began: a number alone is given to another one day."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

MODULE = "castle.sue.worker"


def began(pid: int) -> str:
    """Return when a process began, in the kernel's own count; "" where that cannot be told.

    A process that has ended and waits for its parent counts as gone.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[:1] in (["Z"], ["X"]) else fields[19]


def runs(pid: int, since: str) -> bool | None:
    """Say whether the process that began at ``since`` still runs; None where that cannot be told."""
    if since and Path("/proc/self/stat").exists():
        return began(pid) == since
    if sys.platform == "win32":  # where a signal of number 0 would end it
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return None


def start(run: Path) -> int:
    """Start the worker of a run and go on without it; return its pid. Raises OSError.

    It has a session of its own, so that closing the terminal does not end it, and its arguments hold nothing
    but the place of the run.
    """
    from castle.sue.runs import LOG

    flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
    descriptor = os.open(run / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        # Without -P, a directory called castle in somebody's project would be imported in place of this one.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(run)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=descriptor,
            cwd=run,
            creationflags=flags,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    # A server that lives long would keep what has ended in the list of processes.
    threading.Thread(target=process.wait, name="castle-sue", daemon=True).start()
    return process.pid
