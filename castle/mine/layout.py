"""How a directory is to be filed: root, project, wing and rooms; and the plan that ``castle init`` shows."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from castle.config import FILE_NAME, ProjectConfig, Room, check_name, load_project, write_project
from castle.config.load import surroundings
from castle.errors import UsageError
from castle.mine.identity import Identity, identify
from castle.mine.read import existing
from castle.mine.rooms import GENERAL, detect_rooms, normalize_wing
from castle.mine.walk import Found, walk
from castle.store.projects import Marks, path_text

# Whole-process measurement on two cores: bytes of ordinary text that are filed and embedded in a second.
BYTES_PER_SECOND = 40_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the text under a path goes; ``only`` is the part of ``root`` that is meant, None for all."""

    root: Path
    only: Path | None
    marks: Marks
    wing: str
    rooms: tuple[Room, ...]
    ignore: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def base(self) -> Path:
        """The directory that was named, or that holds the file that was."""
        if self.only is None:
            return self.root
        return self.only if self.only.is_dir() else self.only.parent


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``castle init`` proposes; ``written`` is true when the project has its castle.yaml already."""

    root: Path
    wing: str
    rooms: tuple[Room, ...]
    files: int
    bytes: int
    seconds: float
    written: bool

    def edited(self, changes: list[str]) -> Plan:
        """Return the plan without the rooms named, and with those named after a ``+``.

        Raises UsageError for a room that is not there, and for dropping ``general``.
        """
        rooms = list(self.rooms)
        for change in changes:
            name = change.removeprefix("+")
            if change.startswith("+"):
                rooms.append(Room(check_name("room", name)))
            elif name == GENERAL or name not in [room.name for room in rooms]:
                raise UsageError(f"room {name} cannot be dropped: it is {GENERAL} or not there")
            else:
                rooms = [room for room in rooms if room.name != name]
        return replace(self, rooms=tuple(rooms))


def layout_of(path: Path, wing: str | None = None) -> Layout:
    """Return how a path is to be filed; ``wing`` overrides what its castle.yaml and its name say.

    A directory or file inside a project that has a castle.yaml is filed as that part of the project.
    Raises UsageError when there is nothing at the path, ConfigError when its castle.yaml is broken.
    """
    root, only = _within_project(*_target(path))
    config = load_project(root)
    identity = identify(root)
    notes = []
    if config is None and only is None:
        notes.append(
            f"no {FILE_NAME} in {root}: everything goes to room {GENERAL}; `castle init {path}` finds rooms"
        )
    chosen = wing or (config.wing if config else None) or normalize_wing(identity.name)
    return Layout(
        root,
        only,
        marks_of(identity),
        check_name("wing", chosen),
        config.rooms if config and config.rooms else (Room(GENERAL),),
        config.ignore if config else (),
        tuple(notes),
    )


def plan(path: Path) -> Plan:
    """Say how a directory would be filed. Raises UsageError when it is none."""
    root, only = _target(path)
    if only is not None:
        raise UsageError(f"{path} is a file: `castle mine {path}` files it, `castle init` wants a directory")
    config = load_project(root)
    identity = identify(root)
    patterns = config.ignore if config else ()
    files = [found for found in walk(root, patterns=patterns) if isinstance(found, Found)]
    size = sum(found.size for found in files)
    return Plan(
        root,
        (config.wing if config else None) or normalize_wing(identity.name),
        config.rooms if config and config.rooms else detect_rooms(found.relative for found in files),
        len(files),
        size,
        size / BYTES_PER_SECOND,
        config is not None,
    )


def write_plan(plan: Plan) -> Path | None:
    """Write the project's castle.yaml, and name it in .gitignore where there is a repository.

    Returns its path, None when the project has one already, which is left as it is.
    """
    if plan.written:
        return None
    write_project(plan.root, ProjectConfig(wing=plan.wing, rooms=plan.rooms))
    if (plan.root / ".git").exists():
        _ignore_in_git(plan.root / ".gitignore")
    return plan.root / FILE_NAME


def marks_of(identity: Identity) -> Marks:
    """Return what a project's directory is recognised by."""
    place = f"\n{identity.subdir}"
    return Marks(
        identity.root,
        path_text(identity.name),
        None if identity.git_common_dir is None else f"{identity.git_common_dir}{place}",
        None if identity.git_root_commit is None else f"{identity.git_root_commit}{place}",
    )


def _target(path: Path) -> tuple[Path, Path | None]:
    real = existing(path)
    return (real, None) if real.is_dir() else (real.parent, real)


def _within_project(root: Path, only: Path | None) -> tuple[Path, Path | None]:
    """Return the project a directory is part of: the nearest with a castle.yaml, within its repository."""
    settings = surroundings().home
    for directory in (root, *root.parents):
        if directory != settings and (directory / FILE_NAME).is_file():
            return directory, only if only is not None or directory == root else root
        if (directory / ".git").exists() or not _own(directory.parent):
            break
    return root, only


def _own(directory: Path) -> bool:
    """Whether a directory belongs to the user; what others put above a project is not its configuration."""
    return not hasattr(os, "getuid") or directory.stat().st_uid == os.getuid()


def _ignore_in_git(path: Path) -> None:
    known = path.read_bytes() if path.exists() else b""
    if FILE_NAME.encode() in (line.strip().lstrip(b"/") for line in known.splitlines()):
        return
    start = b"" if not known or known.endswith(b"\n") else b"\n"
    with path.open("ab") as file:
        file.write(start + FILE_NAME.encode() + b"\n")
