from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.clock import to_iso, to_micros
from castle.errors import CastleError, NotFoundError, RefusedError, UsageError
from castle.records import Scope
from castle.store.graph import DIRECTIONS, Graph
from castle.store.graph_reading import drawers_by_entities
from castle.store.graph_values import Fact, Facts, entity_id, fact_id, parse_span
from castle.store.ledger import Ledger
from castle.store.places import forget, restore
from castle.store.reading import listed
from tests.conftest import TurnedClock
from tests.store.filer import file

NOW = to_micros(datetime(2026, 6, 1, 12, tzinfo=UTC))


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


def objects(found: Facts) -> list[str]:
    return [fact.object for fact in found.facts]


def drawer_ids(ledger: Ledger) -> list[str]:
    with ledger.read() as cx:
        return [drawer.id for drawer in listed(cx, Scope(history=True), 100, 0)[1]]


def test_a_fact_and_both_its_entities_are_recorded_with_their_origin(graph: Graph, ledger: Ledger) -> None:
    file(ledger, ["Max joined Acme."])
    (drawer,) = drawer_ids(ledger)
    added = graph.add(
        "Max",
        "Works at",
        "Acme Inc.",
        valid_from="2024-01-01",
        confidence=0.8,
        drawer=drawer[:8],
        source="talk",
    )
    assert added.outcome == "added"
    fact = graph.query("max").facts[0]
    assert fact == Fact(
        **{**{name: getattr(added.fact, name) for name in Fact.__slots__}, "direction": "outgoing"}
    )
    assert (fact.subject, fact.predicate, fact.object) == ("Max", "works_at", "Acme Inc.")
    assert (fact.subject_id, fact.object_id) == ("max", "acme_inc.")
    assert fact.valid_from == to_micros(datetime(2024, 1, 1, tzinfo=UTC))
    assert fact.valid_from_text == "2024-01-01"
    assert (fact.valid_to, fact.state, fact.confidence) == (None, "current", 0.8)
    assert NOW < fact.created_at == fact.recorded_at < NOW + 60_000_000
    assert fact.recorded_by == "me"
    (said,) = fact.evidence
    assert (said.drawer, said.state, said.source, said.actor) == (drawer, "current", "talk", "me")
    incoming = graph.query("Acme Inc.").facts[0]
    assert (incoming.id, incoming.direction) == (fact.id, "incoming")


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("Max", "max"),
        ("Anna Maria", "anna_maria"),
        ("  O'Brien ", "obrien"),
        ("O\u2019Brien", "obrien"),
        ("C++", "c++"),
        ("A \t B", "a_b"),
        ("ÉCOLE", "école"),
        ("E\u0301cole", "école"),
    ],
)
def test_ids_of_entities(name: str, id_: str) -> None:
    assert entity_id(name) == id_


def test_ids_of_facts_keep_their_parts_apart() -> None:
    assert fact_id("a", "bc", "d", 0) != fact_id("ab", "c", "d", 0)
    assert fact_id("a", "b", "c", 0) != fact_id("a", "b", "c", 1)
    assert len(fact_id("a", "b", "c", 0)) == 24


@pytest.mark.parametrize("name", ["", "  ", "x" * 129, "a\0b", "a\nb", "\ud800", "'"])
def test_names_that_cannot_be_recorded_are_refused_in_one_line(graph: Graph, name: str) -> None:
    for subject, object_ in ((name, "b"), ("a", name)):
        with pytest.raises(UsageError) as caught:
            graph.add(subject, "knows", object_)
        assert "\n" not in str(caught.value)
    with pytest.raises(UsageError):
        graph.query(name)
    assert graph.stats().entities == 0


def test_names_may_hold_any_punctuation(graph: Graph) -> None:
    name = '«/..\\%_*?"; DROP TABLE triples --»'
    graph.add(name, "is", "x" * 128)
    assert objects(graph.query(name)) == ["x" * 128]


@pytest.mark.parametrize("predicate", ["", "../x", "_works", "a/b", "x" * 129, "a\0b"])
def test_predicates_follow_the_rules_for_names(graph: Graph, predicate: str) -> None:
    with pytest.raises(UsageError, match="predicate"):
        graph.add("a", predicate, "b")


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_confidence_lies_between_0_and_1(graph: Graph, confidence: float) -> None:
    with pytest.raises(UsageError, match="confidence"):
        graph.add("a", "knows", "b", confidence=confidence)


@pytest.mark.parametrize(
    ("text", "start", "whole_day"),
    [
        ("2026-05-02", "2026-05-02T00:00:00+00:00", True),
        ("20260502", "2026-05-02T00:00:00+00:00", True),
        ("2026-W18-6", "2026-05-02T00:00:00+00:00", True),
        (" 2024-02-29 ", "2024-02-29T00:00:00+00:00", True),
        ("2026-05-02T10:00", "2026-05-02T10:00:00+00:00", False),
        ("2026-05-02 10:00:01", "2026-05-02T10:00:01+00:00", False),
        ("2026-05-02T10:00Z", "2026-05-02T10:00:00+00:00", False),
        ("2026-05-02t10:00z", "2026-05-02T10:00:00+00:00", False),
        ("2026-05-02T00:30:00+02:00", "2026-05-01T22:30:00+00:00", False),
        ("2026-05-01T23:30-0800", "2026-05-02T07:30:00+00:00", False),
        ("20260502T100000.5+0530", "2026-05-02T04:30:00.500000+00:00", False),
    ],
)
def test_every_iso_form_of_a_date_is_read(text: str, start: str, whole_day: bool) -> None:
    span = parse_span("as_of", text)
    assert span.start == to_micros(datetime.fromisoformat(start))
    assert span.end - span.start == (86_400_000_000 if whole_day else 1)


@pytest.mark.parametrize(
    "text",
    "|2026|2026-05|2026-5-2|05/02/2026|2026-02-30|2025-02-29|2026-13-01|2026-W18|yesterday|2026-05-02x10:00|"
    "2026-05-02T25:00|2026-05-02T10:00+25:00|2026-05-02T|2026-05-02T10:00 CET|٢٠٢٦-٠٥-٠٢|1780000000|"
    "0001-01-01T00:00+05:00|2026-05-02\n2026-05-03".split("|"),
)
def test_a_malformed_date_is_refused_and_nothing_is_written(graph: Graph, text: str) -> None:
    for call in (
        lambda: graph.add("a", "knows", "b", valid_from=text),
        lambda: graph.add("a", "knows", "b", valid_to=text),
        lambda: graph.query("a", as_of=text),
        lambda: graph.invalidate("a", "knows", "b", ended=text),
    ):
        with pytest.raises(UsageError, match="is no ISO date or time: write 2026-05-31") as caught:
            call()
        assert "\n" not in str(caught.value)
    assert graph.stats().facts == 0


def test_validity_is_half_open_and_a_date_is_a_whole_day(graph: Graph) -> None:
    graph.add("Max", "works_at", "Acme", valid_from="2026-05-01", valid_to="2026-05-03")
    for moment, there in {
        "2026-04-30": False,
        "2026-04-30T23:59:59.999999": False,
        "2026-05-01": True,
        "2026-05-01T00:00:00Z": True,
        "2026-05-01T01:00+02:00": False,
        "2026-05-01T02:00+02:00": True,
        "2026-05-02": True,
        "2026-05-02T23:59:59.999999Z": True,
        "2026-05-03": False,
        "2026-05-03T00:00Z": False,
        "2026-05-02T23:00-01:00": False,
    }.items():
        assert (objects(graph.query("Max", as_of=moment)) == ["Acme"]) is there, moment


def test_a_fact_of_a_part_of_a_day_is_found_by_the_date(graph: Graph) -> None:
    graph.add("office", "is", "closed", valid_from="2026-05-02T15:00:00Z", valid_to="2026-05-02T16:00:00Z")
    assert objects(graph.query("office", as_of="2026-05-02")) == ["closed"]
    assert objects(graph.query("office", as_of="2026-05-02T14:59")) == []
    assert objects(graph.query("office", as_of="2026-05-02T16:00")) == []


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-05-02", "2026-05-02"),
        ("2026-05-02", "2026-05-01"),
        ("2026-05-02T02:00+02:00", "2026-05-02"),
    ],
)
def test_a_validity_that_holds_nothing_is_refused(graph: Graph, start: str, end: str) -> None:
    with pytest.raises(UsageError, match="is not after valid_from"):
        graph.add("a", "knows", "b", valid_from=start, valid_to=end)


def test_the_same_fact_again_is_known(graph: Graph) -> None:
    first = graph.add("Max", "works_at", "Acme", valid_from="2024-01-01")
    again = graph.add("max", "Works At", "ACME", valid_from="2024-01-01T00:00:00Z")
    assert (again.outcome, again.fact.id) == ("known", first.fact.id)
    assert [len(graph.timeline().facts), graph.stats().entities] == [1, 2]
    assert graph.query("Max").facts[0].subject == "Max"


def test_the_same_statement_again_is_no_more_evidence_but_a_confirmation(
    graph: Graph, clock: TurnedClock
) -> None:
    graph.add("Max", "works_at", "Acme")
    clock.now += 10**12
    graph.add("Max", "works_at", "Acme")
    (fact,) = graph.query("Max").facts
    (said,) = fact.evidence
    assert said.confirmed_at - said.recorded_at > 10**12
    graph.add("Max", "works_at", "Acme", source="a letter", confidence=0.5)
    (fact,) = graph.query("Max").facts
    assert [item.source for item in fact.evidence] == ["", "a letter"]
    assert fact.confidence == 1.0


def test_a_later_start_is_kept_as_evidence_only(graph: Graph) -> None:
    graph.add("Max", "works_at", "Acme", valid_from="2024-01-01")
    later = graph.add("Max", "works_at", "Acme", valid_from="2025-01-01")
    assert (later.outcome, later.fact.valid_from_text) == ("known", "2024-01-01")
    assert [item.valid_from_text for item in later.fact.evidence] == ["2024-01-01", "2025-01-01"]


def test_an_earlier_start_widens_and_a_first_start_dates_a_fact(graph: Graph, clock: TurnedClock) -> None:
    graph.add("Max", "works_at", "Acme")
    undated = to_iso(clock.now)
    dated = graph.add("Max", "works_at", "Acme", valid_from="2025-01-01")
    assert (dated.outcome, objects(graph.query("Max", as_of="2024-06-01"))) == ("dated", [])
    widened = graph.add("Max", "works_at", "Acme", valid_from="2024-01-01")
    assert (widened.outcome, objects(graph.query("Max", as_of="2024-06-01"))) == ("widened", ["Acme"])
    assert widened.fact.id == dated.fact.id
    assert graph.timeline().total == 1
    then = graph.query("Max", as_of="2001-01-01", as_recorded=undated)
    assert objects(then) == ["Acme"]


def test_a_statement_that_ends_otherwise_is_refused_with_the_command_to_type(graph: Graph) -> None:
    graph.add("Max", "works_at", "Acme Inc.", valid_from="2024-01-01")
    with pytest.raises(RefusedError) as caught:
        graph.add("Max", "works_at", "Acme Inc.", valid_to="2026-01-01")
    assert "recorded from 2024-01-01, not until 2026-01-01" in str(caught.value)
    assert "`castle kg invalidate Max works_at 'Acme Inc.' --ended 2026-01-01`" in str(caught.value)
    graph.invalidate("Max", "works_at", "Acme Inc.", ended="2026-01-01")
    with pytest.raises(RefusedError, match="at or after 2026-01-01, with --valid-from"):
        graph.add("Max", "works_at", "Acme Inc.")
    again = graph.add("Max", "works_at", "Acme Inc.", valid_from="2026-01-01")
    assert again.outcome == "added"
    assert [fact.state for fact in graph.query("Max").facts] == ["current", "ended"]


def test_an_undated_statement_finds_the_open_fact_beside_an_ended_one(graph: Graph) -> None:
    graph.add("Max", "works_at", "Acme", valid_from="2020-01-01", valid_to="2021-01-01")
    second = graph.add("Max", "works_at", "Acme", valid_from="2024-01-01")
    assert graph.add("Max", "works_at", "Acme").fact.id == second.fact.id
    with pytest.raises(RefusedError, match="recorded from 2020-01-01 to 2021-01-01, not from 2019-01-01"):
        graph.add("Max", "works_at", "Acme", valid_from="2019-01-01")


def test_an_ended_fact_stays_known_as_what_held_and_as_what_was_recorded(
    graph: Graph, clock: TurnedClock
) -> None:
    graph.add("Max", "works_at", "Acme", valid_from="2024-01-01")
    before = to_iso(clock.now)
    ended = graph.invalidate("Max", "works_at", "Acme", ended="2026-05-02", actor="Anna")
    assert (ended.valid_to_text, ended.state, ended.recorded_by) == ("2026-05-02", "ended", "Anna")
    assert ended.created_at < ended.recorded_at
    assert objects(graph.query("Max", as_of="2026-05-01")) == ["Acme"]
    assert objects(graph.query("Max", as_of="2026-05-02")) == []
    assert objects(graph.query("Max", as_of="2026-05-02", as_recorded=before)) == ["Acme"]
    (then,) = graph.query("Max", as_recorded=before).facts
    assert (then.id, then.valid_to, then.ended_at, then.ended_by) == (
        ended.id,
        None,
        ended.recorded_at,
        "Anna",
    )
    assert objects(graph.query("Max", as_recorded="2026-05-31")) == []
    assert objects(graph.query("Max", as_recorded="2026-06-01")) == ["Acme"]


def test_ending_takes_effect_now_unless_told_otherwise(graph: Graph, clock: TurnedClock) -> None:
    graph.add("Max", "works_at", "Acme")
    ended = graph.invalidate("Max", "works_at", "Acme")
    assert ended.valid_to is not None
    assert NOW < ended.valid_to <= clock.now
    assert ended.valid_to_text is None


def test_ending_what_does_not_hold_says_so(graph: Graph) -> None:
    with pytest.raises(NotFoundError, match="the graph holds no fact Max works_at Acme"):
        graph.invalidate("Max", "works_at", "Acme")
    graph.add("Max", "works_at", "Acme", valid_from="2025-01-01")
    with pytest.raises(RefusedError, match="begins at 2025-01-01, not before 2024-01-01"):
        graph.invalidate("Max", "works_at", "Acme", ended="2024-01-01")
    with pytest.raises(RefusedError, match="begins at 2025-01-01"):
        graph.invalidate("Max", "works_at", "Acme", ended="2025-01-01")
    graph.invalidate("Max", "works_at", "Acme", ended="2026-01-01")
    with pytest.raises(NotFoundError, match="ended already at 2026-01-01"):
        graph.invalidate("Max", "works_at", "Acme", ended="2026-01-01")
    with pytest.raises(NotFoundError, match="ended already at 2026-01-01"):
        graph.invalidate("Max", "works_at", "Acme")


def test_what_never_held_is_taken_back_and_stays_in_what_was_recorded(
    graph: Graph, clock: TurnedClock
) -> None:
    first = graph.add("Max", "works_at", "Acne")
    before = to_iso(clock.now)
    (gone,) = graph.retract("Max", "works_at", "Acne")
    assert (gone.id, gone.ended_by) == (first.fact.id, "me")
    assert graph.query("Max").total == graph.stats().facts == 0
    assert objects(graph.query("Max", as_recorded=before)) == ["Acne"]
    with pytest.raises(NotFoundError):
        graph.retract("Max", "works_at", "Acne")
    assert graph.add("Max", "works_at", "Acne").fact.id != first.fact.id


def test_superseding_leaves_neither_a_gap_nor_a_doubt(graph: Graph) -> None:
    graph.add("Max", "works_at", "Acme", valid_from="2024-01-01")
    changed = graph.supersede("Max", "works_at", "Acme", "Beta", at="2026-05-02")
    assert changed.ended.valid_to == changed.added.fact.valid_from
    assert objects(graph.query("Max", as_of="2026-05-01")) == ["Acme"]
    assert objects(graph.query("Max", as_of="2026-05-02")) == ["Beta"]
    assert objects(graph.query("Max", as_of="2026-05-01T23:59:59.999999")) == ["Acme"]
    assert objects(graph.query("Max", as_of="2026-05-02T00:00")) == ["Beta"]
    now = graph.supersede("Max", "works_at", "Beta", "Gamma")
    assert now.ended.valid_to == now.added.fact.valid_from


def test_superseding_happens_whole_or_not_at_all(graph: Graph) -> None:
    graph.add("Max", "works_at", "Acme", valid_from="2024-01-01")
    graph.add("Max", "works_at", "Beta", valid_from="2025-01-01", valid_to="2025-06-01")
    with pytest.raises(RefusedError):
        graph.supersede("Max", "works_at", "Acme", "Beta", at="2025-03-01")
    with pytest.raises(NotFoundError):
        graph.supersede("Max", "works_at", "Gamma", "Delta")
    with pytest.raises(UsageError, match="the same"):
        graph.supersede("Max", "works_at", "Acme", "ACME")
    with pytest.raises(NotFoundError, match="no drawer"):
        graph.supersede("Max", "works_at", "Acme", "Delta", drawer="abcdef")
    assert objects(graph.query("Max", as_of="2026-01-01")) == ["Acme"]
    assert graph.stats().entities == 3


def test_directions(graph: Graph) -> None:
    graph.add("Max", "knows", "Anna")
    graph.add("Berta", "knows", "Max")
    graph.add("Max", "knows", "Max")
    pairs = {
        direction: {(fact.subject, fact.object) for fact in graph.query("Max", direction=direction).facts}
        for direction in DIRECTIONS
    }
    assert pairs == {
        "outgoing": {("Max", "Anna"), ("Max", "Max")},
        "incoming": {("Berta", "Max"), ("Max", "Max")},
        "both": {("Max", "Anna"), ("Berta", "Max"), ("Max", "Max")},
    }
    assert graph.query("Max").total == 3
    with pytest.raises(UsageError, match="direction 'up' is none of"):
        graph.query("Max", direction="up")  # type: ignore[arg-type]


def test_facts_with_a_predicate(graph: Graph) -> None:
    graph.add("Max", "works_at", "Acme", valid_to="2025-01-01")
    graph.add("Anna", "works_at", "Beta")
    graph.add("Anna", "knows", "Max")
    assert objects(graph.relationship("works at")) == ["Beta", "Acme"]
    assert objects(graph.relationship("works_at", "2026-01-01")) == ["Beta"]
    assert graph.relationship("owns").total == 0


def test_an_unknown_entity_is_an_error_with_names_like_it(graph: Graph) -> None:
    graph.add("Maximilian", "knows", "Anna")
    with pytest.raises(NotFoundError, match="knows nothing of Maximilain: did you mean Maximilian?"):
        graph.query("Maximilain")
    with pytest.raises(NotFoundError, match="knows nothing of Zoe"):
        graph.timeline("Zoe")


def test_a_timeline_counts_everything_and_is_read_in_pages(graph: Graph) -> None:
    graph.add("log", "has", "undated")
    for day in range(120, 0, -1):
        graph.add("log", "has", f"entry {day}", valid_from=to_iso(day * 86_400_000_000))
    first = graph.timeline(limit=100)
    rest = graph.timeline("log", limit=100, offset=100)
    assert (first.total, rest.total, len(first.facts), len(rest.facts)) == (121, 121, 100, 21)
    assert objects(first)[:2] == ["entry 1", "entry 2"]
    assert objects(rest)[-2:] == ["entry 120", "undated"]
    assert len(graph.timeline().facts) == 121
    for limit, offset in ((0, 0), (1, -1)):
        with pytest.raises(UsageError):
            graph.timeline(limit=limit, offset=offset)


def test_stats(graph: Graph, ledger: Ledger) -> None:
    file(ledger, ["secret"])
    (drawer,) = drawer_ids(ledger)
    graph.add("Max", "works_at", "Acme", valid_to="2025-01-01")
    graph.add("Max", "works_at", "Beta", valid_from="2030-01-01")
    graph.add("Max", "knows", "Anna")
    graph.add("Max", "knows", "Eve", drawer=drawer)
    forget(ledger, id_=drawer, actor="me")
    numbers = graph.stats()
    assert (numbers.entities, numbers.facts, numbers.current, numbers.ended, numbers.future) == (
        5,
        3,
        1,
        1,
        1,
    )
    assert (numbers.hidden, numbers.evidence) == (1, 4)
    assert dict(numbers.predicates) == {"works_at": 2, "knows": 1}


def test_a_fact_is_hidden_while_all_its_evidence_is_forgotten(graph: Graph, ledger: Ledger) -> None:
    file(ledger, ["Max knows Eve.", "Eve met Max."])
    one, two = drawer_ids(ledger)
    graph.add("Max", "knows", "Eve", drawer=one)
    graph.add("Max", "knows", "Eve", drawer=two)
    forget(ledger, id_=one, actor="me")
    (fact,) = graph.query("Max").facts
    assert (fact.evidence_state, [item.state for item in fact.evidence]) == (
        "current",
        ["forgotten", "current"],
    )
    forget(ledger, id_=two, actor="me")
    hidden = graph.query("Max")
    assert (hidden.total, hidden.hidden, hidden.facts) == (0, 1, ())
    assert graph.timeline().hidden == graph.relationship("knows").hidden == 1
    with pytest.raises(RefusedError, match="is forgotten"):
        graph.add("Max", "knows", "Eve", drawer=one)
    restore(ledger, id_=one)
    assert graph.query("Max").total == 1


def test_evidence_that_a_new_revision_dropped_is_superseded(graph: Graph, ledger: Ledger) -> None:
    file(ledger, ["Max works at Acme."])
    (drawer,) = drawer_ids(ledger)
    graph.add("Max", "works_at", "Acme", drawer=drawer)
    file(ledger, ["Max left."], base=1)
    assert graph.query("Max").facts[0].evidence_state == "superseded"
    graph.add("Max", "works_at", "Acme", source="Anna")
    assert graph.query("Max").facts[0].evidence_state == "stated"


def test_evidence_must_be_a_drawer_that_there_is(graph: Graph) -> None:
    with pytest.raises(NotFoundError, match="no drawer abcdef"):
        graph.add("Max", "knows", "Eve", drawer="abcdef")
    with pytest.raises(UsageError, match="no drawer id"):
        graph.add("Max", "knows", "Eve", drawer="notes.md")
    assert graph.stats().entities == 0


def test_an_alias_stands_for_its_entity(graph: Graph) -> None:
    graph.add("Maximilian Weber", "works_at", "Acme")
    graph.add("Anna", "works_at", "Acme")
    graph.add_alias("Maximilian Weber", "Max")
    graph.add_alias("Maximilian Weber", "max")
    assert graph.add("Max", "works_at", "Acme").outcome == "known"
    assert graph.query("MAX").entity == "Maximilian Weber"
    graph.invalidate("Max", "works_at", "Acme")
    with pytest.raises(RefusedError, match="already another entity"):
        graph.add_alias("Maximilian Weber", "Anna")
    with pytest.raises(NotFoundError):
        graph.add_alias("Zoe", "Zo")


def test_drawers_are_recalled_by_how_many_entities_they_speak_of(graph: Graph, ledger: Ledger) -> None:
    file(ledger, ["a", "b", "c"], path="a.md", wing="one")
    file(ledger, ["d"], path="d.md", wing="two")
    a, b, c, d = drawer_ids(ledger)
    graph.add("Max", "knows", "Anna", drawer=a)
    graph.add("Max", "likes", "tea", drawer=b)
    graph.add("Anna", "likes", "tea", drawer=d, valid_to="2025-01-01")
    graph.add("Berta", "likes", "tea", drawer=c)
    with ledger.read() as cx:
        assert drawers_by_entities(cx, ["max", "anna"], 10, 0) == [a, d, b]
        assert drawers_by_entities(cx, ["max", "anna"], 1, 1) == [d]
        assert drawers_by_entities(cx, ["max", "anna"], 1, 0, scope=Scope(wing="two")) == [d]
        assert drawers_by_entities(cx, ["max", "anna"], 10, 0, at=NOW) == [a, b]
        assert drawers_by_entities(cx, [], 10, 0) == []
    forget(ledger, id_=a, actor="me")
    graph.retract("Max", "likes", "tea")
    with ledger.read() as cx:
        assert drawers_by_entities(cx, ["max", "anna"], 10, 0) == [d]


ADDER = """
import sys
from pathlib import Path
from castle.store.graph import Graph
from castle.store.ledger import Ledger

graph = Graph(Ledger(Path(sys.argv[1])), actor="both")
print("ready", flush=True)
sys.stdin.readline()
for number in range(30):
    print(graph.add("Max", "knows", f"friend {number}").outcome, flush=True)
"""


def test_two_processes_that_add_the_same_facts_at_once_make_one_of_each(graph: Graph, ledger: Ledger) -> None:
    command = [sys.executable, "-c", ADDER, str(ledger.root)]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outcomes = [word for process in both for word in process.communicate(timeout=120)[0].split()]
    assert sorted(outcomes) == ["added"] * 30 + ["known"] * 30
    assert graph.stats().facts == graph.stats().evidence == 30


HOURS = 72
DAY_ONE = datetime(2026, 5, 1, tzinfo=UTC)


def at_hour(hour: int, offset: int = 0, date: bool = False) -> str:
    """Write a time hours after the first day began, as a date where it is one and that is wanted."""
    moment = DAY_ONE + timedelta(hours=hour)
    if date and hour % 24 == 0:
        return moment.date().isoformat()
    return moment.astimezone(timezone(timedelta(hours=offset))).isoformat()


@dataclass(frozen=True)
class Step:
    verb: str
    object: str
    start: int | None
    end: int | None
    offset: int
    date: bool


Held = dict[str, list[tuple[float, float]]]
HOUR = st.integers(0, HOURS)
STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["add", "add", "add", "invalidate", "supersede", "retract"]),
        st.sampled_from(["A", "B"]),
        st.none() | HOUR,
        st.none() | HOUR,
        st.integers(-11, 11),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def apply(graph: Graph, subject: str, step: Step, held: Held) -> None:
    """Take a step in the graph and, when it was not refused, in the naive model of what holds."""

    def text(hour: int | None) -> str | None:
        return None if hour is None else at_hour(hour, step.offset, step.date)

    def naive_add(name: str, start: float, end: float, outcome: str) -> None:
        if outcome == "added":
            held[name].append((start, end))
        elif outcome == "widened":
            held[name] = [(start, e) if e == end else (s, e) for s, e in held[name]]
        elif outcome == "dated":
            held[name] = [(start, e) if s == -1e9 else (s, e) for s, e in held[name]]
        else:
            assert any(e == end and (start == -1e9 or s <= start) for s, e in held[name])

    def naive_end(name: str, at: float) -> None:
        assert any(s < at < e for s, e in held[name])
        held[name] = [(s, at) if s < at < e else (s, e) for s, e in held[name]]

    start = -1e9 if step.start is None else step.start
    end = 1e9 if step.end is None else step.end
    other = "B" if step.object == "A" else "A"
    try:
        if step.verb == "add":
            added = graph.add(
                subject, "is", step.object, valid_from=text(step.start), valid_to=text(step.end)
            )
            naive_add(step.object, start, end, added.outcome)
        elif step.verb == "retract":
            graph.retract(subject, "is", step.object)
            held[step.object] = []
        elif step.start is not None and step.verb == "invalidate":
            graph.invalidate(subject, "is", step.object, ended=text(step.start))
            naive_end(step.object, start)
        elif step.start is not None:
            changed = graph.supersede(subject, "is", step.object, other, at=text(step.start))
            naive_end(step.object, start)
            naive_add(other, start, 1e9, changed.added.outcome)
    except CastleError:
        pass


def naive(held: Held, first: float, last: float) -> list[str]:
    """Return what holds at any hour of ``[first, last)``."""
    hours = [first + n for n in range(int(last - first))]
    return sorted(
        name
        for name, spans in held.items()
        for start, end in spans
        if any(start <= hour < end for hour in hours)
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, TurnedClock]]:
    clock = TurnedClock(NOW)
    opened = Ledger(tmp_path_factory.mktemp("graph") / "p", create=True, clock=clock)
    yield opened, clock
    opened.close()


NUMBERS = iter(range(10**9))


@pytest.mark.slow
@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_what_held_and_what_was_recorded_agree_with_a_naive_model(
    shared: tuple[Ledger, TurnedClock], steps: list[Step]
) -> None:
    ledger, clock = shared
    graph = Graph(ledger)
    subject = f"subject {next(NUMBERS)}"
    graph.add(subject, "exists_in", "test")
    held: Held = {"A": [], "B": []}
    recorded: list[tuple[str, list[str]]] = []
    for step in steps:
        apply(graph, subject, step, held)
        recorded.append((to_iso(clock.now), naive(held, 30, 31)))

    def answer(as_of: str, as_recorded: str | None = None) -> list[str]:
        found = graph.query(subject, as_of=as_of, as_recorded=as_recorded)
        assert found.total == len(found.facts)
        return sorted(fact.object for fact in found.facts if fact.predicate == "is")

    for hour in range(-1, HOURS + 2):
        assert answer(at_hour(hour)) == naive(held, hour, hour + 1)
        if hour % 24 == 0:
            assert answer(at_hour(hour, date=True)) == naive(held, hour, hour + 24)
    for moment, then in recorded:
        assert answer(at_hour(30), moment) == then
    for spans in held.values():
        ordered = sorted(spans)
        assert all(before[1] <= after[0] for before, after in zip(ordered, ordered[1:], strict=False))
