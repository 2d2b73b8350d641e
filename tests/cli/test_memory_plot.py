from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from castle.mind import plots
from tests.cli.conftest import Run


def test_it_says_what_is_missing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("memory", "save", "We went to the sea").code == 0
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    missing = run("memory", "plot", str(tmp_path / "plots"))
    assert missing.code == 1 and missing.out == ""
    assert missing.err.splitlines() == [f"castle: {plots.WITHOUT}"]


def test_it_lists_its_files(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("memory", "save", "We went to the sea").code == 0
    monkeypatch.setattr(plots, "plot", lambda palace, directory: [directory / "attention.png"])
    wanted = str(tmp_path / "plots" / "attention.png")
    assert run("memory", "plot", str(tmp_path / "plots")).out == f"{wanted}\n"
    assert json.loads(run("memory", "plot", str(tmp_path / "plots"), "--json").out) == [wanted]
