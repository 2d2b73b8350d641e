"""The settings of a hook, read from ``hooks.json``, into which ``castle.config.compiled`` writes them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping

FILE = "hooks.json"
SOURCE = "castle.yaml"
_MAX_BYTES = 1 << 16


class Settings:
    """What a hook has to know.

    ``current`` says that what was compiled is what stands in ``castle.yaml`` now, or that there is none;
    ``trouble`` why the defaults are in force in its place.
    """

    __slots__ = ("current", "palace", "recall", "save_interval", "trouble", "wake_up")

    def __init__(self, palace: str, compiled: Mapping[str, object], current: bool, trouble: str) -> None:
        interval = compiled.get("save_interval")
        self.palace = palace
        self.wake_up = compiled.get("wake_up") is not False
        self.recall = compiled.get("recall") is True
        self.save_interval = interval if isinstance(interval, int) and interval > 0 else 1
        self.current = current
        self.trouble = trouble


def load(given: str | None, env: Mapping[str, str]) -> Settings:
    """Read the settings; what is missing or broken has its default, and ``trouble`` says so.

    The palace is the one given, the one of CASTLE_PALACE_PATH, the one compiled, or ``palace`` in Castle's
    home.
    """
    home = _absolute(env.get("CASTLE_HOME") or "~/.castle")
    written = _written_at(os.path.join(home, SOURCE))  # noqa: PTH118  (pathlib costs several milliseconds)
    compiled, trouble = _compiled(os.path.join(home, FILE))  # noqa: PTH118
    if not compiled and not trouble and written:
        trouble = f"{SOURCE} in {home} is not compiled yet: `castle config set KEY VALUE` does it"
    named = compiled.get("palace")
    path = given or env.get("CASTLE_PALACE_PATH") or env.get("MEMPAL_PALACE_PATH")
    path = path or (named if isinstance(named, str) and named else os.path.join(home, "palace"))  # noqa: PTH118
    current = not trouble and (not compiled or compiled.get("mtime_ns") == written)
    return Settings(_absolute(path), compiled, current, trouble)


def contents(path: str, most: int) -> bytes:
    """Read at most so many bytes of a regular file. Raises OSError, also for a pipe: nobody waits for one."""
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("no regular file")
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111


def _written_at(path: str) -> int:
    """Return when a file was written, in nanoseconds; 0 for one that is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def _compiled(path: str) -> tuple[Mapping[str, object], str]:
    """Return what was compiled, and why it cannot be used."""
    try:
        loaded = json.loads(contents(path, _MAX_BYTES))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"{path} cannot be used ({error}): the defaults are in force"
    if not isinstance(loaded, dict) or loaded.get("v") != 1:
        return {}, f"{path} cannot be used (not of this version): the defaults are in force"
    return loaded, ""
