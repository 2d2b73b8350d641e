"""A command that a running server answers, and one that it must not answer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import castle
from castle import wire
from castle.errors import CastleError
from castle.local import socket_path
from castle.mcp import listener
from castle.mcp.running import Running
from tests.cli.conftest import Run
from tests.mcp.test_local import eventually

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no local sockets on this platform")

Serve = Callable[[], Running]


@pytest.fixture
def place(run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A palace whose searches need no model, in the setting of this process."""
    root = tmp_path / "palace"
    monkeypatch.setenv("CASTLE_PALACE_PATH", str(root))
    monkeypatch.setenv("CASTLE_RERANKER", "fake")
    monkeypatch.setenv("CASTLE_SML_DISABLED", "1")
    assert run("mine", str(project)).code == 0
    return root


@pytest.fixture
def serve(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setattr(listener, "POLL_SECONDS", 0.02)
    # However busy the machine is, the server is waited for.
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 30.0)
    monkeypatch.setattr(wire, "BUSY_SECONDS", 30.0)
    monkeypatch.setattr(wire, "TAKE_SECONDS", 30.0)
    started: list[Running] = []

    def start() -> Running:
        running = Running(str(place))
        started.append(running)
        with running.tools._asked():
            pass
        running._warmer.wait(30)
        running.start()
        eventually(Path(socket_path(str(place))).exists)
        return running

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods that commands ran in their own process."""
    from castle.cli import asking

    found: list[str] = []
    here = asking._Reader._castle

    def noted(self: asking._Reader) -> Any:
        found.append("opened")
        return here(self)

    monkeypatch.setattr(asking._Reader, "_castle", noted)
    return found


def timeless(text: str) -> Any:
    """Return the answer of a search without what its stages took, and without the opening of the palace."""
    found = json.loads(text)
    found["stages"] = [s["name"] for s in found["stages"] if s["name"] != "opening"]
    return found


def test_a_server_answers_as_the_command_would(run: Run, serve: Serve, opened: list[str]) -> None:
    lines = (
        ("search", "why graphql", "--now", "2026-05-05", "--json"),
        ("search", "the", "--by", "session", "-n", "2", "--kind", "file", "--now", "2026-05-05", "--json"),
        ("search", "harbour", "--now", "2026-05-05", "--history", "--mode", "fast", "--json"),
    )
    alone = [timeless(run(*line).out) for line in lines]
    shown = run("search", "graphql", "--explain", "--mode", "fast", "--now", "2026-05-05").out
    id_ = alone[0]["hits"][0]["id"]
    text = run("get", id_, "--context", "1", "--json")
    opened.clear()
    serve()
    assert [timeless(run(*line).out) for line in lines] == alone
    assert run("search", "graphql", "--explain", "--mode", "fast", "--now", "2026-05-05").out == shown
    assert run("get", id_, "--context", "1", "--json") == text
    assert not opened


def test_what_goes_wrong_is_told_by_the_command(run: Run, serve: Serve, opened: list[str]) -> None:
    serve()
    assert run("search", " ").code == 2
    assert "there is no wing nowhere" in run("search", "graphql", "--wing", "nowhere").err
    assert "no drawer" in run("get", "ffffffff").err
    assert len(opened) >= 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CASTLE_EMBEDDER_IDENTITY", "fake@64"),
        ("CASTLE_SEARCH_MODE", "fast"),
        ("CASTLE_SML_DISABLED", "0"),
        ("CASTLE_LLM_PROVIDER", "ollama"),
    ],
)
def test_other_settings_have_another_fingerprint(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = wire.fingerprint(_settings())
    assert wire.fingerprint(_settings()) == before
    monkeypatch.setenv(name, value)
    assert wire.fingerprint(_settings()) != before


def test_a_server_with_other_settings_is_not_used(
    run: Run, serve: Serve, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve()
    monkeypatch.setenv("CASTLE_SEARCH_MODE", "fast")
    assert json.loads(run("search", "graphql", "--json").out)["mode"] == "fast"
    assert opened


def _settings() -> Any:
    from castle import config

    return config.load()


def test_a_server_that_loads_its_models_is_not_waited_for(
    run: Run, place: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "POLL_SECONDS", 0.02)
    running = Running(str(place))
    with running.tools._asked() as palace:
        palace.defer_models()
    running._warmer.wait(30)
    with running.tools._asked() as palace:
        palace.defer_models("not yet")
    running.start()
    try:
        eventually(Path(socket_path(str(place))).exists)
        assert json.loads(run("search", "graphql", "--json").out)["degraded"] == []
        assert opened
    finally:
        running.stop()


def test_a_socket_without_a_server_or_of_a_stranger(run: Run, place: Path, opened: list[str]) -> None:
    (place / "run").mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(socket_path(str(place)))
        assert run("search", "graphql").code == 0
        dead.listen()
        (place / "run").chmod(0o755)
        assert run("search", "graphql").code == 0
    assert len(opened) >= 2


def test_the_way_to_a_server_is_light(place: Path, serve: Serve) -> None:
    serve()
    code = (
        "import sys\nfrom castle import wire\nfrom castle.cli import main\nwire.TAKE_SECONDS = 30.0\n"
        "try:\n    main(['search', 'graphql', '--json'])\nexcept SystemExit: pass\n"
        "heavy = {'lancedb', 'numpy', 'pydantic', 'sqlalchemy', 'pyarrow', 'tantivy', 'rich', 'typer'}\n"
        "sys.stderr.write(' '.join(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=dict(os.environ))
    assert json.loads(done.stdout)["hits"]
    assert done.stderr == b""


@pytest.mark.parametrize(
    "line",
    [
        ["x"],
        ["x y", "-n", "7", "--json"],
        ["--wing", "a", "x", "--room=b", "--by", "session", "--mode=fast", "--results", "2"],
        ["x", "--since", "2026", "--until", "2027", "--role", "user", "--history", "--as-of", "2028"],
        ["x", "--now", "2026", "--no-info-weight", "--cursor", "abc", "--kind", "file", "--kind", "note"],
        ["--info-weight", "--explain", "--", "x"],
        ["x", "--palace", "/p", "-n2"],
        ["-x"],
        ["x", "--limit", "-2"],
        ["x", "--limit", "2.5"],
        ["x", "--by", "page"],
        ["x", "y"],
        ["x", "--nothing"],
        ["x", "--wing"],
        ["x", "--help"],
    ],
)
def test_a_plain_line_is_read_as_the_command_reads_it(
    line: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the short way reads, the command itself has to read in the same way."""
    from castle.cli import asking, direct

    seen: list[dict[str, Any]] = []

    def search(self: object, query: str, **arguments: Any) -> Any:
        seen.append({"query": query, **arguments})
        raise CastleError("enough")

    monkeypatch.setattr(asking._Reader, "search", search, raising=False)
    read = direct.plain_search(["search", *line])
    run("search", *line)
    if read is None:
        return
    for name in ("palace", "explain", "as_json"):
        del read[name]
    assert seen
    assert seen[0].pop("source") is None
    assert {**seen[0], "kinds": list(seen[0]["kinds"])} == read


def test_only_a_plain_line_is_read() -> None:
    from castle.cli.direct import plain_search

    assert plain_search(["search", "x"]) is not None
    for line in (
        ["-x"],
        ["x", "--by", "page"],
        ["x", "y"],
        ["x", "--wing"],
        ["x", "--source", "a"],
        ["--", "x"],
    ):
        assert plain_search(["search", *line]) is None, line
    assert plain_search(["why", "x"]) is None
    assert plain_search([]) is None


def test_the_version_is_part_of_what_has_to_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    before = wire.fingerprint(_settings())
    monkeypatch.setattr(castle, "__version__", "999")
    assert wire.fingerprint(_settings()) != before
