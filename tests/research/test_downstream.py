from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.retrieval.cases import Case, Collection, Message, Question
from benchmarks.retrieval.filing import home
from castle import Castle
from research.info_theory import downstream
from research.info_theory.downstream import PAGE, Asked, ask, gate, lowest, table, without

NAMES = [f"s{n}" for n in range(10)]


def asked(case: str, gold: str, ranking: list[str], weighed: list[str] | None = None) -> Asked:
    page = tuple(ranking[:PAGE])
    return Asked(
        case, "q", tuple(ranking), page, page if weighed is None else tuple(weighed), frozenset(gold.split())
    )


def test_the_lowest_share_is_dropped_and_what_has_no_value_stays() -> None:
    means = {"a": 0.5, "b": 0.1, "c": 0.1, "d": math.nan}
    assert lowest(means, 0.5) == {"b", "c"}
    assert lowest(means, 0.25) == {"b"}
    assert lowest(means, 0.1) == frozenset()
    assert without(["a", "b", "c"], frozenset("b")) == ["a", "c"]


def test_a_dropped_gold_session_is_lost_and_the_others_move_up() -> None:
    means = {"B": {"one": {name: float(n) for n, name in enumerate(NAMES)}}}
    ranking = list(NAMES)
    low_gold = table([asked("one", "s0", ranking)], means, 1, 10)["rows"]
    high_gold = table([asked("one", "s6", ranking)], means, 1, 10)["rows"]
    found = {(row["way"], row["share"]): row for row in low_gold}
    assert found["lowest B", 0.1]["touched"] == 1
    assert found["lowest B", 0.1]["means"]["recall_any@5"] == 0
    moved = {(row["way"], row["share"]): row for row in high_gold}
    assert moved["everything", 0.0]["means"]["recall_any@5"] == 0
    assert moved["lowest B", 0.25]["means"]["recall_any@5"] == 1
    assert moved["lowest B", 0.25]["change"]["recall_any@5"] == {"mean": 1, "low": 1, "high": 1}
    assert 0.3 < moved["at random", 0.5]["touched"] < 0.7


@pytest.mark.parametrize(
    ("weighed", "gold", "open_"), [(NAMES, "s9", True), ([*NAMES[5:], *NAMES[:5]], "s3", False)]
)
def test_the_gate_opens_only_where_nothing_is_lost(weighed: list[str], gold: str, open_: bool) -> None:
    means = {"B": {"one": {name: float(n) for n, name in enumerate(NAMES)}}}
    found = table([asked("one", gold, NAMES, weighed)], means, 1, 10)
    assert found["gate"]["open"] is open_
    assert gate(found["rows"]) == found["gate"]


def test_questions_are_asked_once_and_a_torn_line_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = tuple(
        Message(f"s{n}", "0", "user", text, 1_700_000_000_000_000 + n)
        for n, text in enumerate(("the ferry leaves at nine", "gulls sleep", "the crane is broken"))
    )
    question = Question("q1", "when does the ferry leave", "kind", frozenset({"s0"}))
    case = Case("c", messages, questions=(question,))
    collection = Collection("longmemeval", (case,), "sha", embedder="fake")
    palace = home(tmp_path, collection, case) / "palace"
    palace.parent.mkdir(parents=True)
    transcript = palace.parent / "t.jsonl"
    transcript.write_text(
        "".join(json.dumps(message.record()) + "\n" for message in messages), encoding="utf-8"
    )
    with Castle(palace, embedder="fake") as castle:
        castle.mine_conversations(transcript, wing="talk")
    monkeypatch.setattr("benchmarks.retrieval.asking.NO_LLM", {"search_mode": "fast"})
    journal = tmp_path / "cache" / "asked.jsonl"
    first = ask(collection, tmp_path, journal, print)
    assert first[0].ranking[0] == "s0"
    assert set(first[0].ranking) <= {"s0", "s1", "s2"}
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"case": "c"')
    monkeypatch.setattr(downstream, "CastleSearcher", None)
    assert ask(collection, tmp_path, journal, print) == first
    assert journal.read_text(encoding="utf-8").count("\n") == 1
