from __future__ import annotations

from pathlib import Path

import anyio
from mcp.client import Client

from castle import Castle
from castle.mcp.server import build
from castle.mine.formats import RECALL_CLOSE, RECALL_OPEN
from castle.wakeup.tokens import count
from tests.mcp.conftest import Ask, asking
from tests.mcp.test_tools import content, said


def test_a_wake_up_is_quoted_counted_and_about_a_wing(ask: Ask) -> None:
    everything = content(ask("castle_wake_up"))
    assert everything["wing"] == ""
    assert everything["text"].startswith(f"{RECALL_OPEN}\n")
    assert everything["text"].endswith(f"\n{RECALL_CLOSE}")
    assert everything["text"].count(RECALL_CLOSE) == 1
    assert everything["estimated_tokens"] == count(everything["text"]) <= 900
    assert "Essentials of all wings" in everything["text"]
    for id_ in everything["drawer_ids"]:
        assert content(ask("castle_get_drawer", drawer_id=id_))["drawers"]
    found = content(ask("castle_wake_up", wing="garden_shop"))
    assert found["wing"] == "garden_shop"
    assert "Essentials of wing garden_shop" in found["text"]
    assert "Nothing is filed in wing nowhere" in content(ask("castle_wake_up", wing="nowhere"))["text"]


def test_a_pinned_drawer_comes_first_until_it_is_unpinned(ask: Ask) -> None:
    id_ = content(ask("castle_search", query="lantern", limit=1))["hits"][0]["drawer_id"]
    done = content(ask("castle_pin_drawer", drawer_id=id_[:10]))
    assert done == {"success": True, "drawer_id": id_, "pinned": True, "changed": True}
    assert content(ask("castle_wake_up"))["drawer_ids"][0] == id_
    assert not content(ask("castle_pin_drawer", drawer_id=id_))["changed"]
    assert content(ask("castle_pin_drawer", drawer_id=id_, pinned=False))["changed"]
    assert "Pinned" not in content(ask("castle_wake_up"))["text"]
    assert "castle list" in said(ask("castle_pin_drawer", drawer_id="0123456789"))


def test_getting_a_drawer_counts_as_a_use(root: Path, ask: Ask) -> None:
    from castle.store.use import most_used

    id_ = content(ask("castle_search", query="GraphQL", limit=1))["hits"][0]["drawer_id"]

    async def look() -> None:
        async with Client(build(str(root))) as client:
            for _ in range(3):
                await client.call_tool("castle_get_drawer", {"drawer_id": id_})
            # What was counted is written before it is ranked.
            await client.call_tool("castle_wake_up", {})

    anyio.run(look)
    with Castle(root) as castle, castle._palace().ledger.read() as cx:
        assert len(most_used(cx, None, 9)) == 1


def test_without_a_palace_the_tools_say_how_to_make_one(tmp_path: Path) -> None:
    ask = asking(tmp_path / "none")
    assert "castle init" in said(ask("castle_wake_up"))
    assert "castle init" in said(ask("castle_pin_drawer", drawer_id="0123456789"))
