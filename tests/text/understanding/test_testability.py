from __future__ import annotations

from math import exp

import pytest

from castle.text.understanding.requirements import listed
from castle.text.understanding.testability import hard_constraints, soft_constraints
from tests.text.understanding.measured import check

# Hard: at most, 200 ms, 5%; between 3 and 5, 10-20, 20 requests per second: 6.
# Soft: fast, user-friendly, slow: 3.  Exclusions: never, must not: 2.  4 entries.
TEXT = """
- Answers take at most 200 ms and 5% of the memory
- A page is fast and user-friendly, never slow
- Retries between 3 and 5, 10-20 requests per second
- It must not exceed the limit
"""


@pytest.mark.parametrize(
    ("name", "raw", "score"),
    [
        ("hard_constraint_ratio", 6 / (6 + 3), 6 / 9),
        ("constraint_density", (6 + 3) / 4, 1 - exp(-2 * 9 / 4)),
        ("negative_space_coverage", 2 / 4, 1 - exp(-5 * 2 / 4)),
    ],
)
def test_values_worked_out_by_hand(name: str, raw: float, score: float) -> None:
    check(TEXT, name, raw, score)


def test_no_constraint_is_a_ratio_of_0() -> None:
    check("- nothing to hold on to\n", "hard_constraint_ratio", 0, 0)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("in 5 s", 1),
        ("in 1.5 seconds", 1),
        ("in 1,000ms", 1),
        ("for 3 days", 1),
        ("of 2 gb", 1),
        ("of 512 kib", 1),
        ("of 10 bytes", 1),
        ("some 5 percent", 1),
        ("some 99.9% here", 1),
        ("100 queries/second", 1),
        ("5 transactions per hour", 1),
        ("5 operations", 0),
        ("x < 5", 1),
        ("x >= 5", 1),
        ("x = 5", 1),
        ("x ≤ 5", 1),
        ("x < y", 0),
        ("less than that", 1),
        ("greater than that", 1),
        ("equal to that", 1),
        ("at least so", 1),
        ("at most so", 1),
        ("no more than so", 1),
        ("between 2 and 3", 1),
        ("between us and them", 0),
        ("from 2 to 3", 1),
        ("from here to there", 0),
        ("some 2-3 of them", 1),
        ("some 2 – 3 of them", 1),
        ("a maximum of it", 1),
        ("a minimum of it", 1),
        ("up to it", 1),
        ("within 5", 1),
        ("within 5 s", 2),
        ("within reach", 0),
        ("an http status", 1),
        ("http 404", 1),
        ("http status 404", 1),
        ("exactly 3", 1),
        ("precisely 3", 1),
        ("exactly so", 0),
        ("on 2023-05-01", 0),
        ("version 1.2.3", 0),
        ("section 5 shows", 0),
    ],
)
def test_hard_constraints(text: str, count: int) -> None:
    assert hard_constraints(text) == count


def test_soft_constraints_are_whole_words_each_once() -> None:
    (statement,) = listed("breakfast is fast, fast and high-quality")
    assert soft_constraints(statement) == 2


@pytest.mark.parametrize(
    "phrase",
    [
        *(f"{verb} not" for verb in ("must", "shall", "should", "will", "do", "does", "can")),
        *("cannot", "never", "prohibited", "forbidden", "not allowed", "not permitted"),
        *("out of scope", "excludes", "exclude", "omit", "omits"),
    ],
)
def test_exclusions(phrase: str) -> None:
    check(f"- that one here {phrase} x\n", "negative_space_coverage", 1, 1 - exp(-5))
