from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.search.intent import query_intent, room_type


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("what did we decide about Postgres", "decision"),
        ("What did Anna choose?", "decision"),
        ("what do we pick", "decision"),
        ("the decision on storage", "decision"),
        ("who decided for Redis", "decision"),
        ("what's the choice", "decision"),
        ("what’s our pick for the logo", "decision"),
        ("when did the app ship", "milestone"),
        ("when was version 2 of the parser released", "milestone"),
        ("when was it merged?", "milestone"),
        ("next milestone", "milestone"),
        ("what we launched in May", "milestone"),
        ("which editor does she prefer", "preference"),
        ("preferences of the team", "preference"),
        ("my favorite editor", "preference"),
        ("my favourite tea", "preference"),
        ("the login bug", "problem"),
        ("tests are failing", "problem"),
        ("it crashes", "problem"),
        ("what went wrong on Friday", "problem"),
        ("what broke", "problem"),
        ("how did she feel", "emotional"),
        ("emotional support", "emotional"),
        ("where is the parser", None),
        ("a debugger", None),
        ("when is lunch", None),
        ("the decisive battle", None),
        ("", None),
        ("   ", None),
    ],
)
def test_intent(query: str, intent: str | None) -> None:
    assert query_intent(query) == intent


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what did we decide about the bug we shipped, and what do you prefer", "decision"),
        ("when did we ship the bug fix you prefer", "milestone"),
        ("I prefer the error message", "preference"),
        ("a bug that felt odd", "problem"),
    ],
)
def test_the_first_pattern_wins(query: str, first: str) -> None:
    assert query_intent(query) == first


@given(st.text())
def test_any_text_has_an_intent_or_none(query: str) -> None:
    assert query_intent(query) in {None, "decision", "milestone", "preference", "problem", "emotional"}


@pytest.mark.parametrize(
    ("room", "kind"),
    [
        ("decisions", "decision"),
        ("decision", "decision"),
        ("Problems", "problem"),
        ("problem", "problem"),
        ("preferences", "preference"),
        ("preference", "preference"),
        ("milestones", "milestone"),
        ("milestone", "milestone"),
        ("emotional", "emotional"),
        ("general", None),
        ("", None),
    ],
)
def test_room_type(room: str, kind: str | None) -> None:
    assert room_type(room) == kind
