"""Recall by the graph, and around the times of a question; the rest is tested with the pipeline."""

from __future__ import annotations

import pytest

from castle.clock import parse_iso
from castle.records import Scope
from castle.search import recall
from castle.search.question import ask, ask_palace
from castle.store import speaking
from castle.store.entities import Entities
from castle.store.graph import Graph
from castle.store.graph_values import DAY
from castle.store.palace import Palace
from castle.store.places import forget
from castle.store.reading import drawers_by_id
from castle.text.when import ENDLESS
from tests.conftest import TurnedClock
from tests.store.filer import file

EVERYTHING = Scope()


@pytest.fixture
def graph(palace: Palace) -> Graph:
    return Graph(palace.ledger, actor="test")


def filed(palace: Palace, *texts: str, wing: str = "wing", path: str = "notes.md") -> dict[str, str]:
    """File texts and return their ids."""
    file(palace.ledger, texts, path=path, wing=wing)
    return {text: id_ for id_, text in all_texts(palace).items()}


def all_texts(palace: Palace) -> dict[str, str]:
    with palace.ledger.read() as cx:
        ids = [id_ for (id_,) in cx.exec_driver_sql("SELECT id FROM drawers")]
        return {id_: drawer.text for id_, drawer in drawers_by_id(cx, ids).items()}


def found(palace: Palace, query: str, scope: Scope = EVERYTHING, limit: int = 50) -> list[tuple[str, float]]:
    question = ask_palace(palace, query, palace.ledger.clock())
    candidates = recall.graph(palace, question, scope, limit)
    assert all(c.entity_match and 0 < c.score <= 1 for c in candidates)
    texts = all_texts(palace)
    return [(texts[c.id], c.score) for c in candidates]


def test_drawers_of_facts_come_by_how_many_entities_they_speak_of(palace: Palace, graph: Graph) -> None:
    ids = filed(palace, "one\n", "two\n", "three\n")
    graph.add("Lighthouse", "uses", "Postgres", drawer=ids["one\n"])
    graph.add("Lighthouse", "uses", "Redis", drawer=ids["two\n"])
    graph.add("Postgres", "runs_on", "Linux", drawer=ids["three\n"])
    assert found(palace, "does lighthouse use postgres?") == [
        ("one\n", 1.0),
        ("three\n", 0.5),
        ("two\n", 0.5),
    ]
    assert found(palace, "redis") == [("two\n", 1.0)]
    assert found(palace, "does lighthouse use postgres?", limit=1) == [("one\n", 1.0)]
    assert found(palace, "nothing known") == found(palace, "redis", limit=0) == []


def test_equal_ones_come_latest_recorded_first_then_by_id(
    palace: Palace, graph: Graph, clock: TurnedClock
) -> None:
    ids = filed(palace, "one\n", "two\n", "three\n")
    graph.add("Lighthouse", "uses", "Postgres", drawer=ids["two\n"])
    clock.now += DAY
    graph.add("Lighthouse", "uses", "Redis", drawer=ids["one\n"])
    assert [text for text, _ in found(palace, "lighthouse")] == ["one\n", "two\n"]


def test_expired_facts_count_less_and_retracted_ones_nothing(palace: Palace, graph: Graph) -> None:
    ids = filed(palace, "one\n", "two\n", "three\n")
    graph.add("Lighthouse", "uses", "Postgres", valid_from="2020-01-01", drawer=ids["one\n"])
    graph.add("Lighthouse", "uses", "MySQL", valid_to="2021-01-01", drawer=ids["two\n"])
    graph.add("Lighthouse", "uses", "Oracle", drawer=ids["three\n"])
    graph.retract("Lighthouse", "uses", "Oracle")
    assert found(palace, "lighthouse") == [("one\n", 1.0), ("two\n", speaking.EXPIRED_WEIGHT)]
    graph.invalidate("Lighthouse", "uses", "Postgres")
    assert dict(found(palace, "lighthouse"))["one\n"] == speaking.EXPIRED_WEIGHT


def test_the_scope_comes_before_the_limit(palace: Palace, graph: Graph) -> None:
    many = [f"note {number}\n" for number in range(60)]
    ids = filed(palace, *many, wing="big", path="big.md")
    small = filed(palace, "small\n", wing="small", path="small.md")
    for number, text in enumerate(many):
        graph.add("Lighthouse", "has", f"part {number}", drawer=ids[text])
    graph.add("Lighthouse", "has", "a lamp", drawer=small["small\n"])
    assert found(palace, "lighthouse", Scope(wing="small"), 5) == [("small\n", 1.0)]
    assert len(found(palace, "lighthouse", limit=50)) == 50


def test_forgotten_drawers_stay_away_and_superseded_ones_obey_the_scope(palace: Palace, graph: Graph) -> None:
    ids = filed(palace, "old\n", "gone\n")
    graph.add("Lighthouse", "uses", "Postgres", drawer=ids["old\n"])
    graph.add("Lighthouse", "uses", "Redis", drawer=ids["gone\n"])
    file(palace.ledger, ["gone\n"], base=1)
    forget(palace.ledger, id_=ids["gone\n"], actor="test")
    assert found(palace, "lighthouse") == []
    assert found(palace, "lighthouse", Scope(history=True)) == [("old\n", 1.0)]


def test_mentions_count_least_and_only_where_they_are_few(
    palace: Palace, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Entities(palace.ledger, actor="test")
    registry.add("Jolene", "person")
    ids = filed(palace, "Jolene was here\n", "nobody was here\n", "Jolene again\n")
    assert dict(found(palace, "what of Jolene?")) == {
        "Jolene was here\n": speaking.MENTION_WEIGHT,
        "Jolene again\n": speaking.MENTION_WEIGHT,
    }
    graph.add("Jolene", "likes", "tea", drawer=ids["nobody was here\n"])
    assert found(palace, "what of Jolene?")[0] == ("nobody was here\n", 1.0)
    monkeypatch.setattr(speaking, "MOST_MENTIONS", 1)
    assert found(palace, "what of Jolene?") == [("nobody was here\n", 1.0)]
    registry.forget("Jolene")
    assert found(palace, "what of Jolene?") == []


def test_times_give_narrower_scopes() -> None:
    now = parse_iso("2026-05-20T12:00:00")
    wide = Scope(wing="w")
    (scope,) = recall.dated_scopes(ask("on 2 March 2023", now), wide)
    start = parse_iso("2023-03-02")
    assert (scope.wing, scope.since, scope.until) == ("w", start - 2 * DAY, start + 3 * DAY)
    (before,) = recall.dated_scopes(ask("before 2 March 2023", now), wide)
    assert (before.since, before.until) == (None, start + 2 * DAY)
    (after,) = recall.dated_scopes(ask("after 1 March 2023", now), wide)
    assert (after.since, after.until) == (start - 2 * DAY, None)
    assert ENDLESS not in (after.since, after.until)
    assert recall.dated_scopes(ask("how does it work", now), wide) == []
    assert recall.dated_scopes(ask("on 05/02/2023", now), wide) == []
    assert len(recall.dated_scopes(ask("yesterday, last week, last month", now), wide)) == recall.MOST_DATED


def test_a_narrower_scope_stays_inside_the_one_that_was_asked_for() -> None:
    now = parse_iso("2026-05-20T12:00:00")
    asked = Scope(since=parse_iso("2023-03-02"), until=parse_iso("2023-03-03"))
    (scope,) = recall.dated_scopes(ask("in March 2023", now), asked)
    assert (scope.since, scope.until) == (asked.since, asked.until)
    assert recall.dated_scopes(ask("in May 2022", now), asked) == []
