from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from castle.clock import to_micros
from castle.errors import UsageError
from castle.store.facts import CHANGING, LASTING, ONE_WAY, OPPOSITES, SYMMETRIC, Issue, check
from castle.store.graph import Graph
from castle.store.graph_values import predicate_id
from castle.store.ledger import Ledger
from castle.store.places import forget
from tests.conftest import TurnedClock
from tests.store.filer import file
from tests.store.test_graph import drawer_ids

NOW = to_micros(datetime(2026, 6, 1, 12, tzinfo=UTC))
DAY = 86_400_000_000


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock(NOW)


@pytest.fixture
def ledger(tmp_path: Path, clock: TurnedClock) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "p", create=True, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def graph(ledger: Ledger) -> Graph:
    return Graph(ledger, actor="me")


def of_kind(ledger: Ledger, kind: str) -> list[Issue]:
    return [issue for issue in check(ledger) if issue.kind == kind]


def test_the_lists_of_predicates_are_in_normal_form_and_apart() -> None:
    named = [*CHANGING, *LASTING, *ONE_WAY, *OPPOSITES, *OPPOSITES.values()]
    assert [predicate_id(name) for name in named] == named
    assert not CHANGING & LASTING
    assert SYMMETRIC <= CHANGING
    assert not SYMMETRIC & ONE_WAY


def test_an_empty_graph_and_a_sound_one_have_no_issues(ledger: Ledger, graph: Graph) -> None:
    assert check(ledger) == []
    graph.add("Max", "works_at", "Acme", valid_from="2024-01-01")
    graph.supersede("Max", "works_at", "Acme", "Initech", at="2025-01-01")
    graph.add("Max", "knows", "Anna")
    graph.add("Max", "knows", "Berta")
    graph.add("Anna", "works_at", "Acme")
    assert check(ledger) == []


def test_two_open_objects_of_a_single_valued_predicate_contradict(ledger: Ledger, graph: Graph) -> None:
    one = graph.add("Max", "works_at", "Acme", valid_from="2024-01-01").fact
    two = graph.add("Max", "works_at", "Initech", valid_from="2025-01-01").fact
    before = graph.stats()
    (issue,) = check(ledger)
    assert issue == Issue(
        "contradiction",
        "only one works_at can hold at a time: Max works_at Acme, from 2024-01-01; "
        "Max works_at Initech, from 2025-01-01",
        (one.id, two.id),
    )
    assert graph.stats() == before
    graph.invalidate("Max", "works_at", "Acme", ended="2025-01-01")
    assert check(ledger) == []


def test_only_the_facts_that_overlap_are_named(ledger: Ledger, graph: Graph) -> None:
    graph.add("Max", "lives_in", "Rome", valid_from="2030-01-01", valid_to="2031-01-01")
    graph.add("Max", "lives_in", "Oslo", valid_from="2025-01-01", valid_to="2028-01-01")
    graph.add("Max", "lives_in", "Bern", valid_from="2027-01-01", valid_to="2029-01-01")
    (issue,) = of_kind(ledger, "contradiction")
    assert "Oslo" in issue.detail
    assert "Bern" in issue.detail
    assert "Rome" not in issue.detail


def test_what_has_ended_and_what_was_taken_back_contradicts_nothing(ledger: Ledger, graph: Graph) -> None:
    graph.add("Max", "lives_in", "Rome", valid_from="2020-01-01", valid_to="2022-01-01")
    graph.add("Max", "lives_in", "Oslo", valid_from="2021-01-01")
    graph.add("Max", "lives_in", "Bern")
    graph.retract("Max", "lives_in", "Bern")
    assert check(ledger) == []


def test_marriage_is_seen_from_both_sides(ledger: Ledger, graph: Graph) -> None:
    graph.add("Anna", "married_to", "Max")
    graph.add("Max", "married_to", "Anna")
    assert check(ledger) == []
    graph.add("Berta", "married_to", "Max")
    (issue,) = check(ledger)
    assert len(issue.about) == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Max", "likes", "tea"), ("Max", "dislikes", "tea")),
        (("Max", "uses", "vim"), ("Max", "not_uses", "vim")),
        (("Max", "child_of", "Anna"), ("Anna", "child_of", "Max")),
        (("Anna", "manages", "Max"), ("Max", "manages", "Anna")),
    ],
)
def test_relationships_that_deny_each_other_contradict(
    ledger: Ledger, graph: Graph, one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    first = graph.add(*one, valid_to="2027-01-01").fact
    assert check(ledger) == []
    second = graph.add(*other, valid_from="2026-12-31").fact
    (issue,) = check(ledger)
    assert (issue.kind, set(issue.about)) == ("contradiction", {first.id, second.id})
    graph.retract(*other)
    graph.add(*other, valid_from="2027-01-01")
    assert check(ledger) == []


def test_a_fact_whose_source_no_longer_says_so_is_stale(ledger: Ledger, graph: Graph) -> None:
    file(ledger, ["Max likes tea."], authored_at=NOW)
    (drawer,) = drawer_ids(ledger)
    fact = graph.add("Max", "likes", "tea", drawer=drawer).fact
    assert check(ledger) == []
    file(ledger, ["Max likes coffee."], base=1, authored_at=NOW)
    (issue,) = check(ledger)
    assert (issue.kind, issue.about) == ("stale", (fact.id,))
    assert "no current drawer says so" in issue.detail
    graph.add("Max", "likes", "tea", source="Anna")
    assert check(ledger) == []


def test_an_end_before_the_newest_evidence_is_doubtful(ledger: Ledger, graph: Graph) -> None:
    file(ledger, ["Max works at Acme."], authored_at=to_micros(datetime(2026, 3, 1, tzinfo=UTC)))
    (drawer,) = drawer_ids(ledger)
    graph.add("Max", "works_at", "Acme", drawer=drawer)
    graph.add("Max", "worked_at", "Beta", valid_to="2020-01-01", drawer=drawer)
    graph.invalidate("Max", "works_at", "Acme", ended="2026-01-01")
    (issue,) = check(ledger)
    assert issue.detail == (
        "Max works_at Acme, until 2026-01-01: a drawer written after that end still says so"
    )


def test_a_changing_fact_is_stale_when_nobody_repeats_it(
    ledger: Ledger, graph: Graph, clock: TurnedClock
) -> None:
    graph.add("Max", "lives_in", "Oslo")
    graph.add("Max", "born_on", "1990-01-01")
    graph.add("Max", "knows", "Anna")
    clock.now += 364 * DAY
    assert check(ledger) == []
    clock.now += 2 * DAY
    (issue,) = check(ledger)
    assert issue.detail == "Max lives_in Oslo, without dates: nobody has said so since 2026-06-02"
    assert check(ledger, stale_after_days=400) == check(ledger, stale_after_days=0) == []
    graph.add("Max", "lives_in", "Oslo")
    assert check(ledger) == []
    with pytest.raises(UsageError):
        check(ledger, stale_after_days=-1)


def test_the_age_of_a_fact_is_that_of_its_drawers(ledger: Ledger, graph: Graph) -> None:
    file(ledger, ["Max lives in Oslo."], authored_at=NOW - 500 * DAY)
    (drawer,) = drawer_ids(ledger)
    graph.add("Max", "lives_in", "Oslo", drawer=drawer)
    graph.add("Anna", "lives_in", "Bern", drawer=drawer, valid_from="2026-01-01")
    (issue,) = check(ledger)
    assert "Oslo" in issue.detail


def test_names_that_may_be_one_are_reported_with_their_facts(ledger: Ledger, graph: Graph) -> None:
    graph.add("Maximilian Weber", "knows", "Anna")
    graph.add("Maximilian Weber", "likes", "tea")
    graph.add("Maximillian Weber", "likes", "coffee")
    graph.add("José", "likes", "milk")
    graph.add("Jose", "likes", "wine")
    details = [(issue.detail, issue.about) for issue in check(ledger)]
    assert details == [
        (
            "Jose (1 fact) and José (1 fact) may be one: they differ only in case, accents or punctuation",
            ("jose", "josé"),
        ),
        (
            "Maximilian Weber (2 facts) and Maximillian Weber (1 fact) may be one: they differ by 1 letter",
            ("maximilian_weber", "maximillian_weber"),
        ),
    ]


def test_what_is_forgotten_is_not_reported(ledger: Ledger, graph: Graph) -> None:
    file(ledger, ["Max works at Initech with Maximiliane."], authored_at=NOW)
    (drawer,) = drawer_ids(ledger)
    graph.add("Max", "works_at", "Acme")
    graph.add("Max", "works_at", "Initech", drawer=drawer)
    graph.add("Maximiliane", "knows", "Maximiliana", drawer=drawer)
    assert {issue.kind for issue in check(ledger)} == {"contradiction", "similar names"}
    forget(ledger, id_=drawer, actor="me")
    assert check(ledger) == []
