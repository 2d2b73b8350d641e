from __future__ import annotations

import pytest

from tests.text.understanding.measured import check

# 15 + 7 words in 2 sentences: 11 words per sentence.
# One "and"; "because" and "if"; hence T = int(11 * (1 + 2 + 1)) = 44.
# "not" twice and "No", less the one after "must": 2 negations. One condition, "if".
# Concepts: the, auditor, no (capitalised), printer (-er): 4.
# Syllables: 1 3 1 1 1 2 1 2 1 1 1 1 1 1 2 = 20, 1 1 1 1 1 1 1 = 7.
TEXT = (
    "The Auditor must not stop because the printer is slow and it is not ready. No page is lost if it waits."
)
T = 44


@pytest.mark.parametrize(
    ("name", "raw", "score"),
    [
        ("sentence_length", 22 / 2, 1 - (20 - 11) / 20),
        ("syllable_complexity", 27 / 22, 1 - (1.5 - 27 / 22) / 1.5),
        ("concept_density", 4 / 22, 1 - (0.20 - 4 / 22) / 0.20),
        ("coordination_complexity", 1 / T, 1 - (1 / T) / 0.10),
        ("subordination_complexity", 2 / T, 1 - (2 / T) / 0.10),
        ("negation_load", 2 / T, 1 - (2 / T) / 0.05),
        ("conditional_load", 1 / T, 1 - (1 / T) / 0.10),
    ],
)
def test_values_worked_out_by_hand(name: str, raw: float, score: float) -> None:
    check(TEXT, name, raw, score)


def test_scores_do_not_fall_below_0() -> None:
    # 41 words in a sentence; 1 capitalised of 1; 3 "and" for T = int(4 * (3 + 0 + 1)) = 16.
    check("word " * 41, "sentence_length", 41, 0)
    check("Go.", "concept_density", 1, 0)
    check("and and and x", "coordination_complexity", 3 / 16, 0)


@pytest.mark.parametrize(
    ("text", "negations", "t"),
    [
        ("it cannot be", 0, 3),  # 3 words and no conjunction: T = 3
        ("it can not be", 0, 4),
        ("it is not so", 1, 8),  # "so" coordinates: T = int(4 * 2)
        ("must not or not", 1, 8),
        ("Never Nobody None", 2, 3),
    ],
)
def test_a_negated_modal_is_no_load(text: str, negations: int, t: int) -> None:
    check(text, "negation_load", negations / t, max(0, 1 - negations / t / 0.05))


def test_concepts_are_counted_once_whatever_their_case() -> None:
    # testers/quality: "Quality" and "quality" are one; "or" alone and "er" have nothing before the ending.
    check("Quality quality or er", "concept_density", 1 / 4, 1 - (0.25 - 0.20) / 0.20)
