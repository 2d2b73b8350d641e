"""Checks of the palace: each can fail, and says what helps."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from sqlalchemy import update

from castle import Castle
from castle.clients.connect import connect
from castle.clients.servers import Server
from castle.clients.table import client, places
from castle.doctor import palace
from castle.store import receipts
from castle.store.ledger import set_value
from castle.store.redetect import FOUND_KEY
from castle.store.schema import drawers
from castle.store.spool import tell_failure
from tests.conftest import TurnedClock
from tests.doctor.conftest import looked


def test_a_whole_palace_is_in_force(castle: Castle) -> None:
    for check in (
        palace.palace,
        palace.writes,
        palace.permissions,
        palace.words,
        palace.vectors,
        palace.secrets,
        palace.disk,
    ):
        found = looked(castle, check)
        assert (check.__name__, found.status) == (check.__name__, "ok"), found
    assert "drawers" in looked(castle, palace.palace).detail


def test_no_palace(tmp_path: Path) -> None:
    found = looked(Castle(tmp_path / "none"), palace.palace)
    assert found.status == "failed"
    assert "castle init" in found.help
    assert not (tmp_path / "none").exists()


def test_a_damaged_ledger(castle: Castle) -> None:
    root = castle.root
    castle.close()
    file = root / "castle.db"
    data = bytearray(file.read_bytes())
    for page in range(6, len(data) // 4096):
        data[page * 4096 : page * 4096 + 600] = b"\xff" * 600
    file.write_bytes(data)
    found = looked(Castle(root), palace.palace)
    assert found.status == "failed"
    assert "castle verify" in found.help
    file.write_bytes(b"this is no database at all" * 500)
    found = looked(Castle(root), palace.palace)
    assert found.status == "failed"
    assert "castle.db" in found.detail


def test_a_newer_schema(castle: Castle) -> None:
    with castle._palace().ledger.write() as cx:
        set_value(cx, "schema_version", "99")
    castle.close()
    found = looked(castle, palace.palace)
    assert found.status == "failed"
    assert "99" in found.detail
    assert "pip install -U" in found.help


def test_a_palace_that_cannot_be_written(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(castle._palace().ledger, "read_only", True)
    found = looked(castle, palace.writes)
    assert found.status == "failed"
    assert "read-only" in found.detail


def test_a_writer_that_does_not_end(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palace, "PATIENCE_SECONDS", 0.1)
    with Castle(castle.root) as other, other._palace().ledger.write():
        found = looked(castle, palace.writes)
    assert found.status == "failed"
    assert "another process" in found.detail
    assert looked(castle, palace.writes).status == "ok"


def test_others_may_read(castle: Castle) -> None:
    ledger = castle.root / "castle.db"
    looked(castle, palace.palace)
    ledger.chmod(0o644)
    found = looked(castle, palace.permissions)
    assert found.status == "failed"
    assert "castle.db (0644)" in found.detail
    assert found.help == f"chmod -R go-rwx {castle.root}"
    ledger.chmod(0o600)
    castle.root.chmod(0o755)
    assert "0755" in looked(castle, palace.permissions).detail
    castle.root.chmod(0o700)
    assert looked(castle, palace.permissions).status == "ok"


def test_an_index_that_is_behind(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palace, "CATCH_UP_SECONDS", 0.0)
    with castle._palace().ledger.write() as cx:
        from castle.store.drawer_rows import touch

        rids = [rid for (rid,) in cx.execute(drawers.select().with_only_columns(drawers.c.rid).limit(2))]
        touch(cx, rids, room="elsewhere")
    for check in (palace.words, palace.vectors):
        found = looked(castle, check)
        assert found.status == "failed"
        assert "2 changes" in found.detail
        assert found.help == "castle repair"
    monkeypatch.setattr(palace, "CATCH_UP_SECONDS", 60.0)
    assert looked(castle, palace.words).status == looked(castle, palace.vectors).status == "ok"


@pytest.mark.parametrize(("folder", "name"), [("lexicon", "words"), ("drawers.lance", "vectors")])
def test_an_index_that_is_missing(castle: Castle, folder: str, name: str) -> None:
    castle.close()
    shutil.rmtree(castle.root / folder)
    found = looked(castle, getattr(palace, name))
    assert found.status == "failed"
    assert "missing" in found.detail


def test_drawers_of_older_rules(castle: Castle) -> None:
    with castle._palace().ledger.write() as cx:
        cx.execute(update(drawers).values(detector_version=0))
    found = looked(castle, palace.secrets)
    assert found.status == "failed"
    assert "older rules" in found.detail
    castle.repair()
    assert looked(castle, palace.secrets).status == "ok"
    with castle._palace().ledger.write() as cx:
        set_value(cx, FOUND_KEY, "9")
    assert looked(castle, palace.secrets).status == "failed"
    castle.repair()
    assert looked(castle, palace.secrets).status == "ok"


def receipt(clock: TurnedClock, state: receipts.State, session: str = "s1") -> receipts.Receipt:
    return receipts.Receipt(
        0, clock(), "codex", "stop", session, f"/t/{session}", 4, 2, "d", state, "the disk"
    )


def test_saves(castle: Castle, clock: TurnedClock, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = looked(castle, palace.receipts)
    assert (found.status, found.detail[:10]) == ("not checked", "not in use")
    assert found.help == "castle connect AGENT"
    connect(client("codex"), Server("castle-mcp"), places(own_home, {}), hook_program="castle-hook")
    assert "begin a session" in looked(castle, palace.receipts).help
    ledger = castle._palace().ledger
    with ledger.write() as cx:
        receipts.record(cx, receipt(clock, "ok"))
    found = looked(castle, palace.receipts)
    assert found.status == "ok"
    assert "2 of 4 entries stored, 2 withheld (private)" in found.detail
    with ledger.write() as cx:
        receipts.record(cx, receipt(clock, "failed", "s2"))
    found = looked(castle, palace.receipts)
    assert found.status == "failed"
    assert "the disk" in found.detail
    assert "castle receipts --dismiss 2" in found.help
    monkeypatch.setattr(Path, "exists", lambda self: True)
    assert "castle receipts --failed" in looked(castle, palace.receipts).help
    with ledger.write() as cx:
        receipts.record(cx, receipt(clock, "ok", "s2"))
    assert looked(castle, palace.receipts).status == "ok"


def test_events_that_wait(castle: Castle, clock: TurnedClock) -> None:
    assert looked(castle, palace.spool).detail.startswith("not in use")
    folder = castle.root / "spool"
    folder.mkdir()
    assert looked(castle, palace.spool).status == "ok"
    (folder / "events.jsonl").write_text(
        f'{{"at": {clock.now}, "transcript": "/t.jsonl"}}\n', encoding="utf-8"
    )
    assert looked(castle, palace.spool).status == "ok"
    clock.now += 5 * palace.LONG_WAIT
    found = looked(castle, palace.spool)
    assert found.status == "failed"
    assert "5 hours" in found.detail
    assert found.help == "castle sweep"
    (folder / "drainer.lock").write_text(f"{os.getpid()}\n", encoding="utf-8")
    found = looked(castle, palace.spool)
    assert found.status == "ok"
    assert f"a drainer is at work on them (process {os.getpid()})" in found.detail


def test_what_is_in_the_way_of_the_spool(castle: Castle) -> None:
    (castle.root / "spool").write_bytes(b"")
    found = looked(castle, palace.spool)
    assert found.status == "failed"
    assert "spool is no directory" in found.detail
    assert found.help == "move that away, then castle sweep"


def test_a_drainer_that_failed(castle: Castle, clock: TurnedClock) -> None:
    (castle.root / "spool").mkdir()
    tell_failure(castle.root, clock(), "", "", "the drainer failed: by chance")
    found = looked(castle, palace.receipts)
    assert found.status == "failed"
    assert "the drainer failed: by chance" in found.detail
    assert found.help.startswith("castle sweep")
    castle.drain_spool()
    assert looked(castle, palace.receipts).status != "failed"


def test_a_full_disk(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palace, "LEAST_FREE", 1 << 62)
    assert looked(castle, palace.disk).status == "failed"


def test_a_large_ledger_is_not_proven(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palace, "PROVEN_BYTES", 10)
    found = looked(castle, palace.palace)
    assert found.status == "ok"
    assert "castle verify" in found.detail


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_a_palace_of_another_user(castle: Castle) -> None:
    looked(castle, palace.palace)
    os.chown(castle.root, 12345, 12345)
    found = looked(castle, palace.permissions)
    assert found.status == "failed"
    assert "another user" in found.detail
