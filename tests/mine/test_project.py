from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from castle import Castle
from castle.mine import project as miner
from castle.mine.report import MineReport
from castle.models.fake import FakeEmbedder
from tests.mine.conftest import FILES, write


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is given to the fake embedder."""
    texts: list[str] = []
    original = FakeEmbedder.embed_documents

    def spy(self: FakeEmbedder, given: list[str]) -> object:
        texts.extend(given)
        return original(self, given)

    monkeypatch.setattr(FakeEmbedder, "embed_documents", spy)
    return texts


def source(castle: Castle, name: str) -> str:
    return "".join(part.text for part in castle.get_source(name))


def all_ok(castle: Castle) -> bool:
    return {finding.status for finding in castle.verify()} == {"ok"}


def counts(report: MineReport) -> tuple[int, int, int]:
    return report.new, report.changed, report.unchanged


def test_a_project_is_filed_word_for_word(castle: Castle, project: Path) -> None:
    report = castle.mine_project(project)
    assert counts(report) == (4, 0, 0)
    assert not report.incomplete
    for name, text in FILES.items():
        assert source(castle, name) == text
    assert all_ok(castle)


def test_a_second_run_reads_and_embeds_nothing(
    castle: Castle, project: Path, embedded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    castle.mine_project(project)
    embedded.clear()
    monkeypatch.setattr(miner, "SourceReader", None)
    report = castle.mine_project(project)
    assert counts(report) == (0, 0, 4)
    assert embedded == []


def test_a_touched_file_is_read_but_not_filed_again(
    castle: Castle, project: Path, embedded: list[str]
) -> None:
    castle.mine_project(project)
    embedded.clear()
    os.utime(project / "notes.txt", (1, 1))
    assert counts(castle.mine_project(project)) == (0, 0, 4)
    assert embedded == []


def test_a_file_changed_within_the_resolution_of_its_time_is_noticed(castle: Castle, project: Path) -> None:
    path = project / "fresh.txt"
    path.write_text("one thing", encoding="utf-8")
    castle.mine_project(project)
    before = path.stat()
    path.write_text("two thing", encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    castle.mine_project(project)
    assert source(castle, "fresh.txt") == "two thing"


def test_a_changed_file_adds_a_revision_and_embeds_what_is_new(
    castle: Castle, project: Path, embedded: list[str]
) -> None:
    paragraphs = [f"Paragraph {n}. " + f"word{n} " * 60 + "\n\n" for n in range(20)]
    write(project, {"long.md": "".join(paragraphs)})
    castle.mine_project(project)
    embedded.clear()
    paragraphs[10] = "A new one about lighthouses.\n\n"
    write(project, {"long.md": "".join(paragraphs)}, age=1800)
    report = castle.mine_project(project)
    assert counts(report) == (0, 1, 4)
    assert 1 <= len(embedded) <= 4
    assert source(castle, "long.md") == "".join(paragraphs)
    assert castle.search("lighthouses").hits[0].text.startswith("A new one")
    assert all(hit.state == "current" for hit in castle.search("word10", limit=20).hits)
    old = castle.search("word10", limit=20, history=True).hits
    assert any(hit.state == "superseded" and "word10" in hit.text for hit in old)
    assert all_ok(castle)


def test_a_file_that_is_gone_loses_nothing(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    (project / "notes.txt").unlink()
    castle.mine_project(project)
    assert "harbour" in castle.search("harbour").hits[0].text


def test_the_same_text_in_two_files_is_embedded_and_shown_once(
    castle: Castle, project: Path, embedded: list[str]
) -> None:
    write(project, {"copy.txt": FILES["notes.txt"]})
    castle.mine_project(project)
    assert embedded.count(FILES["notes.txt"]) == 1
    hits = castle.search("harbour Sundays").hits
    assert [len(hit.copies) for hit in hits if "harbour" in hit.text] == [1]


def test_a_moved_repository_is_the_same_project(castle: Castle, project: Path, tmp_path: Path) -> None:
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    castle.mine_project(project)
    moved = tmp_path / "elsewhere" / "garden-shop"
    shutil.move(project, moved)
    report = castle.mine_project(moved)
    assert counts(report) == (0, 0, 4)
    assert castle.search("harbour").hits[0].address.path == str(moved / "notes.txt")
    assert castle.status().sources == 4


def test_a_subdirectory_mined_on_its_own_is_part_of_its_project(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    castle.mine_project(project / "docs", wing="garden_shop")
    assert castle.status().sources == 4


def test_wing_and_room_follow_name_and_castle_yaml(castle: Castle, project: Path) -> None:
    castle.init(project)
    castle.mine_project(project)
    places = {(p.wing, p.room) for p in castle.status().places}
    assert places == {
        ("garden_shop", "backend"),
        ("garden_shop", "documentation"),
    }
    assert [h.address.path for h in castle.search("token", room="backend").hits] == [
        str(project / "backend" / "auth.py")
    ]


def test_another_wing_moves_what_was_filed(castle: Castle, project: Path, embedded: list[str]) -> None:
    castle.mine_project(project)
    embedded.clear()
    report = castle.mine_project(project, wing="other")
    assert counts(report) == (0, 0, 4)
    assert embedded == []
    assert {p.wing for p in castle.status().places if p.current} == {"other"}
    assert castle.search("harbour", wing="other").hits


def test_new_rooms_take_effect_without_filing_again(
    castle: Castle, project: Path, embedded: list[str]
) -> None:
    castle.mine_project(project)
    embedded.clear()
    castle.init(project)
    report = castle.mine_project(project)
    assert counts(report) == (0, 0, 4)
    assert report.rooms["backend"] == 1
    assert embedded == []
    assert castle.search("token", room="backend").hits


def test_a_forgotten_source_is_not_filed_again(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    castle.forget(source="notes.txt")
    write(project, {"notes.txt": "The harbour is open again.\n"}, age=1800)
    report = castle.mine_project(project)
    assert any("castle restore" in skip.reason for skip in report.ignored)
    assert not any("harbour" in hit.text for hit in castle.search("harbour").hits)
    castle.restore(source="notes.txt")
    castle.mine_project(project)
    assert castle.search("harbour").hits[0].text == "The harbour is open again.\n"


def test_a_dry_run_makes_no_palace_and_tells_what_it_would_do(project: Path, tmp_path: Path) -> None:
    with Castle(tmp_path / "none", embedder="fake") as castle:
        report = castle.mine_project(project, dry_run=True)
    assert sorted(report.planned) == [
        ("README.md", "general", 1),
        ("backend/auth.py", "general", 1),
        ("docs/deploy.md", "general", 1),
        ("notes.txt", "general", 1),
    ]
    assert not (tmp_path / "none").exists()


def test_limit_leaves_the_rest_for_another_run(castle: Castle, project: Path) -> None:
    first = castle.mine_project(project, limit=3)
    assert counts(first) == (3, 0, 0)
    assert "--limit left 1 file for another run" in first.notes
    assert counts(castle.mine_project(project, limit=3)) == (1, 0, 3)


def test_an_interrupted_run_keeps_what_it_has_and_goes_on(
    castle: Castle, project: Path, monkeypatch: pytest.MonkeyPatch, embedded: list[str]
) -> None:
    def interrupt(phase: str, done: int, total: int) -> None:
        if (phase, done) == ("filing", 2):
            raise KeyboardInterrupt

    report = castle.mine_project(project, progress=interrupt)
    assert report.interrupted
    assert report.new == 2
    rest = castle.mine_project(project)
    assert counts(rest) == (2, 0, 2)
    assert all_ok(castle)


def test_an_interruption_while_embedding_wastes_no_vector(
    castle: Castle, project: Path, embedded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castle.store.catchup.EMBED_BATCH", 1)

    def interrupt(phase: str, done: int, total: int) -> None:
        if (phase, done) == ("embedding", 2):
            raise KeyboardInterrupt

    assert castle.mine_project(project, progress=interrupt).interrupted
    done = len(embedded)
    castle.mine_project(project)
    assert (done, len(embedded)) == (2, 4)
    assert all_ok(castle)


def test_a_large_file_is_staged_and_filed_whole(
    castle: Castle, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miner, "BATCH", 3)
    text = "".join(f"Line {n} says {'something ' * 20}\n" for n in range(200))
    write(project, {"large.txt": text})
    castle.mine_project(project)
    assert source(castle, "large.txt") == text
    assert all_ok(castle)


def test_a_file_that_became_binary_leaves_its_text_superseded(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    (project / "notes.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    report = castle.mine_project(project)
    assert [skip.path for skip in report.skipped] == ["notes.txt"]
    assert not any("harbour" in hit.text for hit in castle.search("harbour").hits)
    assert castle.search("harbour", history=True).hits[0].state == "superseded"
    assert all_ok(castle)


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Mara", "-c", "user.email=mara@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)
