"""What the signs of whole sessions are worth: their weights chosen by cross-validation over two collections.

    python -m benchmarks.tuning.sessions --longmemeval DIR --locomo FILE --work DIR [--out FILE]

The palaces under ``--work`` are those that ``benchmarks.retrieval`` has filed there. Each question is asked
once through ``Castle.search`` by session, and the signs of its sessions are kept; every set of weights is
tried on these. For each fifth of the cases (a conversation of LoCoMo is a case) the set is chosen that has
the best NDCG@10 on the other four fifths, the mean of both collections, and is measured on this fifth. So
nothing is measured on what it was chosen by. Beside it stand the weights that are shipped, and none at all.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval.asking import NO_LLM
from benchmarks.retrieval.cases import Collection, Question
from benchmarks.retrieval.filing import home
from benchmarks.retrieval.metrics import Judged, estimate, measures, ndcg
from benchmarks.retrieval.readers import locomo, longmemeval
from castle import Castle, config
from castle.clock import to_iso
from castle.records import Scope
from castle.search import pipeline, sessions
from castle.search.fusion import log_odds
from castle.search.hits import unit_score
from castle.search.question import Question as Understood
from castle.search.sessions import SHIPPED, Seen, Sign, Weights
from castle.store.palace import Palace

FOLDS = 5
DEPTH = 10
NONE = Weights(0.0, 0.0, 0.0, 0.0, 0.0)
GRID = tuple(
    Weights(words, nearest, max(advice, nearest), narrow, together)
    for words, nearest, advice, narrow, together in product(
        (0.0, 0.2, 0.4, 0.6, 0.8),
        (0.0, 2.0, 4.0),
        (0.0, 28.0, 60.0),
        (0.0, 1.5, 3.0, 5.0),
        (0.0, 0.8, 1.6, 2.4),
    )
)
SHOWN = ("R@1", "recall_any@5", "recall_all@5", f"NDCG@{DEPTH}")

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """One question: the fold of its case, its sessions in the order of their drawers, and which are gold.

    ``signs`` has a row for each session: the log odds of its drawers, and the four signs. ``gold`` counts
    those that were not found, too.
    """

    fold: int
    advice: bool
    signs: Matrix
    right: NDArray[np.bool_]
    gold: int

    def judged(self, weights: Weights) -> Judged:
        """Return the ranks of the gold sessions."""
        near = weights.advice if self.advice else weights.nearest
        scores = self.signs @ np.array([1.0, weights.words, near, weights.narrow, weights.together])
        order = np.argsort(-scores, kind="stable")
        return Judged(tuple(int(rank) + 1 for rank in np.flatnonzero(self.right[order])), self.gold)


class Recorder:
    """Takes the place of the search's own signs: keeps them, and shows the search none."""

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}
        self.advice = False

    def __call__(self, palace: Palace, question: Understood, scope: Scope, seen: Seen) -> dict[str, Sign]:
        """Keep the signs of a search and return none."""
        self.advice = question.advice
        scores: dict[str, list[float]] = {}
        for candidate in seen.ranked:
            scores.setdefault(seen.drawers[candidate.id].source, []).append(candidate.score)
        self.rows = {
            source: [
                log_odds(unit_score(scores[source])),
                sign.words,
                sign.nearest,
                sign.narrow,
                sign.together,
            ]
            for source, sign in sessions.signs(palace, question, scope, seen).items()
        }
        return {}


def asked_of(collection: Collection, work: Path) -> Iterator[Asked]:
    """Ask every question and keep the signs of what was found."""
    recorder = Recorder()
    for number, case in enumerate(collection.cases):
        palace = home(work, collection, case) / "palace"
        settings = config.load({**NO_LLM, "palace_path": str(palace)}, env={}, home=palace.parent)
        with patch.object(pipeline, "signs", recorder), Castle(settings=settings) as castle:
            for question in case.questions:
                if question.sessions:
                    yield _asked(castle, recorder, question, number % FOLDS)


def _asked(castle: Castle, recorder: Recorder, question: Question, fold: int) -> Asked:
    recorder.rows = {}
    now = None if question.now is None else to_iso(question.now)
    result = castle.search(question.text, wing=question.wing, limit=DEPTH, by="session", now=now)
    rows = recorder.rows or {hit.source: [log_odds(hit.score), 0.0, 0.0, 0.0, 0.0] for hit in result.hits}
    return Asked(
        fold,
        recorder.advice,
        np.array(list(rows.values()), dtype=np.float64).reshape(len(rows), 5),
        np.array([source.split(":", 2)[2] in question.sessions for source in rows], dtype=bool),
        len(question.sessions),
    )


def chosen(sets: Mapping[str, Sequence[Asked]], but: int) -> Weights:
    """Return the weights of the grid that are best on all folds but one."""
    learning = [[asked for asked in found if asked.fold != but] for found in sets.values()]

    def quality(weights: Weights) -> float:
        means = [np.mean([ndcg(a.judged(weights), DEPTH) for a in found]) for found in learning if found]
        return float(np.mean(means))

    return max(GRID, key=quality)


def table(found: Sequence[Asked], weights: Mapping[int, Weights]) -> dict[str, dict[str, Any]]:
    """Return what each fold's weights reach on it, with intervals."""
    judged = [asked.judged(weights[asked.fold]) for asked in found]
    return {
        name: asdict(estimate([measure(item) for item in judged]))
        for name, measure in measures(DEPTH).items()
        if name in SHOWN
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Ask, choose, measure, and write one JSON file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--longmemeval", type=Path, required=True)
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="where benchmarks.retrieval filed them")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/sessions.json"))
    options = parser.parse_args(argv)
    read = {"longmemeval": longmemeval.read(options.longmemeval), "locomo": locomo.read(options.locomo)}
    sets = {name: list(asked_of(collection, options.work)) for name, collection in read.items()}
    folds = {fold: chosen(sets, fold) for fold in range(FOLDS)}
    same = {fold: SHIPPED for fold in range(FOLDS)}
    nothing = {fold: NONE for fold in range(FOLDS)}
    ways = {"drawers alone": nothing, "chosen on the other folds": folds, "shipped": same}
    tables = {
        name: {way: table(found, weights) for way, weights in ways.items()} for name, found in sets.items()
    }
    said = {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "data_sha256": {name: collection.data_sha256 for name, collection in read.items()},
        "questions": {name: len(found) for name, found in sets.items()},
        "grid": len(GRID),
        "shipped": asdict(SHIPPED),
        "chosen": {str(fold): asdict(weights) for fold, weights in folds.items()},
        "measured": tables,
    }
    options.out.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    for name, found in tables.items():
        for way, measured in found.items():
            cells = " / ".join(f"{100 * measured[measure]['mean']:.1f}" for measure in measured)
            print(f"{name}, {way}: {cells}")


if __name__ == "__main__":
    main()
