"""``python -m tests.sue.example`` has a script review three requirements, for docs/examples/sue/scripted.

``--local-model`` asks a small real model instead, for docs/examples/sue/local-model; see
``research.local_model``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from castle import Castle, config
from castle.sue.review import Asking
from castle.sue.runs import REPORT, TRACE, Plan, create
from castle.sue.status import Review, standing
from castle.sue.transports import transport
from castle.sue.worker import work
from research.local_model import NAME, local_model
from tests.sue.scripted import DECISION, REQUIREMENTS, REVIEW, Script

PLACE = Path(__file__).parents[2] / "docs" / "examples" / "sue"
KEPT = ("source-001.txt", "source-002.txt", "source-003.txt", "specification.txt", REPORT, TRACE)
LOCAL_TURNS = 3
"""A model of this size takes minutes for each."""
RUN_ID = "5ca1ab1e" * 4
MADE = 1_700_000_000_000_000
"""When all of it happened, in microseconds: how often filing looks at the clock must not change the files."""


def standing_still() -> int:
    """Return always the same time."""
    return MADE


def review(palace: Path, ask: Asking, model: str, place: str = "a script", turns: int = 14) -> Review:
    """Review the three requirements in a new palace, in this process; the same again gives the same files."""
    with Castle(palace, embedder="fake", clock=standing_still) as castle:
        ids = [
            castle.add(text, wing="billing", room="requirements", added_by="docs").id for text in REQUIREMENTS
        ]
        plan = Plan(DECISION, "euthyphro", turns, 300, "openai-compat", model, place, external=False)
        run = create(palace, plan, castle._snapshots(ids), MADE, run_id=RUN_ID)
    work(run, ask, standing_still)
    return standing(run, MADE)


def keep(found: Review, target: Path) -> None:
    """Copy what a reader of the docs may want to see."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in KEPT:
        shutil.copyfile(Path(found.directory) / name, target / name)


def main() -> None:
    """Write an example."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--local-model", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        palace = Path(place) / "palace"
        if not given.local_model:
            keep(review(palace, Script(*REVIEW), "scripted"), PLACE / "scripted")
            return
        with local_model() as url:
            settings = config.load({"palace_path": str(palace), "llm_endpoint": url})
            asked = transport(settings, "openai-compat", NAME, 300)
            keep(review(palace, asked.ask, NAME, "a server on loopback", LOCAL_TURNS), PLACE / "local-model")


if __name__ == "__main__":
    main()
