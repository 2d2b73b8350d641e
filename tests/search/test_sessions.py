"""Sessions as a whole: their words, their nearest drawer, and how both weigh in."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

import pytest

from castle.clock import parse_iso
from castle.records import Scope, SearchResult
from castle.search.candidates import Candidate
from castle.search.fusion import log_odds, probability
from castle.search.hits import SESSIONS, united
from castle.search.options import WEIGHTS, Options
from castle.search.pipeline import search
from castle.search.question import Question
from castle.search.question import ask as understood
from castle.search.refine import Engines
from castle.search.sessions import UNSEEN, Spread, bm25, cosines, evidence_for
from castle.store.palace import Palace
from tests.search.test_stages import Judge
from tests.search.test_surroundings import DRAWER
from tests.store.filer import file

USUAL = Options(by="session", catch_up_ms=20_000)


def candidate(id_: str, score: float) -> Candidate:
    return Candidate(id_, f"sha-{id_}", score)


def test_bm25_by_hand() -> None:
    found = bm25({"a": Spread(2, (2, 1, 0)), "b": Spread(6, (0, 1, 0))})
    rare, usual = math.log1p(1.5 / 1.5), math.log1p(0.5 / 2.5)
    assert found["a"] == pytest.approx(rare * 4.4 / (2 + 1.2 * 0.625) + usual * 2.2 / (1 + 1.2 * 0.625))
    assert found["b"] == pytest.approx(usual * 2.2 / (1 + 1.2 * 1.375))
    assert bm25({"a": Spread(0, ()), "b": Spread(0, ())}) == {"a": 0.0, "b": 0.0}


def test_a_session_counts_by_its_nearest_drawer_and_one_without_lies_below_all() -> None:
    drawers = {"1": DRAWER, "2": DRAWER, "3": replace(DRAWER, source="chat:b")}
    nearest = [candidate("1", 0.2), candidate("2", 0.7), candidate("3", 0.1)]
    found = cosines(["chat:a", "chat:b", "chat:c"], nearest, drawers)
    assert found == pytest.approx({"chat:a": 0.7, "chat:b": 0.1, "chat:c": 0.1 - UNSEEN})
    assert cosines(["chat:a"], [], {}) == {"chat:a": -UNSEEN}


def test_a_short_text_lies_near_to_many_questions_and_counts_less() -> None:
    drawers = {"1": replace(DRAWER, text="Wow!"), "2": replace(DRAWER, source="chat:b", text="w " * 200)}
    found = cosines(["chat:a", "chat:b"], [candidate("1", 0.5), candidate("2", 0.4)], drawers)
    assert found["chat:a"] < found["chat:b"] == pytest.approx(0.4)


def test_evidence_changes_the_order_and_leaves_the_best_score() -> None:
    ranked = [candidate("1", 0.6), candidate("2", 0.5), candidate("3", 0.4)]
    drawers = {name: replace(DRAWER, source=f"chat:{name}") for name in "123"}
    found = united(ranked, drawers, "session", {"chat:1": 1.0, "chat:2": 4.0})
    assert [unit.best.id for unit in found] == ["2", "1", "3"]
    assert found[0].score == pytest.approx(0.6)
    apart = log_odds(found[0].score) - log_odds(found[1].score)
    assert apart == pytest.approx(3.0 - log_odds(0.6))
    assert found[2].best.stages[SESSIONS].score == 0.0
    assert [unit.best.stages[SESSIONS].rank for unit in found] == [1, 2, 2]
    assert [unit.best.id for unit in united(ranked, drawers, "drawer", {"chat:2": 9.0})] == ["1", "2", "3"]
    assert united([], {}, "session", {"chat:1": 1.0}) == []


def test_log_odds_and_back() -> None:
    assert probability(log_odds(0.2)) == pytest.approx(0.2)
    assert 0.0 <= probability(-1e6) < 1e-9
    assert probability(1e6) == 1.0


@pytest.fixture
def talks(palace: Palace) -> Palace:
    """One drawer that has two of three words, and a source whose drawers have all of them."""
    file(palace.ledger, ["a museum visited", "the moon", "the sea"], path="one.md")
    file(palace.ledger, ["a museum", "paintings seen", "visited with friends"], path="all.md")
    file(palace.ledger, ["nothing of the kind, only friends"], path="none.md")
    return palace


def asked(query: str) -> Question:
    return understood(query, parse_iso("2026-05-20T12:00:00"))


def ask(palace: Palace, options: Options = USUAL, engines: Engines | None = None) -> SearchResult:
    return search(palace, "museum paintings visited", Scope(), 10, options, engines or Engines())


def test_words_are_counted_over_all_drawers_of_a_source_in_scope(talks: Palace) -> None:
    ask(talks)
    sources = ["file:one.md", "file:all.md"]
    masks = talks.lexicon.spread("museum paintings visited", Scope(), sources)
    assert sorted(mask.bit_count() for mask in masks.values()) == [0, 0, 1, 1, 1, 2]
    assert talks.lexicon.spread("museum", Scope(wing="other"), sources) == {}
    assert len(talks.lexicon.spread("", Scope(), sources)) == 6


def test_a_session_that_holds_more_of_the_question_has_more_evidence(talks: Palace) -> None:
    result = ask(talks)
    shown = {hit.source: hit.stages[SESSIONS] for hit in result.hits}
    assert SESSIONS in [stage.name for stage in result.stages]
    with talks.ledger.read() as cx:
        from castle.store.reading import drawers_by_id

        drawers = drawers_by_id(cx, [hit.id for hit in result.hits])
    ranked = [candidate(hit.id, hit.score) for hit in result.hits]
    words_only = evidence_for(talks, asked("museum paintings visited"), Scope(), ranked, [], drawers)
    assert words_only["file:all.md"] > words_only["file:one.md"] > words_only["file:none.md"]
    assert len(shown) == len(result.hits)
    assert evidence_for(talks, asked("museum"), Scope(), ranked[:1], [], drawers) == {}
    # What is nearest counts for more where advice is asked for, what was then where a day is named.
    near = [candidate(hit.id, 0.5 if hit.source == "file:none.md" else 0.1) for hit in result.hits]

    def lead(query: str, timely: dict[str, float]) -> float:
        found = evidence_for(talks, asked(query), Scope(), ranked, near, drawers, timely)
        return found["file:none.md"] - found["file:all.md"]

    assert lead("museum, any ideas?", {}) > lead("museum ideas", {})
    then = {hit.id: 1.0 for hit in result.hits if hit.source == "file:none.md"}
    assert lead("museum ideas", then) == lead("museum ideas", {})
    assert lead("the museum yesterday", then) > lead("the museum last month", then) > lead("the museum", then)


@pytest.mark.parametrize(
    "options",
    [
        replace(USUAL, by="drawer"),
        replace(USUAL, weights=MappingProxyType({**WEIGHTS, "session": 0.0})),
    ],
)
def test_sessions_are_not_compared_where_nobody_asks(talks: Palace, options: Options) -> None:
    result = ask(talks, options)
    assert SESSIONS not in [stage.name for stage in result.stages]
    assert all(SESSIONS not in hit.stages for hit in result.hits)


def test_what_a_judge_put_in_order_keeps_it(talks: Palace) -> None:
    result = ask(talks, engines=Engines(judge=Judge))
    assert result.judge_status is not None and not result.judge_status.error
    assert all(SESSIONS not in hit.stages for hit in result.hits)
