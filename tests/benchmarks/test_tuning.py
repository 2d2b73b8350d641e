"""Weights of sessions: how they are tried, chosen, recorded and shown."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.retrieval.cases import Case, Collection, Message, Question
from benchmarks.retrieval.filing import file_all
from benchmarks.tuning.sessions import FOLDS, NONE, Asked, asked_of, chosen, table
from castle.search.sessions import SHIPPED, Weights


def asked(fold: int, *, advice: bool = False) -> Asked:
    """Of two sessions, drawers alone prefer the first, words the second, which is right."""
    signs = np.array([[1.0, 0.0, 0.2, 0.0, 0.0], [0.0, 5.0, 0.3, 0.0, 1.0]])
    return Asked(fold, advice, signs, np.array([False, True]), 2)


def test_a_question_is_judged_by_weights() -> None:
    assert asked(0).judged(NONE).ranks == (2,)
    assert asked(0).judged(Weights(0.4, 0.0, 0.0, 0.0, 0.0)).ranks == (1,)
    assert asked(0).judged(Weights(0.0, 0.0, 20.0, 0.0, 0.0)).ranks == (2,)
    assert asked(0, advice=True).judged(Weights(0.0, 0.0, 20.0, 0.0, 0.0)).ranks == (1,)
    assert asked(0).judged(Weights(0.0, 0.0, 0.0, 0.0, 1.6)).ranks == (1,)
    assert asked(0).judged(NONE).gold == 2


def test_weights_are_chosen_without_the_fold_they_are_measured_on() -> None:
    sets = {"a": [asked(fold) for fold in range(FOLDS)], "b": [asked(1)]}
    folds = {fold: chosen(sets, fold) for fold in range(FOLDS)}
    assert all(5 * w.words + 0.1 * w.nearest + w.together > 1 for w in folds.values())
    assert table(sets["a"], folds)["R@1"]["mean"] == 1.0
    assert table(sets["a"], dict.fromkeys(range(FOLDS), NONE))["R@1"]["mean"] == 0.0


def test_the_signs_of_a_search_are_kept(tmp_path: Path) -> None:
    talk = [
        ("one", "the harbour at noon"),
        ("one", "a ferry"),
        ("two", "the harbour at night"),
        ("three", "no"),
    ]
    messages = tuple(
        Message(session, str(number), "user", text, 0) for number, (session, text) in enumerate(talk)
    )
    question = Question("q", "the harbour", "any", frozenset({"two", "nowhere"}))
    case = Case("talk", messages, questions=(question,))
    collection = Collection("longmemeval", (case,), "", embedder="fake")
    file_all(collection, tmp_path, lambda line: None)
    (found,) = asked_of(collection, tmp_path)
    assert found.signs.shape == (3, 5)
    assert found.right.sum() == 1 and found.gold == 2


def test_what_is_shipped_is_what_was_measured() -> None:
    record = json.loads((report.RESULTS / report.CHOSEN).read_text(encoding="utf-8"))
    assert record["shipped"] == asdict(SHIPPED)


def test_the_report_shows_it(tmp_path: Path) -> None:
    (tmp_path / report.CHOSEN).write_bytes((report.RESULTS / report.CHOSEN).read_bytes())
    page = report.page(tmp_path)
    assert "### Sessions: R@1" in page
    assert "chosen on the other folds" in page
