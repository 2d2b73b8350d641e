from __future__ import annotations

import pytest

from castle.text.understanding.requirements import listed
from castle.text.understanding.roles import Roles, roles
from tests.text.understanding.measured import check

# Entry by entry: actor, action, object, outcome, trigger.
# 1: user, save, report, -, if.  2: clock, -, -, -, -.  3: -, return, -, return something, whenever.
# 4: -, -, values, -, - ("afterwards" is not "after").
TEXT = """
- The user shall save a report if asked
- The clock must tick for ever
- Return something to me whenever idle
- Values are sent afterwards
"""


@pytest.mark.parametrize(
    ("name", "raw", "score"),
    [
        ("actor_presence", 2 / 4, 2 / 4),
        ("action_presence", 2 / 4, 2 / 4),
        ("object_presence", 2 / 4, 2 / 4),
        ("outcome_presence", 1 / 4, 1 / 4),
        ("trigger_presence", 2 / 4, (2 / 4) / 0.7),
        ("scc_score", (0.5 + 0.5 + 0.5 + 0.25 + 0.7 * 0.5) / 4.7, 2.1 / 4.7),
    ],
)
def test_values_worked_out_by_hand(name: str, raw: float, score: float) -> None:
    check(TEXT, name, raw, score)


def test_a_share_of_triggers_beyond_the_ideal_scores_1() -> None:
    check("- it works when idle\n", "trigger_presence", 1, 1)


def _roles(text: str) -> Roles:
    (statement,) = listed(text)
    return roles(statement)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("it returns nothing", True),
        ("then it shows up", True),
        ("it can only return", False),
        ("the change to that", True),
        ("a change of heart", False),
        ("it results in that", True),
        ("it transitions to x", True),
    ],
)
def test_outcomes(text: str, outcome: bool) -> None:
    assert _roles(text).outcome is outcome


def test_actors_and_objects_are_told_in_the_singular() -> None:
    found = _roles("The users and the user must see queries, entries and an entry")
    assert found.actors == {"user"}
    assert found.objects == {"user", "entry"}
    assert _roles("After all the gate shall rest").actors == {"gate"}
    assert _roles("The servers shall rest in the night").actors == {"server"}


def test_on_is_a_condition_but_no_trigger() -> None:
    found = _roles("on Monday it rains")
    assert found.conditions == (True,)
    assert not found.triggered
    assert _roles("it is on the table").conditions == ()
    assert _roles("in case it rains").triggered
    assert _roles("a suit in a case").conditions == ()
