"""Sync: filed files that are gone from disk. Absence alone changes nothing; only ``apply`` does."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import select

from castle.errors import NotFoundError, RefusedError
from castle.mine.identity import identify
from castle.mine.layout import marks_of
from castle.mine.report import SyncReport
from castle.store.filing import end_source
from castle.store.palace import Palace
from castle.store.projects import Marks, Project, find_project
from castle.store.schema import sources


def sync(palace: Palace, path: Path, apply: bool, actor: str) -> SyncReport:
    """Report the project's files that are gone; ``apply`` gives each an empty revision.

    Raises NotFoundError for a directory that was never mined, and RefusedError when the directory is missing
    or none of its files is there: then a disk is more likely to be away than the project.
    """
    root = path.expanduser().resolve()
    marks = marks_of(identify(root)) if root.is_dir() else Marks(root, root.name)
    with palace.ledger.read() as cx:
        project = find_project(cx, marks)
        if project is None:
            raise NotFoundError(f"{path} was never mined: `castle mine {path}` files it")
        inside = f"{project.prefix}/" if project.prefix else ""
        query = select(sources.c.id, sources.c.key, sources.c.title).where(
            sources.c.project == project.id, sources.c.revision > 0, sources.c.gone_at.is_(None)
        )
        rows = [row for row in cx.execute(query) if row.title.startswith(inside)]
    if not root.is_dir():
        raise RefusedError(f"{root} is missing; nothing was changed: is its disk mounted?")
    gone = [row for row in rows if _is_gone(root, row.key, project)]
    if rows and len(gone) == len(rows):
        raise RefusedError(
            f"none of the {len(rows)} filed files is in {root}; nothing was changed: is its disk mounted? "
            "`castle forget --source FILE` puts single files out of sight"
        )
    superseded = 0
    if apply:
        for row in gone:
            with palace.ledger.write() as cx:
                if _is_gone(root, row.key, project):
                    superseded += end_source(cx, palace.ledger, row.id, actor)
    return SyncReport(len(rows), tuple(row.title for row in gone), apply, superseded)


def _is_gone(root: Path, key: str, project: Project) -> bool:
    """Whether the file is certainly not there; one that cannot be looked at is not gone."""
    kind, _, place = key.split(":", 2)
    raw = bytes.fromhex(place) if kind == "file-raw" else os.fsencode(place)
    prefix = os.fsencode(project.prefix) + b"/" if project.prefix else b""
    try:
        (root / os.fsdecode(raw.removeprefix(prefix))).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
