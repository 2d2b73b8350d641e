from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.info_theory.judging import allocate, cost, judge, sample
from research.info_theory.study import Table
from tests.novelty.test_surprise import Scripted


def table(sizes: dict[str, int]) -> Table:
    total = sum(sizes.values())
    names = np.repeat(list(sizes), list(sizes.values()))
    return Table(
        names=("p",),
        palace=np.zeros(total, dtype=np.int64),
        place=np.arange(total),
        count=np.arange(total),
        a=np.linspace(0, 1, total),
        b=np.linspace(0, 1, total),
        chars=np.full(total, 100),
        session=np.array([f"s{n // 10}" for n in range(total)]),
        role=np.full(total, "user"),
        stratum=names,
        text=np.array([f"t{n}" for n in range(total)]),
    )


@pytest.mark.parametrize(
    ("sizes", "total", "expected"),
    [
        ({"a": 90, "b": 10}, 50, {"a": 43, "b": 7}),
        ({"a": 1000, "b": 2}, 20, {"a": 18, "b": 2}),
        ({"a": 3, "b": 3}, 20, {"a": 3, "b": 3}),
        ({"a": 100, "b": 100, "c": 100}, 4, {"a": 2, "b": 1, "c": 1}),
        ({}, 5, {}),
    ],
)
def test_allocation(sizes: dict[str, int], total: int, expected: dict[str, int]) -> None:
    assert allocate(sizes, total) == expected


def test_a_sample_has_enough_before_it_and_is_the_same_for_a_seed() -> None:
    made = table({"a": 60, "b": 40})
    chosen = sample(made, 30, 1)
    assert len(chosen) == 30
    assert min(chosen) >= 20
    assert sample(made, 30, 1) == chosen != sample(made, 30, 2)
    assert cost(made, chosen, 2.0)["usd"] == pytest.approx(cost(made, chosen, 1.0)["usd"] * 2)


def test_what_was_judged_is_not_asked_again_and_a_failure_is_counted(tmp_path: Path) -> None:
    made = table({"a": 30})
    near = {0: np.array([[n - 1, n - 2] for n in range(30)])}
    texts = {0: [f"note {n}" for n in range(30)]}
    answer = '{"score": 4, "reasoning": ""}'
    model = Scripted(answer, "nonsense", "nonsense", answer)
    told: list[str] = []
    journal = tmp_path / "j" / "c.jsonl"
    first = judge(made, [20, 21, 22], near, texts, model, journal, told.append)
    assert (first["judged"], first["failed"], first["levels"]) == ({"20": 6, "22": 6}, 1, {"6": 2})
    assert "note 19" in model.prompts[0]
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"key": ["to')
    again = Scripted('{"score": 9, "reasoning": ""}')
    assert judge(made, [20, 21, 22], near, texts, again, journal, told.append)["judged"] == {
        "20": 6,
        "21": 1,
        "22": 6,
    }
    assert len(again.prompts) == 1
