from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.search import soar as stage
from castle.search.candidates import Candidate
from castle.search.soar import (
    MULTIPLIERS,
    UNDATED_SECONDS,
    WORKING_MEMORY,
    SoarContext,
    SoarFacts,
    SoarMissing,
    SoarUnavailable,
    age_seconds,
    combined,
    context_fields,
    memory_fields,
    project_of_environment,
    soar,
)
from castle.search.soar_engine import Fields

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
WEEK = 7 * 24 * 3600 * SECOND
CONTEXT = SoarContext("bees", "where is the hive", NOW)


@dataclass
class Answers:
    """Gives each memory the tags that a test names."""

    tags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    own_rules: bool = False
    failure: SoarUnavailable | None = None
    asked: list[Sequence[Fields]] = field(default_factory=list)

    def ask(self, context: Fields, memories: Sequence[Fields]) -> list[tuple[str, ...]]:
        self.asked.append(memories)
        if self.failure is not None:
            raise self.failure
        return [self.tags.get(str(dict(memory)["id"]), ()) for memory in memories]


@pytest.fixture(autouse=True)
def nothing_said() -> Iterator[None]:
    stage._said.clear()
    yield
    stage._said.clear()


def facts_of(identity: str, authored_at: int | None = NOW, **changes: object) -> SoarFacts:
    values: dict[str, object] = {"wing": "ants", "room": "general", "entity_match": False, "score": 0.5}
    return SoarFacts(identity, authored_at=authored_at, **{**values, **changes})  # type: ignore[arg-type]


def run(scores: dict[str, float], engine: Answers, strength: float = 1.0) -> list[Candidate]:
    candidates = [Candidate(name, name, score=score) for name, score in scores.items()]
    return soar(candidates, {name: facts_of(name) for name in scores}, CONTEXT, engine, strength)


def test_tags_multiply_and_reorder() -> None:
    engine = Answers({"b": ("entity-match", "recency-boost")})
    first, second = run({"a": 0.5, "b": 0.4}, engine)
    assert (first.id, second.id) == ("b", "a")
    assert first.soar_boost == pytest.approx(1.625)
    assert first.score == pytest.approx(0.65)
    assert first.score_pre_soar == 0.4
    assert first.soar_tags == ("entity-match", "recency-boost")
    assert first.boosts == {"soar:entity-match": 1.30, "soar:recency-boost": 1.25}
    assert (second.score, second.soar_boost, second.soar_tags, second.score_pre_soar) == (0.5, 1.0, (), 0.5)
    assert (first.stages["soar"].rank, second.stages["soar"].rank) == (1, 2)


def test_the_multipliers() -> None:
    assert MULTIPLIERS == {
        "recency-boost": 1.25,
        "same-project": 1.15,
        "entity-match": 1.30,
        "type-match": 1.25,
        "pinned": 1.2,
        "fresh-fact": 1.1,
        "stale-fact": 0.7,
        "procedure-hit": 1.1,
    }
    assert combined(list(MULTIPLIERS.values())[:4]) == pytest.approx(2.3359375)


@pytest.mark.parametrize(
    ("factors", "product"),
    [([], 1.0), ([1.25, 1.15], 1.4375), ([4.0, 4.0], 10.0), ([0.2, 0.2], 0.1), ([20.0, 0.01], 0.2)],
)
def test_the_product_is_clamped(factors: list[float], product: float) -> None:
    assert combined(factors) == pytest.approx(product)


@given(st.lists(st.floats(0, 100)))
def test_a_clamped_product_stays_in_bounds(factors: list[float]) -> None:
    assert 0.1 <= combined(factors) <= 10


def test_strength_is_an_exponent() -> None:
    tags = ("entity-match", "recency-boost")
    (whole,) = run({"a": 0.4}, Answers({"a": tags}))
    (half,) = run({"a": 0.4}, Answers({"a": tags}), 0.5)
    (none,) = run({"a": 0.4}, Answers({"a": tags}), 0.0)
    assert half.soar_boost == pytest.approx(math.sqrt(whole.soar_boost))
    assert half.score == pytest.approx(0.4 * half.soar_boost)
    assert half.boosts["soar:entity-match"] == pytest.approx(math.sqrt(1.30))
    assert (none.score, none.soar_boost, none.soar_tags) == (0.4, 1.0, tags)


def test_own_rules_have_full_strength() -> None:
    (hit,) = run({"a": 0.4}, Answers({"a": ("type-match",)}, own_rules=True), 0.05)
    assert hit.soar_boost == 1.25


def test_scores_stay_below_one_in_the_order_of_the_uncapped() -> None:
    engine = Answers({"a": ("same-project",), "b": ("entity-match",)})
    hits = run({"a": 0.95, "b": 0.9, "c": 0.99}, engine)
    assert [(hit.id, hit.score) for hit in hits] == [("b", 1.0), ("a", 1.0), ("c", 0.99)]
    assert hits[0].soar_boost == 1.30


def test_equal_scores_keep_their_order() -> None:
    assert [hit.id for hit in run({"z": 0.5, "a": 0.5, "m": 0.5}, Answers())] == ["z", "a", "m"]


def test_an_unknown_tag_is_shown_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    engine = Answers({"a": ("type-match", "urgent")})
    (hit,) = run({"a": 0.4}, engine)
    run({"a": 0.4}, engine)
    assert (hit.soar_tags, hit.soar_boost) == (("type-match", "urgent"), 1.25)
    assert "soar:urgent" not in hit.boosts
    assert ["urgent" in record.message for record in caplog.records] == [True]


def test_candidates_beyond_working_memory_are_neutral_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    names = [f"{number:03}" for number in range(WORKING_MEMORY + 3)]
    engine = Answers(dict.fromkeys(names, ("recency-boost",)))
    scores = {name: 0.9 - index / 1000 for index, name in enumerate(names)}
    hits = run(scores, engine)
    run(scores, engine)
    assert len(engine.asked[0]) == WORKING_MEMORY == 50
    assert [hit.id for hit in hits] == names
    assert {hit.id for hit in hits if hit.soar_boost == 1.0} == set(names[50:])
    assert hits[-1].score_pre_soar == hits[-1].score == scores[names[-1]]
    assert len(caplog.records) == 1


def test_a_candidate_without_facts_is_neutral() -> None:
    candidates = [Candidate("gone", "gone", score=0.5), Candidate("a", "a", score=0.4)]
    hits = soar(candidates, {"a": facts_of("a")}, CONTEXT, Answers({"a": ("entity-match",)}))
    assert [(hit.id, hit.soar_boost) for hit in hits] == [("a", 1.30), ("gone", 1.0)]


def test_no_candidates_ask_nothing() -> None:
    engine = Answers(failure=SoarUnavailable("timeout"))
    assert soar([], {}, CONTEXT, engine) == []


def test_missing_bindings_are_reported_and_warn_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SoarUnavailable, match="^Soar is not installed$"):
        run({"a": 0.4}, Answers(failure=SoarMissing("Soar is not installed")))
    assert not caplog.records


def test_other_failures_leave_the_warning_to_the_report(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SoarUnavailable, match="^timeout$"):
        run({"a": 0.4}, Answers(failure=SoarUnavailable("timeout")))
    assert not caplog.records


@pytest.mark.parametrize(
    ("authored_at", "age"),
    [
        (NOW, 0),
        (NOW - 1, 0),
        (NOW - SECOND, 1),
        (NOW + 5 * SECOND, 0),
        (0, 2**62),
        (None, 2**62),
        (-SECOND, NOW // SECOND + 1),
    ],
)
def test_age(authored_at: int | None, age: int) -> None:
    assert age_seconds(authored_at, NOW) == age


@pytest.mark.parametrize(
    ("authored_at", "recent"),
    [
        (NOW - WEEK, "false"),
        (NOW - WEEK + 1, "true"),
        (NOW - WEEK - 1, "false"),
        (NOW + WEEK, "true"),
        (0, "false"),
        (None, "false"),
    ],
)
def test_exactly_seven_days_is_old(authored_at: int | None, recent: str) -> None:
    assert dict(memory_fields(facts_of("a", authored_at), NOW))["recently-accessed"] == recent


def test_the_layout_of_a_memory() -> None:
    fields = memory_fields(facts_of("a1", None, wing="w", room="decisions", entity_match=True, score=1), NOW)
    assert dict(fields) == {
        "id": "a1",
        "project": "w",
        "score": 1.0,
        "age-seconds": UNDATED_SECONDS,
        "recently-accessed": "false",
        "entity-match": "true",
        "drawer-type": "decision",
    }
    assert isinstance(dict(fields)["score"], float)
    assert "drawer-type" not in dict(memory_fields(facts_of("a"), NOW))


def test_the_layout_of_the_context() -> None:
    assert context_fields(CONTEXT) == [("project", "bees")]
    asked = SoarContext("bees", "which bug is it", NOW)
    assert context_fields(asked) == [("project", "bees"), ("query-type", "problem")]


@pytest.mark.parametrize(("value", "project"), [(None, "default"), ("", "default"), ("bees", "bees")])
def test_project_of_environment(monkeypatch: pytest.MonkeyPatch, value: str | None, project: str) -> None:
    monkeypatch.delenv("CASTLE_PROJECT", raising=False)
    if value is not None:
        monkeypatch.setenv("CASTLE_PROJECT", value)
    assert project_of_environment() == project
