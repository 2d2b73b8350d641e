from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.clients import merge
from castle.clients.jsonc import Node, found
from castle.clients.merge import Json
from castle.errors import RefusedError
from tests.clients.conftest import settings, untimed

ENTRY = {"command": "castle-mcp", "args": ["--palace", 'C:\\a "b"']}
SOURCE = Path("/f.json")


def item(file: Json, path: tuple[str, ...], key: str | int) -> Any:
    node = found(file.root, path)
    assert isinstance(node, Node)
    return node.member(key) if isinstance(key, str) else node.items[key]


@untimed
@given(settings(keys=("mcpServers",), relaxed=True))
def test_an_entry_taken_out_leaves_every_byte(drawn: tuple[str, Any]) -> None:
    text, value = drawn
    file = Json(text, SOURCE, relaxed=True)
    added = merge.with_value(file, ("mcpServers", "castle"), ENTRY)
    wanted = {**value, "mcpServers": {**value.get("mcpServers", {}), "castle": ENTRY}}
    assert added.root.value() == wanted
    back = merge.without(added, ("mcpServers",), item(added, ("mcpServers",), "castle"), file)
    assert back.text == text


@untimed
@given(settings(keys=("hooks",), relaxed=False), st.integers(1, 3))
def test_elements_taken_out_leave_every_byte(drawn: tuple[str, Any], count: int) -> None:
    text, value = drawn
    file = Json(text, SOURCE, relaxed=False)
    stop = value.get("hooks", {}).get("Stop", [])
    if not isinstance(stop, list):
        with pytest.raises(RefusedError, match=r"^/f.json:\d+:\d+: hooks.Stop is not a list"):
            merge.with_element(file, ("hooks", "Stop"), ENTRY)
        return
    added = file
    for _ in range(count):
        added = merge.with_element(added, ("hooks", "Stop"), ENTRY)
    assert added.root.value()["hooks"]["Stop"] == stop + [ENTRY] * count  # type: ignore[index]
    for _ in range(count):
        added = merge.without(added, ("hooks", "Stop"), item(added, ("hooks", "Stop"), -1), file)
    assert added.text == text


@untimed
@given(settings(keys=("mcpServers",), relaxed=True), st.data())
def test_without_the_text_from_before_only_empty_places_differ(drawn: tuple[str, Any], data: Any) -> None:
    text, value = drawn
    added = merge.with_value(Json(text, SOURCE, relaxed=True), ("mcpServers", "castle"), ENTRY)
    back = merge.without(added, ("mcpServers",), item(added, ("mcpServers",), "castle"), None)
    if value.get("mcpServers"):
        assert back.text == text
    elif "mcpServers" in value:
        assert {"mcpServers": {}, **back.root.value()} == value  # type: ignore[dict-item]
    else:
        assert back.root.value() == value


@pytest.mark.parametrize("at", [0, 1, 2])
@untimed
@given(drawn=settings(keys=("mcpServers",), relaxed=True))
def test_what_is_added_around_an_entry_stays(drawn: tuple[str, Any], at: int) -> None:
    text, value = drawn
    file = Json(text, SOURCE, relaxed=True)
    added = merge.with_value(file, ("mcpServers", "castle"), ENTRY)
    paths: tuple[tuple[str, ...], ...] = (("mcpServers", "other"), ("new",), ("mcpServers", "castle", "env"))
    later = merge.with_value(added, paths[at], {"by": "hand"})
    back = merge.without(later, ("mcpServers",), item(later, ("mcpServers",), "castle"), file)
    expected = value if at == 2 else merge.with_value(file, paths[at], {"by": "hand"}).root.value()
    assert back.root.value() == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "s": {\n    "castle": 1\n  }\n}'),
        ('{"a":1}', '{"a":1,"s":{"castle":1}}'),
        ('{"a": 1}', '{"a": 1, "s": {"castle": 1}}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"s": {\n\t\t"castle": 1\n\t}\n}\n'),
        ('{\r\n "a": 1\r\n}', '{\r\n "a": 1,\r\n "s": {\r\n  "castle": 1\r\n }\r\n}'),
        ('{\n  "a": 1, // x\n}', '{\n  "a": 1, // x\n  "s": {\n    "castle": 1\n  },\n}'),
        ('{\n  "a": 1 // x\n}', '{\n  "a": 1, // x\n  "s": {\n    "castle": 1\n  }\n}'),
        (
            '{\n  "a": 1\n  // "b": 2\n}',
            '{\n  "a": 1,\n  "s": {\n    "castle": 1\n  }\n  // "b": 2\n}',
        ),
        ('{\n  "s": {} // x\n}', '{\n  "s": {\n    "castle": 1\n  } // x\n}'),
        ("{ // x\n}", '{ // x\n  "s": {\n    "castle": 1\n  }\n}'),
        ('{"a": [1], // x\n}', '{"a": [1], // x\n"s": {\n  "castle": 1\n},\n}'),
    ],
)
def test_an_entry_goes_where_a_person_would_put_it(before: str, after: str) -> None:
    file = Json(before, SOURCE, relaxed=True)
    added = merge.with_value(file, ("s", "castle"), 1)
    assert added.text == after
    assert merge.without(added, ("s",), item(added, ("s",), "castle"), file).text == before


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"castle": 1, "b": 2}', '{ "b": 2}'),
        ('{"a": 1, // x\n "castle": 1, "b": 2}', '{"a": 1, // x\n  "b": 2}'),
        ('{"a": "//",\n "castle": 1}', '{"a": "//"}'),
        ('{ // x\n "castle": 1}', "{ // x\n }"),
    ],
)
def test_what_others_moved_around_the_entry_is_still_json(text: str, left: str) -> None:
    file = Json(text, SOURCE, relaxed=True)
    value = file.root.value()
    back = merge.without(file, (), item(file, (), "castle"), None)
    assert back.text == left
    assert back.root.value() == {key: one for key, one in value.items() if key != "castle"}  # type: ignore[attr-defined]


def test_a_value_in_the_way_is_named() -> None:
    file = Json('{\n  "mcpServers": []\n}', SOURCE, relaxed=False)
    with pytest.raises(
        RefusedError, match=r"^/f.json:2:17: mcpServers is not an object; nothing was changed$"
    ):
        merge.with_value(file, ("mcpServers", "castle"), 1)
    with pytest.raises(RefusedError, match=r"^/f.json:1:1: not an object"):
        merge.with_value(Json("[]", SOURCE, relaxed=False), ("a",), 1)


@pytest.mark.parametrize(
    "text", ['{"a": {"castle": 1}, "b": []}', '{"b": [], "a": {}}', '{"castle": 2}', "{}"]
)
def test_a_change_of_our_own_is_confirmed(text: str) -> None:
    before = Json('{"castle": {"x": 1}}', SOURCE, relaxed=False)
    after = before.changed(text)
    assert merge.confirmed(before, after, lambda key, _: key == "castle") is after


@pytest.mark.parametrize("text", ['{"a": [1, 2]}', '{"a": [1], "b": 0}', '{"a": [2]}', "{}"])
def test_a_change_of_anything_else_is_refused(text: str) -> None:
    before = Json('{"a": [1]}', SOURCE, relaxed=False)
    with pytest.raises(RefusedError, match="cannot be changed safely"):
        merge.confirmed(before, before.changed(text), lambda key, _: key == "castle")
