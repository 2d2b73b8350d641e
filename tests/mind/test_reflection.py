"""Reflection along four dimensions: proposals first, with evidence, and without a model."""

from __future__ import annotations

from typing import Any

import pytest

from castle.errors import UsageError
from castle.mind.mind import Mind
from castle.mind.reflection.attribution import by_signs, signs
from castle.mind.reflection.reflecting import reflect, status
from castle.store.mind_episodes import count, episodes_by_id
from castle.store.mind_facts import add_fact, get_fact
from castle.store.mind_index import by_words
from castle.store.mind_procedures import get_procedure
from castle.store.mind_reflections import get_reflection
from castle.store.mind_rows import history, sources_of
from castle.store.palace import Palace
from tests.mind.conftest import Save
from tests.mind.episodes import Scripted

TASK = "Deploy the shop with deploy.sh to staging"
NO_MODEL = "no language model"


def think(palace: Palace, task: str = TASK, **options: Any) -> dict[str, Any]:
    return reflect(palace, task, actor="ann", **options)


@pytest.fixture
def failed(save: Save) -> list[str]:
    texts = (
        "deploy.sh on staging failed with TimeoutError after an hour",
        "Again TimeoutError from deploy.sh, the staging shop is down",
        "The picnic at the lake was lovely",
    )
    return [save(text, outcome_valence=-1.0 if i < 2 else 0.5).id for i, text in enumerate(texts)]


def test_without_a_model_the_cause_is_what_failures_share(palace: Palace, failed: list[str]) -> None:
    with palace.ledger.read() as cx:
        before = count(cx)
    told = think(palace)
    analysis = told["analysis"]
    assert analysis["method"] == "signs" and set(analysis["evidence"]) == set(failed[:2])
    assert {"timeouterror", "deploy.sh"} <= set(analysis["contributing_factors"])
    assert 0 < analysis["confidence"] <= 0.3 and NO_MODEL in told["notes"][0]
    with palace.ledger.read() as cx:
        kept = get_reflection(cx, told["reflection_id"])
        assert {source.id for source in sources_of(cx, "reflection", kept.id)} == set(failed[:2])
        assert [match.id for match in by_words(cx, "TimeoutError", ("reflection",), 5)] == [kept.id]
        # It is no episode, so that it is never reflected on itself.
        assert count(cx) == before and status(cx)["recent_count"] == 1
    assert not kept.unsupported


def test_nothing_of_the_kind_gives_no_cause(palace: Palace, save: Save) -> None:
    save("The picnic at the lake was lovely", valence=0.9)
    told = think(palace, "Solve the equation")
    assert told["analysis"]["root_cause"] == "" and told["analysis"]["evidence"] == []
    assert "no earlier episode tells of a cause" in told["notes"]
    with palace.ledger.read() as cx:
        assert get_reflection(cx, told["reflection_id"]).unsupported


def test_a_success_is_no_failure(palace: Palace, failed: list[str], save: Save) -> None:
    good = save("deploy.sh to staging worked once the cache was warm", outcome_valence=1.0).id
    told = think(palace, outcome="success", dimensions="all", apply=True)
    found = told["dimensions"]["effect_attribution"]
    assert good in found["evidence"] and not set(failed[:2]) & set(found["evidence"])
    assert "worked" in found["root_cause"]
    assert told["dimensions"]["result_processing"]["semantic_adjustments"] == []


@pytest.mark.parametrize("wrong", [{"dimensions": "other"}, {"dimensions": " , "}, {"outcome": "odd"}])
def test_what_there_is_not_is_refused(palace: Palace, wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="is none of|name one or more"):
        think(palace, **wrong)
    with pytest.raises(UsageError, match="empty"):
        think(palace, "  ")


def test_dimensions_are_a_set(palace: Palace, failed: list[str]) -> None:
    told = think(palace, dimensions="gaps,strategy")
    assert list(told["dimensions"]) == ["strategy_effectiveness", "knowledge_gaps"]
    assert told["overall_assessment"] == "completed"
    assert len(think(palace, dimensions="all")["dimensions"]) == 4


def test_strategies_are_compared_only_where_they_were_used(palace: Palace, mind: Mind, save: Save) -> None:
    empty = think(palace, dimensions="strategy")["dimensions"]["strategy_effectiveness"]
    assert (empty["success_rate_trend"], empty["better_variants"]) == ("no_data", [])
    good, bad, idle = (
        save(
            f"Way {n} of deploying", "procedural", trigger_condition="deploying the shop", task_type="deploy"
        ).id
        for n in range(3)
    )
    for success in (True,) * 4:
        mind.record_outcome(good, success)
        mind.record_outcome(bad, not success)
    found = think(palace, dimensions="strategy")["dimensions"]["strategy_effectiveness"]
    assert empty.keys() == found.keys()
    assert [(one["best_id"], one["other_id"]) for one in found["better_variants"]] == [(good, bad)]
    assert found["success_rate_avg"] == 0.5 and found["procedures"] == 3
    think(palace, dimensions="gaps")  # gives vectors to the triggers
    pairs = think(palace, dimensions="strategy")["dimensions"]["strategy_effectiveness"]["redundant_pairs"]
    assert len(pairs) == 3 and {idle, good} in [set(pair["ids"]) for pair in pairs]


def test_a_gap_is_missing_or_not_called_to_mind(palace: Palace, mind: Mind, save: Save) -> None:
    def gap(task: str) -> dict[str, Any]:
        found: dict[str, Any] = think(palace, task, dimensions="gaps")["dimensions"]["knowledge_gaps"]
        return found

    nothing = gap("warm the cache before deploying")
    assert nothing["gap_type"] == "missing" and "cache" in nothing["suggested_knowledge"]["words"]
    fact = save("warm the cache before deploying", "semantic", confidence=0.6)
    known = gap("warm the cache before deploying")
    assert known["gap_type"] == "retrieval" and known["existing_in_semantic"][0]["id"] == fact.id
    mind.recall("warm the cache")
    assert gap("warm the cache before deploying")["gap_type"] == "none"
    palace.unready = "still loading"
    assert gap("feed the cat")["gap_type"] == "missing"
    assert gap("warm the cache")["method"] == "words"


def test_proposals_are_made_first_and_applied_with_their_evidence(
    palace: Palace, save: Save, failed: list[str]
) -> None:
    options = {"source_references": failed[:1]}
    fact = save("Deploying the shop with deploy.sh takes a minute", "semantic", confidence=0.45, **options).id
    locked = save("deploy.sh is the way to staging for the shop", "semantic", confidence=0.9, **options).id
    apart = save("The shop is on staging with deploy.sh", "semantic", confidence=0.6).id
    skill = save("Run deploy.sh twice", "procedural", source_episode_ids=failed[:1]).id
    before = think(palace, dimensions="process")["dimensions"]["result_processing"]
    assert not before["applied"]
    assert {one["id"] for one in before["semantic_adjustments"]} == {fact, locked}
    assert [one["id"] for one in before["procedural_updates"]] == [skill]
    with palace.ledger.read() as cx:
        assert (get_fact(cx, fact).confidence, get_procedure(cx, skill).weight) == (0.45, 0.5)
    told = think(palace, dimensions="process", apply=True)
    after = told["dimensions"]["result_processing"]
    assert after["applied"] and after["meta_knowledge_id"] == told["reflection_id"]
    with palace.ledger.read() as cx:
        assert get_fact(cx, fact).confidence == pytest.approx(0.40)
        assert get_fact(cx, locked).confidence == pytest.approx(0.9 - 0.05 / 4)
        assert get_fact(cx, apart).confidence == 0.6
        assert get_procedure(cx, skill).weight == pytest.approx(0.45)
        change = history(cx, "fact", fact)[-1]
        assert change.evidence == (failed[0],) and change.reason.startswith("reflection on a failure")
        assert get_reflection(cx, told["reflection_id"]).applied_at is not None
        assert status(cx)["applied"] == 1


def test_what_was_missing_and_what_only_tells_is_not_blamed(palace: Palace, failed: list[str]) -> None:
    from castle.store.mind_values import Source

    with palace.ledger.write() as cx:
        add_fact(
            cx, "Recurring: deploy.sh on staging failed", confidence=0.6, origin="pattern", actor="t", now=1,
            wing="w", sources=[Source("drawer", failed[0])],
        )  # fmt: skip
    told = think(palace, dimensions="process")["dimensions"]["result_processing"]
    assert told["semantic_adjustments"] == []


def test_a_model_cites_what_shows_the_cause(palace: Palace, failed: list[str]) -> None:
    answer = {
        "root_cause": "The server is too small",
        "contributing_factors": ["memory"],
        "missed_signal": None,
        "confidence": 0.8,
        "episodes": [0, 0, 99],
    }
    provider = Scripted(answer)
    told = think(palace, llm=provider)
    analysis = told["analysis"]
    assert (analysis["root_cause"], analysis["method"]) == ("The server is too small", "model")
    assert len(analysis["evidence"]) == 1 and analysis["evidence"][0] in failed and told["notes"] == []
    assert TASK in provider.asked[0]
    uncited = think(palace, llm=Scripted({**answer, "episodes": []}))["analysis"]
    assert uncited["confidence"] == 0.3


def test_a_model_that_fails_leaves_the_signs(palace: Palace, failed: list[str]) -> None:
    told = think(palace, llm=Scripted("nonsense", "again"))
    assert told["analysis"]["method"] == "signs" and "shared signs" in told["notes"][0]


def test_a_model_that_cannot_be_reached_is_told_by_its_reason(palace: Palace, failed: list[str]) -> None:
    class Away(Scripted):
        def available(self) -> str:
            return "nobody answers at 127.0.0.1"

    model = Away()
    notes = think(palace, llm=model)["notes"]
    assert notes[0].startswith("nobody answers at 127.0.0.1: ") and not model.asked


def test_calls_are_taken_from_the_budget_of_reflection(palace: Palace, failed: list[str]) -> None:
    from castle.llm.budget import Budget, Metered

    metered = Metered(Scripted(), Budget(palace.ledger, 0))
    assert "no calls for reflection are left" in think(palace, llm=metered)["notes"][0]


def test_signs_are_errors_files_and_commands(palace: Palace, save: Save) -> None:
    told = "ImportError in `make test`: src/app.py, exit code 2, ENOENT"
    assert signs(told) == ["importerror", "make test", "src/app.py", "exit code 2", "enoent"]
    ids = [save(f"The radiator broke again on day {n}", valence=-0.9).id for n in range(2)]
    with palace.ledger.read() as cx:
        held = list(episodes_by_id(cx, ids).values())
    found = by_signs("Warm the room with the radiator", held)
    assert found.contributing_factors == ("radiator",) and len(found.evidence) == 2
