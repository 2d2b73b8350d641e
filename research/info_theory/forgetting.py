"""A check on taking sessions out of a ranking: some palaces are searched after really forgetting them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.retrieval.asking import CastleSearcher
from benchmarks.retrieval.cases import Case, Collection
from benchmarks.retrieval.filing import home
from castle.store.palace import Palace
from castle.store.places import forget
from research.info_theory.downstream import ALL, Asked, lowest, without

EVERY = 10
"""One palace of so many is copied and searched."""
SHARE = 0.50


def check(
    collection: Collection,
    work: Path,
    asked: Sequence[Asked],
    means: Mapping[str, Mapping[str, float]],
) -> dict[str, Any]:
    """Return for how many questions the first five hold the same gold sessions, and how alike they are.

    The palaces of ``work`` stay as they are.
    """
    by_question = {(item.case, item.question): item for item in asked}
    same, common, total = 0, 0.0, 0
    for case in collection.cases[::EVERY]:
        dropped = lowest(means[case.name], SHARE)
        found = _searched(collection, case, work, dropped)
        for question, names in found.items():
            item = by_question[case.name, question]
            taken = without(item.ranking, dropped)[:5]
            total += 1
            same += item.gold.intersection(names[:5]) == item.gold.intersection(taken)
            common += len(set(names[:5]) & set(taken)) / max(1, len(taken))
    return {"questions": total, "same_gold": same, "alike": common / total}


def _searched(
    collection: Collection, case: Case, work: Path, dropped: frozenset[str]
) -> dict[str, tuple[str, ...]]:
    """Return the ranking for each question of a case in a copy of its palace without the dropped sessions."""
    with tempfile.TemporaryDirectory(dir=work) as directory:
        path = Path(directory) / "palace"
        shutil.copytree(home(work, collection, case) / "palace", path)
        palace = Palace(path)
        for session in sorted(dropped):
            forget(palace.ledger, source=f"session:messages:{session}", actor="study")
        palace.close()
        searcher = CastleSearcher(path, case, {})
        found = {question.id: searcher.search(question, "session", ALL).names for question in case.questions}
        searcher.close()
        return found
