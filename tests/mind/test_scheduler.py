"""Background work, with a clock that the test turns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from castle import Castle
from castle.mcp.running import jobs
from castle.mind.mind import Mind
from castle.mind.scheduler import AGAIN_SECONDS, FIRST_SECONDS, LEASE_SECONDS, Job, Scheduler, background
from castle.store.catchup import missing
from castle.store.palace import Palace
from tests.conftest import TurnedClock


class Hands:
    """A clock in seconds that only a test moves, and the palace's with it."""

    def __init__(self, clock: TurnedClock) -> None:
        self.now = 100.0
        self._clock = clock

    def __call__(self) -> float:
        return self.now

    def turn(self, seconds: float) -> None:
        self.now += seconds
        self._clock.now += int(seconds * 1e6)


@pytest.fixture
def hands(clock: TurnedClock) -> Hands:
    return Hands(clock)


def counting(did: Mapping[str, Any] | None, calls: list[str], name: str) -> Job:
    def work() -> Mapping[str, Any] | None:
        calls.append(name)
        return did

    return Job(name, 60.0, work)


def test_jobs_run_when_they_are_due_and_none_at_first(palace: Palace, hands: Hands, mind: Mind) -> None:
    calls: list[str] = []
    scheduler = Scheduler((counting({"embedded": 3}, calls, "embed"),), lambda: palace, clock=hands)
    scheduler.begin()
    hands.turn(FIRST_SECONDS - 1)
    assert scheduler.tick() == []
    hands.turn(2)
    assert scheduler.tick() == ["embed"]
    assert scheduler.tick() == []
    hands.turn(61)
    assert scheduler.tick() == ["embed"]
    assert calls == ["embed", "embed"]
    told = mind.status()
    assert told["background"]["embed"]["did"] == {"embedded": 3}
    assert list(told["leases"]) == ["background"]


def test_one_process_works_and_another_goes_on_when_it_ends(palace: Palace, hands: Hands) -> None:
    calls: list[str] = []
    one, other = (Scheduler((counting(None, calls, n),), lambda: palace, clock=hands) for n in "ab")
    for scheduler in (one, other):
        scheduler.begin()
    hands.turn(FIRST_SECONDS + 1)
    assert (one.tick(), other.tick()) == (["a"], [])
    one.stop()
    one.release()
    hands.turn(AGAIN_SECONDS + 1)
    assert other.tick() == ["b"]
    hands.turn(LEASE_SECONDS + 61)
    assert one.tick() == []


def test_the_lease_of_one_that_was_killed_runs_out(palace: Palace, hands: Hands) -> None:
    calls: list[str] = []
    one, other = (Scheduler((counting(None, calls, n),), lambda: palace, clock=hands) for n in "ab")
    one.begin()
    other.begin()
    hands.turn(FIRST_SECONDS + 1)
    assert (one.tick(), other.tick()) == (["a"], [])
    hands.turn(LEASE_SECONDS + AGAIN_SECONDS)
    assert other.tick() == ["b"]


def test_a_job_that_fails_is_told_and_keeps_no_other_from_its_turn(
    palace: Palace, hands: Hands, mind: Mind
) -> None:
    calls: list[str] = []

    def fail() -> None:
        raise OSError("no disk")

    jobs = (Job("capture", 5.0, fail), counting(None, calls, "embed"))
    scheduler = Scheduler(jobs, lambda: palace, clock=hands)
    scheduler.begin()
    hands.turn(FIRST_SECONDS + 1)
    assert scheduler.tick() == ["capture", "embed"]
    assert calls == ["embed"]
    told = mind.status()
    assert told["health"] == "degraded"
    assert "capture failed: OSError: no disk" in " ".join(told["reasons"])


def test_nothing_is_done_without_a_palace_or_on_one_that_cannot_be_written(
    palace: Palace, hands: Hands
) -> None:
    calls: list[str] = []
    places: list[Palace | None] = [None]
    scheduler = Scheduler((counting(None, calls, "embed"),), lambda: places[0], clock=hands)
    scheduler.begin()
    hands.turn(FIRST_SECONDS + 1)
    assert scheduler.tick() == []
    places[0] = palace
    palace.ledger.read_only = True
    assert scheduler.tick() == []
    palace.ledger.read_only = False
    assert scheduler.tick() == ["embed"]
    with palace.ledger.read() as cx:
        assert background(cx) == {}


def test_the_thread_ends_and_gives_the_lease_back(palace: Palace, mind: Mind) -> None:
    calls: list[str] = []
    scheduler = Scheduler((counting(None, calls, "embed"),), lambda: palace)
    scheduler.start()
    scheduler.stop()
    scheduler.join()
    assert not scheduler.busy
    assert mind.status()["leases"] == {}


def test_a_server_brings_late_indexes_up_to_date_by_itself(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.memory_save("\n\n".join(f"Lantern {n} hangs in the harbour. " * 20 for n in range(40)))
        palace = castle._palace()
        assert missing(palace, palace.lexicon) > 20
        castle.defer_models("no models here")
        for _ in range(200):
            if castle.background_index() is None:
                break
        assert missing(palace, palace.lexicon) == 0
        assert castle.background_embed() is None
        assert missing(palace, palace.vectors) > 20
        castle.load_models()
        for _ in range(200):
            if castle.background_embed() is None:
                break
        assert missing(palace, palace.vectors) == 0
    names = [job.name for job in jobs(lambda work: None, lambda work: None)]
    assert names.index("index") < names.index("embed")
