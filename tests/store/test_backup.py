"""A backup is one moment of the palace, proven; what comes back from it is that palace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from castle import Castle
from castle.errors import (
    PalaceBusyError,
    PalaceError,
    PalaceNotFoundError,
    PalaceVersionError,
    RefusedError,
    UsageError,
)
from castle.mcp.tools import Tools
from castle.store import backup as backups
from castle.store import restoring
from castle.store.ledger import Ledger
from castle.store.restoring import set_aside
from castle.store.spool import waiting
from tests.store.filer import file

EVENT = '{"v": 1, "at": %d, "hook": "stop", "transcript": "/nowhere/%d.jsonl"}\n'


@pytest.fixture
def castle(tmp_path: Path) -> Iterator[Castle]:
    with Castle(tmp_path / "palace", embedder="fake") as opened:
        for number in range(5):
            opened.add(f"note {number} of the harbour", wing="w", room="r")
        opened.catch_up()
        yield opened


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "copies").mkdir()
    return tmp_path / "copies" / "palace.zip"


def note(root: Path, number: int) -> None:
    """Note an event as a hook does."""
    (root / "spool").mkdir(exist_ok=True)
    with (root / "spool" / "events.jsonl").open("a", encoding="utf-8") as out:
        out.write(EVENT % (number, number))


def texts(castle: Castle) -> list[str]:
    found: list[str] = []
    while page := castle.list_drawers(limit=1000, offset=len(found)).drawers:
        found += [drawer.text for drawer in page]
    return sorted(found)


def sound(castle: Castle) -> bool:
    return {finding.status for finding in castle.verify()} == {"ok"}


def test_a_backup_comes_back_as_the_palace_it_was(castle: Castle, target: Path, tmp_path: Path) -> None:
    note(castle.root, 1)
    castle.settings.home.mkdir(parents=True, exist_ok=True)
    (castle.settings.home / "identity.txt").write_text("I keep the harbour.", encoding="utf-8")
    made = castle.backup(target)
    assert (made.drawers, made.sources, made.events, made.identity) == (5, 5, 1, True)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(zipfile.ZipFile(target).namelist()) == [
        "castle.db",
        "identity.txt",
        "manifest.json",
        "spool/events.jsonl",
    ]
    assert [path.name for path in target.parent.iterdir()] == ["palace.zip"]
    (castle.settings.home / "identity.txt").unlink()
    with Castle(tmp_path / "deep" / "other") as other:
        found = other.restore_backup(target)
        assert (found.drawers, found.events, found.identity, found.aside) == (5, 1, "restored", "")
        assert stat.S_IMODE(other.root.stat().st_mode) == 0o700
        assert stat.S_IMODE((other.root / "castle.db").stat().st_mode) == 0o600
        assert texts(other) == texts(castle)
        assert other.catch_up() == []
        assert sound(other)
        assert waiting(other.root) == 1
        query = "note 3"
        assert [h.id for h in other.search(query).hits] == [h.id for h in castle.search(query).hits]
        assert other._palace().ledger.value("epoch") != castle._palace().ledger.value("epoch")
    identity = castle.settings.home / "identity.txt"
    assert identity.read_text(encoding="utf-8") == "I keep the harbour."
    identity.write_text("I keep the lighthouse.", encoding="utf-8")
    with Castle(tmp_path / "third") as other:
        assert other.restore_backup(target).identity == "kept"
    assert identity.read_text(encoding="utf-8") == "I keep the lighthouse."


def test_vectors_come_back_without_the_model(
    castle: Castle, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from castle.models.fake import FakeEmbedder

    castle.backup(target)

    def never(*_: object) -> None:
        raise AssertionError("the model was asked")

    monkeypatch.setattr(FakeEmbedder, "embed_documents", never)
    with Castle(tmp_path / "other") as other:
        other.restore_backup(target)
        assert other.catch_up() == []
        assert sound(other)


def test_novelty_is_kept_over_a_restore(castle: Castle, target: Path, tmp_path: Path) -> None:
    castle.backfill_novelty()
    castle.backup(target)
    with Castle(tmp_path / "other") as other:
        other.restore_backup(target)
        report = other.backfill_novelty()
        assert (report.scored, report.pending) == (0, 0)


def test_a_backup_while_others_write_is_one_moment(castle: Castle, target: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    errors: list[BaseException] = []

    def write(name: str) -> None:
        ledger = Ledger(castle.root)
        try:
            number = 0
            while not stop.is_set():
                file(ledger, [f"{name} {number}\n", f"{name} {number} again\n"], path=f"{name}-{number}.md")
                number += 1
        except BaseException as error:
            errors.append(error)
        finally:
            ledger.close()

    writers = [threading.Thread(target=write, args=(name,)) for name in ("one", "two")]
    for writer in writers:
        writer.start()
    try:
        for number in range(3):
            made = castle.backup(target, force=True)
            with Castle(tmp_path / f"other{number}", embedder="fake") as other:
                other.restore_backup(target)
                other.catch_up()
                assert sound(other)
                found = texts(other)
                # Two drawers of each file, or none: a copy in the midst of a transaction would have one.
                assert (len(found) - 5) % 2 == 0
                assert len(found) == made.drawers
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert errors == []


def test_an_event_is_in_the_spool_or_in_the_ledger_and_never_in_neither(castle: Castle) -> None:
    """The drainer takes the file away between two looks at it."""
    folder = castle.root / "spool"
    for taken in range(50):
        for number in range(4):
            note(castle.root, 4 * taken + number)
        target = folder / f"drain-{taken:09}.jsonl"
        drainer = threading.Thread(target=(folder / "events.jsonl").rename, args=(target,))
        drainer.start()
        try:
            assert len(backups.spool_lines(castle.root)) == 4 * taken + 4
        finally:
            drainer.join()


def test_a_file_that_exists_is_not_overwritten(castle: Castle, target: Path) -> None:
    target.write_bytes(b"precious")
    with pytest.raises(RefusedError, match="--force"):
        castle.backup(target)
    assert target.read_bytes() == b"precious"
    castle.backup(target, force=True)
    assert zipfile.is_zipfile(target)


def test_a_refusal_takes_away_what_killed_ones_have_left(
    castle: Castle, target: Path, tmp_path: Path
) -> None:
    castle.backup(target)
    export = tmp_path / "tree"
    castle.export(export)
    places = (target, castle.root, export)
    left = [place.with_name(f".{place.name}.0a1b2c3d.draft") for place in places]
    for draft in left:
        draft.mkdir()
        (draft / "lock").touch()
    with pytest.raises(RefusedError):
        castle.backup(target)
    with pytest.raises(RefusedError):
        castle.restore_backup(target)
    with pytest.raises(RefusedError):
        castle.export(export)
    assert not any(draft.exists() for draft in left)


def test_places_that_cannot_be_are_told(castle: Castle, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inside the palace"):
        castle.backup(castle.root / "copy.zip")
    with pytest.raises(UsageError, match="no directory"):
        castle.backup(tmp_path / "nowhere" / "copy.zip")
    with pytest.raises(UsageError, match="is a directory"):
        castle.backup(tmp_path)


def test_a_read_only_palace_can_be_backed_up(
    castle: Castle, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    castle.close()
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert castle.backup(target).drawers == 5


def test_a_full_disk_is_one_line_and_leaves_nothing(
    castle: Castle, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    castle.backup(target)
    before = target.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "writestr", full)
        with pytest.raises(
            PalaceError, match="no backup can be written to .*the disk is full; nothing was changed"
        ):
            castle.backup(target, force=True)
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "see_tree_on_disk", full)
        with Castle(tmp_path / "other") as other, pytest.raises(PalaceError, match="the disk is full"):
            other.restore_backup(target)
    assert target.read_bytes() == before
    assert [path.name for path in target.parent.iterdir()] == ["palace.zip"]
    assert not (tmp_path / "other").exists()
    assert list(tmp_path.glob(".*.draft")) == []


# Without bytecode: that of a module would be cut off, and stay.
LIMITED = """
import resource, sys
sys.dont_write_bytecode = True
from castle.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
main(sys.argv[2:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
@pytest.mark.parametrize("limit", [40_000, 200_000])
def test_no_room_for_the_copy_is_one_line(castle: Castle, target: Path, limit: int) -> None:
    castle.close()
    command = [sys.executable, "-c", LIMITED, str(limit), "--palace", str(castle.root), "backup", str(target)]
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2]
    )
    assert process.returncode == 1
    told = process.stderr.strip()
    assert told.startswith(f"castle: no backup can be written to {target}: ")
    assert "\n" not in told
    assert list(target.parent.iterdir()) == []


def repacked(source: Path, target: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target


def with_manifest(change: Callable[[dict[str, object]], None]) -> Callable[[dict[str, bytes]], None]:
    def apply(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json.dumps(manifest).encode()

    return apply


BAD: dict[str, Callable[[dict[str, bytes]], object]] = {
    "a path out of it": lambda members: members.update({"../../evil": b"x"}),
    "an absolute path": lambda members: members.update({"/tmp/evil": b"x"}),
    "another file": lambda members: members.update({"more.txt": b"x"}),
    "no manifest": lambda members: members.pop("manifest.json"),
    "no ledger": lambda members: members.pop("castle.db"),
    "a manifest of something else": lambda members: members.update({"manifest.json": b'{"a": 1}'}),
    "a manifest that is no JSON": lambda members: members.update({"manifest.json": b"\xff{"}),
    "a manifest that is a list": lambda members: members.update({"manifest.json": b"[]"}),
    "a changed ledger": lambda members: members.update({"castle.db": members["castle.db"][:-1] + b"x"}),
    "a longer ledger": lambda members: members.update({"castle.db": members["castle.db"] + b"x"}),
    "other counts": with_manifest(lambda m: m["counts"].update({"drawers": 6})),  # type: ignore[attr-defined]
    "a time that is none": with_manifest(lambda m: m.update({"created_at": "noon"})),
    "another schema than its ledger's": with_manifest(lambda m: m.update({"schema": 1})),
    "a path out of it, in the manifest": with_manifest(
        lambda m: m["files"].update({"../evil": {"size": 1, "sha256": ""}})  # type: ignore[attr-defined]
    ),
    "sizes that are none": with_manifest(
        lambda m: m["files"].update({"castle.db": {"size": "x", "sha256": 1}})  # type: ignore[attr-defined]
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_an_archive_that_is_not_what_was_written_changes_nothing(
    castle: Castle, target: Path, tmp_path: Path, what: str
) -> None:
    castle.backup(target)
    bad = repacked(target, tmp_path / "bad.zip", BAD[what])
    before = texts(castle)
    with (
        Castle(tmp_path / "other") as other,
        pytest.raises(PalaceError, match=r"bad\.zip .*nothing was changed"),
    ):
        other.restore_backup(bad)
    with pytest.raises(PalaceError, match="nothing was changed"):
        castle.restore_backup(bad, yes=True)
    assert texts(castle) == before
    assert {path.name for path in tmp_path.iterdir()} == {"home", "palace", "copies", "bad.zip"}


@pytest.mark.parametrize("part", [0, 1, 100, 5000, -1, -30])
def test_a_truncated_archive_and_garbage_change_nothing(
    castle: Castle, target: Path, tmp_path: Path, part: int
) -> None:
    castle.backup(target)
    target.write_bytes(target.read_bytes()[:part])
    with Castle(tmp_path / "other") as other, pytest.raises(PalaceError, match="nothing was changed"):
        other.restore_backup(target)
    target.write_bytes(b"\x00garbage" * 1000)
    with Castle(tmp_path / "other") as other, pytest.raises(PalaceError, match="no backup of Castle"):
        other.restore_backup(target)
    assert not (tmp_path / "other").exists()


def test_bytes_changed_anywhere_are_noticed(castle: Castle, target: Path, tmp_path: Path) -> None:
    castle.backup(target)
    whole = target.read_bytes()
    refused = 0
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        target.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with Castle(tmp_path / f"other{place}") as other:
            try:
                other.restore_backup(target)
            except PalaceError:
                refused += 1
                assert not other.root.exists()
            else:  # a byte that says nothing, such as one of a time
                other.catch_up()
                assert texts(other) == texts(castle)
    assert refused > 40


def test_a_ledger_with_a_trigger_is_none_of_ours(castle: Castle, target: Path, tmp_path: Path) -> None:
    with castle._palace().ledger.write() as cx:
        cx.exec_driver_sql("CREATE TRIGGER t AFTER INSERT ON drawers BEGIN DELETE FROM drawers; END")
    with pytest.raises(PalaceError, match="no ledger of Castle"):
        castle.backup(target)


def test_a_backup_of_a_newer_castle_is_refused(castle: Castle, target: Path, tmp_path: Path) -> None:
    castle.backup(target)
    newer = repacked(target, tmp_path / "newer.zip", with_manifest(lambda m: m.update({"schema": 999})))
    with Castle(tmp_path / "other") as other, pytest.raises(PalaceVersionError, match="pip install"):
        other.restore_backup(newer)
    newest = repacked(
        target, tmp_path / "newest.zip", with_manifest(lambda m: m.update({"castle_backup": 2}))
    )
    with Castle(tmp_path / "other") as other, pytest.raises(PalaceError, match="newer Castle"):
        other.restore_backup(newest)
    assert not (tmp_path / "other").exists()


def test_a_palace_in_the_way_is_moved_aside_only_when_asked(
    castle: Castle, target: Path, tmp_path: Path
) -> None:
    castle.backup(target)
    castle.add("filed after the backup", wing="w", room="r")
    note(castle.root, 7)
    with pytest.raises(RefusedError, match="--yes"):
        castle.restore_backup(target)
    assert "filed after the backup" in texts(castle)
    found = castle.restore_backup(target, yes=True)
    assert found.events == 1  # noted after the backup, and not filed by the former palace
    assert len(texts(castle)) == 5
    castle.catch_up()
    assert sound(castle)
    assert [str(path) for path in set_aside(castle.root)] == [found.aside]
    with Castle(found.aside) as former:
        assert "filed after the backup" in texts(former)
        assert sound(former)
    again = castle.restore_backup(target, yes=True)
    assert again.removed == found.aside
    assert [str(path) for path in set_aside(castle.root)] == [again.aside]


def test_what_is_no_palace_is_never_moved(castle: Castle, target: Path, tmp_path: Path) -> None:
    castle.backup(target)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("dear", encoding="utf-8")
    with Castle(tmp_path / "letters") as other, pytest.raises(RefusedError, match="is no palace"):
        other.restore_backup(target, yes=True)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with Castle(tmp_path / "file") as other, pytest.raises(RefusedError, match="is no palace"):
        other.restore_backup(target, yes=True)
    assert (tmp_path / "letters" / "a.txt").read_text(encoding="utf-8") == "dear"


def test_an_empty_directory_and_a_damaged_palace_are_restored_to(
    castle: Castle, target: Path, tmp_path: Path
) -> None:
    castle.backup(target)
    (tmp_path / "empty").mkdir()
    with Castle(tmp_path / "empty") as other:
        other.restore_backup(target)
        assert len(texts(other)) == 5
    castle.close()
    (castle.root / "castle.db").write_bytes(b"no database" * 1000)
    (castle.root / "castle.db-wal").unlink(missing_ok=True)
    castle.restore_backup(target, yes=True)
    assert len(texts(castle)) == 5


def test_a_writer_in_the_middle_of_a_change_is_waited_for(
    castle: Castle, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    castle.backup(target)
    monkeypatch.setattr(restoring, "PATIENCE_SECONDS", 0.2)
    writer = Ledger(castle.root)
    with writer.write(), pytest.raises(PalaceBusyError, match="nothing was"):
        castle.restore_backup(target, yes=True)
    writer.close()
    assert set_aside(castle.root) == []
    assert len(texts(castle)) == 5


def test_who_had_the_former_palace_open_does_no_harm_to_the_new_one(castle: Castle, target: Path) -> None:
    castle.backup(target)
    stale = Ledger(castle.root)
    with stale.write() as cx:  # a connection that stays open, with changes in its WAL
        cx.exec_driver_sql("INSERT INTO meta VALUES ('stale', 'yes')")
    castle.restore_backup(target, yes=True)
    castle.add("filed in the new one", wing="w", room="r")
    assert (castle.root / "castle.db-wal").stat().st_size > 0
    for use in (stale.read, stale.write):
        with pytest.raises(PalaceError, match="moved away or replaced"), use():
            pass
    stale.close()
    assert "filed in the new one" in texts(castle)
    castle.catch_up()
    assert sound(castle)
    with closing(sqlite3.connect(castle.root / "castle.db")) as fresh:
        assert fresh.execute("SELECT count(*) FROM drawers").fetchone() == (6,)


def test_a_server_notices_at_its_next_call(castle: Castle, target: Path) -> None:
    castle.backup(target)
    castle.add("only in the former one", wing="w", room="r")
    tools = Tools(str(castle.root))
    assert "only in the former one" in str(tools.search(query="only in the former one"))
    castle.restore_backup(target, yes=True)
    castle.catch_up()
    assert "only in the former one" not in str(tools.search(query="former one", mode="fast"))
    assert "note 3" in str(tools.search(query="note 3", mode="fast"))
    with pytest.raises(ToolError):
        tools.get_drawer(drawer_id="0" * 24)


HALTS = """
import sys, time
from pathlib import Path
import {module} as module
was = module.{name}
def halts(*arguments, **options):
    if not {when}:
        return was(*arguments, **options)
    print("halfway", flush=True)
    time.sleep(600)
module.{name} = halts
from castle.cli import main
main(sys.argv[1:])
"""
BETWEEN = ("pathlib", "Path.rename", "arguments[0].name == 'work'")
"""Where a restore is that has moved the palace aside and has not yet put the other one there."""


def halted(module: str, name: str, *arguments: str, when: str = "True") -> subprocess.Popen[str]:
    """Run a command until it comes to a function."""
    process = subprocess.Popen(
        [sys.executable, "-c", HALTS.format(module=module, name=name, when=when), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "halfway\n"
    return process


def killed(module: str, name: str, *arguments: str, when: str = "True") -> None:
    """Run a command and kill it where it comes to a function."""
    process = halted(module, name, *arguments, when=when)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
@pytest.mark.parametrize("point", ["check_ledger", "_archive", "_prove"])
def test_a_killed_backup_leaves_the_one_before(castle: Castle, target: Path, point: str) -> None:
    castle.backup(target)
    before = target.read_bytes()
    arguments = ("--palace", str(castle.root), "backup", str(target), "--force")
    killed("castle.store.backup", point, *arguments)
    assert target.read_bytes() == before
    assert len(list(target.parent.glob(".*.draft"))) == 1
    castle.backup(target, force=True)
    assert [path.name for path in target.parent.iterdir()] == ["palace.zip"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
@pytest.mark.parametrize(
    "point", ["check_ledger", "begin_epoch", "_put_in_place", "_events_too", "_only_one"]
)
def test_a_killed_restore_leaves_one_palace_or_the_other(
    castle: Castle, target: Path, tmp_path: Path, point: str
) -> None:
    castle.backup(target)
    castle.add("filed after the backup", wing="w", room="r")
    castle.close()
    arguments = ("--palace", str(castle.root), "restore", "--from", str(target), "--yes")
    killed("castle.store.restoring", point, *arguments)
    done = point in ("_events_too", "_only_one")
    assert ("filed after the backup" in texts(castle)) != done
    castle.close()
    castle.restore_backup(target, yes=True)
    castle.catch_up()
    assert sound(castle)
    assert len(texts(castle)) == 5
    assert list(tmp_path.glob(".*.draft")) == []
    assert len(set_aside(castle.root)) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
@pytest.mark.parametrize("whole", [True, False])
def test_a_restore_that_was_killed_between_its_steps_is_finished_by_the_next_command(
    castle: Castle, target: Path, whole: bool
) -> None:
    castle.backup(target)
    castle.add("filed after the backup", wing="w", room="r")
    note(castle.root, 7)
    castle.close()
    module, name, when = BETWEEN
    arguments = ("--palace", str(castle.root), "restore", "--from", str(target), "--yes")
    killed(module, name, *arguments, when=when)
    assert not castle.root.exists()
    (aside,) = set_aside(castle.root)
    (draft,) = castle.root.parent.glob(".*.draft")
    if not whole:
        shutil.rmtree(draft / "work")
    note(aside, 8)  # a hook that began before
    # Even a command that may make a palace makes no empty one there.
    castle.add("filed after the kill", wing="w", room="r")
    assert ("filed after the backup" in texts(castle)) != whole
    assert len(texts(castle)) == (6 if whole else 7)
    assert waiting(castle.root) == 2
    castle.catch_up()
    assert sound(castle)
    assert not draft.exists()
    assert set_aside(castle.root) == ([aside] if whole else [])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_who_finishes_a_restore_and_is_killed_too_loses_no_event(
    castle: Castle, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    castle.backup(target)
    castle.close()
    module, name, when = BETWEEN
    arguments = ("--palace", str(castle.root), "restore", "--from", str(target), "--yes")
    killed(module, name, *arguments, when=when)
    (aside,) = set_aside(castle.root)
    note(aside, 8)

    def halfway(path: Path) -> None:
        if castle.root.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(restoring, "see_on_disk", halfway)
        with pytest.raises(KeyboardInterrupt):
            castle.status()
    assert castle.status().spool_events == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_a_restore_between_its_steps_is_waited_for(
    castle: Castle, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    castle.backup(target)
    castle.close()
    module, name, when = BETWEEN
    arguments = ("--palace", str(castle.root), "restore", "--from", str(target), "--yes")
    process = halted(module, name, *arguments, when=when)
    monkeypatch.setattr(restoring, "PATIENCE_SECONDS", 0.1)
    with pytest.raises(PalaceBusyError, match="a restore of .* is at work"):
        castle.status()
    process.kill()
    process.communicate(timeout=60)
    assert castle.status().drawers == 5


def test_a_palace_that_was_deleted_does_not_come_back(castle: Castle, target: Path) -> None:
    castle.backup(target)
    castle.restore_backup(target, yes=True)
    castle.close()
    shutil.rmtree(castle.root)
    with pytest.raises(PalaceNotFoundError):
        castle.status()
    assert len(set_aside(castle.root)) == 1


def test_only_what_a_restore_has_moved_aside_is_taken_for_it(castle: Castle, target: Path) -> None:
    own = castle.root.with_name("palace.before-restore-notes")
    own.mkdir()
    later = castle.root.with_name("palace.before-restore-29990101T000000Z")
    later.mkdir()  # moved aside before the clock went back
    castle.backup(target)
    found = castle.restore_backup(target, yes=True)
    assert found.removed == str(later)
    assert [str(path) for path in set_aside(castle.root)] == [found.aside]
    assert own.exists()
