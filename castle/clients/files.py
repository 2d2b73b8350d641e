"""Files that belong to other programs and their users: read, replaced whole, kept once as they were."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from castle.config.files import exclusive, replace
from castle.errors import ConfigError, RefusedError

BACKUP = ".castle-backup"
"""What is added to a file's name for the copy of it from before Castle's first entry."""

MADE = ".castle-made"
"""What is added to a file's name for the mark that says that Castle made it; without the mark it stays."""

_BOM = b"\xef\xbb\xbf"
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file as it was read. ``data`` is None when there is none; ``text`` goes without a byte order mark."""

    path: Path
    data: bytes | None
    text: str
    mode: int = _MODE

    @property
    def backup(self) -> Path:
        """Where its copy stands, beside the name that the user knows it by."""
        return self.path.with_name(self.path.name + BACKUP)

    @property
    def mark(self) -> Path:
        """Where the mark stands that says that Castle made the file."""
        return self.path.with_name(self.path.name + MADE)

    @property
    def made(self) -> bool:
        """Whether Castle made the file: only then it may be deleted."""
        return self.mark.is_file()

    @property
    def before(self) -> str | None:
        """What the copy says; None when there is none, or none that can be read."""
        try:
            return _text(self.backup.read_bytes(), self.backup)
        except (OSError, ConfigError):
            return None


def read(path: Path) -> UserFile:
    """Read a file; only one that is not there counts as absent. Raises ConfigError for any other trouble."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: not a regular file; nothing was changed")
        data = path.read_bytes()
    except FileNotFoundError:
        return UserFile(path, None, "")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    return UserFile(path, data, _text(data, path), stat.S_IMODE(status.st_mode))


def _text(data: bytes, path: Path) -> str:
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise ConfigError(f"{path}:{line}:{column}: not UTF-8; nothing was changed") from None


def write(file: UserFile, text: str, *, keep: bool) -> None:
    """Put a text in the place of the file, durably and at once; with ``keep`` what it replaces is kept.

    A file that was not there gets the mark that Castle made it. A link stays a link, and permissions and a
    byte order mark stay. Raises RefusedError when the file has
    changed since it was read, ConfigError when it cannot be written.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(
            f"{file.path}: the path of the palace or of castle-mcp is not valid Unicode"
        ) from None
    if file.data is not None and file.data.startswith(_BOM):
        data = _BOM + data
    target = Path(os.path.realpath(file.path))
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{target.parent}: cannot be made: {error.strerror}") from error
    with exclusive(target.parent):
        _unchanged(file)
        if file.data is None:
            _put(file.mark, b"", _MODE)
        elif keep:
            _put(file.backup, file.data, file.mode)
            forget_mark(file)
        _put(target, data, file.mode)


def remove(file: UserFile, *, below: Path | None, keep: bool = False) -> None:
    """Delete a file that Castle made, its copy, and the directories below a given one that are empty then.

    With ``keep`` the file as it is stays as its copy.
    """
    target = Path(os.path.realpath(file.path))
    try:
        with exclusive(target.parent):
            _unchanged(file)
            if keep and file.data is not None:
                _put(file.backup, file.data, file.mode)
            else:
                forget_backup(file)
            target.unlink()
            forget_mark(file)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be removed: {error.strerror}") from error
    for directory in file.path.parents:
        if below is None or below not in directory.parents or any(directory.iterdir()):
            break
        directory.rmdir()


def forget_backup(file: UserFile) -> None:
    """Delete the copy of a file that holds nothing of Castle's any more."""
    file.backup.unlink(missing_ok=True)


def forget_mark(file: UserFile) -> None:
    """Delete the mark of a file that is its user's from now on."""
    file.mark.unlink(missing_ok=True)


def _unchanged(file: UserFile) -> None:
    if read(file.path).data != file.data:
        raise RefusedError(f"{file.path}: another program has just changed it; run the command again")


def _put(path: Path, data: bytes, mode: int) -> None:
    replace(path, data, mode)
    if stat.S_IMODE(path.stat().st_mode) != mode:  # the umask took something from it
        path.chmod(mode)
