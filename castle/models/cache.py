"""Where the built model is kept, so that it is built once per user and not once per process.

``<cache>/models/<name>.onnx`` with its SHA-256 in ``<name>.onnx.sha256`` beside it. Both are written to
temporary names and renamed; one process builds while others wait at a kernel lock, which a dying process
gives back. A directory that cannot be written costs the time to build, nothing else.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_log = logging.getLogger(__name__)


def cache_root() -> Path:
    """Return Castle's cache directory: CASTLE_CACHE_DIR, or the system's place for it. It need not exist."""
    named = os.environ.get("CASTLE_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("cognitive-castle", appauthor=False)


def cached_model(name: str, build: Callable[[], bytes]) -> bytes:
    """Return the model kept under this name, or build and keep it.

    A file that does not have its recorded SHA-256 is built again, with a warning in the log.
    """
    path = cache_root() / "models" / f"{name}.onnx"
    model = _read(path)
    if model is not None:
        return model
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path.with_suffix(".lock")):
            model = _read(path)  # another process may have built it meanwhile
            if model is None:
                if path.exists():
                    _log.warning("%s is damaged and is built again", path)
                model = build()
                _write(path, model)
            return model
    except OSError as error:
        _log.warning("the model cannot be kept in %s (%s): it is built at every start", path.parent, error)
        return build() if model is None else model


def _read(path: Path) -> bytes | None:
    """Return the model if it is there and whole."""
    try:
        wanted = _checksum(path).read_text(encoding="ascii").strip()
        model = path.read_bytes()
    except (OSError, UnicodeDecodeError):
        return None
    return model if hashlib.sha256(model).hexdigest() == wanted else None


def _write(path: Path, model: bytes) -> None:
    """Put the model and then its checksum in place; a reader between the two builds or waits."""
    _replace(path, model)
    _replace(_checksum(path), hashlib.sha256(model).hexdigest().encode("ascii"))


def _checksum(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _replace(path: Path, data: bytes) -> None:
    """Write a file under another name, flush it to the disk, and rename it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, waiting for it. The file stays: removing it would split the lock."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
