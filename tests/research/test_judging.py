from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from castle.llm.http import Server
from castle.llm.openai_compatible import OpenAICompatible, base_url
from research.info_theory.judging import allocate, cost, judge, sample
from research.info_theory.relations import with_surprise
from research.info_theory.study import Table
from tests.llm.servers import Reply, Request, said_by_openai, serving
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
    assert set(sample(made, 12, 1)) < set(chosen)
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
    assert first["judged"] == {"C": {"20": 6.0, "22": 6.0}}
    assert (first["sample"], first["failed"], first["levels"]) == (3, {"C": 1}, {"6": 2})
    assert "note 19" in model.prompts[0]
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"key": ["to')
    again = Scripted('{"score": 9, "reasoning": ""}')
    assert judge(made, [20, 21, 22], near, texts, again, journal, told.append)["judged"] == {
        "C": {"20": 6.0, "21": 1.0, "22": 6.0}
    }
    assert len(again.prompts) == 1
    assert len(judge(made, [20, 21, 22], near, texts, Scripted(), journal, told.append)["judged"]["C"]) == 3


def test_a_server_that_tells_probabilities_is_asked_for_surprisal_too(tmp_path: Path) -> None:
    made = table({"a": 30})
    near = {0: np.array([[n - 1, n - 2] for n in range(30)])}
    texts = {0: [f"note {n:02}" for n in range(30)]}

    def answer(request: Request) -> Reply:
        if request.path.endswith("/chat/completions"):
            assert "score" in request.body["response_format"]["json_schema"]["schema"]["properties"]
            return Reply(said_by_openai('{"score": 4, "reasoning": ""}'))
        if request.path == "/tokenize":
            return Reply({"tokens": [{"id": 7, "piece": request.body["content"]}]})
        if request.body["prompt"].endswith("note 20\n"):
            return Reply({"choices": []})
        content = [{"bytes": list(b"note 20"), "logprob": -7 * np.log(2)}]
        return Reply({"choices": [{"logprobs": {"content": content}}]})

    with serving(answer) as server:
        model = OpenAICompatible(Server("the LLM server", base_url(server.url)), "m")
        found = judge(made, [20, 21], near, texts, model, tmp_path / "c.jsonl", lambda text: None)
    assert found["judged"] == {"C": {"20": 6.0, "21": 6.0}, "S": {"20": pytest.approx(1.0)}}
    assert found["failed"] == {"C": 0, "S": 1}


def test_correlations_with_what_a_model_says() -> None:
    made = table({"a": 60, "b": 60})
    rows = [str(row) for row in range(20, 100, 4)]
    rng = np.random.default_rng(1)
    judged = {"C": dict.fromkeys(rows, 3.0), "S": {row: float(made.a[int(row)]) ** 2 for row in rows}}
    found = with_surprise(made, judged, 50, rng)
    assert list(found) == ["A,S", "B,S"]
    assert (found["A,S"]["rho"], found["A,S"]["n"]) == (pytest.approx(1.0), 20)
    varied = {**judged, "C": {row: float(number % 3) for number, row in enumerate(rows)}}
    found = with_surprise(made, varied, 200, rng)
    assert list(found) == ["A,C", "B,C", "A,S", "B,S", "C,S"]
    assert found["A,C"]["low"] < found["A,C"]["rho"] < found["A,C"]["high"]
    assert with_surprise(made, {"C": {"20": 1.0}}, 50, rng) == with_surprise(made, {}, 50, rng) == {}
