from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.clock import parse_iso
from castle.records import Drawer
from castle.search.names import Named
from castle.search.question import Question, ask
from castle.search.signals import MENTIONED, NEAR_NAME, TOLD, signals, time_edge, time_fit, weights_for
from castle.store.graph_values import DAY
from castle.text.when import BEGINNING, ENDLESS, Interval

NOW = parse_iso("2026-05-20T12:00:00")
JON = Named("jon", ("Jon",), "Jon")
GINA = Named("gina", ("Gina", "Gigi"), "Gina")


def drawer(id_: str, text: str, *, speaker: str = "", at: str = "2020-01-01") -> Drawer:
    return Drawer(
        id=id_, seq=1, source="s", wing="w", room="r", hall="h", kind="message", role="user", speaker=speaker,
        message_id="", text=text, raw=None, sha256="", sealed=(), context="", authored_at=parse_iso(at),
        filed_at=0, added_by="", state="current",
    )  # fmt: skip


def by_id(*drawers: Drawer) -> dict[str, Drawer]:
    return {d.id: d for d in drawers}


def asked(*names: Named, query: str = "") -> Question:
    return replace(ask(query, NOW), names=names)


def test_inside_an_interval_a_time_fits_and_outside_it_fades() -> None:
    week = Interval(0, 7 * DAY, "that week")
    assert time_edge(week) == 2 * DAY
    assert time_fit([week], 0) == time_fit([week], 7 * DAY - 1) == 1.0
    assert time_fit([week], -2 * DAY) == pytest.approx(math.exp(-1))
    assert time_fit([week], 9 * DAY - 1) == pytest.approx(math.exp(-1))
    assert time_fit([replace(week, weight=0.5), week], 3) == 1.0
    assert time_fit([], 3) == 0.0
    assert time_edge(Interval(0, 40 * DAY, "")) == 10 * DAY
    assert time_edge(Interval(0, 900 * DAY, "")) == 30 * DAY


def test_times_count_for_more_where_little_else_is_asked_for() -> None:
    weights = {"times": 0.5, "names": 0.6}
    assert weights_for(ask("what did we talk about on 9 May", NOW), weights) == {"times": 4.0, "names": 0.6}
    assert weights_for(ask("qu'avons-nous dit le 9 mai", NOW), weights)["times"] == 4.0
    assert weights_for(ask("the ferry on 9 May", NOW), weights) == weights
    assert weights_for(ask("what did we talk about", NOW), weights) == weights


@given(st.integers(-(2**62), 2**62), st.integers(-(2**61), 2**61), st.integers(1, 2**60))
def test_a_fit_is_bounded(moment: int, start: int, length: int) -> None:
    for interval in (
        Interval(start, start + length, "x"),
        Interval(BEGINNING, start, "x", 0.5),
        Interval(start, ENDLESS, "x"),
    ):
        assert 0 <= time_fit([interval], moment) <= interval.weight


def test_times_of_writing_and_times_told() -> None:
    found = signals(
        ask("what happened on 2 March 2023?", NOW),
        by_id(
            drawer("then", "nothing", at="2023-03-02"),
            drawer("told", "we did it a week ago", at="2023-03-09"),
            drawer("named", "it was 2 March 2023", at="2026-01-01"),
            drawer("never", "it was last summer", at="2026-01-01"),
        ),
    )
    assert set(found) == {"times"}
    assert found["times"]["then"] == 1.0
    assert found["times"]["named"] == found["times"]["told"] == TOLD
    assert "never" not in found["times"]


def test_a_speaker_counts_more_than_a_mention() -> None:
    found = signals(
        asked(JON),
        by_id(
            drawer("said", "I lost my job", speaker="Jon"),
            drawer("heard", "Hey Jon, great", speaker="Gina"),
            drawer("other", "Jonathan was there", speaker="Gina"),
        ),
    )
    assert found == {"names": {"said": 1.0, "heard": MENTIONED}}


def test_the_rarer_name_counts_more_and_any_of_its_forms() -> None:
    drawers = by_id(
        *(drawer(f"jon{n}", "ok", speaker="Jon") for n in range(8)),
        drawer("gigi", "ok", speaker="Gigi"),
        drawer("both", "ok Gina", speaker="Jon"),
    )
    scores = signals(asked(JON, GINA), drawers)["names"]
    assert scores["gigi"] > scores["jon0"] == scores["jon7"] > 0
    assert scores["both"] > scores["jon0"]
    jon, gina = math.log(1 + 10 / 9), math.log(1 + 10 / 2)
    assert scores["gigi"] == pytest.approx(gina / (jon + gina))
    assert scores["both"] == pytest.approx((jon + MENTIONED * gina) / (jon + gina))


def test_a_misspelt_name_counts_less_beside_others() -> None:
    drawers = by_id(drawer("a", "ok", speaker="Jon"), drawer("b", "ok", speaker="Gina"))
    scores = signals(asked(JON, replace(GINA, distance=1)), drawers)["names"]
    assert scores["b"] == pytest.approx(scores["a"] * NEAR_NAME)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ('"don\'t stop"', "we don’t stop here"),
        ('"Ёлка"', "вот ёлка"),
        ("「天気」", "東京の天気を検索する"),
        ('"os.path_join"', "see os.path_join()"),
        ('"Straße"', "die STRASSE"),
        ('"👍"', "ok 👍🏽"),
        ('"कैसे हैं"', "आप कैसे हैं"),
    ],
)
def test_phrases_are_held_word_for_word(query: str, text: str) -> None:
    drawers = by_id(drawer("holds", text), drawer("not", "something else altogether"))
    assert signals(ask(query, NOW), drawers) == {"phrases": {"holds": 1.0}}


def test_a_share_of_the_phrases_is_a_share_of_the_score() -> None:
    drawers = by_id(
        drawer("one", "the long pier"), drawer("two", "a pier that is long"), drawer("three", "pier")
    )
    found = signals(ask('"long pier" and "a pier"', NOW), drawers)
    assert found == {"phrases": {"one": 0.5, "two": 0.5}}


def test_a_question_without_signals_has_none() -> None:
    assert signals(ask("how does it work", NOW), by_id(drawer("a", "yesterday Jon"))) == {}
    assert signals(asked(JON, query='"x" yesterday'), {}) == {}
