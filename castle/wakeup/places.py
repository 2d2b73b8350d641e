"""Which directories belong to which wing: those of mined projects, and those that sessions were held in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from sqlalchemy import Connection, func, select

from castle.store.projects import path_text
from castle.store.schema import drawers, project_aliases, sources
from castle.store.session_tables import sessions

LATEST_DRAWERS = 5000
"""Of so many that were filed last it is looked up which projects they are from."""


@dataclass(frozen=True, slots=True)
class Place:
    """A directory, its wing, and when it was last worked in (microseconds)."""

    directory: str
    wing: str
    active_at: int


def wing_of_directory(cx: Connection, cwd: str) -> str | None:
    """Return the wing of the directory, or of the nearest one above it that something was filed from."""
    around = _around(cwd)
    found = {place.directory: place.wing for place in _of_sessions(cx, around)}
    found |= {place.directory: place.wing for place in _of_projects(cx, around)}
    return next((found[directory] for directory in around if directory in found), None)


def active_places(cx: Connection, limit: int, home: str) -> list[Place]:
    """Return the directories that were worked in last, the latest first, each once.

    The user's home and what is above it say nothing about what is worked on and are left out.
    """
    general = set(_around(home))
    found = {
        place.directory: place
        for place in (*_of_sessions(cx, limit=2 * limit), *_lately_filed(cx))
        if _pure(place.directory) is not None and place.directory not in general
    }
    return sorted(found.values(), key=lambda place: (-place.active_at, place.directory))[:limit]


def _of_sessions(cx: Connection, only: Sequence[str] | None = None, limit: int | None = None) -> list[Place]:
    """Return where sessions were held, with the wing of the latest session there."""
    # Of a group SQLite gives the other columns from the row that has the maximum.
    latest = func.max(func.coalesce(sessions.c.ended_at, 0)).label("latest")
    query = (
        select(sessions.c.cwd, sources.c.wing, latest)
        .join(sources, sources.c.id == sessions.c.source)
        .where(sessions.c.cwd != "", sources.c.forgotten_at.is_(None))
        .group_by(sessions.c.cwd)
        .order_by(latest.desc())
    )
    if only is not None:
        query = query.where(sessions.c.cwd.in_(only))
    return [Place(*row) for row in cx.execute(query.limit(limit))]


def _of_projects(cx: Connection, only: Sequence[str]) -> list[Place]:
    query = (
        select(project_aliases.c.value, func.min(sources.c.wing).label("wing"))
        .join(sources, sources.c.project == project_aliases.c.project)
        .where(project_aliases.c.kind == "path", project_aliases.c.value.in_(only))
        .group_by(project_aliases.c.value)
    )
    return [Place(row.value, row.wing, 0) for row in cx.execute(query)]


def _lately_filed(cx: Connection) -> list[Place]:
    """Return the directories of the projects that the latest drawers are from."""
    since = (cx.execute(select(func.max(drawers.c.rid))).scalar() or 0) - LATEST_DRAWERS
    filed = (
        select(sources.c.project, sources.c.wing, func.max(drawers.c.filed_at).label("latest"))
        .join(drawers, drawers.c.source == sources.c.id)
        .where(drawers.c.rid > since, sources.c.project.is_not(None))
        .group_by(sources.c.project)
        .subquery()
    )
    query = select(project_aliases.c.value, filed.c.wing, filed.c.latest).join(
        filed, filed.c.project == project_aliases.c.project
    )
    return [Place(*row) for row in cx.execute(query.where(project_aliases.c.kind == "path"))]


def _around(path: str) -> list[str]:
    """Return a directory and those above it, the nearest first; none for a path that is not absolute."""
    pure = _pure(path)
    return [] if pure is None else [path_text(str(place)) for place in (pure, *pure.parents)]


def _pure(path: str) -> PurePath | None:
    for kind in (PurePosixPath, PureWindowsPath):
        if kind(path).is_absolute():
            return kind(path)
    return None
