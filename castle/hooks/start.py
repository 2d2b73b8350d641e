"""Starting the drainer: one for each palace, detached, and without waiting for it.

Whoever starts it has taken its lock before, and the drainer inherits the lock with the open file: there is
no moment at which two could start, however many hooks run at once. The kernel gives the lock back when the
drainer ends, however it ends.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

from castle.hooks.spool import FOLDER

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = "drainer.lock"
LOG = "drain.log"
MAX_LOG = 1 << 18
MODULE = "castle.hooks.drain"


def start(root: str) -> bool:
    """Start the drainer of a palace unless it runs already; tell whether it was started. Raises OSError."""
    folder = os.path.join(root, FOLDER)  # noqa: PTH118  (pathlib costs a hook several milliseconds)
    held = take(root)
    if held is None:
        return False
    try:
        log = _bounded(os.path.join(folder, LOG))  # noqa: PTH118
        if sys.platform == "win32":  # a lock of this kind belongs to a process: the drainer takes its own
            os.close(held)
            held = None
            _launch(["--palace", root], log, None)
        else:
            _launch(["--palace", root, "--lock", str(held)], log, held)
    finally:
        if held is not None:
            os.close(held)
    return True


def finish_restore(root: str) -> None:
    """Have a restore that was killed finished, and the spool drained after it. Raises OSError."""
    _launch(["--palace", root], os.devnull, None)


def compile_settings() -> None:
    """Have the settings compiled, without waiting for it. Raises OSError."""
    _launch(["--compile"], os.devnull, None)


def take(root: str) -> int | None:
    """Take the lock of the palace's drainer; return the open file that holds it, None when another has it."""
    path = os.path.join(root, FOLDER, LOCK)  # noqa: PTH118
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _bounded(log: str) -> str:
    """Let a log that has grown too long begin again, one earlier part is kept; return where to write.

    Anything but a file is left alone: whoever opens a pipe waits until somebody reads.
    """
    try:
        status = os.lstat(log)
        if not stat.S_ISREG(status.st_mode):
            return os.devnull
        if status.st_size > MAX_LOG:
            os.replace(log, f"{log}.1")  # noqa: PTH105
    except OSError:
        pass
    return log


def _launch(arguments: Sequence[str], log: str, held: int | None) -> None:
    # Without -P, a directory called castle in somebody's project would be imported in place of this one.
    command = [sys.executable, "-P", "-m", MODULE, *arguments]
    spawn = getattr(os, "posix_spawn", None)
    if spawn is None:
        _launch_slowly(command, log, held)
        return
    if held is not None:
        os.set_inheritable(held, True)
    writing = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, log, writing, 0o600),
    ]
    try:
        spawn(command[0], command, os.environ, file_actions=actions, setsid=True)
    except NotImplementedError:  # a C library that cannot begin a session of its own
        _launch_slowly(command, log, held)


def _launch_slowly(command: Sequence[str], log: str, held: int | None) -> None:
    """Start a process where the system has no call that does it at once; costs some 10 ms more."""
    import subprocess

    flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
    with open(log, "ab") as out:  # noqa: PTH123
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=out,
            creationflags=flags,
            start_new_session=True,
            pass_fds=() if held is None else (held,),
        )
