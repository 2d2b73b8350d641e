from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def castle_binary() -> str:
    return str(Path(sys.executable).with_name("castle"))


def test_the_first_command_lines_of_a_new_user(run: Run, project: Path) -> None:
    """The quickstart that users of the reference know, word for word."""
    assert run("init", "~/projects/myapp".replace("~", os.environ["HOME"]), "--yes").code == 0
    found = run("search", "why did we switch to graphql")
    assert found.code == 0
    assert "We chose GraphQL in May." in found.out
    scoped = run("search", "auth flow", "--wing", "myapp", "--room", "backend")
    assert scoped.code == 0
    assert "issue_token" in scoped.out
    assert "GraphQL" not in scoped.out
    assert run("mine", str(project)).code == 0
    assert "4 drawers from 4 sources" in run("status").out
    assert "Usage" in run("--help").out
    for command in ("init", "mine", "search", "status"):
        assert "Usage" in run(command, "--help").out


def test_search_prints_address_times_and_text(run: Run, project: Path) -> None:
    run("mine", str(project))
    out = run("search", "migrations workers", "-n", "1").out
    assert f"{project}/docs/deploy.md:1-3" in out
    assert "written 20" in out
    assert "+00:00" in out
    assert "    Run the migrations first, then restart the workers." in out


def test_search_as_json_carries_everything(run: Run, project: Path) -> None:
    run("mine", str(project))
    answer = json.loads(run("search", "harbour", "--json", "--results", "2").out)
    hit = answer["hits"][0]
    assert hit["text"] == "The harbour is closed on Sundays.\n"
    assert hit["address"] == {
        "path": str(project / "notes.txt"),
        "start": 0,
        "end": 34,
        "first_line": 1,
        "last_line": 1,
    }
    assert hit["authored_at"].endswith("+00:00")
    assert {"dense", "lexical", "fusion", "cross-encoder"} <= set(hit["stages"])
    assert hit["matched"] == ["harbour"]
    assert answer["degraded"] == []
    assert len(answer["hits"]) <= 2


def test_an_id_from_search_works_everywhere(run: Run, project: Path) -> None:
    run("mine", str(project))
    id_ = json.loads(run("search", "harbour", "--json").out)["hits"][0]["id"]
    assert "The harbour is closed" in run("get", id_).out
    assert "The harbour is closed" in run("get", id_[:8], "--context", "2").out
    assert run("get", id_, "--source").out == "The harbour is closed on Sundays.\n"
    assert run("forget", id_).code == 0
    assert "harbour" not in run("search", "harbour").out
    assert run("restore", id_).code == 0
    assert "harbour" in run("search", "harbour").out


def test_listing_pages_and_counts(run: Run, project: Path) -> None:
    run("mine", str(project))
    page = run("list", "--limit", "3")
    assert "1-3 of 4" in page.err
    assert "4-4 of 4" in run("list", "--limit", "3", "--offset", "3").err
    sources = json.loads(run("list", "--sources", "--json").out)
    assert [Path(source["path"]).name for source in sources["sources"]] == [
        "README.md",
        "auth.py",
        "deploy.md",
        "notes.txt",
    ]


def test_a_wing_is_renamed_and_stays_so(run: Run, project: Path) -> None:
    run("mine", str(project))
    assert run("wing", "rename", "myapp", "shop").code == 0
    assert "harbour" in run("search", "harbour", "--wing", "shop").out
    run("mine", str(project))
    status = json.loads(run("status", "--json").out)
    assert {place["wing"] for place in status["places"] if place["current"]} == {"shop"}


def test_verify_and_repair_tell_and_mend(run: Run, project: Path, own_home: Path) -> None:
    run("mine", str(project))
    assert run("verify").code == 0
    lexicon = own_home / ".castle" / "palace" / "lexicon"
    for file in lexicon.iterdir():
        file.write_bytes(b"damaged")
    assert run("verify").code == 1
    assert run("repair").code == 0
    assert run("verify").code == 0
    assert "harbour" in run("search", "harbour").out


def test_init_asks_before_it_mines(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    asked = run("init", str(project))
    assert asked.code == 0
    assert "4 files" in asked.out
    assert "Mine this directory now?" in asked.err
    assert (project / "castle.yaml").is_file()
    assert run("status").code == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert run("init", str(project)).code == 0
    assert "4 drawers" in run("status").out


def test_init_lets_rooms_be_dropped_and_added(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("backend +garden\nn\n"))
    assert run("init", str(project)).code == 0
    text = (project / "castle.yaml").read_text(encoding="utf-8")
    assert "garden" in text
    assert "backend" not in text


def test_init_in_a_repository_names_castle_yaml_in_gitignore(run: Run, project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".gitignore").write_bytes(b"*.log")
    run("init", str(project), "--yes")
    run("init", str(project), "--yes")
    assert (project / ".gitignore").read_bytes() == b"*.log\ncastle.yaml\n"


def test_what_cannot_be_filed_is_listed_and_counted_in_the_exit_code(run: Run, project: Path) -> None:
    (project / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    found = run("mine", str(project))
    assert found.code == 3
    assert "logo.png: binary" in found.err
    assert "harbour" in run("search", "harbour").out


def test_palace_and_debug_may_stand_anywhere(run: Run, project: Path, tmp_path: Path) -> None:
    assert run("mine", str(project), "--palace", str(tmp_path / "p")).code == 0
    assert "4 drawers" in run("status", f"--palace={tmp_path / 'p'}").out
    assert run("status").code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("search", "x"), 1, "no palace"),
        (("search", ""), 2, "query is empty"),
        (("search", "x", "--limit", "0"), 2, "limit 0"),
        (("search", "x", "--since", "yesterday"), 2, "ISO date"),
        (("search", "x", "--nosuch"), 2, "castle search --help"),
        (("serach", "x"), 2, "search"),
        (("mine", "/no/such/place"), 2, "nothing to file at /no/such/place"),
        (("init", "/no/such/place"), 2, "nothing to file"),
        (("get", "zz"), 1, "no palace"),
        (("forget",), 2, "--source"),
        (("config", "get", "palace_pth"), 2, "palace_path"),
    ],
)
def test_a_wrong_call_is_one_line(
    run: Run, project: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    found = run(*arguments)
    assert found.code == code
    assert words in found.err
    assert len(found.err.strip().splitlines()) == 1
    assert found.out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("search", "x", "--wing", ""), "the wing is empty"),
        (("search", "x", "--room", " "), "the room is empty"),
        (("search", "x", "--source", ""), "the source is empty"),
        (("list", "--wing", ""), "the wing is empty"),
        (("list", "--source", ""), "the source is empty"),
        (("forget", "--source", ""), "the source is empty"),
    ],
)
def test_a_blank_place_is_wrong_usage(
    run: Run, project: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert run("mine", str(project)).code == 0
    found = run(*arguments)
    assert (found.code, found.out) == (2, "")
    assert words in found.err and len(found.err.strip().splitlines()) == 1


def test_debug_shows_the_traceback(project: Path) -> None:
    command = [castle_binary(), "search", "x", "--debug"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" in done.stderr
    assert done.returncode == 1


def test_the_version_is_that_of_the_package(run: Run) -> None:
    from importlib.metadata import version

    assert run("--version").out == f"Cognitive Castle {version('cognitive-castle')}\n"


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_it_speaks_under_any_locale(project: Path, locale: str) -> None:
    (project / "unicode.md").write_text("Čeština, 日本語 and ›arrows‹\n", encoding="utf-8")
    env = {**os.environ, "LC_ALL": locale, "PYTHONIOENCODING": "cp1252", "CASTLE_EMBEDDER_MODEL": "fake"}
    for arguments in (("mine", str(project)), ("search", "日本語")):
        done = subprocess.run([castle_binary(), *arguments], env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_closed_pipe_is_no_error(project: Path) -> None:
    env = {**os.environ, "CASTLE_EMBEDDER_MODEL": "fake"}
    subprocess.run([castle_binary(), "mine", str(project)], env=env, check=True, capture_output=True)
    command = f"{castle_binary()} list --json | head -c 1"
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_source_is_printed_character_for_character(run: Run, project: Path) -> None:
    text = "a \x1b[31mred\x1b[0m word\nand no end"
    (project / "colour.txt").write_text(text, encoding="utf-8")
    run("mine", str(project))
    assert run("get", "colour.txt", "--source").out == text
    assert text in run("get", json.loads(run("search", "red word", "--json").out)["hits"][0]["id"]).out


def test_a_lost_ledger_stops_a_mine(run: Run, project: Path, own_home: Path) -> None:
    run("mine", str(project))
    for file in (own_home / ".castle" / "palace").glob("castle.db*"):
        file.unlink()
    found = run("mine", str(project))
    assert found.code == 1
    assert "nothing was changed" in found.err
    assert (own_home / ".castle" / "palace" / "lexicon").is_dir()
