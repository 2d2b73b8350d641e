"""What is around a drawer: its neighbours, its session, its size; and how they weigh in."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from castle.records import Drawer, Scope
from castle.search.candidates import Candidate
from castle.search.fusion import EVIDENCE, KINSHIP, among_kin
from castle.search.options import MOST_READ, READ_CHARACTERS, WEIGHTS, Options
from castle.search.pipeline import search
from castle.search.question import ask
from castle.search.refine import Engines, Refiner
from castle.search.run import Run
from castle.search.surroundings import ENOUGH, places_of, substance, surroundings
from castle.store.palace import Palace
from tests.store.filer import file

DRAWER = Drawer(
    "",
    1,
    "chat:a",
    "w",
    "r",
    "h",
    "message",
    "user",
    "",
    "",
    "x" * ENOUGH,
    None,
    "",
    (),
    "",
    0,
    0,
    "",
    "current",
)


def candidate(id_: str, score: float) -> Candidate:
    return Candidate(id_, f"sha-{id_}", score)


def test_neighbours_give_the_more_the_nearer_they_are() -> None:
    fused = [candidate("c", 1.0), candidate("b", 0.6), candidate("e", 0.3), candidate("far", 0.9)]
    drawers = {c.id: DRAWER for c in fused}
    places = {"b": (1, 4), "c": (1, 5), "e": (1, 7), "far": (2, 6)}
    found = surroundings(fused, drawers, places)["neighbours"]
    assert found == pytest.approx({"b": 1 / 3, "c": 0.6 / 3 + 0.3 / 6, "e": 1 / 6})


def test_an_answer_of_an_assistant_takes_nothing_from_its_neighbours_but_gives() -> None:
    fused = [candidate("asked", 0.5), candidate("answered", 1.0)]
    drawers = {"asked": DRAWER, "answered": replace(DRAWER, role="assistant")}
    found = surroundings(fused, drawers, {"asked": (1, 0), "answered": (1, 1)})
    assert found["neighbours"] == pytest.approx({"asked": 1 / 3})


def test_a_session_counts_by_its_best_relative_to_all() -> None:
    fused = [candidate("a", 0.8), candidate("b", 0.4), candidate("c", 0.2)]
    drawers = {"a": replace(DRAWER, source="chat:b"), "b": DRAWER, "c": DRAWER}
    assert surroundings(fused, drawers, {})["session"] == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.5})
    assert surroundings([], drawers, {}) == {}


def test_substance_grows_with_the_logarithm_of_the_bytes() -> None:
    assert substance("") == 0.0
    assert substance("é" * (ENOUGH // 2)) == substance("x" * 5000) == 1.0
    assert 0.2 < substance("Wow, cool!") < 0.3
    assert substance("\ud800") > 0


def test_kin_by_hand() -> None:
    read = [candidate("a", 0.5), candidate("b", 0.2), candidate("c", 0.2)]
    found = among_kin(
        read, {"neighbours": {"c": 0.5}}, {"neighbours": 0.5}, {"a": "one", "b": "one", "c": "two"}
    )
    odds = {c.id: math.log(c.score / (1 - c.score)) for c in found}
    least = math.log(0.25)
    assert odds["a"] == pytest.approx(0.0)
    assert odds["b"] == pytest.approx(least)
    assert odds["c"] == pytest.approx(least + KINSHIP * least + EVIDENCE * 0.25)


def test_the_best_of_kin_has_the_best_relevance_and_certainty_stays_finite() -> None:
    read = [candidate("a", 1.0), candidate("b", 0.7), candidate("c", 0.0)]
    found = among_kin(read, {"session": {"b": 1.0, "c": 1.0}}, {"session": 50.0}, dict.fromkeys("abc", "s"))
    assert found[0].id == "b"
    assert found[0].score == pytest.approx(1.0)
    assert all(0.0 <= c.score <= 1.0 for c in found)
    assert among_kin([], {}, {}, {}) == []


def test_places_are_those_of_the_source(palace: Palace) -> None:
    file(palace.ledger, ["one", "two"], path="a.md")
    file(palace.ledger, ["three"], path="b.md")
    hits = search(palace, "one two three", Scope(), 9, Options(catch_up_ms=20_000)).hits
    with palace.ledger.read() as cx:
        places = places_of(cx, [hit.id for hit in hits])
    by_text = {hit.text: places[hit.id] for hit in hits}
    assert [by_text[text][1] for text in ("one", "two", "three")] == [0, 1, 0]
    assert by_text["one"][0] == by_text["two"][0] != by_text["three"][0]


def test_what_stands_beside_a_match_comes_before_what_stands_alone(palace: Palace) -> None:
    file(palace.ledger, ["the harbour was closed by the storm", "it cost us a week"], path="a.md")
    file(palace.ledger, ["it cost us a penny"], path="b.md")
    alone = Options(catch_up_ms=20_000, weights={**WEIGHTS, "neighbours": 0.0, "session": 0.0})
    question = "what did it cost us that the harbour was closed"
    plain = {hit.text: hit.score for hit in search(palace, question, Scope(), 9, alone).hits}
    hits = search(palace, question, Scope(), 9, Options(catch_up_ms=20_000)).hits
    found = {hit.text: hit.score for hit in hits}
    assert plain["it cost us a week"] / plain["it cost us a penny"] < (
        found["it cost us a week"] / found["it cost us a penny"]
    )
    assert {"neighbours", "session", "substance"} <= {name for hit in hits for name in hit.stages}


@pytest.mark.parametrize(
    ("size", "characters", "count"),
    [(10, READ_CHARACTERS, 20), (1000, READ_CHARACTERS, 12), (1, READ_CHARACTERS, MOST_READ), (1, 0, 20)],
)
def test_more_are_read_where_they_are_short(size: int, characters: int, count: int) -> None:
    if size == 10:
        size = 600
    many = [candidate(str(number), 0.5) for number in range(90)]
    drawers = {c.id: replace(DRAWER, id=c.id, text="x" * size) for c in many}
    options = Options(rerank_k=20, rerank_characters=characters, mode="fast")
    run = Run()
    refiner = Refiner(ask("q", 0), drawers, options, Engines(), run, {}, {})
    refiner.refine(many, 20, 1, judged=False)
    assert run.reports[0].candidates == max(count, 20)
