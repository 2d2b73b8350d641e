from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.mine.formats import Broken, Event, NoMessage, Transcript, items
from castle.mine.formats.chatgpt import ChatGpt
from castle.mine.formats.container import Single
from castle.mine.formats.items import read_items

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet='ab"\\[]{},: \n\ud800é'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


class Memory(Single):
    def __init__(self, data: bytes) -> None:
        super().__init__(Path("memory.json"))
        self.data = data

    def open(self, name: str) -> io.BytesIO:
        return io.BytesIO(self.data)


def read(data: bytes) -> tuple[list[Any], list[Broken]]:
    values: list[Any] = []

    def handle(value: Any, number: int, escaped: bool) -> Iterable[Event]:
        values.append(value)
        return [NoMessage(number, "seen")]

    events = list(read_items(Transcript(Memory(data), "memory.json", ChatGpt()), handle))
    return values, [event for event in events if isinstance(event, Broken)]


@given(st.lists(VALUES, max_size=6), st.integers(1, 9), st.sampled_from([None, 1]))
def test_a_list_is_cut_into_its_items(value: list[Any], chunk: int, indent: int | None) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=True).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "_CHUNK", chunk)
        assert read(data) == (value, [])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_encodings_with_a_mark(encoding: str) -> None:
    assert read(json.dumps([{"é": "中"}], ensure_ascii=False).encode(encoding)) == ([{"é": "中"}], [])


def test_a_document_that_is_no_list() -> None:
    assert read(b' {"a": [1, 2]} \n') == ([{"a": [1, 2]}], [])


def test_one_broken_item_does_not_stop_the_others() -> None:
    values, broken = read(b'[{"a": 1}, {"b": nope}, , {"c": 3}]')
    assert values == [{"a": 1}, {"c": 3}]
    assert [one.position for one in broken] == [2, 3]


def test_a_list_that_is_cut_off() -> None:
    values, broken = read(b'[{"a": 1}, {"b": "un')
    assert values == [{"a": 1}]
    assert [(one.position, one.reason) for one in broken] == [(2, "cut off before its end")]
    assert [one.reason for one in read(b"[1,")[1]] == ["the list is cut off before its end"]


def test_text_after_the_end() -> None:
    values, broken = read(b"[1]\n[2]")
    assert (values, len(broken)) == ([1], 1)


def test_an_item_that_is_too_long_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "MAX_ITEM", 100)
    monkeypatch.setattr(items, "_CHUNK", 16)
    values, broken = read(json.dumps(["a", "x" * 500, "b"]).encode())
    assert values == ["a", "b"]
    assert [one.position for one in broken] == [2]


def test_deep_nesting_and_stray_bytes() -> None:
    values, broken = read(b"[" + b"[" * 50_000 + b"]" * 50_000 + b', "\xff"]')
    assert values == ["\udcff"]
    assert len(broken) == 1
