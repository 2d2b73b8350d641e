from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.clients import toml
from castle.errors import ConfigError, RefusedError
from tests.clients.conftest import toml_texts, untimed

PATH = ("mcp_servers", "castle")
SOURCE = Path("/config.toml")
ENTRY: dict[str, object] = {"command": "castle-mcp", "args": ["--palace", 'C:\\new "x"\x7f']}


@untimed
@given(toml_texts())
def test_a_table_taken_out_leaves_every_byte(text: str) -> None:
    before = tomllib.loads(text)
    added = toml.with_table(text, PATH, ENTRY, SOURCE)
    after = tomllib.loads(added)
    assert toml.at(after, PATH) == ENTRY
    assert after == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "castle": ENTRY}}
    assert added.startswith(text)
    assert toml.without_table(added, PATH, SOURCE) == text


@untimed
@given(toml_texts(), st.sampled_from(["castle-mcp", "C:\\Users\\ü\\castle-mcp.exe"]))
def test_values_are_changed_in_their_place(text: str, command: str) -> None:
    before = tomllib.loads(text)
    added = toml.with_table(text, PATH, ENTRY, SOURCE)
    later = toml.with_values(added, PATH, {"command": command, "args": None}, SOURCE)
    assert toml.at(tomllib.loads(later), PATH) == {"command": command}
    back = toml.without_table(later, PATH, SOURCE)
    assert back == text
    assert tomllib.loads(back) == before


def test_what_stands_behind_the_table_stays() -> None:
    text = 'model = "o3"\n'
    added = toml.with_table(text, PATH, ENTRY, SOURCE) + "\n# mine\n[features]\nhooks = true\n"
    assert toml.without_table(added, PATH, SOURCE) == 'model = "o3"\n\n# mine\n[features]\nhooks = true\n'


def test_tables_below_it_go_with_it_and_other_keys_stay_with_it() -> None:
    text = (
        "[mcp_servers.castle] # mine\n"
        'command = "old" # why\n'
        "args = [\n  # one\n  \"--palace\", '''\n[x]\n''',\n]\n"
        "startup_timeout_sec = 20\n"
        "\n"
        "[mcp_servers.castle.tools.castle_search]\n"
        'approval_mode = "approve"\n'
        "\n"
        "[other]\n"
    )
    later = toml.with_values(text, PATH, {"command": "new", "args": ["x"]}, SOURCE)
    assert later == (
        "[mcp_servers.castle] # mine\n"
        'command = "new"\n'
        'args = ["x"]\n'
        "startup_timeout_sec = 20\n"
        "\n"
        "[mcp_servers.castle.tools.castle_search]\n"
        'approval_mode = "approve"\n'
        "\n"
        "[other]\n"
    )
    assert toml.without_table(later, PATH, SOURCE) == "\n[other]\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        '[mcp_servers]\nother.command = "x"\n[mcp_servers.castle]\n',
    ],
)
def test_a_file_that_takes_no_table_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(RefusedError, match=r'castle = \{command = "castle-mcp"\}'):
        toml.with_table(text, PATH, {"command": "castle-mcp"}, SOURCE)


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { castle = { command = "castle-mcp" } }\n',
        '[mcp_servers]\ncastle.command = "castle-mcp"\n',
    ],
)
def test_an_entry_in_another_form_is_left_to_its_writer(text: str) -> None:
    with pytest.raises(RefusedError, match="by hand"):
        toml.without_table(text, PATH, SOURCE)
    with pytest.raises(RefusedError, match="by hand"):
        toml.with_values(text, PATH, {"command": "x"}, SOURCE)


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = 1\nb = \n", "2:5"), ("a", "1:2"), ("[a\n", "1:3"), ("a = 1\na = 2\n", "2:6"), ("a = [", "1:6")],
)
def test_a_mistake_is_named_with_its_place(text: str, place: str) -> None:
    with pytest.raises(ConfigError) as raised:
        toml.parse(text, SOURCE)
    assert str(raised.value).startswith(f"/config.toml:{place}: ")
