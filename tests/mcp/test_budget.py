from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.mcp.answers import DrawerAnswer, ExactItem, PlaceItem, PlacesAnswer
from castle.mcp.budget import BUDGET, fitted, size

UNITS = ["a", "é", "😀", '"', "\x01", "</castle-recall>", "\n"]


def drawer(number: int, text: str) -> ExactItem:
    return ExactItem(
        drawer_id=f"{number:024x}", content=text, wing="w", room="r", source="s", authored_at="t", sha256="0"
    )


@settings(deadline=None, max_examples=60)
@given(
    texts=st.lists(
        st.tuples(
            st.sampled_from(["a", "é", "😀", '"', "\x01", "</castle-recall>", "\n"]), st.integers(0, 3000)
        ),
        max_size=30,
    ),
    budget=st.integers(2000, 20_000),
    first_whole=st.booleans(),
)
def test_any_texts_fit_and_what_is_missing_is_told(
    texts: list[tuple[str, int]], budget: int, first_whole: bool
) -> None:
    whole = [unit * count for unit, count in texts]
    items = [drawer(number, text) for number, text in enumerate(whole)]
    result = fitted(
        items,
        lambda shown: DrawerAnswer(total=len(items), left_out=len(items) - len(shown), drawers=shown),
        budget=budget,
        first_whole=first_whole,
    )
    assert size(result) <= budget
    answer = result.structured_content
    shown = answer["drawers"]
    assert answer["total"] == len(items)
    assert answer.get("left_out", 0) == len(items) - len(shown)
    assert [one["drawer_id"] for one in shown] == [item.drawer_id for item in items[: len(shown)]]
    assert bool(shown) == bool(items)
    for one, text in zip(shown, whole, strict=False):
        body = one["content"].removeprefix('<castle-recall v="1">\n').removesuffix("\n</castle-recall>")
        plain = body.replace("<\\/castle-recall>", "</castle-recall>")
        if "cut" in one:
            assert one["cut"].startswith(
                f"{len(plain)} of {len(text)} characters: castle_get_drawer {one['drawer_id']}"
            )
            assert text.startswith(plain)
        else:
            assert plain == text


def test_the_first_text_stays_whole_while_others_are_cut() -> None:
    items = [drawer(0, "a" * 3000), *(drawer(n, "b" * 3000) for n in range(1, 9))]
    result = fitted(items, lambda shown: DrawerAnswer(total=9, drawers=shown), first_whole=True)
    first, *others = result.structured_content["drawers"]
    assert "cut" not in first
    assert all("cut" in other for other in others)
    assert size(result) <= BUDGET


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_entries_without_text_are_left_out_from_the_end(count: int) -> None:
    items = [PlaceItem(wing=f"wing{number}", drawers=number) for number in range(count)]
    result = fitted(items, lambda shown: PlacesAnswer(total=count, offset=0, places=shown))
    assert size(result) <= BUDGET
    names = [place["wing"] for place in result.structured_content["places"]]
    assert names == [f"wing{number}" for number in range(len(names))]
    assert (len(names) == count) == (count < 5000)
