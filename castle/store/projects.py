"""Which project a directory belongs to, so that a file's key is its place in its project.

A project is known by its directory, by the git directory its worktrees share, and, when its directory has
gone, by its repository's first commit.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, insert, select

from castle.store.schema import project_aliases, projects


@dataclass(frozen=True, slots=True)
class Marks:
    """What a directory is recognised by; the two git marks are None outside a repository."""

    root: Path
    name: str
    git_dir: str | None = None
    first_commit: str | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """A known project; ``prefix`` is where the directory stands in it, "" for its top."""

    id: str
    prefix: str


def path_text(path: Path | str) -> str:
    """Write a path as valid text, undecodable bytes escaped, and surrogates that stand for none."""
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError:
        name = str(path).encode("utf-8", "surrogatepass")
    return name.decode("utf-8", "backslashreplace")


def can_name(path: Path | str) -> bool:
    """Whether a file can have this path at all: JSON may hold surrogates that stand for no byte, and NUL."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def find_project(cx: Connection, marks: Marks) -> Project | None:
    """Return the project of a directory, None for one that was never mined."""
    known = _by_alias(cx, "path", path_text(marks.root))
    if known is not None:
        return Project(known, "")
    for parent in marks.root.parents:
        known = _by_alias(cx, "path", path_text(parent))
        if known is not None:
            return Project(known, path_text(marks.root.relative_to(parent).as_posix()))
    if marks.git_dir is not None and (known := _by_alias(cx, "git", marks.git_dir)) is not None:
        return Project(known, "")
    if marks.first_commit is not None:
        known = _by_alias(cx, "commit", marks.first_commit)
        if known is not None and not any(Path(path).exists() for path in _paths(cx, known)):
            return Project(known, "")
    return None


def register(cx: Connection, marks: Marks, now: int) -> Project:
    """Return the project of a directory, recording it and whatever marks are new."""
    project = find_project(cx, marks)
    if project is None:
        digest = hashlib.sha256(b"project\0" + os.fsencode(marks.root)).hexdigest()[:16]
        known = cx.execute(select(projects.c.id).where(projects.c.id == digest)).first()
        project = Project(digest, "")
        if known is None:
            cx.execute(insert(projects).values(id=digest, name=marks.name, created_at=now))
    if not project.prefix:
        for kind, value in _values(marks):
            statement = insert(project_aliases).prefix_with("OR IGNORE")
            cx.execute(statement.values(kind=kind, value=value, project=project.id))
    return project


def _values(marks: Marks) -> Iterator[tuple[str, str]]:
    yield "path", path_text(marks.root)
    if marks.git_dir is not None:
        yield "git", marks.git_dir
    if marks.first_commit is not None:
        yield "commit", marks.first_commit


def _by_alias(cx: Connection, kind: str, value: str) -> str | None:
    found: str | None = cx.execute(
        select(project_aliases.c.project).where(
            project_aliases.c.kind == kind, project_aliases.c.value == value
        )
    ).scalar()
    return found


def _paths(cx: Connection, project: str) -> list[str]:
    query = select(project_aliases.c.value).where(
        project_aliases.c.kind == "path", project_aliases.c.project == project
    )
    return [value for (value,) in cx.execute(query)]
