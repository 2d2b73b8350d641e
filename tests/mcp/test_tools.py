from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, Tool

from castle import Castle
from castle.errors import PalaceError
from castle.mcp.budget import BUDGET, size
from castle.mcp.server import build
from castle.mcp.tools.base import Tier
from castle.search import recall
from castle.store.graph import Graph
from tests.mcp.conftest import Ask, asking
from tests.mine.conftest import write

SERVICE: dict[str, Callable[..., Any]] = {
    "castle_search": Castle.search,
    "castle_get_drawer": Castle.get,
    "castle_list_drawers": Castle.list_drawers,
    "castle_add_drawer": Castle.add,
    "castle_check_duplicate": Castle.check_duplicate,
    "castle_update_drawer": Castle.update,
    "castle_list_sessions": Castle.sessions,
    "castle_kg_query": Graph.query,
    "castle_status": Castle.status,
    "castle_wake_up": Castle.wake_up,
}
OURS = {"drawer_id": "id", "content": "text"}
"""What the tools call what the service calls otherwise."""

OWN = {"castle_search": {"max_distance", "min_similarity", "context"}}
"""Parameters that only a tool has: they have no effect."""

DEFAULTS = {("castle_kg_query", "limit"), ("castle_add_drawer", "added_by")}
"""Parameters with another default than the service has."""


def listed(tier: Tier = "all") -> list[Tool]:
    async def ask() -> list[Tool]:
        async with Client(build("/nowhere", tier)) as client:
            return (await client.list_tools()).tools

    return anyio.run(ask)


def content(answer: CallToolResult) -> Any:
    assert not answer.is_error, answer.content
    return answer.structured_content


def said(answer: CallToolResult) -> str:
    assert answer.is_error
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text


def test_the_tools_are_described_and_the_core_ones_shortly() -> None:
    core, standard, everything = listed("core"), listed("standard"), listed("all")
    assert sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in core) < 12_000
    names = [[tool.name for tool in tools] for tools in (core, standard, everything)]
    assert names[0] == [name for name in names[1] if name in names[0]]
    assert names[1] == [name for name in names[2] if name in names[1]]
    for tool in everything:
        assert tool.annotations is not None
        assert not (tool.annotations.read_only_hint and tool.annotations.destructive_hint)
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.description


def test_parameters_have_the_names_and_defaults_of_the_service() -> None:
    for tool in listed():
        if tool.name not in SERVICE:
            continue
        wanted = dict(inspect.signature(SERVICE[tool.name]).parameters)
        wanted.pop("self")
        if tool.name == "castle_update_drawer":
            wanted.pop("added_by")
        properties = tool.input_schema.get("properties", {})
        own = OWN.get(tool.name, set())
        offered = {OURS.get(name, name): value for name, value in properties.items() if name not in own}
        assert set(offered) == set(wanted), tool.name
        required = {OURS.get(name, name) for name in tool.input_schema.get("required", [])}
        for name, parameter in wanted.items():
            default = offered[name].get("default")
            if parameter.default is inspect.Parameter.empty:
                assert name in required
            elif (tool.name, name) not in DEFAULTS:
                assert (default or None) == (parameter.default or None), f"{tool.name} {name}"


def test_a_search_quotes_what_it_finds_with_its_source(ask: Ask) -> None:
    answer = ask("castle_search", query="we chose GraphQL in May", limit=2)
    found = content(answer)
    (hit,) = (hit for hit in found["hits"] if hit["source"].endswith("README.md"))
    assert hit["content"].startswith('<castle-recall v="1">\n')
    assert hit["content"].endswith("\n</castle-recall>")
    assert "We chose GraphQL in May." in hit["content"]
    assert (hit["wing"], hit["lines"]) == ("garden_shop", "1-7")
    assert hit["authored_at"].endswith("+00:00")
    assert found["total"] == len(found["hits"]) == 2
    (block,) = answer.content
    assert isinstance(block, TextContent)
    assert json.loads(block.text) == found


def test_recalled_text_cannot_end_its_quotation(ask: Ask) -> None:
    hits = content(ask("castle_search", query="lantern ignore what came before", source="docs/notes.md"))[
        "hits"
    ]
    assert any("ignore what came before" in hit["content"] for hit in hits)
    assert all(hit["content"].count("</castle-recall>") == 1 for hit in hits)
    assert any("<\\/castle-recall>" in hit["content"] for hit in hits)


def test_a_query_with_instructions_before_it_is_cut_to_its_question(ask: Ask) -> None:
    query = "You are a careful assistant. " * 20 + "\nWhen did we choose GraphQL?"
    found = content(ask("castle_search", query=query, mode="fast"))
    assert found["query_sanitized"] is True
    assert found["sanitizer"] == {
        "method": "question_extraction",
        "original_length": len(query),
        "clean_length": 27,
        "clean_query": "When did we choose GraphQL?",
    }
    plain = content(ask("castle_search", query="When did we choose GraphQL?", mode="fast"))
    assert "sanitizer" not in plain
    assert plain["hits"] == found["hits"]


def test_a_search_says_what_did_not_run_and_goes_on(ask: Ask) -> None:
    first = content(ask("castle_search", query="the", mode="standard", limit=1))
    assert {line.partition(" ")[0] for line in first["skipped"]} >= {"judge", "soar"}
    second = content(ask("castle_search", query="the", mode="standard", limit=1, cursor=first["next_cursor"]))
    assert second["ranked"] == first["ranked"]
    assert second["hits"][0]["drawer_id"] != first["hits"][0]["drawer_id"]


def test_what_is_optional_and_absent_is_told_once_and_in_status(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASTLE_SML_DISABLED", "1")
    monkeypatch.setenv("CASTLE_SEARCH_MODE", "max")
    first = content(ask("castle_search", query="GraphQL"))
    assert "soar skipped: Soar is switched off by CASTLE_SML_DISABLED" in first["skipped"]
    assert "skipped" not in content(ask("castle_search", query="GraphQL"))
    assert "soar: Soar is switched off by CASTLE_SML_DISABLED" in content(ask("castle_status"))["absent"]


def test_what_should_have_worked_is_told_each_time(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "lexical", broken)
    for _ in range(2):
        found = content(ask("castle_search", query="GraphQL", mode="fast"))
        assert "lexical skipped: the index of words is broken" in found["skipped"]
        assert "lexical: the index of words is broken" in found["degraded"]


def broken(*arguments: object) -> None:
    raise PalaceError("the index of words is broken")


def test_a_tool_of_a_larger_set_is_named_with_that_set() -> None:
    async def call(tool: str, tier: Tier) -> str:
        async with Client(build("/nowhere", tier)) as client:
            with pytest.raises(MCPError) as refused:
                await client.call_tool(tool, {})
            return str(refused.value)

    assert anyio.run(call, "castle_info_score", "standard").endswith("is offered only with --tools all")
    assert anyio.run(call, "castle_list_wings", "core").endswith("is offered only with --tools standard")
    assert "there is no tool 'castle_forget'" in anyio.run(call, "castle_forget", "standard")


def test_who_may_delete_may_restore() -> None:
    for tier in ("core", "standard", "all"):
        names = {tool.name for tool in listed(tier)}
        assert ("castle_delete_drawer" in names) == ("castle_restore_drawer" in names)


def test_following_the_cursor_loses_no_hit_that_had_no_room(ask: Ask) -> None:
    everything = content(ask("castle_search", query="GraphQL rose1 rose2", mode="fast", limit=1))["ranked"]
    seen: list[str] = []
    cursor, left_out = "", 0
    while True:
        page = content(
            ask("castle_search", query="GraphQL rose1 rose2", mode="fast", limit=100, cursor=cursor)
        )
        seen += [hit["drawer_id"] for hit in page["hits"]]
        left_out += page.get("left_out", 0)
        cursor = page.get("next_cursor", "")
        if not cursor:
            break
    assert len(seen) == len(set(seen)) == everything
    assert left_out > 0


def test_a_search_is_limited_by_what_is_given(ask: Ask) -> None:
    assert content(ask("castle_search", query="the", wing="nowhere"))["total"] == 0
    hits = content(ask("castle_search", query="workers", room="documentation", wing="garden_shop"))["hits"]
    assert {hit["room"] for hit in hits} == {"documentation"}
    everything = content(ask("castle_search", query="workers", wing=None, room="", kinds=[]))
    assert everything["total"] > len(hits) - 1
    roles = content(ask("castle_search", query="harbour berth3", role="assistant"))["hits"]
    assert {hit["role"] for hit in roles} == {"assistant"}


def test_an_id_from_an_answer_is_taken_by_other_tools(ask: Ask) -> None:
    hit = content(ask("castle_search", query="GraphQL rose2", source="docs/long.md", limit=1))["hits"][0]
    got = content(ask("castle_get_drawer", drawer_id=hit["drawer_id"][:12]))
    assert got["total"] == 1
    assert got["drawers"][0]["content"] == hit["content"]
    around = content(ask("castle_get_drawer", drawer_id=hit["drawer_id"], context=5))
    assert around["total"] > 1
    starts = [int(drawer["lines"].split("-")[0]) for drawer in around["drawers"]]
    assert starts == sorted(starts)
    for source in (hit["drawer_id"], hit["source"]):
        assert content(ask("castle_list_drawers", source=source))["total"] == around["total"]


def test_pages_follow_each_other(ask: Ask, root: Path) -> None:
    with Castle(root) as castle:
        drawers = castle.list_drawers(limit=100).drawers
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = content(ask("castle_list_drawers", limit=3, offset=offset))
        assert page["total"] == len(drawers)
        seen += [drawer["drawer_id"] for drawer in page["drawers"]]
        offset = page.get("next_offset")
    assert seen == [drawer.id for drawer in drawers]


def test_wings_rooms_and_status_count_alike(ask: Ask, root: Path) -> None:
    wings = content(ask("castle_list_wings"))
    rooms = content(ask("castle_list_rooms"))
    status = content(ask("castle_status"))
    assert status["wings"] == wings["total"] == len(wings["places"])
    assert status["rooms"] == rooms["total"] == len(rooms["places"])
    assert status["drawers"] == sum(place["drawers"] for place in wings["places"])
    shop = content(ask("castle_list_rooms", wing="garden_shop"))
    assert {place["room"] for place in shop["places"]} >= {"backend", "documentation"}
    second = content(ask("castle_list_rooms", limit=1, offset=1))
    assert second["places"] == rooms["places"][1:2]
    assert status["palace"] == str(root)
    assert {index["name"] for index in status["indexes"]} == {"words", "vectors"}
    assert status["spool_events"] == 0


def test_sessions_are_listed_and_their_drawers(ask: Ask) -> None:
    page = content(ask("castle_list_sessions"))
    assert page["total"] == 1
    session = page["sessions"][0]
    assert (session["session"], session["messages"]) == ("s1", 6)
    assert session["started_at"].endswith("+00:00")
    assert content(ask("castle_list_drawers", source=session["source"]))["total"] == 6


def test_the_graph_is_asked(ask: Ask) -> None:
    found = content(ask("castle_kg_query", entity="Shop"))
    assert found["total"] == 2
    facts = {fact["object"]: fact for fact in found["facts"]}
    assert facts["GraphQL"]["valid_from"].startswith("2026-05-01T00:00:00")
    assert content(ask("castle_get_drawer", drawer_id=facts["GraphQL"]["drawer_ids"][0]))["total"] == 1
    assert content(ask("castle_kg_query", entity="shop", as_of="2026-04-01"))["total"] == 1
    assert content(ask("castle_kg_query", entity="shop", direction="incoming"))["total"] == 0
    first = content(ask("castle_kg_query", entity="shop", limit=1))
    assert (len(first["facts"]), first["next_offset"]) == (1, 1)


def test_errors_of_the_palace_are_one_line(ask: Ask, tmp_path: Path) -> None:
    assert said(ask("castle_get_drawer", drawer_id="abcdef012345")).startswith("no drawer abcdef012345: ")
    assert "the query is empty" in said(ask("castle_search", query=" "))
    assert "since" in said(ask("castle_search", query="x", since="yesterday"))
    assert "nobody" in said(ask("castle_kg_query", entity="nobody"))
    missing = asking(tmp_path / "nowhere")
    for tool, arguments in (
        ("castle_search", {"query": "x"}),
        ("castle_status", {}),
        ("castle_list_wings", {}),
    ):
        text = said(missing(tool, **arguments))
        assert text.startswith("no palace at ")
        assert "\n" not in text
    assert not (tmp_path / "nowhere").exists()


def test_a_palace_that_comes_or_changes_while_the_server_runs_is_seen(tmp_path: Path) -> None:
    from castle.mcp.tools import Tools

    tools = Tools(str(tmp_path / "late"))

    def count() -> int:
        with tools._asked() as castle:
            return castle.list_drawers().total

    with pytest.raises(Exception, match="no palace at"):
        count()
    for words in ("first", "second"):
        project = tmp_path / words
        write(project, {f"{n}.md": f"{words} {n}" for n in range(len(words))})
        with Castle(tmp_path / words / "palace", embedder="fake") as castle:
            castle.mine_project(project)
        if (tmp_path / "late").exists():
            (tmp_path / "late").rename(tmp_path / "gone")
        (project / "palace").rename(tmp_path / "late")
        assert count() == len(words)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        (
            "castle_search",
            {"query": "x", "limitt": 3},
            "no parameter 'limitt': did you mean limit? it takes query",
        ),
        ("castle_search", {"query": "x", "max_results": 3}, "did you mean limit?"),
        ("castle_get_drawer", {"id": "abcdef"}, "did you mean drawer_id?"),
        ("castle_status", {"zzz": 1}, "no parameter 'zzz': it takes none"),
        ("castle_search", {}, "query: field required"),
        ("castle_search", {"query": "x", "limit": "many"}, "limit: input should be a valid integer"),
        ("castle_search", {"query": "x", "limit": 101}, "less than or equal to 100, not 101"),
        ("castle_search", {"query": "x", "wing": ["a"]}, "wing: input should be a valid string"),
        ("castle_kg_query", {"entity": "x", "direction": "up"}, "direction: input should be 'outgoing'"),
        ("castle_serch", {"query": "x"}, "no tool 'castle_serch': did you mean castle_search?"),
    ],
)
def test_what_does_not_fit_a_tool_is_refused(
    tmp_path: Path, tool: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(BaseException) as refused:
        asking(tmp_path)(tool, **arguments)
    error = refused.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, MCPError)
    assert error.code == -32602
    assert message in error.message
    assert "\n" not in error.message


def test_an_accident_in_a_tool_tells_the_client_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a secret")

    monkeypatch.setattr(Castle, "status", broken)
    assert said(asking(root)("castle_status")) == "Error executing tool castle_status"


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """A palace with drawers as large as they get, and long paths."""
    project = tmp_path / ("deep-" * 20) / "crowd"
    files = {
        f"{'folder-' * 8}{n}/{'name-' * 8}{n}.md": "\n\n".join(
            " ".join(f'{n}界{m} the "harbour" of {i} 😀\\' for i in range(90)) for m in range(4)
        )
        for n in range(8)
    }
    write(project, files)
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.mine_project(project)
    return tmp_path / "palace"


def test_every_answer_keeps_to_its_bytes_and_says_what_it_leaves_out(crowded: Path) -> None:
    ask = asking(crowded)
    found = ask("castle_search", query="3界4", limit=100)
    assert size(found) <= BUDGET
    hits = content(found)["hits"]
    assert content(found)["total"] == len(hits) + content(found).get("left_out", 0)
    assert content(found)["left_out"] > 0
    assert any("castle_get_drawer" in hit.get("cut", "") for hit in hits)

    got = ask("castle_get_drawer", drawer_id=hits[0]["drawer_id"], context=100)
    assert size(got) <= BUDGET
    drawers = content(got)["drawers"]
    assert hits[0]["drawer_id"] in [drawer["drawer_id"] for drawer in drawers]
    assert content(got)["total"] == len(drawers) + content(got).get("left_out", 0)

    alone = ask("castle_get_drawer", drawer_id=hits[0]["drawer_id"])
    assert size(alone) <= BUDGET
    assert "cut" not in content(alone)["drawers"][0]
    with Castle(crowded) as castle:
        exact = castle.get(hits[0]["drawer_id"])[0].text
    assert content(alone)["drawers"][0]["content"] == f'<castle-recall v="1">\n{exact}\n</castle-recall>'


def test_a_list_that_has_no_room_goes_on_at_next_offset(crowded: Path) -> None:
    ask = asking(crowded)
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = ask("castle_list_drawers", limit=100, offset=offset)
        assert size(answer) <= BUDGET
        page = content(answer)
        assert page["drawers"]
        seen += [drawer["drawer_id"] for drawer in page["drawers"]]
        offset = page.get("next_offset")
    assert len(seen) == len(set(seen)) == page["total"]


def test_calls_at_once_are_all_answered(root: Path) -> None:
    async def ask() -> list[CallToolResult]:
        found: list[CallToolResult] = []
        async with Client(build(str(root))) as client, anyio.create_task_group() as group:

            async def one(call: Callable[[], Any]) -> None:
                found.append(await call())

            for _ in range(4):
                group.start_soon(one, lambda: client.call_tool("castle_search", {"query": "GraphQL"}))
                group.start_soon(one, lambda: client.call_tool("castle_list_wings", {}))
        return found

    answers = anyio.run(ask)
    assert len(answers) == 8
    assert not any(answer.is_error for answer in answers)
