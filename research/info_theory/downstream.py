"""What leaving out, or demoting, what says little new does to finding: questions asked of the palaces.

Every question is asked for the first ten sessions with the product's settings and with info-weight, and once
for all sessions; what came back is kept. Leaving sessions out is then done on the ranking of all: those that
are left move up, as they would had the others never been filed, except that scores which depend on the whole
collection stay.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval.asking import CastleSearcher, warm
from benchmarks.retrieval.cases import Case, Collection
from benchmarks.retrieval.filing import Say, code_sha256, home
from benchmarks.retrieval.metrics import Judged, judged, ndcg, recall_all, recall_any
from castle.novelty import update
from castle.store.palace import Palace
from research.info_theory.cache import entries

ALL = 60
"""Sessions asked for where some are to be left out: more than a haystack holds."""
PAGE = 10
SHARES = (0.10, 0.25, 0.50)
RANDOM_DRAWS = 200
MARGIN = 0.01
"""What the lower end of the interval of nDCG@10 may lie below zero before it counts as a loss."""

MEASURES: Mapping[str, Callable[[Judged], float]] = {
    "recall_any@5": lambda item: recall_any(item, 5),
    "recall_all@5": lambda item: recall_all(item, 5),
    "recall_any@10": lambda item: recall_any(item, 10),
    "recall_all@10": lambda item: recall_all(item, 10),
    "NDCG@10": lambda item: ndcg(item, 10),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The sessions found for one question, best first, and the gold ones.

    ``ranking`` holds all; ``plain`` and ``weighed`` a page, without and with info-weight. ``code`` is the
    state of Castle that was asked.
    """

    case: str
    question: str
    ranking: tuple[str, ...]
    plain: tuple[str, ...]
    weighed: tuple[str, ...]
    gold: frozenset[str]
    code: str = ""


def ask(collection: Collection, work: Path, journal: Path, say: Say) -> list[Asked]:
    """Ask every question both ways; what the journal holds is not asked again."""
    known = {(row["case"], row["question"]): row for row in entries(journal)}
    journal.parent.mkdir(parents=True, exist_ok=True)
    found: list[Asked] = []
    with journal.open("a", encoding="utf-8") as file:
        for number, case in enumerate(collection.cases, start=1):
            for row in _ask_case(collection, case, work, known):
                if row["new"]:
                    file.write(json.dumps({name: row[name] for name in row if name != "new"}) + "\n")
                    file.flush()
                gold = next(q.sessions for q in case.questions if q.id == row["question"])
                ranking, plain, weighed = (tuple(row[name]) for name in ("ranking", "plain", "weighed"))
                code = row.get("code", "")
                found.append(Asked(case.name, row["question"], ranking, plain, weighed, gold, code))
            say(f"asked {number}/{len(collection.cases)} {case.name}")
    return found


def _ask_case(
    collection: Collection, case: Case, work: Path, known: Mapping[tuple[str, str], dict[str, Any]]
) -> list[dict[str, Any]]:
    rows = []
    searchers: list[CastleSearcher] = []
    path = home(work, collection, case) / "palace"
    for question in case.questions:
        row = known.get((case.name, question.id))
        if row is not None:
            rows.append({**row, "new": False})
            continue
        if not searchers:
            palace = Palace(path)
            update(palace)
            palace.close()
            searchers = [
                CastleSearcher(path, case, {"info_weight_enabled": weighed}) for weighed in (False, True)
            ]
            warm(searchers[0], question, "session", PAGE)
        plain, weighed = (list(one.search(question, "session", PAGE).names) for one in searchers)
        ranking = list(searchers[0].search(question, "session", ALL).names)
        row = {"case": case.name, "question": question.id, "ranking": ranking, "plain": plain}
        rows.append({**row, "weighed": weighed, "code": code_sha256(), "new": True})
    for one in searchers:
        one.close()
    return rows


def lowest(means: Mapping[str, float], share: float) -> frozenset[str]:
    """Return the ``share`` of sessions with the lowest means, rounded down; of equal ones the first by name.

    A session whose mean is NaN has no value and stays.
    """
    order = sorted((mean, name) for name, mean in means.items() if not math.isnan(mean))
    return frozenset(name for _, name in order[: int(share * len(means))])


def without(names: Sequence[str], dropped: frozenset[str]) -> list[str]:
    """Return a ranking with the dropped sessions taken out."""
    return [name for name in names if name not in dropped]


def table(
    asked: Sequence[Asked], means: Mapping[str, Mapping[str, Mapping[str, float]]], seed: int, resamples: int
) -> dict[str, Any]:
    """Return every measure of every way of leaving out, with paired intervals over the questions.

    ``means`` holds for each estimator, and each case, the mean of every session.
    """
    base = _measured([judged(item.ranking, item.gold) for item in asked])
    page = _measured([judged(item.plain, item.gold) for item in asked])
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(asked), size=(resamples, len(asked)))
    rows = [_row("everything", 0.0, base, base, drawn, 0.0)]
    weighed = _measured([judged(item.weighed, item.gold) for item in asked])
    changed = float(np.mean([item.plain != item.weighed for item in asked]))
    rows.append(_row("a page", 0.0, page, page, drawn, 0.0))
    rows.append(_row("a page with info-weight", 0.0, weighed, page, drawn, changed))
    for name, by_case in means.items():
        for share in SHARES:
            dropped = [lowest(by_case[item.case], share) for item in asked]
            kept = [
                judged(without(item.ranking, away), item.gold)
                for item, away in zip(asked, dropped, strict=True)
            ]
            lost = _lost(asked, dropped)
            rows.append(_row(f"lowest {name}", share, _measured(kept), base, drawn, lost))
    for share in SHARES:
        values, lost = _random(asked, next(iter(means.values())), share, rng)
        rows.append(_row("at random", share, values, base, drawn, lost))
    code = sorted({item.code for item in asked})
    return {"questions": len(asked), "code": code, "rows": rows, "gate": gate(rows)}


def gate(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say whether info-weight may be on: it must lose nothing, nor may leaving out the lowest tenth by B.

    Recall of any and of all gold sessions in the first five must not fall, and the interval of the change of
    nDCG@10 must lie above -MARGIN.
    """
    chosen = {
        "info-weight": next(row for row in rows if row["way"] == "a page with info-weight"),
        "lowest B 10 %": next(row for row in rows if row["way"] == "lowest B" and row["share"] == SHARES[0]),
    }
    passed = {name: no_loss(row) for name, row in chosen.items()}
    return {"margin": MARGIN, "passed": passed, "open": all(passed.values())}


def no_loss(row: Mapping[str, Any]) -> bool:
    """Whether a row loses nothing against everything."""
    change = row["change"]
    recalls = (change[name]["mean"] >= 0 for name in ("recall_any@5", "recall_all@5"))
    return all(recalls) and change["NDCG@10"]["low"] >= -MARGIN


def _measured(items: Sequence[Judged]) -> dict[str, NDArray[np.float64]]:
    return {name: np.array([measure(item) for item in items]) for name, measure in MEASURES.items()}


def _lost(asked: Sequence[Asked], dropped: Sequence[frozenset[str]]) -> float:
    """Return the share of gold sessions that were dropped."""
    gold = sum(len(item.gold) for item in asked)
    return sum(len(item.gold & away) for item, away in zip(asked, dropped, strict=True)) / gold


def _random(
    asked: Sequence[Asked],
    sessions: Mapping[str, Mapping[str, float]],
    share: float,
    rng: np.random.Generator,
) -> tuple[dict[str, NDArray[np.float64]], float]:
    """Return the means over RANDOM_DRAWS choices of what is dropped."""
    total = {name: np.zeros(len(asked)) for name in MEASURES}
    lost = 0.0
    for _ in range(RANDOM_DRAWS):
        dropped = []
        for item in asked:
            names = sorted(sessions[item.case])
            dropped.append(frozenset(rng.choice(names, int(share * len(names)), replace=False).tolist()))
        kept = [
            judged(without(item.ranking, away), item.gold) for item, away in zip(asked, dropped, strict=True)
        ]
        for name, values in _measured(kept).items():
            total[name] += values / RANDOM_DRAWS
        lost += _lost(asked, dropped) / RANDOM_DRAWS
    return total, lost


def _row(
    way: str,
    share: float,
    values: Mapping[str, NDArray[np.float64]],
    base: Mapping[str, NDArray[np.float64]],
    drawn: NDArray[np.int64],
    share_of: float,
) -> dict[str, Any]:
    """Return one row; ``touched`` is the share of gold dropped, for info-weight that of rankings changed."""
    change = {}
    for name, found in values.items():
        apart = found - base[name]
        low, high = np.percentile(apart[drawn].mean(axis=1), [2.5, 97.5])
        change[name] = {"mean": float(apart.mean()), "low": float(low), "high": float(high)}
    means = {name: float(found.mean()) for name, found in values.items()}
    return {"way": way, "share": share, "touched": share_of, "means": means, "change": change}
