from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from castle import Castle
from castle.doctor import Check, Context
from castle.doctor.line import Result
from tests.conftest import TurnedClock
from tests.mine.conftest import FILES, write

Ask = Callable[[Castle, Callable[[Context], Result]], Result]


@pytest.fixture
def castle(tmp_path: Path, clock: TurnedClock) -> Castle:
    """A palace with a few files, all indexes up to date."""
    project = tmp_path / "garden"
    write(project, FILES)
    service = Castle(tmp_path / "palace", embedder="fake", clock=clock)
    service.mine_project(project)
    return service


def looked(castle: Castle, check: Callable[[Context], Result], **more: object) -> Result:
    """What one check returns for a palace."""
    context = Context(castle.settings, castle._palace, clock=castle._clock, **more)  # type: ignore[arg-type]
    return check(context)


def named(name: str, run: Callable[[Context], Result], seconds: float = 5.0) -> Check:
    return Check(name, run, seconds)
