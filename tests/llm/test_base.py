from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.llm.base import LlmError, Provider, Unusable, json_object, one_line

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), VALUES))
def test_an_object_is_read_bare_fenced_and_in_prose(value: dict[str, object]) -> None:
    text = json.dumps(value)
    wrappings = ("{}", "```json\n{}\n```", "Here it is:\n{}\nI hope this helps.", "<think>a {{b}}</think>{}")
    for wrapping in wrappings:
        assert json_object(wrapping.format(text)) == value


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no object",
        "[1, 2]",
        "}{",
        '{"a": 1',
        '{"a": {"b": 1}',
        '{"a": 1} {"b": 2}',
        '{"a": 1} or perhaps {"a": 2}',
        "{'a': 1}",
        '{"a": ' + "9" * 5000 + "}",
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=lambda text: text[:20],
)
def test_anything_but_one_object_is_refused(answer: str) -> None:
    with pytest.raises(LlmError, match="is not one JSON object") as caught:
        json_object(answer)
    assert len(str(caught.value)) < 200


@given(st.text(), st.integers(2, 50))
def test_a_line_is_one_line_and_short(text: str, most: int) -> None:
    line = one_line(text, most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1
    assert not any(ord(c) < 32 for c in line)


def test_what_cannot_be_built_says_why() -> None:
    provider: Provider = Unusable("anthropic", "m", "no key")
    assert (provider.name, provider.model, provider.available()) == ("anthropic", "m", "no key")
    with pytest.raises(LlmError, match="no key"):
        provider.generate("s", "p")
