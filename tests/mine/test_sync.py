from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import NotFoundError, RefusedError


def test_what_is_gone_is_reported_and_superseded_only_when_asked(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    (project / "notes.txt").unlink()
    report = castle.sync(project)
    assert (report.checked, report.gone, report.applied) == (4, ("notes.txt",), False)
    assert castle.search("harbour").hits[0].state == "current"
    applied = castle.sync(project, apply=True)
    assert (applied.gone, applied.drawers_superseded) == (("notes.txt",), 1)
    assert castle.search("harbour", history=True).hits[0].state == "superseded"
    assert castle.sync(project).gone == ()
    assert {finding.status for finding in castle.verify()} == {"ok"}


def test_a_file_that_comes_back_is_current_again(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    kept = (project / "notes.txt").rename(project.parent / "kept.txt")
    castle.sync(project, apply=True)
    kept.rename(project / "notes.txt")
    report = castle.mine_project(project)
    assert (report.changed, report.drawers_new) == (1, 0)
    assert castle.search("harbour").hits[0].state == "current"


def test_a_missing_or_empty_root_is_refused(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    shutil.rmtree(project)
    with pytest.raises(RefusedError, match="mounted"):
        castle.sync(project, apply=True)
    project.mkdir()
    with pytest.raises(RefusedError, match="none of the 4"):
        castle.sync(project, apply=True)
    assert castle.status().superseded == 0


def test_a_directory_that_was_never_mined_is_named(castle: Castle, project: Path, tmp_path: Path) -> None:
    castle.mine_project(project)
    with pytest.raises(NotFoundError, match="never mined"):
        castle.sync(tmp_path / "other")
