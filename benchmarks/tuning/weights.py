"""What the signals of a search are worth: a regression of "holds the evidence" on what each stage said.

    python -m benchmarks.tuning.weights locomo FILE --work DIR [--limit N] [--out FILE]
    python -m benchmarks.tuning.weights longmemeval DIR --work DIR --weights FILE

The palaces under ``--work`` are those that ``benchmarks.retrieval`` has filed there. Each question is asked
through ``Castle.search``; the stages of its hits are the features. The model is a conditional logit: the
chance of a candidate is proportional to exp(weights · features). It is fitted without one fifth of the cases
at a time and measured on that fifth. ``--weights`` measures numbers that were learned elsewhere instead.

The weights shipped (``castle.search.options``) are rounder and smaller than these: between what this says for
LoCoMo and what costs LongMemEval nothing.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval.asking import NO_LLM
from benchmarks.retrieval.cases import Collection, Question, selected
from benchmarks.retrieval.filing import home
from benchmarks.retrieval.readers import locomo, longmemeval
from castle import Castle, config
from castle.clock import to_iso
from castle.records import Hit
from castle.search.fusion import EVIDENCE
from castle.search.options import MOST_READ
from castle.search.rerank import STAGE

READERS = {"locomo": locomo.read, "longmemeval": longmemeval.read}
SIGNALS = ("names", "times", "phrases", "voice", "neighbours", "session", "substance")
FEATURES = ("relevance", "kin", "fusion", *SIGNALS)
"""Log odds of a relevance, the best of its session, the fused score, and signals; the last are in [0, 1]."""
FOLDS = 5
RIDGE = 1.0

Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Asked:
    """One question: the fold of its case, its candidates in the order shown, and which hold the evidence."""

    fold: int
    features: Matrix
    gold: Flags


def asked_of(collection: Collection, work: Path) -> list[Asked]:
    """Ask every question with known turns and an answer, and keep what the stages said of what was read."""
    found = []
    for number, case in enumerate(collection.cases):
        palace = home(work, collection, case) / "palace"
        settings = config.load({**NO_LLM, "palace_path": str(palace)}, env={}, home=palace.parent)
        with Castle(settings=settings) as castle:
            for question in case.questions:
                if question.turns and question.answered:
                    found.append(Asked(number % FOLDS, *_features(castle, question)))
    return [asked for asked in found if len(asked.gold)]


def _features(castle: Castle, question: Question) -> tuple[Matrix, Flags]:
    now = None if question.now is None else to_iso(question.now)
    hits = [
        hit
        for hit in castle.search(question.text, wing=question.wing, limit=MOST_READ, now=now).hits
        if STAGE in hit.stages
    ]
    kin: dict[str, float] = {}
    for hit in hits:
        kin[hit.source] = max(_log_odds(hit.stages[STAGE].score), kin.get(hit.source, -math.inf))
    best = max((_said(hit, "fusion") for hit in hits), default=1.0) or 1.0
    rows = [
        [_log_odds(hit.stages[STAGE].score), kin[hit.source], _said(hit, "fusion") / best]
        + [_said(hit, name) for name in SIGNALS]
        for hit in hits
    ]
    gold = [f"{hit.source.split(':', 2)[2]}#{hit.message_id}" in question.turns for hit in hits]
    return np.array(rows, dtype=np.float64).reshape(len(hits), len(FEATURES)), np.array(gold, dtype=bool)


def _said(hit: Hit, stage: str) -> float:
    return hit.stages[stage].score if stage in hit.stages else 0.0


def _log_odds(p: float) -> float:
    p = min(max(p, 1e-9), 1 - 1e-9)
    return math.log(p / (1 - p))


def fit(questions: Sequence[Asked], steps: int = 30) -> Matrix:
    """Fit the conditional logit by Newton's method; questions with nothing to tell apart say nothing."""
    telling = [asked for asked in questions if asked.gold.any() and not asked.gold.all()]
    weights = np.zeros(len(FEATURES))
    for _ in range(steps):
        slope, curve = RIDGE * weights, RIDGE * np.eye(len(FEATURES))
        for asked in telling:
            chances = _chances(asked.features @ weights)
            mean = chances @ asked.features
            slope += mean - asked.features[asked.gold].mean(axis=0)
            centred = asked.features - mean
            curve += (centred * chances[:, None]).T @ centred
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def _chances(scores: Matrix) -> Matrix:
    raised = np.exp(scores - scores.max())
    chances: Matrix = raised / raised.sum()
    return chances


def among_ten(questions: Sequence[Asked], weights: Mapping[int, Matrix] | None = None) -> float:
    """Return the share of questions with a gold drawer among ten: as ranked by weights, or as shown."""
    hits = []
    for asked in questions:
        gold = asked.gold
        if weights is not None:
            gold = gold[np.argsort(-(asked.features @ weights[asked.fold]), kind="stable")]
        hits.append(bool(gold[:10].any()))
    return float(np.mean(hits))


def main(argv: Sequence[str] | None = None) -> None:
    """Fit, measure, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("collection", choices=READERS)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="where benchmarks.retrieval filed it")
    parser.add_argument("--limit", type=int, default=200, help="how many questions, evenly by kind")
    parser.add_argument("--weights", type=Path, help="measure the weights in this file")
    parser.add_argument("--out", type=Path, help="write the line there, too")
    options = parser.parse_args(argv)
    collection = READERS[options.collection](options.data)
    collection = replace(collection, cases=selected(collection.cases, "all", options.limit))
    questions = asked_of(collection, options.work)
    if options.weights:
        known = json.loads(options.weights.read_text(encoding="utf-8"))["weights"]
        learned = np.array([known[name] for name in FEATURES])
        folds = dict.fromkeys(range(FOLDS), learned)
    else:
        learned = fit(questions)
        folds = {fold: fit([asked for asked in questions if asked.fold != fold]) for fold in range(FOLDS)}
    said = {
        "collection": options.collection,
        "questions": len(questions),
        "read": float(np.mean([asked.gold.any() for asked in questions])),
        "among_ten_as_shipped": among_ten(questions),
        "among_ten_as_fitted": among_ten(questions, folds),
        "weights": dict(zip(FEATURES, learned.round(3).tolist(), strict=True)),
        "as_settings": {name: round(float(learned[FEATURES.index(name)]) / EVIDENCE, 2) for name in SIGNALS},
    }
    line = json.dumps(said)
    print(line)
    if options.out:
        options.out.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
