"""Cycles of consolidation: what fades and comes back, and that nothing is lost or done twice."""

from __future__ import annotations

import math
import socket
import subprocess
import sys
from typing import Any

import pytest

from castle.errors import UsageError
from castle.mind.consolidation import pattern_search
from castle.mind.consolidation.cycle import consolidate, should_run, status
from castle.mind.consolidation.repetition import keyword_repetitions
from castle.mind.mind import Mind
from castle.novelty.scoring import update
from castle.store.catchup import catch_up_vectors
from castle.store.mind_cycles import begin_cycle, columns, last_cycle, note_progress
from castle.store.mind_episodes import get_episode, set_valence
from castle.store.mind_rows import history, lease, new_holder
from castle.store.palace import Palace
from tests.conftest import TurnedClock
from tests.mind.episodes import Scripted, chatter, file_all

PAUSE = 301_000_000
DULL = "the build is green and the tests pass on the main branch"


def cycle(palace: Palace, **options: Any) -> dict[str, Any]:
    return consolidate(palace, actor="test", **options)


def dump(palace: Palace, tables: str = "mem_*") -> list[tuple[object, ...]]:
    with palace.ledger.read() as cx:
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB ? ORDER BY name"
        rows: list[tuple[object, ...]] = []
        for (name,) in cx.exec_driver_sql(names, (tables,)).all():
            rows += [(name, *row) for row in cx.exec_driver_sql(f"SELECT * FROM {name}")]
        return rows


@pytest.fixture
def old(palace: Palace, clock: TurnedClock) -> list[str]:
    """Drawers of a year ago: 250 different ones, and ten that say the same as the first of them."""
    ids = file_all(palace, [*chatter(250), *(f"{DULL} {i % 2}" for i in range(11))], "old")
    clock.now += 365 * 86_400_000_000
    return ids


def grow(palace: Palace, clock: TurnedClock, seed: int) -> None:
    clock.now += PAUSE
    file_all(palace, chatter(3, seed), f"new {seed}")


def test_ten_cycles_on_unchanged_data_change_nothing_after_the_first(
    palace: Palace, clock: TurnedClock, old: list[str]
) -> None:
    first = cycle(palace)
    assert first["ran"] and first["total_scored"] == len(old)
    before = dump(palace)
    for turn in range(10):
        clock.now += 86_400_000_000
        again = cycle(palace, force=bool(turn % 2))
        assert not again["ran"]
        assert again["notes"] == ["nothing has changed since the last cycle"]
        assert again["archived"] == again["dimmed"] == 0
    assert dump(palace) == before


def test_three_cycles_in_a_row_put_away_what_counts_least_and_no_drawer_changes(
    palace: Palace, clock: TurnedClock, old: list[str]
) -> None:
    drawers = dump(palace, "drawers")
    first = cycle(palace)
    assert first["dimmed"] == first["forget_candidates"] > 0 == first["archived"]
    grow(palace, clock, 2)
    assert cycle(palace)["archived"] == 0
    grow(palace, clock, 3)
    third = cycle(palace)
    assert third["archived"] > 0
    with palace.ledger.read() as cx:
        found = columns(cx)
        cold = [found.ids[place] for place in range(len(found)) if found.state[place] == 2]
        changes = [(c.old, c.new, c.actor) for c in history(cx, "drawer", cold[0]) if c.what == "state"]
        assert status(cx)["cold_storage_count"] == len(cold) == third["archived"]
    assert changes == [("active", "dim", "test"), ("dim", "cold", "test")]
    assert dump(palace, "drawers")[: len(drawers)] == drawers


def test_cycles_by_hand_one_after_the_other_count_once(
    palace: Palace, clock: TurnedClock, old: list[str]
) -> None:
    cycle(palace)
    for seed in range(2, 6):
        file_all(palace, chatter(3, seed), f"quick {seed}")
        refused = cycle(palace)
        assert not refused["ran"] and "one runs every 300 s" in refused["notes"][0]
        assert cycle(palace, force=True)["archived"] == 0
    with palace.ledger.read() as cx:
        assert columns(cx).low.max() == 1


def test_one_that_recovers_begins_anew_and_a_pinned_one_never_fades(
    palace: Palace, mind: Mind, clock: TurnedClock, old: list[str]
) -> None:
    cycle(palace)
    with palace.ledger.read() as cx:
        found = columns(cx)
    dim = [found.ids[place] for place in range(len(found)) if found.state[place] == 1]
    felt, pinned = dim[:2]
    mind.pin(pinned)
    with palace.ledger.write() as cx:
        set_valence(cx, felt, -1.0, 1.0, "user", actor="test", now=1)
    grow(palace, clock, 2)
    assert cycle(palace)["recovered"] >= 2
    with palace.ledger.read() as cx:
        for id_ in (felt, pinned):
            episode = get_episode(cx, id_)
            assert (episode.state, episode.low_cycles) == ("active", 0)


def test_what_is_cold_comes_back_whole_and_recall_finds_it_again(
    palace: Palace, mind: Mind, clock: TurnedClock, old: list[str]
) -> None:
    for seed in range(2, 5):
        cycle(palace)
        grow(palace, clock, seed)
    with palace.ledger.read() as cx:
        found = columns(cx)
        cold = next(found.ids[place] for place in range(len(found)) if found.state[place] == 2)
        before = get_episode(cx, cold)
    assert mind.restore(cold).state == "active"
    with palace.ledger.read() as cx:
        after = get_episode(cx, cold)
    assert (after.text, after.authored_at, after.valence) == (before.text, before.authored_at, before.valence)
    assert after.low_cycles == 0


def test_a_dry_run_says_what_would_be_and_writes_nothing(palace: Palace, old: list[str]) -> None:
    blind = cycle(palace, dry_run=True)
    assert blind["without_vector"] == len(old) and "castle repair" in " ".join(blind["notes"])
    catch_up_vectors(palace)
    update(palace)
    told = cycle(palace, dry_run=True)
    assert told["dry_run"] and told["total_scored"] == len(old) and told["without_vector"] == 0
    assert told["would_dim"] and dump(palace) == []
    assert len(told["would_dim"]) == told["dimmed"] == cycle(palace)["dimmed"]


def test_facts_files_and_what_expired_are_no_episodes(palace: Palace, mind: Mind) -> None:
    mind.save("Water boils at 100 degrees", "semantic", {"confidence": 0.9})
    episode = mind.save("We went to the sea").memory
    assert cycle(palace)["total_scored"] == 1
    mind.forget(episode.id, expire=True)
    assert "there are no episodes yet" in cycle(palace, force=True)["notes"]


def test_it_is_due_after_ten_episodes_five_minutes_and_a_fifth_more(
    palace: Palace, clock: TurnedClock
) -> None:
    file_all(palace, chatter(9), "a")
    assert not should_run(palace)
    file_all(palace, chatter(1, 2), "b")
    assert should_run(palace) and not should_run(palace, wing="elsewhere")
    cycle(palace)
    file_all(palace, chatter(2, 3), "c")
    assert not should_run(palace)
    clock.now += PAUSE
    assert should_run(palace)
    cycle(palace)
    clock.now += PAUSE
    file_all(palace, chatter(2, 4), "d")
    assert not should_run(palace)


def test_one_process_runs_it(palace: Palace, old: list[str]) -> None:
    with palace.ledger.write() as cx:
        assert lease(cx, "consolidate", "somebody", 60, palace.ledger.clock())
    refused = cycle(palace)
    assert not refused["ran"] and refused["notes"] == ["another process is consolidating"]


@pytest.mark.skipif(sys.platform == "win32", reason="there nobody can ask whether a process is gone")
def test_one_that_was_killed_is_waited_for_by_nobody(palace: Palace, old: list[str]) -> None:
    killed = subprocess.Popen(["true"])
    holder = f"{socket.gethostname()}:{killed.pid}:1"
    killed.wait()
    with palace.ledger.write() as cx:
        assert lease(cx, "consolidate", holder, 60, palace.ledger.clock())
        assert lease(cx, "elsewhere", f"x.{holder}", 60, palace.ledger.clock())
        assert not lease(cx, "elsewhere", new_holder(), 60, palace.ledger.clock())
    assert cycle(palace)["ran"]


def test_a_cycle_that_was_stopped_is_not_counted_twice(
    palace: Palace, clock: TurnedClock, old: list[str]
) -> None:
    cycle(palace)
    with palace.ledger.read() as cx:
        found = columns(cx)
    dim = [place for place in range(len(found)) if found.state[place] == 1]
    grow(palace, clock, 2)
    with palace.ledger.write() as cx:
        rid = begin_cycle(cx, "consolidation", None, len(found), palace.ledger.clock())
        note_progress(cx, rid, {"progress": int(found.rid[dim[0]])})
    cycle(palace)
    with palace.ledger.read() as cx:
        after = columns(cx)
    assert after.low[dim[0]] == 1
    assert {int(after.low[place]) for place in dim[1:] if after.state[place] == 1} == {2}


def test_without_scikit_learn_scores_and_states_are_kept_all_the_same(
    palace: Palace, old: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_search, "available", lambda: False)
    told = cycle(palace)
    assert told["dimmed"] and not told["patterns"]
    assert [note for note in told["notes"] if "scikit-learn" in note and "pip install" in note]


def test_what_nobody_judged_is_judged_and_a_given_valence_stays(palace: Palace, mind: Mind) -> None:
    sad, plain = file_all(palace, ["It failed again, I hate this", "The report has nine pages"], "s")
    given = mind.save("I hate Mondays", "episodic", {"valence": 0.5}).memory
    assert cycle(palace)["emotions_judged"] == 2
    with palace.ledger.read() as cx:
        assert get_episode(cx, sad).valence < -0.3
        assert get_episode(cx, plain).valence_source == "rules"
        assert get_episode(cx, given.id).valence == 0.5


def test_a_model_judges_a_few_where_it_is_sure(palace: Palace) -> None:
    one, two = file_all(palace, ["Nine pages", "Ten pages"], "s")
    answer = {
        "episodes": [
            {"episode": 0, "valence": -0.8, "confidence": 0.9},
            {"episode": 1, "valence": 0.9, "confidence": 0.1},
        ]
    }
    cycle(palace, llm=Scripted(answer))
    with palace.ledger.read() as cx:
        assert get_episode(cx, one).valence == pytest.approx(-0.8)
        assert get_episode(cx, one).valence_source == "model"
        assert get_episode(cx, two).valence == 0.0


def test_the_first_words_count_as_repetition_for_compat(palace: Palace, old: list[str]) -> None:
    with palace.ledger.read() as cx:
        counts = keyword_repetitions(cx, old)
    assert counts.min() >= 1 and counts.max() == 3
    told = cycle(palace, profile="compat")
    assert told["forget_threshold"] == pytest.approx(2 * (1 + 0.3 * math.log(len(old) / 10_000)), abs=0.001)
    assert told["forget_candidates"] == 0
    with pytest.raises(UsageError, match="default, compat"):
        cycle(palace, profile="other")


def test_a_wing_has_cycles_of_its_own(palace: Palace) -> None:
    file_all(palace, chatter(5), "a", wing="one")
    file_all(palace, chatter(4, 2), "b", wing="two")
    assert cycle(palace, wing="two")["total_scored"] == 4
    with palace.ledger.read() as cx:
        assert last_cycle(cx, "consolidation") is None
        assert last_cycle(cx, "consolidation", "two") is not None
    assert cycle(palace)["total_scored"] == 9


def test_cycles_of_a_wing_and_of_the_palace_count_once(
    palace: Palace, clock: TurnedClock, old: list[str]
) -> None:
    cycle(palace)
    grow(palace, clock, 2)
    assert cycle(palace, wing="w")["ran"]
    assert cycle(palace, force=True)["archived"] == 0
    with palace.ledger.read() as cx:
        assert columns(cx).low.max() == 2


def test_it_runs_by_itself_when_it_is_due(palace: Palace) -> None:
    mind = Mind(palace, actor="test", halls={}, profile="compat")
    assert mind.consolidate_if_due() is None
    file_all(palace, chatter(12), "a")
    told = mind.consolidate_if_due()
    assert told is not None and (told["total_scored"], told["profile"]) == (12, "compat")
    assert mind.consolidate_if_due() is None
    palace.ledger.read_only = True
    assert mind.consolidate_if_due() is None
