"""Searches while models are being loaded: by words, at once, and saying so."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp_types import CallToolResult

from castle import Castle
from castle.errors import ModelError
from castle.mcp import warm
from castle.mcp.server import build
from castle.mcp.tools import Tools, base
from castle.mcp.warm import Warmer
from castle.service.serving import LOADING
from castle.store.palace import Palace
from tests.mcp.conftest import Wire

PATIENCE = 60.0


class Server:
    """A server whose models are loaded when a test says so."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.loads = 0
        self.failure: Exception | None = None
        self.warmer = Warmer()
        self.tools = Tools(str(root), self.warmer)
        load = Castle.load_models

        def gated(castle: Castle) -> None:
            self.loads += 1
            assert self.go.wait(PATIENCE)
            if self.failure is not None:
                raise self.failure
            load(castle)

        monkeypatch.setattr(Castle, "load_models", gated)

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        async def call() -> CallToolResult:
            async with Client(build(self.tools, "all")) as client:
                return await client.call_tool(tool, arguments)

        found = anyio.run(call)
        assert not found.is_error, found.content
        assert isinstance(found.structured_content, dict)
        return found.structured_content

    def search(self, **more: object) -> dict[str, Any]:
        return self.call("castle_search", query="GraphQL May", **more)

    def loaded(self) -> None:
        """Let the models be loaded, and wait for the end of it."""
        self.go.set()
        end = time.monotonic() + PATIENCE
        while self.warmer.busy:
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.fixture
def server(root: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(root, monkeypatch)


def test_the_first_search_is_by_words_and_says_so(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:

        def refuse(palace: Palace) -> None:
            raise AssertionError("a search waits for the model")

        patch.setattr(Palace, "embedder", property(refuse))
        for _ in range(2):
            found = server.search()
            assert found["degraded"] == [LOADING]
            assert f"dense skipped: {LOADING}" in found["skipped"]
            assert f"cross-encoder skipped: {LOADING}" in found["skipped"]
            assert any("We chose GraphQL in May." in hit["content"] for hit in found["hits"])
    assert server.loads == 1
    server.loaded()
    found = server.search()
    assert "degraded" not in found
    assert not any(LOADING in reason for reason in found.get("skipped", []))
    assert server.loads == 1


def test_confidence_goes_by_words_too(server: Server) -> None:
    assert server.search().get("confident", True)
    nothing = server.call("castle_search", query="lantern zebra quasar nebula xylophone")
    assert nothing["confident"] is False


def test_any_call_begins_the_loading(server: Server) -> None:
    server.call("castle_list_wings")
    assert server.loads == 1
    server.call("castle_list_wings")
    assert server.loads == 1


def test_what_is_filed_meanwhile_is_found_by_words_and_embedded_later(server: Server, root: Path) -> None:
    server.call("castle_list_wings")
    added = server.call("castle_add_drawer", wing="shop", room="notes", content="The quokka sleeps at noon.")
    found = server.call("castle_search", query="quokka")
    assert found["degraded"] == [LOADING]
    assert [hit["drawer_id"] for hit in found["hits"]] == [added["drawer_id"]]
    server.loaded()
    found = server.call("castle_search", query="quokka")
    assert "degraded" not in found and "behind" not in found
    with Castle(root) as castle:
        assert [f.detail for f in castle.verify() if f.status != "ok"] == []


def test_pages_of_which_one_is_by_words_say_so(server: Server) -> None:
    first = server.search(limit=1)
    server.loaded()
    second = server.search(limit=1, cursor=first["next_cursor"])
    assert any("by words only" in reason for reason in second["degraded"])
    third = server.search(limit=1)
    again = server.search(limit=1, cursor=third["next_cursor"])
    assert "degraded" not in again


def test_a_failure_is_told_by_every_search_and_tried_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.failure = ModelError("the weights are gone; run: pip install them")
    server.search()
    server.loaded()
    for _ in range(2):
        assert server.search()["degraded"] == [
            "the embedder cannot be loaded; words only: the weights are gone; run: pip install them"
        ]
    assert server.loads == 1
    server.failure = None
    server.warmer._next = 0.0
    server.search()
    server.loaded()
    assert server.loads == 2
    assert "degraded" not in server.search()


def test_an_unforeseen_failure_is_told_as_well(server: Server) -> None:
    server.failure = ImportError("no module named onnxruntime")
    server.search()
    server.loaded()
    assert "ImportError: no module named onnxruntime" in server.search()["degraded"][0]


def test_a_palace_that_took_the_place_of_another_is_warmed_too(server: Server, root: Path) -> None:
    server.search()
    server.loaded()
    root.rename(root.with_name("before"))
    with Castle(root, embedder="fake") as castle:
        castle.diary_write("ana", "GraphQL in May, once more.")
    assert server.search()["degraded"] == [LOADING]
    server.loaded()
    assert server.loads == 2
    assert "degraded" not in server.search()


def test_a_missing_palace_loads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(tmp_path / "nowhere", monkeypatch)
    with pytest.raises(AssertionError, match="no palace"):
        server.search()
    assert server.loads == 0 and not server.warmer.busy


def test_without_a_server_searches_wait_for_their_models(root: Path) -> None:
    with Castle(root) as castle:
        assert castle.search("GraphQL May").degraded == ()


def test_again_is_not_at_once() -> None:
    assert warm.AGAIN_SECONDS >= 10


NATIVE_FIRST = """
import sys, threading
from castle import Castle

loading = threading.Event()
load = Castle.load_models

def told(castle):
    loading.set()
    load(castle)

Castle.load_models = told
from castle.mcp import main
main(sys.argv[1:])
"""


def test_imports_in_two_threads_get_in_nobodys_way(wire: Callable[..., Wire], root: Path) -> None:
    """Tools that open the table of vectors while another thread imports what models need."""
    server = wire("--palace", str(root), code=NATIVE_FIRST)
    server.initialize()
    server.request("tools/call", name="castle_list_wings", arguments={})
    for _ in range(3):
        answer = server.request("tools/call", name="castle_status", arguments={})["result"]
        assert not answer.get("isError"), answer
        assert all(not index.get("trouble") for index in answer["structuredContent"]["indexes"])
        answer = server.request("tools/call", name="castle_search", arguments={"query": "GraphQL"})["result"]
        assert answer["structuredContent"]["hits"]
    code, _, err = server.ended()
    assert (code, err) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="its signals differ")
@pytest.mark.parametrize("end", ["input", "signal"])
def test_an_end_in_the_middle_of_loading_is_clean(wire: Callable[..., Wire], root: Path, end: str) -> None:
    server = wire("--palace", str(root))
    server.initialize()
    server.request("tools/call", name="castle_list_wings", arguments={})
    if end == "signal":
        server.process.terminate()
    code, out, err = server.ended()
    assert (code, out, err) == (0, b"", b"")
    subprocess.run([sys.executable, "-m", "castle", "--palace", str(root), "verify"], check=True)


def test_a_score_waits_for_the_model_and_nobody_waits_for_the_score(server: Server) -> None:
    found: list[dict[str, Any]] = []
    asking = threading.Thread(
        target=lambda: found.append(server.call("castle_info_score", text="The lamp hums."))
    )
    asking.start()
    end = time.monotonic() + PATIENCE
    while not server.loads:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert server.search()["degraded"] == [LOADING]
    assert asking.is_alive()
    server.loaded()
    asking.join(PATIENCE)
    assert found[0]["novelty"] > 0


def test_a_score_gives_up_waiting_and_says_when_to_ask_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "LOADING_SECONDS", 0.01)
    with pytest.raises(AssertionError, match="is being loaded; ask again in a moment"):
        server.call("castle_info_score", text="The lamp hums.")
    server.failure = ModelError("the model is broken")
    server.loaded()
    with pytest.raises(AssertionError, match="cannot be loaded.*the model is broken"):
        server.call("castle_info_score", text="The lamp hums.")
