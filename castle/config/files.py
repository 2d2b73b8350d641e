"""Writing small files so that a reader sees the old content or the new, never a part."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterator
from glob import escape
from pathlib import Path

from castle.errors import ConfigError

LEFT_SECONDS = 3600
"""After what time a draft is one that a killed process has left."""

if sys.platform != "win32":
    import fcntl


def present(path: Path) -> bool:
    """Say whether there is anything at the path, be it a dangling link; ConfigError when that is unknown."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    return True


def replace(path: Path, data: bytes, mode: int) -> None:
    """Put ``data`` in the place of the file, durably, with the given permissions."""
    with _beside(path, data, mode) as temporary:
        temporary.replace(path)
    _sync_directory(path.parent)


def create(path: Path, data: bytes, mode: int) -> bool:
    """Write a file that must not exist yet; False, and nothing is changed, when it does."""
    with _beside(path, data, mode) as temporary:
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links: the check and the rename are two steps there
            if present(path):
                return False
            temporary.replace(path)
    _sync_directory(path.parent)
    return True


@contextlib.contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Keep other writers of the same directory out; without effect on Windows."""
    if sys.platform == "win32":
        yield
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"{directory}: cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _beside(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    _remove_left(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _remove_left(path: Path) -> None:
    with contextlib.suppress(OSError):
        for draft in path.parent.glob(f".{escape(path.name)}.{'[0-9a-f]' * 12}.tmp"):
            if time.time() - draft.lstat().st_mtime > LEFT_SECONDS:
                draft.unlink()


def _sync_directory(directory: Path) -> None:
    if sys.platform != "win32":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
