from __future__ import annotations

import re

import anyio
import pytest
from mcp.client import Client

from castle.mcp.instructions import AAAK, MOST, RULES, instructions
from castle.mcp.server import build
from castle.mcp.tools.base import TIERS, Tier
from castle.text.aaak_words import EMOTIONS, FLAG_SIGNS

TOOL = re.compile(r"(?:castle|memory)_[a-z_]+")


def told(tier: Tier) -> tuple[str, set[str]]:
    async def ask() -> tuple[str, set[str]]:
        async with Client(build("/nowhere", tier), mode="legacy") as client:
            assert client.server_info is not None
            assert client.server_info.name == "cognitive-castle"
            return client.instructions or "", {tool.name for tool in (await client.list_tools()).tools}

    return anyio.run(ask)


@pytest.mark.parametrize("tier", TIERS)
def test_each_set_is_told_only_of_its_own_tools_and_briefly(tier: Tier) -> None:
    text, offered = told(tier)
    assert set(TOOL.findall(text)) <= offered
    assert len(text.encode()) < MOST
    assert "Never guess" in text
    assert "no proof" in text
    assert "<castle-recall>" in text
    assert {"castle_search", "castle_kg_query", "castle_get_drawer"} <= set(TOOL.findall(text))
    assert ("castle_diary_write" in text) == (tier in ("standard", "all"))
    assert ("castle_kg_invalidate" in text) == (tier in ("standard", "all"))
    assert ("castle_get_aaak_spec" in text) == (tier == "all")
    assert ("memory_recall" in text) == (tier in ("memory", "all"))


def test_with_every_tool_every_rule_is_told() -> None:
    names = {name for rule in RULES for name in TOOL.findall(rule)}
    text = instructions(names)
    assert all(rule in text for rule in RULES)
    assert "room decisions" in text
    assert "castle_get_aaak_spec" not in text
    assert len(instructions({*names, "castle_get_aaak_spec"}).encode()) < MOST
    assert not TOOL.findall(instructions(()))


def test_the_shorthand_is_told_with_every_code() -> None:
    words = set(re.findall(r"\w+", AAAK))
    assert set(EMOTIONS.values()) | set(FLAG_SIGNS) | {"SENSITIVE", "GENESIS"} <= words
    assert "lossy" in words
    assert '0:ENT+ENT|topic_topic|"key sentence"|emotion+emotion|FLAG+FLAG' in AAAK
