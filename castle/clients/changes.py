"""What is to become of a client's files, worked out before the first of them is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from castle.clients.files import UserFile, forget_backup, forget_mark, remove, write

Outcome = Literal["added", "replaced", "unchanged", "removed", "absent", "left", "kept"]
"""``left`` is an entry of somebody else's, ``kept`` one of Castle's that its user has added to."""


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one file: ``what`` is "mcp" or "hooks", ``backup`` the copy of the file before, if any.

    ``note`` says what the user has to know or do, "" when there is nothing.
    """

    what: str
    path: Path
    outcome: Outcome
    backup: Path | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A change that can be made: nothing is written before ``done``."""

    change: Change
    apply: Callable[[], None] | None = None

    def done(self) -> Change:
        """Make the change and return it."""
        if self.apply is not None:
            self.apply()
        return self.change


def writing(file: UserFile, text: str, what: str, outcome: Outcome, *, own: bool, note: str = "") -> Step:
    """Return the step that writes a text; ``own`` says that the file holds an entry of Castle's now.

    The copy beside the file is that from before the first entry, so it is not made again for a later one.
    """
    keep = file.data is not None and not (own and (file.made or file.before is not None))
    backup = file.backup if keep or file.before is not None else None
    return Step(Change(what, file.path, outcome, backup, note), lambda: write(file, text, keep=keep))


def blank(text: str) -> bool:
    """Say whether a settings file says nothing at all."""
    return "".join(text.split()) in ("", "{}")


def remainder(file: UserFile, text: str) -> str | None:
    """Return what a file is to hold without entries, None when Castle made it for them and it is to go."""
    if not blank(text):
        return text
    if file.before is not None and not file.before.strip():
        return file.before
    return None if file.made else text


def restoring(
    file: UserFile, text: str | None, what: str, *, below: Path | None, forced: bool = False
) -> Step:
    """Return the step that writes a text without entries, None to delete a file that Castle made.

    The copy from before goes when the file is the same again. ``forced``: something of the user's goes with
    the entry, so the file as it is now is kept as the copy.
    """
    same = text is not None and text == file.before
    stays = forced or (text is not None and file.before is not None and not same)
    note = "Castle had made this file, and nothing else was in it: it is deleted" if text is None else ""

    def apply() -> None:
        if text is None:
            remove(file, below=below, keep=forced)
            return
        write(file, text, keep=forced)
        forget_mark(file)
        if not stays:
            forget_backup(file)

    return Step(Change(what, file.path, "removed", file.backup if stays else None, note), apply)
