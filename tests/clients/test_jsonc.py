from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from castle.clients.jsonc import comments, found, parse
from castle.errors import ConfigError
from tests.clients.conftest import settings, untimed

SOURCE = Path("/f.json")


@untimed
@given(settings())
def test_reads_what_json_reads(drawn: tuple[str, Any]) -> None:
    text, value = drawn
    assert parse(text, SOURCE, relaxed=False).value() == json.loads(text) == value


@untimed
@given(settings(relaxed=True))
def test_comments_and_trailing_commas_change_nothing(drawn: tuple[str, Any]) -> None:
    text, value = drawn
    assert parse(text, SOURCE, relaxed=True).value() == value


@untimed
@given(settings(relaxed=True))
def test_every_part_is_where_it_says(drawn: tuple[str, Any]) -> None:
    text, value = drawn
    root = parse(text, SOURCE, relaxed=True)
    for item in root.items:
        assert parse(text[item.node.start : item.node.end], SOURCE, relaxed=True).value() == value[item.key]
        assert text[item.start] == '"'
        assert item.comma is None or text[item.comma] == ","


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('{"a": 1,}', "1:8", "comma"),
        ("{\n  // no\n}", "2:3", "comments"),
        ('{"a" 1}', "1:6", "colon"),
        ('{"a": 1 "b": 2}', "1:9", "comma"),
        ("{'a': 1}", "1:2", "key in quotes"),
        ('{"a": 1', "1:8", "comma"),
        ('{"a": ', "1:7", "too early"),
        ('{"a": nope}', "1:7", "value"),
        ('{"a": 01}', "1:7", "value"),
        ('{"a": NaN}', "1:7", "value"),
        ('{"a": "\t"}', "1:7", "value"),
        ('{"a": "\\x"}', "1:7", "value"),
        ('{"ä": 1,\r\n"b": }', "2:6", "value"),
        ("{} {}", "1:4", "more"),
        ("[" * 300, "1:202", "deep"),
        ("", "1:1", "too early"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, place: str, what: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(text, SOURCE, relaxed=False)
    assert str(raised.value).startswith(f"/f.json:{place}: ")
    assert what in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_comment_that_is_not_closed() -> None:
    with pytest.raises(ConfigError, match="1:2: the comment is not closed"):
        parse("{/* }", SOURCE, relaxed=True)


def test_the_last_of_two_members_counts() -> None:
    root = parse('{"a": {"x": 1}, "a": {"x": 2}}', SOURCE, relaxed=False)
    node = found(root, ("a", "x"))
    assert node is not None and node.value() == 2
    assert found(root, ("a", "y")) is None


def test_comments_are_found_one_by_one() -> None:
    text = "{ // a\n /* b */ }"
    assert [text[slice(*at)] for at in comments(text, 1, len(text) - 1)] == ["// a", "/* b */"]
