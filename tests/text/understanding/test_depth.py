from __future__ import annotations

from math import exp, log

import pytest

from tests.text.understanding.measured import check

# 3 statements; concepts: user, report, server, data ("users" are the user). The first statement refers to two
# others, the second holds only its own identifier.
TEXT = """
- FR-1: The user reads a report as in FR-2 and AC-3, see FR-2
- FR-2: A server keeps data for users
- Plain words without concepts
"""


@pytest.mark.parametrize(
    ("name", "raw", "score"),
    [
        ("requirement_volume_score", 3, log(1 + 3) / log(201)),
        ("coverage_density", 3 / 4, 1 - exp(-(3 / 4) / 3)),
        ("cross_reference_index", 2 / 3, 1 - exp(-2 / 3)),
    ],
)
def test_values_worked_out_by_hand(name: str, raw: float, score: float) -> None:
    check(TEXT, name, raw, score)


def test_no_concept_counts_as_one() -> None:
    check("- plain words here\n- more plain words\n", "coverage_density", 2, 1 - exp(-2 / 3))


def test_volume_is_full_at_200() -> None:
    two_hundred = "".join(f"- entry number {n}\n" for n in range(200))
    check(two_hundred, "requirement_volume_score", 200, 1)
    check(two_hundred + "- one entry more\n", "requirement_volume_score", 201, 1)
