from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from castle.llm.base import LlmError
from castle.llm.budget import PURPOSES, SHARES, Budget, Budgeted, BudgetError, Metered, for_purpose
from castle.store.ledger import Ledger
from castle.store.mind_usage import day_of
from castle.store.palace import Palace
from tests.conftest import TurnedClock

DAY = 86_400_000_000


class Answering:
    """A provider that says the same again and again, or fails."""

    name, model = "fake", "m"

    def __init__(self, answer: str | None = "yes") -> None:
        self.answer = answer
        self.asked: list[str] = []

    def available(self) -> str | None:
        return None

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        self.asked.append(prompt)
        if self.answer is None:
            raise LlmError("it is not there")
        return self.answer


def test_each_purpose_has_a_part_that_no_other_can_take(palace: Palace) -> None:
    budget = Budget(palace.ledger, 100)
    assert sum(SHARES.values()) == pytest.approx(1)
    assert sum(budget.limit(purpose) for purpose in PURPOSES) <= 100
    for _ in range(25):
        budget.take("replay")
    with pytest.raises(BudgetError, match="the 25 calls of today for replay are used up .of 100"):
        budget.take("replay")
    assert budget.left("reflection") == 20
    assert budget.status()["daily_remaining"] == 75
    assert budget.status()["by_purpose"]["replay"] == {"calls": 25, "limit": 25}


def test_the_day_is_that_of_utc(palace: Palace, clock: TurnedClock) -> None:
    budget = Budget(palace.ledger, 10)
    clock.now = 1_700_006_399_000_000 - 5_000_000  # 23:59:54 UTC
    budget.take("preference")
    with pytest.raises(BudgetError):
        budget.take("preference")
    clock.now += 10_000_000
    budget.take("preference")


@pytest.mark.parametrize("daily", [0, 1, 3])
def test_a_small_budget_is_kept_in_all(palace: Palace, daily: int) -> None:
    budget = Budget(palace.ledger, daily)
    taken = 0
    for purpose in PURPOSES:
        while budget.left(purpose):
            budget.take(purpose)
            taken += 1
        with pytest.raises(BudgetError):
            budget.take(purpose)
    assert taken == daily


def test_a_call_is_taken_before_it_is_made_and_stays_taken_when_it_fails(palace: Palace) -> None:
    provider = Answering(None)
    budget = Budget(palace.ledger, 10)
    asked = Budgeted(provider, budget, "preference")
    with pytest.raises(LlmError, match="not there"):
        asked.generate("s", "p")
    with pytest.raises(BudgetError):
        asked.generate("s", "p")
    assert provider.asked == ["p"]
    assert asked.available() == "no calls for preference are left today"
    with palace.ledger.read() as cx:
        row = cx.exec_driver_sql("SELECT purpose, calls, failures, tokens > 0 FROM mem_llm_usage").all()
    assert [tuple(item) for item in row] == [("preference", 1, 1, 1)]


def test_an_answer_comes_through(palace: Palace) -> None:
    asked = Budgeted(Answering(), Budget(palace.ledger), "pattern")
    assert (asked.generate("s", "p"), asked.available(), asked.name, asked.model) == (
        "yes",
        None,
        "fake",
        "m",
    )


def test_a_provider_with_a_budget_is_asked_for_a_purpose_only(palace: Palace) -> None:
    budget = Budget(palace.ledger, 10)
    metered = Metered(Answering(), budget)
    with pytest.raises(BudgetError, match="no purpose"):
        metered.generate("s", "p")
    asked = for_purpose(metered, palace.ledger, "pattern")
    assert asked.generate("s", "p") == "yes"
    assert budget.left("pattern") == 0
    assert for_purpose(asked, palace.ledger, "replay") is asked
    for_purpose(Answering(), palace.ledger, "replay").generate("s", "p")
    assert budget.status()["by_purpose"]["replay"]["calls"] == 1


def test_threads_do_not_take_more_than_there_is(palace: Palace) -> None:
    budget = Budget(palace.ledger, 20)
    taken: list[int] = []

    def take() -> None:
        for _ in range(4):
            try:
                budget.take("emotion")
                taken.append(1)
            except BudgetError:
                return

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == budget.limit("emotion") == 6


TAKER = """
import sys
from pathlib import Path
from castle.llm.budget import Budget, BudgetError
from castle.store.ledger import Ledger
budget, taken = Budget(Ledger(Path(sys.argv[1])), 40), 0
try:
    while True:
        budget.take("emotion")
        taken += 1
except BudgetError:
    sys.stdout.write(str(taken))
"""


def test_processes_share_one_budget(palace: Palace) -> None:
    ledger, taken = Ledger(palace.root), 0
    budget = Budget(ledger, 40)
    command = [sys.executable, "-c", TAKER, str(palace.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        while budget.left("emotion") > 3:
            with suppress(BudgetError):
                budget.take("emotion")
                taken += 1
        out, _ = other.communicate()
    ledger.close()
    assert taken + int(out) == 12


def test_a_day_is_written_as_people_write_it() -> None:
    assert day_of(1_700_000_000_000_000) == "2023-11-14"
