"""``castle compress``, ``diary``, ``tunnels`` and ``split`` from the command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def filed(run: Run, project: Path) -> Path:
    other = project.parent / "site"
    other.mkdir()
    (other / "docs").mkdir()
    (other / "docs" / "a.md").write_text("# Site\n\nWe deployed the garden pages.\n", encoding="utf-8")
    for root in (project, other):
        assert run("init", str(root), "--yes").code == 0
    return project


def test_compress_prints_totals_and_is_idempotent(run: Run, filed: Path) -> None:
    dry = json.loads(run("compress", "--dry-run", "--json").out)
    first = json.loads(run("compress", "--json").out)
    again = json.loads(run("compress", "--json").out)
    assert dry["dry_run"] and not first["dry_run"]
    assert first["built"] == first["sources"] == dry["built"] == again["unchanged"] > 0
    assert again["built"] == 0
    assert {"ratio", "lines", "closets", "original_tokens", "tokens"} <= set(first)
    shown = run("compress", "--wing", "myapp")
    assert "tokens" in shown.out
    assert run("compress", "--wing", "nowhere").code == 1


def test_compress_reads_codes_of_names(run: Run, filed: Path, tmp_path: Path) -> None:
    config = tmp_path / "aaak.json"
    config.write_text('{"entities": {"Alice": "ALX"}, "skip_names": ["Run"]}', encoding="utf-8")
    assert json.loads(run("compress", "--config", str(config), "--json").out)["built"] > 0
    for broken in ('{"lang": "en"}', "[]", "{", '{"entities": {"a": 1}}', '{"skip_names": [" "]}'):
        config.write_text(broken, encoding="utf-8")
        result = run("compress", "--config", str(config))
        assert (result.code, str(config) in result.err) == (2, True)


def test_a_diary_is_written_and_read(run: Run, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("diary", "write", "--agent", "Coder", "first", "--topic", "hooks").code == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"zwei\n"), encoding="utf-8"))
    written = json.loads(run("diary", "write", "--agent", "coder", "-", "--json").out)
    assert written["content"] == "zwei\n"
    read = json.loads(run("diary", "read", "--agent", "CODER", "--json").out)
    assert read["total"] == 2
    assert [(e["content"], e["topic"]) for e in read["entries"]] == [
        ("zwei\n", "general"),
        ("first", "hooks"),
    ]
    assert {"date", "timestamp"} <= set(read["entries"][0])
    shown = run("diary", "read", "--agent", "coder", "--last", "1")
    assert "zwei" in shown.out and "first" not in shown.out
    assert "1 of 2 entries" in shown.err
    assert json.loads(run("search", "zwei", "--json").out)["hits"][0]["kind"] == "diary"
    assert run("diary", "write", "--agent", "coder", " ").code == 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    assert run("diary", "write", "--agent", "coder", "-").code == 2


def test_day_files_are_ingested(run: Run, own_home: Path) -> None:
    days = own_home / "days"
    days.mkdir()
    (days / "2026-05-01.md").write_text("a day\n", encoding="utf-8")
    (days / "other.md").write_text("no day\n", encoding="utf-8")
    first = run("diary", "ingest", str(days))
    assert first.code == 0
    assert "1 new" in first.out
    assert "other.md" in first.err
    report = json.loads(run("diary", "ingest", str(days), "--json").out)
    assert (report["unchanged"], report["wing"]) == (1, "diary")


def test_tunnels(run: Run, filed: Path) -> None:
    found = json.loads(run("tunnels", "find", "--wing-a", "myapp", "--wing-b", "site", "--json").out)
    assert [room["room"] for room in found["rooms"]] == ["documentation"]
    made = json.loads(
        run("tunnels", "create", "myapp/backend", "site/documentation", "--label", "api", "--json").out
    )
    assert made["target"] == {"wing": "site", "room": "documentation"}
    assert "T" in made["created_at"]
    assert [t["id"] for t in json.loads(run("tunnels", "list", "--json").out)] == [made["id"]]
    assert "api" in run("tunnels", "follow", "myapp/backend").out
    assert "documentation" in run("tunnels", "traverse", "backend").out
    stats = json.loads(run("tunnels", "stats", "--json").out)
    assert (stats["made"], stats["tunnel_rooms"]) == (1, 1)
    assert "rooms" in run("tunnels", "stats").out
    assert "api" in run("tunnels", "find").out
    assert json.loads(run("tunnels", "delete", made["id"], "--json").out) == {"deleted": made["id"]}
    assert json.loads(run("tunnels", "list", "--json").out) == []
    assert run("tunnels", "delete", made["id"]).code == 1
    assert run("tunnels", "follow", "myapp").code == 2
    wrong = run("tunnels", "create", "myapp/backendd", "site/documentation")
    assert (wrong.code, "backend" in wrong.err) == (1, True)


def test_split(run: Run, own_home: Path) -> None:
    logs = own_home / "logs"
    logs.mkdir()
    mega = logs / "m.txt"
    mega.write_text("Claude Code v1\n> one\nClaude Code v1\n> two\n", encoding="utf-8")
    planned = run("split", str(logs), "--dry-run")
    assert planned.out.count("\n") == 2
    assert "byte for byte" in planned.err
    report = json.loads(run("split", str(logs), "--output-dir", str(own_home / "out"), "--json").out)
    assert [Path(piece["path"]).name for piece in report["split"][0]["pieces"]] == [
        "m__part01_unknown_one.txt",
        "m__part02_unknown_two.txt",
    ]
    assert mega.exists()
    assert run("split", str(logs)).code == 0
    assert (logs / "m.mega_backup").exists()
    assert run("split", str(own_home / "nothing")).code == 2
