from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from castle.cli.config import app
from castle.config import keys
from castle.errors import CastleError

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for key in keys().values():
        for variable in key.env:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CASTLE_HOME", str(tmp_path / "castle"))
    root = typer.Typer()

    @root.callback()
    def callback(palace: str | None = None) -> None:
        """Stand in for the program."""

    root.add_typer(app, name="config")

    def call(*arguments: str, given: str = "") -> tuple[str, str]:
        result = CliRunner().invoke(root, list(arguments), input=given)
        if isinstance(result.exception, CastleError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout, result.stderr

    return call


def test_unset_takes_a_key_out_and_compiles_again(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "castle" / "castle.yaml"
    assert "k_rrf is not set in" in run("config", "unset", "k_rrf")[1]
    assert not file.exists()
    run("config", "set", "hooks.recall", "true")
    file.write_text(f"# mine\n{file.read_text('utf-8')}k_rrf: 70\n", "utf-8")
    out, err = run("config", "unset", "hooks.recall")
    assert out == ""
    assert "hooks.recall is no longer set in" in err
    assert "in force is false (default)" in err
    assert file.read_text("utf-8") == "# mine\nk_rrf: 70\n"
    assert json.loads((file.parent / "hooks.json").read_text("utf-8"))["recall"] is False
    with pytest.raises(CastleError, match="did you mean k_rrf"):
        run("config", "unset", "k_rff")


def test_a_token_that_no_server_accepts_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CastleError, match="at least 16 characters") as caught:
        run("config", "set", "serve_token", "-", given="fifteen-letters\n")
    assert "fifteen" not in str(caught.value)
    assert not (tmp_path / "castle" / "castle.yaml").exists()
    run("config", "set", "serve_token", "-", given="sixteen-letters!\n")
    run("config", "set", "serve_token", "null")


def test_show_lists_every_key_with_its_origin(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("config", "set", "k_rrf", "70")
    monkeypatch.setenv("CASTLE_WEIGHT_DENSE", "2")
    out, err = run("--palace", "/p", "config", "show")
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert set(keys()) <= set(lines)
    assert lines["palace_path"] == ["palace_path", "/p", "flag"]
    assert lines["k_rrf"] == ["k_rrf", "70", "user", f"{tmp_path}/castle/castle.yaml"]
    assert lines["weight_dense"] == ["weight_dense", "2.0", "environment", "CASTLE_WEIGHT_DENSE"]
    before, after = out.split("\nAccepted, but not read by this version:\n")
    assert "weight_sparse" in before
    assert "topic_tunnel_min_count" in after
    assert err == ""


def test_show_as_json(run: Run, tmp_path: Path) -> None:
    rows = json.loads(run("config", "show", "--json")[0])
    assert [row["key"] for row in rows] == list(keys())
    by_key = {row["key"]: row for row in rows}
    assert by_key["weight_kg"] == {
        "key": "weight_kg", "value": 0.5, "origin": "default", "pending": None,
    }  # fmt: skip
    assert by_key["palace_path"]["value"] == str(tmp_path / "castle" / "palace")


def test_get_prints_the_value_alone(run: Run) -> None:
    assert run("config", "get", "k_rrf") == ("60\n", "")
    assert run("config", "get", "entity_languages") == ("[en]\n", "")
    assert run("config", "get", "llm_endpoint") == ("null\n", "")
    assert json.loads(run("config", "get", "fusion", "--json")[0]) == {
        "key": "fusion", "value": "scores", "origin": "default", "pending": None,
    }  # fmt: skip


def test_set_warns_when_it_will_not_be_seen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLE_K_RRF", "5")
    out, err = run("config", "set", "k_rrf", "70")
    assert out == ""
    assert "the environment variable CASTLE_K_RRF is set and goes before the file" in err
    said = run("config", "set", "topic_tunnel_min_count", "2")[1]
    assert "does not read topic_tunnel_min_count yet (tunnels)" in said


def test_a_secret_comes_from_standard_input_and_is_never_shown(run: Run) -> None:
    said = run("config", "set", "llm_api_key", "-", given="sk-secret\n")
    shown = run("config", "show"), run("config", "show", "--json"), run("config", "get", "llm_api_key")
    assert "sk-secret" not in str((said, shown))
    assert shown[2][0] == "********\n"


@pytest.mark.parametrize("words", [("get", "k_rff"), ("set", "k_rff", "1"), ("set", "k_rrf", "x")])
def test_errors_are_castle_errors(run: Run, words: tuple[str, ...]) -> None:
    with pytest.raises(CastleError, match="k_rrf"):
        run("config", *words)


def test_hints_go_to_standard_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLE_FUSIO", "x")
    out, err = run("config", "show", "--json")
    assert json.loads(out)
    assert "did you mean CASTLE_FUSION?" in err
