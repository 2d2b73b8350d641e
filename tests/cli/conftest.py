"""Running the command line in this process, with the fake embedder, on a small project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from castle.cli import main
from tests.mine.conftest import FILES, write


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("CASTLE_EMBEDDER_MODEL", "fake")

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        printed = capsys.readouterr()
        return Outcome(int(leaving.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture
def project(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = own_home / "projects" / "myapp"
    root.mkdir(parents=True)
    write(root, FILES)
    monkeypatch.chdir(own_home)
    return root
