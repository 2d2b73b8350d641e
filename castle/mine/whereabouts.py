"""Which wing a session belongs to: that of the project it was held in."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Connection, select

from castle.config import check_name
from castle.mine.identity import identify
from castle.mine.layout import marks_of
from castle.mine.rooms import normalize_wing
from castle.store.places import present_name
from castle.store.projects import find_project
from castle.store.schema import sources

# Some tools name a project by the hash of its path, which says nothing to anybody.
_HASH = re.compile("[0-9a-f]{32,}")


class Whereabouts:
    """Answers for one run; ``wing`` is what the user asked for, ``fallback`` for sessions without a place."""

    def __init__(self, wing: str | None, fallback: str) -> None:
        self._wing = check_name("wing", wing) if wing is not None else None
        self._fallback = fallback
        self._by_directory: dict[str, str] = {}

    def wing_of(self, cx: Connection, key: str, cwd: str, project: str) -> str:
        """Return the wing of a session; one that was filed before stays where it is unless the user asks."""
        if self._wing is not None:
            return present_name(cx, self._wing)
        known: str | None = cx.execute(select(sources.c.wing).where(sources.c.key == key)).scalar()
        if known:
            return known
        if cwd:
            if cwd not in self._by_directory:
                self._by_directory[cwd] = self._wing_of_directory(cx, cwd)
            return present_name(cx, self._by_directory[cwd])
        named = project and not _HASH.fullmatch(project)
        return present_name(cx, normalize_wing(project) if named else self._fallback)

    def _wing_of_directory(self, cx: Connection, cwd: str) -> str:
        """Return the wing of the repository, mined project or directory that a session worked in."""
        path = Path(cwd)
        if path.is_absolute() and path.is_dir():
            identity = identify(path)
            top = path
            for _ in Path(identity.subdir).parts if identity.subdir else ():
                top = top.parent
            found = find_project(cx, marks_of(identify(top) if top != path else identity))
            if found is not None:
                query = select(sources.c.wing).where(sources.c.project == found.id).limit(1)
                wing: str | None = cx.execute(query).scalar()
                if wing:
                    return wing
            return identity.wing
        name = re.split(r"[\\/]", cwd.rstrip("\\/"))[-1]
        return normalize_wing(name) if name else self._fallback
