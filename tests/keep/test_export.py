"""The readable export, and the places that an export may go to."""

from __future__ import annotations

import json
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from castle import Castle
from castle.errors import PalaceError, RefusedError, UsageError
from castle.keep import exporting
from castle.keep.markdown import _name
from tests.keep.conftest import SPOKEN, TOKEN
from tests.store.test_backup import killed


def files_of(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.md"))
    }


def parted(text: str) -> tuple[dict[str, object], str]:
    """Return what stands before the text of a file, and the text."""
    _, head, body = text.split("---\n", 2)
    lines = [line for line in head.splitlines() if not line.startswith(("drawers:", "  - "))]
    about: dict[str, object] = {
        key: json.loads(value) for key, _, value in (line.partition(": ") for line in lines)
    }
    about["drawers"] = [json.loads(line[4:]) for line in head.splitlines() if line.startswith("  - ")]
    return about, body.removeprefix("\n")


def test_a_tree_of_files_to_read(rich: Castle, tmp_path: Path) -> None:
    made = rich.export(tmp_path / "out")
    files = files_of(tmp_path / "out")
    assert made.files == len(files)
    assert made.drawers == sum(place.current for place in rich.places())
    assert made.masked == 3
    about, body = parted(files["garden_shop/general/README.md"])
    assert body == (Path.home() / "garden-shop" / "README.md").read_text(encoding="utf-8")
    assert about["state"] == "current"
    entries: Any = about["drawers"]
    assert rich.get(entries[0]["id"])[0].text in body
    talk = next(text for name, text in files.items() if "turn 3" in text)
    assert "\n## assistant, 2026-05-01T10:00:03" in talk
    everything = "".join(files.values())
    assert TOKEN not in everything
    assert SPOKEN not in everything
    assert "«secret:github_token#" in everything
    assert "An errand nobody needs" not in everything  # forgotten
    assert "painted green" not in everything  # superseded
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").rglob("*.md")}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_what_was_superseded_is_beside_it_on_request(rich: Castle, tmp_path: Path) -> None:
    rich.export(tmp_path / "out", wing="port", history=True)
    files = files_of(tmp_path / "out")
    (old,) = [text for name, text in files.items() if name.endswith(".history.md")]
    about, body = parted(old)
    assert about["state"] == "superseded"
    assert "painted green" in body
    assert {name.split("/")[0] for name in files} == {"port"}


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "a/b\\c:d*e?f",
        "con",
        "NUL.md",
        "." * 5,
        " ",
        "x" * 500,
        "é" * 200,
        "日本語の題.md",
        "a\0b",
    ],
)
def test_names_of_files_are_names(name: str) -> None:
    found = _name(name)
    assert found
    assert len(found.encode("utf-8")) <= 121
    assert not set(found) & set('/\\:*?"<>|\0')
    assert found.strip(" .") == found
    assert found.lower().split(".")[0] not in ("con", "nul")


def test_sources_of_one_name_have_files_of_their_own(rich: Castle, tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        rich.add(f"{text} of the quay", wing="quay", room="r", source_file="same.md")
    rich.export(tmp_path / "out", wing="quay")
    bodies = [parted(text)[1] for text in files_of(tmp_path / "out").values()]
    assert sorted(bodies) == ["one of the quay", "three of the quay", "two of the quay"]


def test_a_directory_with_something_in_it_is_left_alone(rich: Castle, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    rich.export(tmp_path / "out")  # empty is as good as new
    before = files_of(tmp_path / "out")
    with pytest.raises(RefusedError, match="has something in it"):
        rich.export(tmp_path / "out")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(RefusedError, match="has something in it"):
        rich.export(tmp_path / "file")
    with pytest.raises(UsageError, match="inside the palace"):
        rich.export(rich.root / "out")
    with pytest.raises(UsageError, match="no format"):
        rich.export(tmp_path / "new", format="html")
    with pytest.raises(UsageError, match="always masked"):
        rich.export(tmp_path / "new", include_secrets=True)
    assert files_of(tmp_path / "out") == before
    assert not (tmp_path / "new").exists()


def test_a_full_disk_leaves_nothing(rich: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "see_tree_on_disk", full)
    for format in ("markdown", "jsonl"):
        with pytest.raises(PalaceError, match="nothing can be exported to .*: the disk is full"):
            rich.export(tmp_path / "out", format=format)
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.glob(".*.draft")) == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_a_killed_export_leaves_nothing_in_its_place(rich: Castle, tmp_path: Path) -> None:
    arguments = ("--palace", str(rich.root), "export", str(tmp_path / "out"))
    killed("castle.keep.exporting", "see_tree_on_disk", *arguments)
    assert not (tmp_path / "out").exists()
    rich.export(tmp_path / "out")
    assert list(tmp_path.glob(".*.draft")) == []
    assert files_of(tmp_path / "out")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_a_killed_import_goes_on(rich: Castle, tmp_path: Path) -> None:
    made = rich.export(tmp_path / "out", format="jsonl", include_secrets=True)
    arguments = ("--palace", str(tmp_path / "other"), "import", str(tmp_path / "out"))
    killed("castle.keep.importing", "merge", *arguments)
    with Castle(tmp_path / "other") as other:
        found = other.import_from(tmp_path / "out")
        assert found.sources + found.known == made.sources
        assert other.catch_up() == []
        assert {finding.status for finding in other.verify()} == {"ok"}
