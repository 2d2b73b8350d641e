from __future__ import annotations

from math import exp, log

import pytest

from tests.text.understanding.measured import check

# 1: "if", with guard, action and observable: complete.  2: "when" and "upon", an action ("check") but nothing
# to observe: two incomplete; speaks of errors.  3: no condition, but action and observable: complete.
# 4: nothing.  5: "unless", with a guard, but no action: incomplete; speaks of an error.
TEXT = """
- If the door opens, display a message
- When the check fails or upon timeout
- Save the drawing
- The moon is round and bright
- Unless asked
"""


@pytest.mark.parametrize(
    ("name", "raw", "score"),
    [
        ("scenario_decomposition_score", 3 / 5, 1 - exp(-3 * 3 / 5)),
        ("transition_completeness_score", 2 / 5, 2 / 5),
        (
            "branch_coverage_score",
            (log(1 + 4) + 0.5 * log(1 + 2)) / (log(7) + 0.5 * log(4)),
            (log(5) + 0.5 * log(3)) / (log(7) + 0.5 * log(4)),
        ),
        ("observability_score", 2 / 5, 2 / 5),
    ],
)
def test_values_worked_out_by_hand(name: str, raw: float, score: float) -> None:
    check(TEXT, name, raw, score)


def test_a_condition_without_a_guard_is_no_complete_transition() -> None:
    check("- save the status when\n", "transition_completeness_score", 0, 0)
    check("- save the status when idle\n", "transition_completeness_score", 1, 1)


def test_an_action_that_cannot_be_observed_is_incomplete() -> None:
    check("- delete the old one\n", "transition_completeness_score", 0, 0)
    check("- the moon and the sun\n", "transition_completeness_score", 0, 0)


def test_errors_without_branches_cover_none() -> None:
    check("- invalid things get rejected\n", "branch_coverage_score", 0, 0)


def test_branches_beyond_six_with_three_errors_are_full_coverage() -> None:
    # 7 conditions and 4 statements that speak of errors: ln 8 + .5 ln 5 is more than ln 7 + .5 ln 4.
    text = "".join(f"- case {n} if it fails\n" for n in range(4)) + "".join(
        f"- case {n} when idle\n" for n in range(3)
    )
    check(text, "branch_coverage_score", (log(8) + 0.5 * log(5)) / (log(7) + 0.5 * log(4)), 1)


@pytest.mark.parametrize("phrase", ["it moves to x", "it changes to x", "becomes one", "inactive", "replies"])
def test_what_can_be_observed(phrase: str) -> None:
    check(f"- that one there {phrase}\n", "observability_score", 1, 1)
