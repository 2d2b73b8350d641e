"""The later stages as parts of a search: modes, failures, pages, units, and why a drawer is where it is."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from castle.errors import CastleError, ModelError, UnreadableError, UsageError
from castle.llm.base import LlmError
from castle.models.rerankers import FakeCrossEncoder
from castle.records import Scope, SearchResult
from castle.search import pipeline, quality
from castle.search.cursor import moved
from castle.search.hits import unit_score
from castle.search.options import MODES, Options
from castle.search.pipeline import search
from castle.search.refine import Engines
from castle.search.soar_engine import SoarUnavailable
from castle.search.why import explain
from castle.store.palace import Palace
from castle.store.places import forget
from tests.store.filer import file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

USUAL = Options(catch_up_ms=20_000)
EVERYWHERE = Scope()


class Judge:
    """Turns the order around, or fails, or is not there."""

    name = "test"
    model = "test-1"

    def __init__(self, reason: str | None = None, error: str = "") -> None:
        self.reason, self.error = reason, error
        self.asked: list[str] = []

    def available(self) -> str | None:
        return self.reason

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        self.asked.append(prompt)
        if self.error:
            raise LlmError(self.error)
        count = prompt.count("\n[")
        return f'{{"ranked_indices": {list(reversed(range(count)))}}}'


class Rules:
    """Tags every memory of wing b."""

    def __init__(self, reason: str = "") -> None:
        self.own_rules = False
        self.reason = reason

    def prepare(self) -> None:
        return None

    def ask(self, context: object, memories: Sequence[Sequence[tuple[str, object]]]) -> list[tuple[str, ...]]:
        if self.reason:
            raise SoarUnavailable(self.reason)
        return [("same-project",) if dict(memory)["project"] == "b" else () for memory in memories]


@dataclass(frozen=True)
class Broken(FakeCrossEncoder):
    """A cross-encoder that cannot score."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        raise ModelError("the weights are gone")


def engines(judge: Judge | None = None, rules: Rules | None = None, **more: object) -> Engines:
    return Engines(
        FakeCrossEncoder,
        (lambda: judge) if judge is not None else None,
        (lambda: rules) if rules is not None else None,
        **more,  # type: ignore[arg-type]
    )


def ask(
    palace: Palace,
    query: str,
    *,
    limit: int = 10,
    options: Options = USUAL,
    with_: Engines | None = None,
    after: str | None = None,
) -> SearchResult:
    return search(palace, query, EVERYWHERE, limit, options, with_ or engines(), after)


def status(result: SearchResult) -> dict[str, str]:
    return {report.name: report.status for report in result.stages}


@pytest.fixture
def harbour(palace: Palace) -> Palace:
    texts = [
        "the harbour is closed in winter",
        "the harbour master waits for the ferry",
        "a ferry left the harbour at noon",
    ]
    for number, text in enumerate(texts):
        file(palace.ledger, [text], path=f"{number}.md", wing="ab"[number % 2])
    return palace


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_runs_its_stages_and_says_why_not_the_others(harbour: Palace, mode: str) -> None:
    options = replace(USUAL, mode=mode)  # type: ignore[arg-type]
    found = status(ask(harbour, "harbour ferry", options=options, with_=engines(Judge(), Rules())))
    assert found["cross-encoder"] == "ran"
    for name in ("judge", "soar", "quality"):
        assert found[name] == ("ran" if name in MODES[mode] else f"skipped: mode {mode}")  # type: ignore[index]


def test_the_order_of_the_judge_is_the_order_of_the_answer(harbour: Palace) -> None:
    options = replace(USUAL, mode="boosted")
    before = [hit.id for hit in ask(harbour, "harbour ferry", options=options).hits]
    result = ask(harbour, "harbour ferry", with_=engines(Judge()))
    assert [hit.id for hit in result.hits] == before[::-1]
    assert result.judge_status is not None
    assert (result.judge_status.reordered, result.judge_status.n) == (True, 3)
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("broken", "stage"),
    [
        (engines(Judge(error="it fell over"), Rules()), "judge"),
        (engines(Judge("it is not running"), Rules(), judge_is_named=True), "judge"),
        (engines(Judge(), Rules("timeout")), "soar"),
        (Engines(lambda: Broken(), lambda: Judge(), None), "cross-encoder"),
    ],
)
def test_a_stage_that_fails_is_reported_and_the_others_go_on(
    harbour: Palace, broken: Engines, stage: str
) -> None:
    result = ask(harbour, "harbour ferry", with_=broken)
    assert len(result.hits) == 3
    assert status(result)[stage].startswith("skipped: ")
    assert any(reason.startswith(f"{stage}: ") for reason in result.degraded)
    assert status(result)["quality"] == "ran"


def test_a_stage_with_nothing_to_read_has_not_run(palace: Palace) -> None:
    found = status(ask(palace, "harbour ferry", with_=engines(Judge(), Rules())))
    later = ("cross-encoder", "judge", "soar", "quality")
    assert [found[name] for name in later] == ["skipped: nothing was found"] * 4


def test_a_judge_that_nobody_asked_for_is_not_missed(harbour: Palace) -> None:
    result = ask(harbour, "harbour ferry", with_=engines(Judge("Ollama is not running")))
    assert status(result)["judge"] == "skipped: Ollama is not running"
    assert result.degraded == ()


def test_a_text_that_quality_cannot_read_keeps_its_place(
    harbour: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(text: str) -> float:
        raise ValueError("no")

    monkeypatch.setattr(quality, "overall", broken)
    result = ask(harbour, "harbour ferry")
    assert [hit.quality_score for hit in result.hits] == [None] * 3
    assert [hit.quality_boost for hit in result.hits] == [1.0] * 3


def test_soar_marks_hits_and_moves_them_as_far_as_priors_may(harbour: Palace) -> None:
    weak = ask(harbour, "harbour", with_=engines(None, Rules()))
    full = ask(harbour, "harbour", options=replace(USUAL, priors="compat"), with_=engines(None, Rules()))
    tagged = next(hit for hit in full.hits if hit.wing == "b")
    assert tagged.soar_tags == ("same-project",)
    assert tagged.soar_boost == pytest.approx(1.15)
    assert 1.0 < next(hit for hit in weak.hits if hit.wing == "b").soar_boost < 1.05
    assert all(hit.soar_boost == 1.0 for hit in full.hits if hit.wing == "a")


def test_what_is_found_is_not_cut_to_what_was_read(palace: Palace) -> None:
    file(palace.ledger, [f"harbour number {n}" for n in range(60)])
    options = replace(USUAL, rerank_k=5)
    result = ask(palace, "harbour", limit=50, options=options)
    assert len({hit.id for hit in result.hits}) == 50
    assert result.ranked == 60


def test_pages_follow_each_other_without_gap_or_repetition(palace: Palace) -> None:
    file(palace.ledger, [f"harbour number {n}" for n in range(47)])
    whole = [hit.id for hit in ask(palace, "harbour", limit=100).hits]
    seen: list[str] = []
    scores: list[float] = []
    after: str | None = None
    while True:
        page = ask(palace, "harbour", limit=10, after=after)
        seen += [hit.id for hit in page.hits]
        scores += [hit.score for hit in page.hits]
        after = page.cursor
        if after is None:
            break
    assert (len(seen), set(seen)) == (47, set(whole))
    assert scores == sorted(scores, reverse=True)


def test_a_cursor_belongs_to_its_question(harbour: Palace) -> None:
    cursor = ask(harbour, "harbour", limit=1).cursor
    assert cursor is not None
    with pytest.raises(UsageError, match="another question"):
        ask(harbour, "ferry", limit=1, after=cursor)
    for damaged in ("", "x", cursor[:-3], "WzFd", "é", "W" * 5000):
        with pytest.raises(UsageError, match="cursor"):
            ask(harbour, "harbour", limit=1, after=damaged)


def test_a_cursor_belongs_to_what_orders_its_pages(harbour: Palace) -> None:
    cursor = ask(harbour, "harbour", limit=1).cursor
    changes: list[dict[str, object]] = [
        {"info_weight": True},
        {"mode": "fast"},
        {"priors": "compat"},
        {"now": 1},
        {"weights": {"dense": 1.0}},
    ]
    for change in changes:
        with pytest.raises(UsageError, match="another question"):
            ask(harbour, "harbour", limit=1, after=cursor, options=replace(USUAL, **change))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="another question"):
        ask(harbour, "harbour", limit=1, after=cursor, with_=engines(encoder_name="other"))


@pytest.mark.parametrize(
    "forged",
    [
        ["a", 1, 20, 100, 10**320, 1],
        ["a", 1, 10**6, 100, 1, 1],
        ["a", True, 20, 100, 1, 1],
        ["a", -1, 1, 1, 1, 1],
        ["a", 0, 0, 1, 1, 1],
        [1, 0, 1, 1, 1, 1],
        ["a", 0, 1, 1, 1, 1, 1],
        ["a"],
        {"asked": "a"},
    ],
)
def test_a_forged_cursor_is_none(harbour: Palace, forged: object) -> None:
    word = base64.urlsafe_b64encode(json.dumps(forged).encode("ascii")).decode("ascii")
    with pytest.raises(UsageError, match="cursor"):
        ask(harbour, "harbour", limit=1, after=word)


def test_a_page_says_that_only_one_of_two_was_judged(palace: Palace) -> None:
    file(palace.ledger, [f"harbour number {n}" for n in range(12)])
    first = ask(palace, "harbour", limit=3, with_=engines(Judge()))
    gone = ask(palace, "harbour", limit=3, with_=engines(Judge("it is gone")), after=first.cursor)
    assert any("only one of the pages was judged" in reason for reason in gone.degraded)
    there = ask(palace, "harbour", limit=3, with_=engines(Judge()), after=first.cursor)
    assert there.degraded == ()


def test_a_cursor_can_be_moved(palace: Palace) -> None:
    file(palace.ledger, [f"harbour number {n}" for n in range(12)])
    whole = [hit.id for hit in ask(palace, "harbour", limit=12).hits]
    page = ask(palace, "harbour", limit=5)
    rest = ask(palace, "harbour", limit=5, after=moved(page.here, 2))
    assert [hit.id for hit in rest.hits] == whole[2:7]


def test_a_mistake_in_a_stage_costs_that_stage_alone(
    harbour: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **more: object) -> None:
        raise TypeError("must be real number, not str")

    monkeypatch.setattr(pipeline, "recency", broken)
    result = ask(harbour, "harbour")
    assert len(result.hits) == 3
    assert result.degraded == ("recency: TypeError: must be real number, not str",)


@pytest.mark.parametrize("broken", ["signals", "ask_palace"])
def test_a_question_that_cannot_be_understood_is_still_answered(
    harbour: Palace, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*arguments: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(pipeline, broken, fail)
    result = ask(harbour, "the harbour in March 2022")
    assert len(result.hits) == 3
    (reason,) = result.degraded
    assert reason.endswith("ValueError: no")


@pytest.mark.parametrize("query", ["你好", "harbour"])
def test_scores_stay_within_their_range(harbour: Palace, query: str) -> None:
    strong = replace(USUAL, mode="fast", priors="compat", recency_max_boost=10.0)
    for hit in ask(harbour, query, options=strong, with_=Engines(None, None, None)).hits:
        assert 0.0 <= hit.score <= 1.0


def test_a_page_says_that_the_palace_has_changed(harbour: Palace) -> None:
    cursor = ask(harbour, "harbour", limit=1).cursor
    file(harbour.ledger, ["another harbour"], path="new.md")
    assert any("has changed" in reason for reason in ask(harbour, "harbour", limit=1, after=cursor).degraded)


def test_a_session_is_found_once_with_its_other_drawers(palace: Palace) -> None:
    file(palace.ledger, ["the harbour", "a harbour again", "the moon"], path="a.md")
    file(palace.ledger, ["harbour"], path="b.md")
    result = ask(palace, "harbour", options=replace(USUAL, by="session"))
    assert sorted(hit.source for hit in result.hits) == ["file:a.md", "file:b.md"]
    parts = {hit.source: len(hit.parts) for hit in result.hits}
    assert parts == {"file:a.md": 2, "file:b.md": 0}
    assert result.ranked == 2


def test_the_score_of_a_unit_grows_with_each_of_its_drawers() -> None:
    assert unit_score([0.6]) == pytest.approx(0.6)
    assert unit_score([0.6, 0.5]) == pytest.approx(1 - 0.4 * 0.75)
    assert unit_score([0.6, 0.5, 0.4]) == pytest.approx(1 - 0.4 * 0.75 * 0.9)
    assert unit_score([]) == 0.0


def test_the_judge_learns_who_spoke_and_when_and_no_secret(palace: Palace) -> None:
    day = 86_400_000_000
    key = "ghp_" + "a1B2" * 9
    file(palace.ledger, ["the ferry sails", "the ferry waits"], authored_at=19_000 * day)
    judge = Judge()
    ask(
        palace,
        f"the ferry on 8 January 2022 {key}",
        with_=engines(judge),
        options=replace(USUAL, now=20_000 * day),
    )
    (prompt,) = judge.asked
    assert "(2022-01-08) the ferry sails" in prompt
    assert "(asked on 2024-10-04)" in prompt.splitlines()[0]
    assert key not in prompt


@dataclass(frozen=True)
class Latin(FakeCrossEncoder):
    """A cross-encoder that reads nothing else."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        raise UnreadableError("it reads no script but the Latin")


def test_what_no_model_reads_is_judged_by_its_words(palace: Palace) -> None:
    file(palace.ledger, ["我们决定在五月进行数据库迁移", "the harbour is closed"])
    blind = Engines(lambda: Latin(), None, None)
    found = ask(palace, "数据库迁移", with_=blind)
    assert (found.hits[0].text[:2], found.confident) == ("我们", True)
    assert status(found)["cross-encoder"] == "skipped: it reads no script but the Latin"
    assert found.degraded == ()
    assert not ask(palace, "今天天气怎么样", with_=blind).confident


def test_a_time_that_was_asked_for_outweighs_a_word(palace: Palace) -> None:
    day = 86_400_000_000
    file(palace.ledger, ["the lighthouse, we talked about it"], path="a.md", authored_at=19_000 * day)
    file(palace.ledger, ["what we talk of is the town"], path="b.md", authored_at=18_000 * day)
    result = ask(palace, "what did we talk about on 8 January 2022", options=replace(USUAL, now=20_000 * day))
    assert result.hits[0].source == "file:a.md"
    assert result.hits[0].stages["evidence"].rank == 1
    assert result.hits[1].stages["evidence"].score < result.hits[1].stages["cross-encoder"].score
    assert result.confident
    assert result.read_as == ("8 January 2022: 2022-01-08T00:00 to 2022-01-09T00:00",)


def test_a_voice_that_is_not_heard_is_not_told(harbour: Palace) -> None:
    query = "where is my ferry"
    assert ask(harbour, query).read_as == ("what you said",)
    unheard = replace(USUAL, weights={**USUAL.weights, "voice": 0.0})
    assert ask(harbour, query, options=unheard).read_as == ()


def test_nothing_that_matches_is_said(harbour: Palace) -> None:
    sure = Engines(lambda: FakeCrossEncoder(confident=0.5), None, None)
    assert ask(harbour, "harbour closed", with_=sure).confident
    assert not ask(harbour, "volcano eruption in iceland harbour", with_=sure).confident


def test_why_a_drawer_is_where_it_is(harbour: Palace) -> None:
    hits = ask(harbour, "harbour ferry").hits
    for rank, hit in enumerate(hits, start=1):
        found = explain(harbour, "harbour ferry", EVERYWHERE, 2, USUAL, engines(), hit.id[:8]).fate
        assert found is not None
        assert found.rank == rank
        assert found.verdict == f"candidate {rank} of 3" + (", beyond the limit" if rank == 3 else "")


def test_why_a_drawer_is_not_there(palace: Palace) -> None:
    file(palace.ledger, ["the harbour is closed"], path="a.md", wing="a")
    file(palace.ledger, ["the harbour is closed"], path="b.md", wing="b")
    file(palace.ledger, ["zebra"], path="c.md", wing="c")
    ids = {wing: ask_wing(palace, wing) for wing in "abc"}
    first = ask(palace, "harbour").hits[0].id
    other = next(id_ for wing, id_ in ids.items() if wing in "ab" and id_ != first)
    fate = explain(palace, "harbour", EVERYWHERE, 5, USUAL, engines(), other).fate
    assert fate is not None
    assert fate.verdict.startswith(f"it has the same text as {first}")
    fate = explain(palace, "harbour", Scope(wing="a"), 5, USUAL, engines(), ids["c"]).fate
    assert fate is not None
    assert fate.verdict.startswith("it is outside of what was searched: wing c")
    forget(palace.ledger, id_=ids["c"], actor="me")
    fate = explain(palace, "harbour", EVERYWHERE, 5, USUAL, engines(), ids["c"]).fate
    assert fate is not None
    assert fate.verdict.endswith("forgotten")
    with pytest.raises(CastleError):
        explain(palace, "harbour", EVERYWHERE, 5, USUAL, engines(), "ffffffffffff")


def test_why_a_drawer_was_not_recalled(palace: Palace) -> None:
    file(palace.ledger, [f"harbour {n}" for n in range(150)])
    file(palace.ledger, ["zebra"], path="c.md", wing="c")
    id_ = ask_wing(palace, "c")
    fate = explain(palace, "harbour", EVERYWHERE, 5, USUAL, engines(), id_).fate
    assert fate is not None
    assert "it was not recalled: it shares no word; its cosine is" in fate.verdict
    assert "the last of the 100 nearest has" in fate.verdict


def ask_wing(palace: Palace, wing: str) -> str:
    """Return the id of the one drawer of a wing."""
    (hit,) = search(palace, "harbour zebra", Scope(wing=wing), 5, USUAL, engines()).hits
    return hit.id
