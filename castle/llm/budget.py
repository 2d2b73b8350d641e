"""How many calls a day the mind may make to a language model, by what they are for.

A call is taken from the budget before it is made, in one write transaction: several processes share one
budget, and a call that fails has been taken all the same. Searches that a model judges are not counted here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from castle.llm.base import LlmError, Provider
from castle.store.ledger import Ledger
from castle.store.mind_usage import add_usage, calls_of, day_of

Purpose = Literal["emotion", "pattern", "reflection", "replay", "preference"]

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
DAILY_CALLS = 100
"""Calls a day (UTC) all in all, unless another number is given."""

SHARES: Mapping[Purpose, float] = {
    "emotion": 0.30,
    "pattern": 0.15,
    "reflection": 0.20,
    "replay": 0.25,
    "preference": 0.10,
}
"""The part of a day's calls that each purpose has for itself: none can take what another needs."""

_BYTES_PER_TOKEN = 4
_PATIENCE_S = 5.0


class BudgetError(LlmError):
    """The calls of today are used up."""


class Budget:
    """The budget of a palace; ``daily`` calls in all, 0 for none."""

    def __init__(self, ledger: Ledger, daily: int = DAILY_CALLS) -> None:
        self._ledger = ledger
        self.daily = daily

    def limit(self, purpose: Purpose) -> int:
        """Return how many calls a day a purpose has: at least one, unless there are none at all."""
        return max(int(self.daily * SHARES[purpose]), 1) if self.daily > 0 else 0

    def left(self, purpose: Purpose) -> int:
        """Return how many calls a purpose has left today."""
        with self._ledger.read() as cx:
            return self._left(calls_of(cx, day_of(self._ledger.clock())), purpose)

    def take(self, purpose: Purpose) -> None:
        """Take one call; raises BudgetError when none is left, PalaceError where nothing can be written."""
        with self._ledger.write(_PATIENCE_S) as cx:
            day = day_of(self._ledger.clock())
            if self._left(calls_of(cx, day), purpose) < 1:
                raise BudgetError(
                    f"the {self.limit(purpose)} calls of today for {purpose} are used up "
                    f"(of {self.daily} in all); they come back at midnight UTC"
                )
            add_usage(cx, day, purpose, calls=1)

    def note(self, purpose: Purpose, tokens: int, *, failed: bool = False) -> None:
        """Add what a call that was taken has cost."""
        with self._ledger.write(_PATIENCE_S) as cx:
            day = day_of(self._ledger.clock())
            add_usage(cx, day, purpose, failures=int(failed), tokens=tokens)

    def status(self) -> dict[str, Any]:
        """Return the budget in numbers: what is left today, in all and for each purpose."""
        with self._ledger.read() as cx:
            taken = calls_of(cx, day_of(self._ledger.clock()))
        return {
            "daily_limit": self.daily,
            "daily_remaining": max(self.daily - sum(taken.values()), 0),
            "by_purpose": {
                purpose: {"calls": taken.get(purpose, 0), "limit": self.limit(purpose)}
                for purpose in PURPOSES
            },
        }

    def _left(self, taken: Mapping[str, int], purpose: Purpose) -> int:
        own = self.limit(purpose) - taken.get(purpose, 0)
        return max(min(own, self.daily - sum(taken.values())), 0)


class Budgeted:
    """A provider whose every call is taken from the budget of one purpose."""

    def __init__(self, provider: Provider, budget: Budget, purpose: Purpose) -> None:
        self._provider = provider
        self._budget = budget
        self._purpose: Purpose = purpose

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        return self._provider.name

    @property
    def model(self) -> str:
        """The model's name at the provider."""
        return self._provider.model

    def available(self) -> str | None:
        """Return None when the model can be asked now, else the reason in one line."""
        if self._budget.left(self._purpose) < 1:
            return f"no calls for {self._purpose} are left today"
        return self._provider.available()

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Return the model's answer; raises BudgetError, before anything is sent, or LlmError."""
        self._budget.take(self._purpose)
        asked = _tokens(system) + _tokens(prompt)
        try:
            answer = self._provider.generate(system, prompt, json=json)
        except LlmError:
            self._budget.note(self._purpose, asked, failed=True)
            raise
        self._budget.note(self._purpose, asked + _tokens(answer))
        return answer


class Metered:
    """A provider with the budget that all its purposes share; asked directly it refuses.

    Whoever asks says for what: ``for_purpose(provider, ledger, purpose)``.
    """

    def __init__(self, provider: Provider, budget: Budget) -> None:
        self.provider = provider
        self.budget = budget

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        return self.provider.name

    @property
    def model(self) -> str:
        """The model's name at the provider."""
        return self.provider.model

    def available(self) -> str | None:
        """Return None when the model can be asked, else the reason in one line."""
        return self.provider.available()

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Raise BudgetError: a call has to say what it is for."""
        raise BudgetError("a call to a model was made for no purpose that has a budget")


def for_purpose(provider: Provider, ledger: Ledger, purpose: Purpose) -> Provider:
    """Return the provider as one purpose may ask it; one without a budget gets that of the palace."""
    if isinstance(provider, Budgeted):
        return provider
    if isinstance(provider, Metered):
        return Budgeted(provider.provider, provider.budget, purpose)
    return Budgeted(provider, Budget(ledger), purpose)


def _tokens(text: str) -> int:
    """Return about how many tokens a text has; providers do not say."""
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1
