"""Every tool, called by the official client and by the inspector, over pipes and over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from castle import Castle
from castle.mcp.server import described
from castle.mcp.tools import Tools
from tests.mcp.conftest import Serve

TOKEN = "every-tool-over-http-too"

CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    ("castle_search", {"query": "GraphQL", "limit": 3}),
    ("castle_get_drawer", {"drawer_id": "{drawer}", "context": 1}),
    ("castle_list_drawers", {"limit": 5}),
    ("castle_add_drawer", {"wing": "desk", "room": "notes", "content": "The lamp hums."}),
    ("castle_add_drawer", {"wing": "desk", "room": "notes", "content": "The lamp hums."}),
    ("castle_check_duplicate", {"content": "The lamp hums."}),
    ("castle_update_drawer", {"drawer_id": "{note}", "content": "The lamp is quiet."}),
    ("castle_delete_drawer", {"drawer_id": "{drawer}"}),
    ("castle_restore_drawer", {"drawer_id": "{drawer}"}),
    ("castle_wake_up", {}),
    ("castle_pin_drawer", {"drawer_id": "{drawer}"}),
    ("castle_status", {}),
    ("castle_list_wings", {}),
    ("castle_list_rooms", {}),
    ("castle_list_sessions", {}),
    ("castle_get_taxonomy", {}),
    ("castle_get_aaak_spec", {}),
    ("castle_reconnect", {}),
    ("castle_memories_filed_away", {}),
    ("castle_hook_settings", {}),
    ("castle_kg_query", {"entity": "shop"}),
    ("castle_kg_add", {"subject": "shop", "predicate": "opens_at", "object": "nine"}),
    ("castle_kg_invalidate", {"subject": "shop", "predicate": "opens_at", "object": "nine"}),
    ("castle_kg_timeline", {"entity": "shop"}),
    ("castle_kg_stats", {}),
    ("castle_diary_write", {"agent_name": "keeper", "entry": "Quiet night."}),
    ("castle_diary_read", {"agent_name": "keeper"}),
    ("castle_traverse", {"start_room": "notes"}),
    ("castle_find_tunnels", {}),
    ("castle_graph_stats", {}),
    (
        "castle_create_tunnel",
        {"source_wing": "desk", "source_room": "notes", "target_wing": "{wing}", "target_room": "{room}"},
    ),
    ("castle_list_tunnels", {}),
    ("castle_follow_tunnels", {"wing": "desk", "room": "notes"}),
    ("castle_delete_tunnel", {"tunnel_id": "{tunnel}"}),
    ("castle_info_score", {"text": "The lamp hums."}),
    ("castle_prune_suggest", {"sample": 20}),
    ("castle_sue_review", {"drawer_ids": ["{drawer}"], "decision": "Does the lamp hum?", "max_turns": 1}),
    ("castle_sue_status", {"run_id": "{review}"}),
    ("memory_save", {"content": "Lamps need oil.", "memory_type": "semantic"}),
    ("memory_save", {"content": "Trim the wick.", "memory_type": "procedural"}),
    ("memory_recall", {"query": "lamp oil"}),
    ("memory_status", {}),
    ("memory_get", {"memory_id": "{note}"}),
    ("memory_associate", {"source_id": "{note}", "target_id": "{memory}"}),
    ("memory_pin", {"memory_id": "{note}", "pinned": False}),
    ("memory_forget", {"memory_id": "{note}"}),
    ("memory_cold", {"action": "search", "query": "lamp"}),
    ("memory_session_end", {"session_id": "s1"}),
    ("memory_match_procedures", {"context_text": "the lamp is out"}),
    ("memory_record_outcome", {"procedure_id": "{memory}", "success": True}),
    ("memory_check_environment", {"environment": {"oil": "2"}}),
    ("memory_verify", {"environment": {"oil": "3"}}),
    ("memory_inject_preference", {"preference_text": "I like short answers."}),
    ("memory_record_preference_feedback", {"preference_id": "{preference}", "confirmed": True}),
    ("memory_get_preferences", {}),
    ("memory_extract_preferences", {"limit": 5}),
    ("memory_check_preference_conflicts", {}),
    ("memory_consolidate", {"dry_run": True}),
    ("memory_creative_pool", {}),
    ("memory_reflect", {"task_description": "the lamp went out"}),
    ("memory_replay", {}),
    ("memory_hypothesis_feedback", {"hypothesis_id": "hyp_0000000000000000", "confirmed": True}),
)

MAY_REFUSE = ("memory_reflect", "memory_replay", "memory_hypothesis_feedback")
"""Tools that need a language model, or what only one can make, and say so."""

Call = Callable[[str, dict[str, Any]], dict[str, Any]]


def test_no_tool_is_left_out() -> None:
    offered = {tool.name for tool in described(Tools(), "all")}
    assert offered == {tool for tool, _ in CALLS}


async def _call_all(client: Client, palace: Path) -> None:
    known = _known(palace)
    for tool, arguments in CALLS:
        answer = await client.call_tool(tool, _filled(arguments, known))
        assert not answer.is_error or tool in MAY_REFUSE, (tool, answer.content)
        assert answer.structured_content is not None, tool
        _learn(tool, answer.structured_content, known)


def test_the_official_client_over_pipes(root: Path) -> None:
    arguments = ["-m", "castle.mcp", "--palace", str(root), "--tools", "all"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def run() -> None:
        async with Client(stdio_client(server)) as client:
            await _call_all(client, root)

    anyio.run(run)


def test_the_official_client_over_http(root: Path, serve: Serve) -> None:
    served = serve("--tools", "all", token=TOKEN)

    async def run() -> None:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(served.url, http_client=http)) as client,
        ):
            await _call_all(client, root)

    anyio.run(run)


def _inspector() -> str:
    """Return the inspector's command: ``make test-all`` puts it beside the interpreter where npm is there."""
    place = Path(sys.prefix) / "inspector" / "node_modules" / ".bin" / "mcp-inspector"
    found = str(place) if place.exists() else shutil.which("mcp-inspector")
    if found is None:
        pytest.skip("needs npm, with which `make test-all` installs @modelcontextprotocol/inspector")
    return found


@pytest.mark.extras
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["pipes", "http"])
def test_the_inspector(root: Path, serve: Serve, way: str) -> None:
    inspector = _inspector()
    if way == "http":
        reach = [serve("--tools", "all").url, "--transport", "http"]
    else:
        reach = [sys.executable, "-m", "castle.mcp", "--palace", str(root), "--tools", "all"]
    listed = _inspect(inspector, [*reach, "--method", "tools/list"])
    assert {tool["name"] for tool in listed["tools"]} == {tool for tool, _ in CALLS}
    known = _known(root)
    for tool, arguments in CALLS:
        given = [
            f"{key}={json.dumps(value) if isinstance(value, list | dict) else value}"
            for key, value in _filled(arguments, known).items()
        ]
        options = [part for pair in given for part in ("--tool-arg", pair)]
        answer = _inspect(inspector, [*reach, "--method", "tools/call", "--tool-name", tool, *options])
        assert not answer.get("isError") or tool in MAY_REFUSE, (tool, answer)
        _learn(tool, answer["structuredContent"], known)


def _inspect(inspector: str, arguments: Sequence[str]) -> dict[str, Any]:
    command = [inspector, "--cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (arguments, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _known(palace: Path) -> dict[str, str]:
    with Castle(palace) as castle:
        found = castle.list_drawers(limit=1).drawers[0]
    return {"drawer": found.id, "wing": found.wing, "room": found.room}


def _learn(tool: str, answer: dict[str, Any], known: dict[str, str]) -> None:
    """Remember the ids that later calls take."""
    if tool == "castle_add_drawer":
        known["note"] = answer["drawer_id"]
    elif tool == "memory_save":
        known["memory"] = answer["data"]["id"]
    elif tool == "memory_inject_preference":
        known["preference"] = answer["data"]["preference_id"]
    elif tool == "castle_sue_review":
        known["review"] = answer["review"]["run_id"]
    elif tool == "castle_create_tunnel":
        known["tunnel"] = answer["tunnel_id"] if "tunnel_id" in answer else answer["tunnel"]["tunnel_id"]


def _filled(arguments: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(part) for part in value]
        return value.format(**known) if isinstance(value, str) and value.startswith("{") else value

    return {key: filled(value) for key, value in arguments.items()}
