"""Which sessions are kept out of every automatic capture.

That is said in the project, the directory in which a session ran: by a ``.castleignore`` with a pattern for
everything, or by ``capture: false`` in its ``castle.yaml``. It holds for the directories below, as far as the
repository reaches.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from castle.config import FILE_NAME, load_project
from castle.errors import ConfigError
from castle.mine.formats import SessionInfo, Unread, open_container
from castle.mine.ignore import CASTLEIGNORE
from castle.mine.read import open_regular
from castle.records import Skipped
from castle.store.projects import can_name

EVERYTHING = frozenset({b"*", b"/", b"**", b"/*", b"/**", b".", b"./"})
"""Patterns that leave nothing of a project."""

_MAX_BYTES = 1 << 20
_EVENTS = 200


def opted_out(directories: Iterable[str], home: Path) -> str:
    """Return where one of these directories says that it is not to be captured, "" when none does.

    ``home`` is Castle's own directory, whose ``castle.yaml`` is no project's. Raises ConfigError when it
    cannot be told, because a file that may say so cannot be read.
    """
    for directory in dict.fromkeys(directories):
        if Path(directory).is_absolute() and can_name(directory):
            reason = _reason(Path(directory), home)
            if reason:
                return reason
    return ""


def session_directories(transcript: Path) -> tuple[str, ...]:
    """Return the directories that the beginning of a transcript names; none when it cannot be read."""
    found: list[str] = []
    with open_container(transcript) as entries:
        for entry in entries:
            if isinstance(entry, Unread):
                continue
            events = islice(entry.read(), _EVENTS)
            found += [event.cwd for event in events if isinstance(event, SessionInfo) and event.cwd]
    return tuple(dict.fromkeys(found))


def _reason(directory: Path, home: Path) -> str:
    """Look in the directory and in those around it, up to the top of its repository; the nearest counts."""
    for place in (directory, *directory.parents):
        decided = _ignored(place / os.fsdecode(CASTLEIGNORE))
        if decided is not None:
            return decided
        if place != home:
            project = load_project(place)
            if project is not None and not project.capture:
                return f"{place / FILE_NAME}: capture is false"
        if os.path.lexists(place / ".git"):
            break
    return ""


def _ignored(file: Path) -> str | None:
    """Return which line excludes everything, "" when one takes that back, None when none speaks of it."""
    if not os.path.lexists(file):
        return None
    opened = open_regular(file)
    if isinstance(opened, Skipped):
        raise ConfigError(f"{file} may keep this session out and cannot be read: {opened.reason}")
    decided = None
    with opened:
        try:
            data = opened.read(_MAX_BYTES) or b""
        except OSError as error:
            raise ConfigError(f"{file} may keep this session out and cannot be read: {error}") from error
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        pattern = line.strip()
        if pattern in EVERYTHING:
            decided = f"{file}:{number}"
        elif pattern[:1] == b"!" and pattern[1:] in EVERYTHING:
            decided = ""
    return decided
