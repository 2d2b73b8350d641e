"""L0: who the user is, in the user's own words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from castle.text.served import mask_secrets

FILE_NAME = "identity.txt"
MOST_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Identity:
    """What the file says, secrets masked; ``text`` is empty where it says nothing.

    ``reason`` says what is wrong with it, "" when nothing is.
    """

    path: Path
    text: str
    reason: str = ""

    @property
    def hint(self) -> str:
        """What is shown when there is no identity: how to write one."""
        first = "No identity is written down yet. Say in a few lines who you are and what you work on, in"
        return f"{first}\n{self.path}; every wake-up begins with it."


def read_identity(home: Path, salt: bytes) -> Identity:
    """Read ``identity.txt`` in Castle's directory; one that cannot be read is none, with the reason."""
    path = home / FILE_NAME
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return Identity(path, "")
    except OSError as error:
        return Identity(path, "", f"{path} cannot be read: {error.strerror}")
    reason = ""
    if len(data) > MOST_BYTES:
        data, reason = data[:MOST_BYTES], f"{path} is longer than {MOST_BYTES:,} bytes"
    text = data.decode("utf-8-sig", "replace")
    if "\ufffd" in text and not reason:
        reason = f"{path} is not UTF-8 throughout"
    return Identity(path, mask_secrets(text, salt).strip("\r\n"), reason)


def state_of(home: Path) -> str:
    """Return what changes whenever the file does: its time and size, "" where it is not there."""
    try:
        status = (home / FILE_NAME).stat()
    except OSError:
        return ""
    return f"{status.st_mtime_ns}:{status.st_size}"
