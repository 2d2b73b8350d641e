"""A palace with three requirements, each in a drawer of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from castle import Castle
from castle.sue.runs import Plan, create
from castle.sue.specification import Snapshot
from tests.conftest import TurnedClock
from tests.sue.scripted import DECISION, REQUIREMENTS


@dataclass(frozen=True)
class Required:
    """An open palace and the ids of the drawers that hold the requirements."""

    castle: Castle
    ids: Sequence[str]

    def run(self, max_turns: int = 14, lens: str = "euthyphro") -> Path:
        """Make a run without starting its worker."""
        plan = Plan(DECISION, lens, max_turns, 5, "ollama", "scripted", "http://127.0.0.1:11434", False)
        return create(self.castle.root, plan, self.snapshots(), self.castle._clock())

    def snapshots(self) -> list[Snapshot]:
        return self.castle._snapshots(self.ids)


@pytest.fixture
def required(tmp_path: Path, clock: TurnedClock) -> Iterator[Required]:
    with Castle(tmp_path / "palace", embedder="fake", clock=clock) as castle:
        ids = [castle.add(text, wing="billing", room="requirements").id for text in REQUIREMENTS]
        yield Required(castle, ids)
