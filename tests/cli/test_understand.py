"""``castle understand``: what it prints, and what it makes of things that are no text."""

from __future__ import annotations

import io
import json
import os
import socket
import sys
from pathlib import Path

import pytest
import typer

from castle.cli import understand as command
from castle.cli.understand import add_to, understand
from castle.errors import UsageError
from castle.text.understanding import understand as measured

TEXT = "- The user must save a café report within 200 ms.\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text(TEXT, encoding="utf-8")
    return path


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_the_table_holds_every_measure_and_the_number(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert understand(str(file)) == 0
    out = capsys.readouterr().out
    profile = measured(TEXT)
    assert all(metric.name in out for metric in profile.metrics)
    assert all(category.name in out for category in profile.categories)
    assert out.endswith(f"overall {profile.overall:.4f}, 1 statements, 10 words\n")


def test_json_is_the_profile(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    add_to(app)
    app(["understand", str(file), "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    profile = measured(TEXT)
    assert (found["overall"], found["requirements"], found["words"]) == (profile.overall, 1, 10)
    assert len(found["metrics"]) == 34
    assert set(found["metrics"][0]) == {
        "name",
        "category",
        "layer",
        "raw",
        "score",
        "weight",
        "category_weight",
    }


def test_standard_input_is_read_as_a_file_is(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    understand(str(file), as_json=True)
    from_file = capsys.readouterr()
    _stdin(monkeypatch, TEXT.encode())
    understand("-", as_json=True)
    assert capsys.readouterr() == from_file
    _stdin(monkeypatch, TEXT.encode("cp1252"))
    understand("-", as_json=True)
    other = capsys.readouterr()
    assert other.out == from_file.out
    assert other.err == "standard input: decoded as cp1252\n"


def test_a_link_is_followed_and_nothing_is_a_text_of_zeros(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    assert understand(str(link)) == 0
    empty = tmp_path / "empty"
    empty.touch()
    assert understand(str(empty)) == 0
    assert "overall 0.0000, 0 statements, 0 words" in capsys.readouterr().out


def test_what_is_no_text_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "binary").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    # The path of a socket may not be long.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    for name, reason in (
        ("binary", "binary: PNG image"),
        ("fifo", "not a regular file"),
        ("socket", "not a regular file"),
        (".", "not a regular file"),
        ("loop", "symlink"),
        ("missing", "unreadable: No such file or directory"),
    ):
        with pytest.raises(UsageError) as raised:
            understand(str(tmp_path / name))
        line = str(raised.value)
        assert (
            reason in line
            and str(tmp_path / name) in line
            and "castle understand takes" in line
            and "\n" not in line
        )
    with pytest.raises(UsageError, match="'': not a regular file"):
        understand("")


def test_binary_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _stdin(monkeypatch, b"\x7fELF" + bytes(100))
    with pytest.raises(UsageError, match="standard input: binary: ELF program"):
        understand("-")


def test_more_than_it_can_take_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "LARGEST_BYTES", len(TEXT.encode()))
    assert understand(str(file)) == 0
    monkeypatch.setattr(command, "LARGEST_BYTES", len(TEXT.encode()) - 1)
    with pytest.raises(UsageError, match=r"notes\.md: more than 50 bytes"):
        understand(str(file))
