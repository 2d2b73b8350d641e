from __future__ import annotations

from math import sqrt

import pytest

from castle.text.understanding.lexicon import syllables
from castle.text.understanding.prepare import prose_of, without_code
from tests.text.understanding.measured import check

# 6 + 4 words in 2 sentences. Syllables, word by word: 1 2 1 1 1 3, 1 2 1 2 = 15; only "document" has three.
# Signs that are not space: 3+4+4+4+1+8 and a stop, 3+6+2+5 and a stop = 25 + 17 = 42.
TEXT = "The user must save a document. The report is ready."
WPS, SPW, CPW = 5.0, 1.5, 4.2


@pytest.mark.parametrize(
    ("name", "raw", "score"),
    [
        ("flesch_reading_ease", 206.835 - 1.015 * WPS - 84.6 * SPW, 1 - (74.86 - 65) / 100),
        ("flesch_kincaid_grade", 0.39 * WPS + 11.8 * SPW - 15.59, 1 - (10 - 4.06) / 20),
        ("gunning_fog_index", 0.4 * (WPS + 100 * 1 / 10), 1 - (12 - 6.0) / 24),
        (
            "smog_index",
            1.0430 * sqrt(1 * 30 / 2) + 3.1291,
            1 - (12 - (1.0430 * sqrt(15) + 3.1291)) / 24,
        ),
        ("coleman_liau_index", 0.0588 * 420 - 0.296 * 20 - 15.8, 1 - (10 - 2.976) / 20),
        ("automated_readability_index", 4.71 * CPW + 0.5 * WPS - 21.43, 1 - (10 - 0.852) / 20),
    ],
)
def test_values_worked_out_by_hand(name: str, raw: float, score: float) -> None:
    check(TEXT, name, raw, score)


def test_values_are_clamped() -> None:
    # One word of one syllable: 206.835 - 1.015 - 84.6 = 121.22, and three grades below 0.
    check("Go.", "flesch_reading_ease", 100, 1 - (100 - 65) / 100)
    check("Go.", "flesch_kincaid_grade", 0, 1 - 10 / 20)
    check("Go.", "coleman_liau_index", 0, 1 - 10 / 20)
    check("Go.", "automated_readability_index", 0, 1 - 10 / 20)
    # Five syllables in one word: 206.835 - 1.015 - 423 is below 0, the grade 0.39 + 59 - 15.59 above 30.
    check("University.", "flesch_reading_ease", 0, 1 - 65 / 100)
    check("University.", "flesch_kincaid_grade", 43.8, 0)


@pytest.mark.parametrize(
    ("word", "count"),
    [("the", 1), ("table", 1), ("ready", 2), ("queue", 1), ("document", 3), ("xml", 1), ("漢字", 1)],
)
def test_syllables_are_groups_of_vowels_less_a_final_e(word: str, count: int) -> None:
    assert syllables(word) == count


def test_markup_is_no_prose() -> None:
    text = (
        "# Title one\n\n- **bold** and *thin* and __loud__ words\n2) a [link](https://example.org/x) here\n"
        "<!-- hidden words --> `code()` snake_case 3 * 4\n```py\nmore = code\n```\n"
    )
    prose = prose_of(without_code(text))
    assert " ".join(prose.words) == "Title one bold and thin and loud words a link here snake_case 3 4"


def test_what_is_opened_and_never_closed_stays() -> None:
    assert without_code("a\n```\nb") == "a\n```\nb"
    assert without_code("a <!-- b") == "a <!-- b"
    assert without_code("a\n```\nb\n```\nc\n```\nd") == "a\nc\n```\nd"
    assert without_code("~~~\n```\n~~~\nx") == "x"
    assert without_code("<!-- a --> b <!-- c") == " b <!-- c"
