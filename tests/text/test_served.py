from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from castle.records import SealedSpan
from castle.text.served import mask_secrets, served_text


def span(start: int, end: int, tag: str = "3f") -> SealedSpan:
    return SealedSpan(start, end, "aws_key", tag)


def test_spans_are_masked_in_any_order() -> None:
    assert served_text("abcdefgh", [span(5, 7), span(1, 3)]) == "a«secret:aws_key#3f»de«secret:aws_key#3f»h"


def test_without_spans_the_text_is_as_it_is() -> None:
    assert served_text("abc", ()) == "abc"
    assert mask_secrets("nothing here", b"salt") == "nothing here"


def test_overlapping_spans_hide_everything() -> None:
    assert served_text("abcdefgh", [span(1, 4), span(3, 6, "aa"), span(2, 3)]) == (
        "a«secret:aws_key#3f»«secret:aws_key#aa»gh"
    )


@given(
    st.text(alphabet="abc", max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6),
)
def test_what_is_outside_the_spans_stays(text: str, places: list[tuple[int, int]]) -> None:
    spans = [
        span(min(pair), min(max(pair), len(text))) for pair in places if min(pair) < min(max(pair), len(text))
    ]
    hidden = {at for one in spans for at in range(one.start, one.end)}
    shown = "".join(char for at, char in enumerate(text) if at not in hidden)
    assert served_text(text, spans).replace(span(0, 1).mask, "") == shown
