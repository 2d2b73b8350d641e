from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from castle.text.closet import CLOSET_CHARACTERS, Gist, pack, spread


def lines_of(*texts: str) -> list[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    gist = Gist()
    for number, text in enumerate(texts):
        gist.add(number, text)
    return [(line.subject, line.entities, line.drawers) for line in gist.lines("wing/room/notes")]


def test_topics_are_headings_and_what_was_done() -> None:
    found = lines_of("# Release plan\n\nWe migrated the billing service. Then nothing.", "### Too deep? no\n")
    assert [subject for subject, _, _ in found] == [
        "release plan",
        "migrated the billing service",
        "too deep? no",
    ]


def test_quotes_keep_their_marks_and_point_at_their_drawer() -> None:
    found = lines_of("nothing", 'she said "we will never do that again" and left')
    assert found == [('"we will never do that again"', (), (1,))]


def test_a_line_points_at_all_drawers_that_say_it_up_to_three() -> None:
    found = lines_of(*["fixed the login page."] * 5)
    assert found == [("fixed the login page", (), (0, 1, 2))]


def test_only_those_are_named_who_occur_where_the_line_points() -> None:
    found = lines_of(
        "today Alice added the cache layer",
        "today Alice met Bob, and Bob left",
        "today someone removed the old tests",
    )
    assert found == [
        ("added the cache layer", ("Alice",), (0,)),
        ("removed the old tests", (), (2,)),
    ]


def test_a_source_without_topics_and_quotes_has_its_place_as_a_line() -> None:
    assert lines_of("some words", "more words") == [("wing/room/notes", (), (0, 1))]
    assert lines_of() == []


def test_the_whole_source_counts_and_not_its_beginning_only() -> None:
    found = lines_of(*(f"# Chapter number {n}\n" for n in range(1200)))
    assert len(found) == 12
    assert found[-1][2][0] > 1000


def test_what_is_said_often_comes_before_what_is_said_once() -> None:
    texts = [f"# Chapter number {n}\n" for n in range(40)] + ["# The refrain\n"] * 2
    assert "the refrain" in [subject for subject, _, _ in lines_of(*texts)]


def test_more_sayings_than_are_remembered_are_thinned_out_evenly() -> None:
    gist = Gist()
    gist.add(0, "# Repeated\n# Repeated\n")
    for number in range(1, 20_000):
        gist.add(number, f"# Chapter number {number}\n")
    lines = gist.lines("x")
    assert len(lines) == 12
    assert lines[0].subject == "repeated"
    assert len(gist._topics._found) <= 4096
    assert lines[-1].drawers[0] > 15_000


@given(st.lists(st.text(max_size=200), max_size=6))
def test_any_text_gives_lines_within_the_limits(texts: list[str]) -> None:
    gist = Gist()
    for number, text in enumerate(texts):
        gist.add(number, text)
    lines = gist.lines("fallback")
    assert bool(lines) == bool(texts)
    assert len(lines) <= 15
    for line in lines:
        written = line.text(["0" * 24] * len(line.drawers))
        assert "\n" not in written
        assert written.count("|→") == 1 or "|→" in line.subject
        assert len(line.entities) <= 5
        assert 1 <= len(line.drawers) <= 3


@given(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=700), max_size=12))
def test_packing_cuts_no_line_and_keeps_the_order(lines: list[str]) -> None:
    packed = pack(lines)
    assert "\n".join(packed).split("\n") == (lines or [""])
    assert all(len(page) <= CLOSET_CHARACTERS for page in packed)


def test_spreading() -> None:
    assert spread(["a", "b"], 5) == ["a", "b"]
    assert spread([str(n) for n in range(10)], 3) == ["0", "3", "6"]
    assert spread(["a"], 0) == []
