from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.text.near import distance, near_names, plain_name


def pairs(*names: str) -> set[tuple[str, str]]:
    return {(one, other) for one, other, _ in near_names({name: name for name in names})}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Müller", "Muller"),
        ("Foo-Bar", "foo bar"),
        ("Jan", "JAN"),
        ("Straße", "Strasse"),
        ("Schmidt", "Schmitt"),
        ("Marten", "Martne"),
        ("Castle", "Castles"),
        ("Maximilian", "Maximillain"),
        ("Александр", "Алексанр"),
    ],
)
def test_names_that_may_be_one(one: str, other: str) -> None:
    assert pairs(one, other) == {tuple(sorted((one, other)))}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Max", "May"),
        ("Anna", "Anne"),
        ("Acme", "Beta"),
        ("release 1.2", "release 1.3"),
        ("version 10", "version 100"),
        ("Marion", "Martin"),
        ("김민수", "김민주"),
        ("राम", "रमा"),
        ("C", "C++"),
    ],
)
def test_names_that_are_two(one: str, other: str) -> None:
    assert pairs(one, other) == set()


def test_marks_that_are_vowels_are_kept_and_accents_are_not() -> None:
    assert plain_name("Ñandú") == "nandu"
    assert plain_name("हिन्दी") == "हिन्दी"
    assert plain_name("한국") == "한국"


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("flaw", "lawn", 2), ("ab", "ba", 2)],
)
def test_the_distance_is_that_of_levenshtein(one: str, other: str, edits: int) -> None:
    assert distance(one, other, 9) == distance(other, one, 9) == edits
    assert distance(one, other, edits) == edits
    if edits:
        assert distance(one, other, edits - 1) == edits


LETTERS = st.text("ab", min_size=4, max_size=12)


@given(st.sets(LETTERS, max_size=12))
@settings(deadline=None)
def test_no_pair_is_missed_and_none_is_made_up(names: set[str]) -> None:
    def near(one: str, other: str) -> bool:
        shorter = min(len(one), len(other))
        allowed = 0 if shorter < 5 else 1 if shorter < 10 else 2
        swapped = any(one[:n] + one[n + 1] + one[n] + one[n + 2 :] == other for n in range(len(one) - 1))
        return distance(one, other, 9) <= allowed or (allowed == 1 and swapped)

    assert pairs(*names) == {
        (one, other) for one, other in combinations(sorted(names), 2) if near(one, other)
    }
