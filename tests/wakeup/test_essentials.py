from __future__ import annotations

from dataclasses import replace

import pytest

from castle.wakeup.candidates import Candidate
from castle.wakeup.essentials import chosen, place_weight, ranked
from castle.wakeup.nearness import Nearness
from tests.wakeup.conftest import DAY, NOON

USUAL = Candidate(
    1, "a", "shop", "general", "message", "user", 1, "/t/s.jsonl", b"1", NOON, 500, 0, 0.5, None
)


class Apart(Nearness):
    """Every two drawers say something else, but for those with the same hash."""

    def __init__(self) -> None:
        self._units, self._words = {}, {}


def order(*given: Candidate) -> list[str]:
    return [r.candidate.id for r in ranked(given, NOON + DAY, 90.0)]


def picked(*given: Candidate) -> list[str]:
    numbered = [replace(one, rid=n, sha256=b"%d" % n) for n, one in enumerate(given)]
    return [one.id for one in chosen(ranked(numbered, NOON + DAY, 90.0), Apart(), [])]


@pytest.mark.parametrize(
    "better",
    [
        replace(USUAL, id="b", authored_at=NOON + DAY),
        replace(USUAL, id="b", uses=3),
        replace(USUAL, id="b", novelty=0.9),
        replace(USUAL, id="b", room="decisions"),
    ],
)
def test_recent_used_new_and_decided_come_first(better: Candidate) -> None:
    assert order(USUAL, better) == ["b", "a"]


@pytest.mark.parametrize(
    "worse",
    [
        replace(USUAL, id="A", authored_at=NOON - 30 * DAY),
        replace(USUAL, id="A", size=10),
        replace(USUAL, id="A", kind="file", path="/p/main.py"),
        replace(USUAL, id="A", kind="file", path="/p/README.md"),
        replace(USUAL, id="A", role="assistant"),
    ],
)
def test_old_short_and_code_come_last(worse: Candidate) -> None:
    assert order(worse, USUAL) == ["a", "A"]


def test_prose_comes_before_code_and_a_diary_before_both() -> None:
    code, prose = (replace(USUAL, kind="file", path=path) for path in ("C:\\p\\a.rs", "/p/NOTES.MD"))
    diary = replace(USUAL, kind="diary", role="assistant")
    assert place_weight(code) < place_weight(prose) < place_weight(diary)


def test_a_wing_that_rests_is_ranked_as_it_was_left() -> None:
    old = replace(USUAL, id="old", authored_at=NOON - 30 * DAY)
    later = [ranked([old, USUAL], NOON + years * 365 * DAY, 90.0) for years in (1, 5)]
    assert later[0] == later[1]
    assert later[0][0].score > 1.1 * later[0][1].score


def test_a_time_in_the_future_is_now() -> None:
    odd = replace(USUAL, id="odd", authored_at=NOON + 9999 * DAY)
    today = replace(USUAL, id="now", authored_at=NOON + DAY)
    scores = {r.candidate.id: r.score for r in ranked([odd, today], NOON + DAY, 90.0)}
    assert scores["odd"] == scores["now"]


def test_every_room_comes_before_a_second_of_the_first() -> None:
    first = [replace(USUAL, id=f"r{n}", novelty=0.9 - n / 10) for n in range(3)]
    other = replace(USUAL, id="other", room="planning", novelty=0.2, source=2)
    assert picked(*first, other) == ["r0", "other", "r1", "r2"]


def test_another_source_comes_before_more_of_the_same() -> None:
    same = [replace(USUAL, id=f"s{n}") for n in range(2)]
    other = replace(USUAL, id="z", source=2, novelty=0.4)
    assert picked(*same, other) == ["s0", "z", "s1"]


def test_equal_texts_are_shown_once() -> None:
    ranking = ranked([USUAL, replace(USUAL, id="b", room="planning", rid=2)], NOON, 90.0)
    assert [one.id for one in chosen(ranking, Apart(), [])] == ["a"]
    assert list(chosen(ranking, Apart(), [replace(USUAL, id="pin", rid=9)])) == []
