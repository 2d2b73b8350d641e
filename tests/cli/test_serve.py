"""``castle serve``: what it refuses before it listens. What it serves is tested in tests/mcp/test_http.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from castle.mcp import http
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(host: str, port: int, option: str) -> None:
        raise AssertionError(f"it would listen at {host}:{port}")

    monkeypatch.setattr(http, "_bound", refuse)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tools", "few"], "few"),
        (["--host", "0.0.0.0"], "castle config set serve_token -"),
        (["--host", "::"], "castle config set serve_token -"),
        (["--allow-host", "box.example"], "castle config set serve_token -"),
        (["--host", "box.example"], "not an IP address"),
        (["--path", "mcp"], "path"),
        (["--port", "70000"], "--port"),
        (["--ingest-port", "8766"], "castle config set serve_token -"),
    ],
)
def test_what_cannot_be_served_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    done = run("serve", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["--host", "0.0.0.0"]])
def test_a_short_token_is_refused_and_not_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("CASTLE_SERVE_TOKEN", "fifteen-letters")
    done = run("serve", *arguments)
    assert done.code == 2
    assert "16 characters" in done.err and "fifteen" not in done.err


def test_a_token_is_no_option(run: Run) -> None:
    assert run("serve", "--token", "correct-horse-battery").code == 2
    assert "--token" not in run("serve", "--help").out


def test_a_token_from_the_file_of_settings_is_enough(run: Run, own_home: Path) -> None:
    run("config", "set", "serve_token", "correct-horse-battery")
    done = run("serve", "--host", "0.0.0.0")
    assert done.code == 1
    assert "it would listen at" in done.err and "0.0.0.0" in done.err
