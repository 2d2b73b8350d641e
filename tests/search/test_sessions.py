"""Sessions as a whole: their words, their nearest drawer, and how both weigh in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pytest
from numpy.typing import NDArray

from castle.clock import parse_iso
from castle.models.rerankers import FakeCrossEncoder
from castle.records import Scope, SearchResult
from castle.search.candidates import Candidate
from castle.search.fusion import log_odds, probability
from castle.search.hits import SESSIONS, united
from castle.search.options import WEIGHTS, Options, Unit
from castle.search.pipeline import search
from castle.search.question import Question
from castle.search.question import ask as understood
from castle.search.refine import Engines
from castle.search.sessions import SHIPPED, UNSEEN, Seen, Spread, bm25, cosines, signs
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
    found = signs(talks, asked("museum paintings visited"), Scope(), Seen(ranked, drawers))
    assert found["file:all.md"].words > found["file:one.md"].words > found["file:none.md"].words
    assert len(shown) == len(result.hits)
    assert signs(talks, asked("museum"), Scope(), Seen(ranked[:1], drawers)) == {}
    # What is nearest counts for more where advice is asked for, what was then where a day is named.
    near = [candidate(hit.id, 0.5 if hit.source == "file:none.md" else 0.1) for hit in result.hits]

    def lead(query: str, timely: dict[str, float]) -> float:
        question = asked(query)
        found = signs(talks, question, Scope(), Seen(ranked, drawers, near, timely))
        none, every = (
            found[source].evidence(SHIPPED, advice=question.advice)
            for source in ("file:none.md", "file:all.md")
        )
        return none - every

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


@dataclass(frozen=True)
class Reader(FakeCrossEncoder):
    """Finds that texts answer together what only they hold, and remembers what it read."""

    wanted: str = ""
    texts: list[str] = field(default_factory=list)

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts.extend(texts)
        return super().score(query, texts)

    def compare(self, query: str, groups: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        return np.array([9.0 * any(self.wanted in text for text in group) for group in groups])


@pytest.mark.parametrize("wanted", ["the moon", "seen", "only friends"])
def test_what_was_read_of_a_session_counts_as_one_text(talks: Palace, wanted: str) -> None:
    hits = ask(talks, engines=Engines(lambda: Reader(wanted=wanted))).hits
    held = {"the moon": "file:one.md", "seen": "file:all.md", "only friends": "file:none.md"}
    usual = {hit.source: hit.stages[SESSIONS].score for hit in ask(talks).hits}
    heard = {hit.source: hit.stages[SESSIONS].score for hit in hits}
    source = held[wanted]
    more = SHIPPED.together * 9.0
    assert all(
        heard[source] - heard[o] == pytest.approx(usual[source] - usual[o] + more)
        for o in heard
        if o != source
    )


def test_a_session_that_was_not_read_counts_as_the_least_that_was(talks: Palace) -> None:
    result = ask(talks)
    ranked = [candidate(hit.id, hit.score) for hit in result.hits]
    drawers = {hit.id: replace(DRAWER, source=hit.source) for hit in result.hits}
    seen = Seen(ranked, drawers, together={"file:all.md": 3.0, "file:one.md": 1.0})
    found = signs(talks, asked("museum"), Scope(), seen)
    assert {key: sign.together for key, sign in found.items()} == {
        "file:all.md": 3.0,
        "file:one.md": 1.0,
        "file:none.md": 1.0,
    }


@pytest.mark.parametrize(("by", "read"), [("session", 3), ("drawer", 1)])
def test_of_each_session_the_best_drawer_is_read_before_others(palace: Palace, by: Unit, read: int) -> None:
    file(palace.ledger, [f"the museum and its paintings {n}" for n in range(20)], path="long.md")
    file(palace.ledger, ["a museum of ships that we saw at the coast"], path="one.md")
    file(palace.ledger, ["no museum was open when we were there"], path="two.md")
    reader = Reader()
    options = replace(USUAL, by=by, rerank_k=3)
    search(palace, "the museum and its paintings", Scope(), 3, options, Engines(lambda: reader))
    assert len(reader.texts) == 3
    assert len({text.split()[0] + text.split()[1] for text in reader.texts}) == read
