"""Homes with settings files of other programs, written in every way that people write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from castle.clients.table import Places

HOST_VARIABLES = ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA", "XDG_CONFIG_HOME", "GEMINI_CLI_HOME")

untimed = hypothesis_settings(deadline=None)


@pytest.fixture(autouse=True)
def no_host_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HOST_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def where(own_home: Path) -> Places:
    return Places(own_home, {"PATH": ""}, "linux")


def tree(root: Path) -> dict[str, bytes | None]:
    """Return every file below a directory with its bytes, and every directory."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_KEYS = st.one_of(_TEXTS, st.sampled_from(["a", "url", "hooks", "mcpServers", "Stop", "//", "x,y:{"]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), _TEXTS, st.just("http://x//y /* z */")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def settings(draw: st.DrawFn, keys: tuple[str, ...] = (), relaxed: bool = False) -> tuple[str, Any]:
    """Draw a JSON object that may hold the given keys as an object, with the text that writes it."""
    value = draw(st.dictionaries(_KEYS.filter(lambda key: key not in keys), VALUES, max_size=4))
    for key in keys:
        if draw(st.booleans()):
            place = draw(st.integers(0, len(value)))
            inner = draw(st.dictionaries(_TEXTS.filter(lambda name: name != "castle"), VALUES, max_size=3))
            members = list(value.items())
            value = dict([*members[:place], (key, inner), *members[place:]])
    return draw(written(value, relaxed)), value


@st.composite
def written(draw: st.DrawFn, value: Any, relaxed: bool = False) -> str:
    """Draw one way to write a value as JSON."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    unit = draw(st.sampled_from(["  ", "    ", "\t", ""]))
    wide = draw(st.booleans())
    commented = relaxed and draw(st.booleans())

    def gap(depth: int) -> str:
        if not wide:
            return draw(st.sampled_from(["", " "]))
        note = draw(st.sampled_from(["", "", f" // n\u00f6te{newline}", " /* , } */ "])) if commented else ""
        return note + newline + unit * depth

    def write(part: Any, depth: int) -> str:
        if not isinstance(part, dict | list):
            return json.dumps(part, ensure_ascii=draw(st.booleans()))
        opening, closing = "{}" if isinstance(part, dict) else "[]"
        if not part:
            return opening + draw(st.sampled_from(["", " ", newline, gap(depth)])) + closing
        colon = draw(st.sampled_from([":", ": ", " : "]))
        items = [
            (json.dumps(key) + colon if isinstance(part, dict) else "") + write(item, depth + 1)
            for key, item in (part.items() if isinstance(part, dict) else enumerate(part))
        ]
        commas = [","] * (len(items) - 1) + [""]
        text = "".join(gap(depth + 1) + item + comma for item, comma in zip(items, commas, strict=True))
        trailing = "," if relaxed and draw(st.booleans()) else ""
        return opening + text + trailing + gap(depth) + closing

    head = draw(st.sampled_from(["", newline]))
    tail = draw(st.sampled_from(["", newline, newline * 2]))
    return head + write(value, 0) + tail


Write = Callable[[str, str], Path]


@pytest.fixture
def write(own_home: Path) -> Write:
    def to(name: str, text: str) -> Path:
        path = own_home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
        return path

    return to


_TOML_KEYS = st.sampled_from(["model", '"a b"', "x.y", "'q'", '"\u00fc"'])
_TOML_VALUES = st.sampled_from(
    [
        '"o3"',
        "'C:\\x'",
        "1_000",
        '["a",\n  "]", # [mcp_servers.castle]\n]',
        '"""\n[mcp_servers.castle]\ncommand = 1\n"""',
        "'''[x]'''",
        '{ a = "}", b = [1] }',
        '""""quoted""""',
    ]
)
_TOML_HEADERS = st.sampled_from(
    ["[mcp_servers.other]", "[features]", "[[list]]", "[mcp_servers]", '[projects."/a/[b]"]', "[hooks.state]"]
)


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """Draw a text that is valid TOML, with comments, strings that look like tables, and any end."""
    names: set[str] = set()
    lines: list[str] = []

    def pairs() -> None:
        for key in draw(st.lists(_TOML_KEYS, max_size=3, unique=True)):
            note = draw(st.sampled_from(["", "", "  # [mcp_servers.castle]"]))
            lines.append(f"{key} = {draw(_TOML_VALUES)}{note}")

    pairs()
    for header in draw(st.lists(_TOML_HEADERS, max_size=3)):
        if header in names and not header.startswith("[["):
            continue
        names.add(header)
        lines += draw(st.sampled_from([[], [""], ["", "# note"]]))
        lines.append(header)
        pairs()
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end", "\n# end\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
