"""Mining a part of a project: a directory or one file of it follows the nearest castle.yaml."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import ConfigError, UsageError
from castle.mine.layout import layout_of
from castle.mine.report import MineReport
from tests.mine.conftest import write

SETTINGS = """wing: shop
rooms:
  - name: backend
    keywords: [token]
  - name: general
ignore: ["*.tmp"]
"""
PARTS = {
    "castle.yaml": SETTINGS,
    ".castleignore": "secret.md\n/backend/only-here.md\n",
    "backend/token.md": "issue a token\n",
    "backend/deep/inner.md": "a token within\n",
    "backend/deep/x.tmp": "passed over\n",
    "backend/secret.md": "passed over\n",
    "backend/only-here.md": "passed over\n",
    "top.md": "on top\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    write(root, PARTS)
    return root


def mine(castle: Castle, path: Path, include: Sequence[str] = ()) -> MineReport:
    return castle.mine_project(path, include_ignored=include)


def placed(castle: Castle) -> dict[str, tuple[str, str]]:
    page = castle.list_sources(limit=100)
    return {Path(source.path).name: (source.wing, source.room) for source in page.sources}


def ignored(report: MineReport) -> dict[str, str]:
    return {skip.path: skip.reason for skip in report.ignored}


def test_a_subdirectory_is_filed_as_that_part_of_its_project(castle: Castle, shop: Path) -> None:
    report = mine(castle, shop / "backend")
    assert (report.wing, report.new) == ("shop", 2)
    assert placed(castle) == {"token.md": ("shop", "backend"), "inner.md": ("shop", "backend")}
    assert ignored(report) == {
        "backend/secret.md": "ignored: .castleignore:1",
        "backend/only-here.md": "ignored: .castleignore:2",
        "backend/deep/x.tmp": "ignored: castle.yaml:1",
    }
    assert report.notes == ()


def test_parts_and_the_whole_are_the_same_sources(castle: Castle, shop: Path) -> None:
    assert mine(castle, shop / "backend" / "token.md").new == 1
    assert (mine(castle, shop / "backend").new, mine(castle, shop).new) == (1, 1)
    again = mine(castle, shop)
    assert (again.new, again.changed, again.unchanged) == (0, 0, 3)
    assert castle.list_sources().total == 3


@pytest.mark.parametrize("name", ["backend/deep/inner.md", "top.md"])
def test_one_file_is_filed_by_the_rules_of_its_project(castle: Castle, shop: Path, name: str) -> None:
    report = mine(castle, shop / name)
    assert (report.wing, report.files, report.new) == ("shop", 1, 1)
    assert placed(castle)[Path(name).name][0] == "shop"


@pytest.mark.parametrize("name", ["backend/deep/x.tmp", "backend/secret.md"])
def test_a_file_that_the_project_ignores_is_named_with_the_rule(
    castle: Castle, shop: Path, name: str
) -> None:
    report = mine(castle, shop / name)
    assert report.new == 0
    assert list(ignored(report)) == [name]


def test_the_nearest_castle_yaml_counts(castle: Castle, shop: Path) -> None:
    (shop / "backend" / "castle.yaml").write_text("wing: engine\n", encoding="utf-8")
    assert mine(castle, shop / "backend" / "deep").wing == "engine"
    assert mine(castle, shop / "top.md").wing == "shop"


def test_a_wing_that_is_named_goes_before_that_of_the_project(castle: Castle, shop: Path) -> None:
    assert castle.mine_project(shop / "backend", wing="other").wing == "other"


def test_a_castle_yaml_above_the_repository_is_not_asked(castle: Castle, shop: Path) -> None:
    (shop / "backend" / ".git").mkdir()
    report = mine(castle, shop / "backend" / "deep")
    assert report.wing == "deep"
    assert report.new == 2


def test_a_broken_castle_yaml_above_stops_the_run(castle: Castle, shop: Path) -> None:
    (shop / "castle.yaml").write_text("wing: [\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="castle.yaml"):
        mine(castle, shop / "backend")


def test_the_settings_of_the_user_are_no_project(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / ".castle"
    write(home, {"castle.yaml": "k_rrf: 70\n", "diaries/day.md": "a day\n"})
    assert mine(castle, home / "diaries").wing == "diaries"


def test_what_is_to_be_filed_all_the_same_counts_from_what_was_named(castle: Castle, shop: Path) -> None:
    write(shop, {"backend/node_modules/lib.md": "a library\n", "backend/build/out.md": "built\n"})
    report = mine(castle, shop / "backend", ["node_modules/lib.md", str(shop / "backend" / "build")])
    assert {"lib.md", "out.md"} <= set(placed(castle))
    assert report.new == 4


@pytest.mark.parametrize("gitignore", [True, False])
def test_rules_of_the_directories_above_hold_within_a_repository(
    castle: Castle, tmp_path: Path, gitignore: bool
) -> None:
    root = tmp_path / "repository"
    write(
        root,
        {
            ".gitignore": "*.log\n",
            ".castleignore": "/part/inner/no.md\ndraft*\n",
            "part/.castleignore": "!draft-keep.md\n",
            "part/inner/no.md": "no\n",
            "part/inner/yes.md": "yes\n",
            "part/inner/x.log": "log\n",
            "part/inner/draft.md": "draft\n",
            "part/inner/draft-keep.md": "kept\n",
        },
    )
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    report = castle.mine_project(root / "part" / "inner", gitignore=gitignore)
    logs = set() if gitignore else {"x.log"}
    assert set(placed(castle)) == {"yes.md", "draft-keep.md"} | logs
    assert ignored(report)["no.md"] == "ignored: ../../.castleignore:1"
    assert ignored(report)["draft.md"] == "ignored: ../../.castleignore:2"


def test_a_castleignore_above_that_cannot_be_read_is_reported(castle: Castle, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write(root, {"part/a.md": "a\n"})
    (root / ".git").mkdir()
    os.mkfifo(root / ".castleignore")
    report = mine(castle, root / "part")
    assert report.new == 1
    assert [(skip.path, skip.reason) for skip in report.skipped] == [
        ("../.castleignore", "rules not read: not a regular file")
    ]


@pytest.mark.parametrize("name", ["a\0b", "no/such", "loop"])
def test_nothing_at_the_path_is_one_line(castle: Castle, tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="nothing to file at"):
        layout_of(tmp_path / name)
    for mode in ("auto", "projects", "convos"):
        with pytest.raises(UsageError, match="nothing to file at"):
            castle.mine(tmp_path / name, mode=mode)


def test_a_name_that_is_no_text_is_mined_and_filed(castle: Castle, tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    write(root, {"a.md": "a harbour\n"})
    assert mine(castle, root).new == 1
    assert mine(castle, root / "a.md").unchanged == 1
    assert castle.search("harbour").hits[0].text == "a harbour\n"


def test_a_time_far_ahead_is_kept(castle: Castle, shop: Path) -> None:
    os.utime(shop / "top.md", (2**33, 2**33))
    assert mine(castle, shop / "top.md").new == 1
    (hit,) = castle.search('"on top"').hits
    assert hit.authored_at == 2**33 * 1_000_000
    assert {finding.status for finding in castle.verify()} == {"ok"}
