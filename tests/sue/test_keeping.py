"""Purge and backup know reviews."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import NotFoundError, PalaceError
from castle.records import SealedSpan
from castle.store.purge_files import Finder
from castle.store.redetect import redetect
from castle.store.reviews import ARCHIVE, forget_reviews, pack, run_folders, runs_folder, unpack
from castle.sue.runs import load
from castle.sue.worker import work
from tests.conftest import TurnedClock
from tests.sue.conftest import Required
from tests.sue.scripted import REVIEW, Script


def holding(root: Path, text: str) -> list[str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return [str(path.relative_to(root)) for path in files if text.encode() in path.read_bytes()]


def test_a_purged_drawer_takes_every_review_of_it_along(required: Required) -> None:
    run, castle = required.run(), required.castle
    work(run, Script(*REVIEW))
    with castle._palace().ledger.read():
        other = castle.add("R9. Boats are painted blue.", wing="boats", room="requirements").id
    required.ids[:] = [other]  # type: ignore[index]
    kept = required.run()
    text = "Deletion covers every copy"
    assert len(holding(castle.root / "sue", text)) > 3
    third = load(run)[1].parts[2].drawer
    done = castle.purge(third, reason="a test")
    assert done.unfinished == ""
    assert str(run) in done.removed
    assert run_folders(castle.root) == [kept]
    assert holding(castle.root / "sue", text) == []
    assert not any(third in path.name for path in (castle.root / "sue").rglob("*"))
    with pytest.raises(NotFoundError, match="no review"):
        castle.sue_status(run.name)
    with pytest.raises(NotFoundError, match="purged"):
        castle.sue_review([third], "d")


def test_a_review_that_quotes_goes_and_half_of_one_that_went_goes_too(required: Required) -> None:
    palace = required.castle._palace()
    run = required.run()
    left = run.with_name(f"{'0' * 32}.gone")
    (left / "calls").mkdir(parents=True)
    assert forget_reviews(palace, [], Finder(["nothing of this stands anywhere in it"])) == []
    assert not left.exists()
    assert run.exists()
    assert forget_reviews(palace, [], Finder(["The service deletes it within 30 days."])) == [run]
    damaged = required.run()
    (damaged / "manifest.json").write_text("{}", "utf-8")
    assert forget_reviews(palace, []) == [damaged]
    assert list(runs_folder(palace.root).iterdir()) == []


def test_a_secret_that_is_found_later_takes_the_reviews_of_its_drawer_along(
    required: Required, monkeypatch: pytest.MonkeyPatch
) -> None:
    castle = required.castle
    run = required.run()
    other = castle.add("Boats are painted blue.", wing="boats", room="requirements").id
    required.ids[:] = [other]  # type: ignore[index]
    kept = required.run()
    spans = [SealedSpan(4, 15, "invoice", "abcd")]
    monkeypatch.setattr("castle.text.secrets.DETECTOR_VERSION", 10_000)
    monkeypatch.setattr(
        "castle.store.sealing.find_secrets", lambda text, salt: spans if text.startswith("R1") else []
    )
    redetect(castle._palace())
    assert run_folders(castle.root) == [kept]
    assert not run.exists()


def test_reviews_are_in_a_backup_and_come_back_with_it(required: Required, tmp_path: Path) -> None:
    castle, run = required.castle, required.run()
    work(run, Script(*REVIEW))
    castle.backup(tmp_path / "copy.castle")
    files = {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with Castle(tmp_path / "other", clock=TurnedClock()) as other:
        other.restore_backup(tmp_path / "copy.castle")
        (back,) = run_folders(tmp_path / "other")
        assert {p.relative_to(back): p.read_bytes() for p in back.rglob("*") if p.is_file()} == files
        assert "RESOLVED" in other.sue_report(run.name)
        assert not (tmp_path / "other" / ARCHIVE).exists()


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", f"{'0' * 32}/../../x", f"{'0' * 32}", "x/y", f"{'0' * 32}/a/b/c"]
)
def test_an_archive_can_only_hold_runs(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / ARCHIVE, "w") as out:
        entry = tarfile.TarInfo(name)
        entry.size = 1
        out.addfile(entry, io.BytesIO(b"x"))
    with pytest.raises(PalaceError, match=ARCHIVE):
        unpack(tmp_path / ARCHIVE, tmp_path / "palace")
    assert not pack(tmp_path / "palace", tmp_path / "none")
