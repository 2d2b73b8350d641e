"""What becomes of noted events: what is saved, what is left out, and what the receipts say of it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from castle import Castle
from castle.errors import NotFoundError, PalaceBusyError, PalaceError, UsageError
from castle.hooks import spool as hook_spool
from castle.mine import spool as mine_spool
from castle.mine.formats import recall_block
from castle.mine.receipts import compare
from castle.mine.spool import GIVE_UP_AFTER, QUIET_AFTER
from castle.store import spool as store_spool
from castle.store.backup import spool_lines
from castle.store.locks import FileLock
from castle.store.receipts import Receipt
from castle.store.spool import LOCK, RESERVED, pending, waiting
from tests.conftest import TurnedClock
from tests.mine.test_convos import EXPORTS, line, talk

START = 1_800_000_000_000_000


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock(START)


@pytest.fixture
def castle(tmp_path: Path, clock: TurnedClock) -> Castle:
    return Castle(tmp_path / "palace", embedder="fake", clock=clock)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project under version control."""
    root = tmp_path / "work" / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "web").mkdir()
    return root


def write(tmp_path: Path, lines: list[str], name: str = "s1") -> Path:
    path = tmp_path / "claude" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def note(castle: Castle, path: Path, hook: str = "stop", **more: object) -> None:
    folder = castle.root / "spool"
    folder.mkdir(parents=True, exist_ok=True)
    event = {"v": 1, "at": START, "hook": hook, "harness": "claude-code", "session": "s1"}
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**event, "transcript": str(path), **more}) + "\n")


def last(castle: Castle) -> Receipt:
    return castle.receipts(limit=1).receipts[0]


def word(castle: Castle) -> dict[str, Any]:
    """What the beginning of the next session reads."""
    return dict(hook_spool.failed(str(castle.root)))


def test_a_save_leaves_a_receipt(castle: Castle, tmp_path: Path) -> None:
    path = write(tmp_path, talk(4))
    note(castle, path, "session-start")
    note(castle, path)
    castle.drain_spool()
    first = last(castle)
    assert (first.harness, first.hook, first.session) == ("claude-code", "stop", "s1")
    assert (first.entries, first.stored, first.new, first.state, first.detail) == (4, 4, 4, "ok", "")
    assert first.transcript == str(path)
    path.write_text("".join(talk(6)), encoding="utf-8")
    note(castle, path, "session-end")
    castle.drain_spool()
    second = last(castle)
    assert (second.hook, second.entries, second.stored, second.new) == ("session-end", 6, 6, 2)
    assert second.digest != first.digest
    note(castle, path, "session-end")
    castle.drain_spool()
    assert (last(castle).digest, last(castle).new) == (second.digest, 2)
    assert castle.receipts().total == 2


@pytest.mark.parametrize("hook", ["session-start", "user-prompt-submit", "stop"])
def test_an_event_without_anything_new_only_renews_the_last_receipt(
    castle: Castle, tmp_path: Path, clock: TurnedClock, hook: str
) -> None:
    path = write(tmp_path, talk(4))
    note(castle, path)
    castle.drain_spool()
    first = last(castle)
    clock.now += 5_000_000
    note(castle, path, hook)
    castle.drain_spool()
    (only,) = castle.receipts().receipts
    assert only == replace(first, at=only.at)
    assert only.at > first.at
    path.unlink()
    note(castle, path)
    castle.drain_spool()
    write(tmp_path, talk(4))
    castle.drain_spool()
    assert [one.state for one in castle.receipts().receipts] == ["ok", "failed", "ok"]


def test_a_transcript_that_is_gone_can_be_dismissed(castle: Castle, tmp_path: Path) -> None:
    note(castle, tmp_path / "gone.jsonl", session="lost")
    note(castle, tmp_path / "kept.jsonl", session="other")
    castle.drain_spool()
    with pytest.raises(NotFoundError, match="no save of 'nobody' is open"):
        castle.dismiss_save("nobody")
    (done,) = castle.dismiss_save("lo")
    assert done.gone
    assert (done.receipt.session, done.receipt.detail) == ("lost", "missing")
    assert word(castle)["session"] == "other"
    assert castle.drain_spool().events == 1
    assert castle.receipts().failing == 1
    assert castle.receipts(session="lost").receipts[0].detail == "missing; dismissed"
    (done,) = castle.dismiss_save(str(castle.receipts(session="other").receipts[0].id))
    assert (waiting(castle.root), word(castle), castle.last_failed_save()) == (0, {}, None)
    note(castle, tmp_path / "gone.jsonl", session="lost")
    castle.drain_spool()
    assert castle.receipts().failing == 1


def test_dismissing_takes_back_no_other_word(castle: Castle, tmp_path: Path) -> None:
    note(castle, tmp_path / "gone.jsonl")
    castle.drain_spool()
    store_spool.tell_failure(castle.root, 5, "", "", "the drainer failed")
    with (castle.root / "spool" / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write("no event\n")
    castle.dismiss_save("s1")
    assert word(castle)["detail"] == "the drainer failed"
    assert [skip.path for skip in castle.drain_spool().skipped] == ["spool/unreadable.jsonl"]


def test_dismissing_lets_nothing_go_that_can_still_be_saved(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "claude" / "s1.jsonl"
    note(castle, path)
    note(castle, tmp_path / "b.jsonl", session="s2")
    castle.drain_spool()
    write(tmp_path, talk(2))
    with pytest.raises(UsageError, match="several sessions begin with s: s1, s2"):
        castle.dismiss_save("s")
    (done,) = castle.dismiss_save("s1")
    assert not done.gone
    assert castle.drain_spool().messages_new == 2
    folder = castle.root / "spool"
    with FileLock(folder / LOCK) as held, pytest.raises(PalaceBusyError, match="try again in a moment"):
        assert held
        castle.dismiss_save("s2")
    assert castle.receipts().failing == 1


def test_sessions_do_not_begin_with_what_is_long_gone_while_others_are_saved(
    castle: Castle, tmp_path: Path, clock: TurnedClock
) -> None:
    note(castle, tmp_path / "gone.jsonl", session="lost")
    castle.drain_spool()
    clock.now += QUIET_AFTER + 10_000_000
    castle.drain_spool()
    assert word(castle)["session"] == "lost", "nothing was saved since"
    note(castle, write(tmp_path, talk(2)), at=clock.now)
    castle.drain_spool()
    assert word(castle) == {}
    failure = castle.last_failed_save()
    assert failure is not None and failure.session == "lost"
    note(castle, tmp_path / "new.jsonl", session="s3", at=clock.now)
    castle.drain_spool()
    assert word(castle)["session"] == "s3"


def test_the_digest_depends_on_what_was_said(castle: Castle, tmp_path: Path) -> None:
    for name, text in (("s1", "yes"), ("s2", "no"), ("s3", "yes")):
        note(castle, write(tmp_path, [line(0, text, session="one")], name))
        castle.drain_spool()
    found = [receipt.digest for receipt in castle.receipts().receipts]
    assert found[0] == found[2] != found[1]


def test_what_is_not_stored_is_counted_and_said(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, talk(4))
    note(castle, path)
    real = Castle.mine_conversations

    def lossy(self: Castle, source: Path, **options: Any) -> Any:
        report = real(self, source, **options)
        with self._palace().ledger.write() as cx:
            cx.exec_driver_sql("UPDATE messages SET sha256 = x'00' WHERE id = 'u2'")
        return report

    with monkeypatch.context() as patch:
        patch.setattr(Castle, "mine_conversations", lossy)
        report = castle.drain_spool()
    assert (report.failed, report.kept, report.incomplete) == (1, 1, True)
    found = last(castle)
    assert (found.state, found.entries, found.stored) == ("failed", 4, 3)
    assert found.detail == "1 of its entries are not stored"
    assert castle.last_failed_save() == found
    assert word(castle)["detail"] == found.detail


def test_drawers_that_are_gone_are_noticed(castle: Castle, tmp_path: Path) -> None:
    path = write(tmp_path, talk(4))
    note(castle, path)
    castle.drain_spool()
    with castle._palace().ledger.write() as cx:
        cx.exec_driver_sql("UPDATE drawers SET message_id = 'other' WHERE message_id = 'u1'")
    note(castle, path)
    castle.drain_spool()
    assert (last(castle).state, last(castle).stored) == ("failed", 3)


def test_a_transcript_that_grows_meanwhile_is_saved_again(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, talk(4))
    note(castle, path)
    real = compare

    def late(*arguments: Any) -> Any:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(talk(5)[4:])
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(mine_spool, "compare", late)
        report = castle.drain_spool()
    assert (last(castle).state, last(castle).entries, last(castle).stored) == ("waiting", 5, 4)
    assert (report.kept, report.failed, word(castle)) == (1, 0, {})
    castle.drain_spool()
    newest, oldest = castle.receipts().receipts
    assert (newest.state, newest.stored, oldest.state) == ("ok", 5, "waiting")
    assert oldest.settled_at == newest.at
    assert castle.receipts(failed=True).failing == 0


def test_a_failure_is_settled_by_a_later_save_of_the_same_session(castle: Castle, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere.jsonl"
    note(castle, moved)
    for _ in range(3):
        castle.drain_spool()
    assert (castle.receipts().total, castle.receipts().failing) == (1, 1)
    assert word(castle)["detail"] == "missing"
    note(castle, write(tmp_path, talk(2)))
    castle.drain_spool()
    assert castle.receipts(session="s1").failing == 0
    assert word(castle) == {}
    moved.write_text("".join(talk(2)), encoding="utf-8")
    castle.drain_spool()
    assert castle.receipts().failing == 0
    assert castle.last_failed_save() is None
    assert word(castle) == {}


def test_what_is_let_go_is_not_complained_of_for_ever(castle: Castle, tmp_path: Path) -> None:
    note(castle, tmp_path / "never.jsonl", at=START - GIVE_UP_AFTER - 10_000_000)
    castle.drain_spool()
    found = last(castle)
    assert found.state == "failed"
    assert "let go" in found.detail
    assert found.settled_at is not None
    assert word(castle) == {}


def test_what_is_no_conversation_is_a_failed_save(castle: Castle, tmp_path: Path) -> None:
    path = write(tmp_path, ['{"some": "settings"}\n'])
    note(castle, path, "session-end")
    castle.drain_spool()
    assert last(castle).state == "ok"
    note(castle, path)
    report = castle.drain_spool()
    assert (report.kept, report.failed) == (0, 1)
    assert last(castle).detail == "no conversation is recognised in it"
    assert word(castle)["detail"] == last(castle).detail


def test_records_that_cannot_be_read_are_said(castle: Castle, tmp_path: Path) -> None:
    note(castle, write(tmp_path, [*talk(2), "{broken\n", *talk(3)[2:]]))
    castle.drain_spool()
    found = last(castle)
    assert (found.state, found.entries, found.stored) == ("ok", 3, 3)
    assert found.detail == "1 of its records cannot be read"


def test_a_fault_with_one_transcript_holds_up_no_other(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = write(tmp_path, talk(2), "bad"), write(tmp_path, talk(2))
    note(castle, bad, session="bad")
    note(castle, good)
    real = Castle.mine_conversations

    def faulty(self: Castle, path: Path, **options: Any) -> Any:
        if path == bad:
            raise ZeroDivisionError("by chance")
        return real(self, path, **options)

    monkeypatch.setattr(Castle, "mine_conversations", faulty)
    report = castle.drain_spool()
    assert (report.messages_new, report.kept, report.failed) == (2, 1, 1)
    failure = castle.last_failed_save()
    assert failure is not None
    assert (failure.session, failure.detail) == ("bad", "ZeroDivisionError: by chance")


def test_a_full_disk_is_told_without_the_ledger(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, talk(2))
    note(castle, path)
    castle.drain_spool()
    path.write_text("".join(talk(4)), encoding="utf-8")
    note(castle, path)
    ledger = type(castle._palace().ledger)

    def full(*_: object, **__: object) -> Any:
        raise PalaceError("castle.db cannot be used: the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "write", full)
        report = castle.drain_spool()
    assert (report.kept, waiting(castle.root)) == (1, 1)
    assert (castle.receipts(failed=True).total, castle.last_failed_save()) == (0, castle.status().failed_save)
    assert word(castle)["detail"] == "castle.db cannot be used: the disk is full"
    assert word(castle)["transcript"] == str(path)
    castle.drain_spool()
    assert (last(castle).state, last(castle).stored, word(castle)) == ("ok", 4, {})


def test_word_of_a_failure_is_left_even_where_no_new_file_can_be_made(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(castle, tmp_path / "a.jsonl")
    castle.drain_spool()
    real = Path.replace

    def full(self: Path, target: Path) -> Path:
        if self.name == "failed.json.tmp":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", full)
    note(castle, tmp_path / "b.jsonl", session="s2")
    castle.drain_spool()
    assert word(castle)["transcript"] == str(tmp_path / "b.jsonl")


def unnoted(castle: Castle, path: Path, session: str = "s1") -> None:
    """What a hook does when the spool has no room."""
    event = {"v": 1, "at": START, "hook": "stop", "harness": "codex", "session": session}
    hook_spool.note_unnoted(str(castle.root), {**event, "transcript": str(path)}, "no space left")


def test_events_without_room_in_the_spool_are_filed_later(castle: Castle, tmp_path: Path) -> None:
    castle.mine_conversations(write(tmp_path, talk(2)))
    (castle.root / "spool").mkdir(parents=True)
    for number in range(3):
        unnoted(castle, write(tmp_path, [line(0, "yes", session=f"s{number}")], f"s{number}"), f"s{number}")
    assert word(castle)["detail"] == "no space left"
    failure = castle.last_failed_save()
    assert failure is not None
    assert (failure.id, failure.detail, castle.status().failed_save) == (0, "no space left", failure)
    assert (pending(castle.root), waiting(castle.root), castle.status().spool_events) == (True, 3, 3)
    report = castle.drain_spool()
    assert (report.messages_new, castle.receipts().total, word(castle)) == (3, 3, {})
    assert (pending(castle.root), waiting(castle.root)) == (False, 0)
    assert castle.drain_spool().events == 0


def test_what_finds_no_room_in_the_reserve_is_counted(castle: Castle, tmp_path: Path) -> None:
    folder = castle.root / "spool"
    folder.mkdir(parents=True)
    for number in range(3):
        unnoted(castle, tmp_path / f"{number}{'a' * 30_000}.jsonl")
    assert word(castle)["detail"] == "no space left; it is lost"
    assert (folder / "reserve.jsonl").stat().st_size == RESERVED
    report = castle.drain_spool()
    assert (report.events, report.failed) == (2, 3)
    details = [receipt.detail for receipt in castle.receipts(failed=True).receipts]
    assert "1 event of hooks found no room: `castle mine DIR` files the transcripts" in details
    assert not (folder / "unreadable.jsonl").exists()


def test_the_reserve_has_its_place_on_disk_before_it_is_needed(castle: Castle, tmp_path: Path) -> None:
    path = write(tmp_path, talk(2))
    note(castle, path)
    castle.drain_spool()
    reserve = castle.root / "spool" / "reserve.jsonl"
    assert reserve.read_bytes() == b"\n" * RESERVED
    unnoted(castle, path)
    assert (reserve.stat().st_size, waiting(castle.root)) == (RESERVED, 1)
    assert castle.drain_spool().events == 1
    assert reserve.read_bytes() == b"\n" * RESERVED


def test_eight_hooks_at_once_find_room_in_the_reserve(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_spool, "TRIES", 5_000)  # eight times the disk is waited for
    (castle.root / "spool").mkdir(parents=True)
    threads = [
        threading.Thread(target=unnoted, args=(castle, tmp_path / f"{n}.jsonl", f"s{n}")) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert castle.drain_spool().events == 8


def test_a_backup_holds_what_waits_in_the_reserve(castle: Castle, tmp_path: Path) -> None:
    castle.mine_conversations(write(tmp_path, talk(2)))
    (castle.root / "spool").mkdir()
    unnoted(castle, tmp_path / "a.jsonl")
    assert len(spool_lines(castle.root)) == 1


@pytest.mark.parametrize("name", ["", "events.jsonl", "drain-1.jsonl", "reserve.jsonl"])
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, os.mkfifo])
def test_what_is_in_the_way_of_the_spool_is_said(
    castle: Castle, tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    castle.mine_conversations(write(tmp_path, talk(2)))
    if name:
        (castle.root / "spool").mkdir()
    make(castle.root / "spool" / name)
    found = castle.status().spool_trouble
    wanted = make is not (Path.touch if name else Path.mkdir)
    assert found.startswith(str(castle.root / "spool" / name)) == wanted
    assert bool(found) == wanted
    report = castle.drain_spool()
    assert [skip.reason for skip in report.skipped] == [found] * wanted
    assert not pending(castle.root)


def test_the_transcripts_of_subagents_are_saved_with_their_session(castle: Castle, tmp_path: Path) -> None:
    source = EXPORTS / "claude_code" / "codemie" / "incremental-subagents" / "turn-2.jsonl"
    path = write(tmp_path, [source.read_text(encoding="utf-8")])
    note(castle, path)
    castle.drain_spool()
    alone = last(castle)
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    agent = source.with_suffix("") / "subagents" / "agent-a485154.jsonl"
    (folder / agent.name).write_bytes(agent.read_bytes())
    note(castle, path)
    castle.drain_spool()
    assert last(castle).new == last(castle).entries - alone.entries > 0
    assert last(castle).stored == last(castle).entries


@pytest.mark.parametrize("pattern", ["*", "/", "# all of it\n*\n", "/**", "secret.txt\n*\n!README.md\n"])
def test_a_project_that_ignores_everything_is_not_captured(
    castle: Castle, tmp_path: Path, project: Path, pattern: str
) -> None:
    (project / ".castleignore").write_text(pattern, encoding="utf-8")
    note(castle, write(tmp_path, talk(2)), cwd=str(project / "web"))
    report = castle.drain_spool()
    assert (report.messages_new, report.kept, report.failed) == (0, 0, 0)
    assert [skip.reason for skip in report.ignored] == ["ignored: opted out"]
    found = last(castle)
    assert (found.state, found.entries, found.stored) == ("ok", 0, 0)
    assert found.detail.startswith(f"opted out: {project / '.castleignore'}:")
    assert castle.sessions().total == 0


@pytest.mark.parametrize("pattern", ["", "*.log", "web/", "*\n!*\n", "docs/*"])
def test_a_project_that_ignores_only_some_files_is_captured(
    castle: Castle, tmp_path: Path, project: Path, pattern: str
) -> None:
    (project / ".castleignore").write_text(pattern, encoding="utf-8")
    note(castle, write(tmp_path, talk(2)), cwd=str(project))
    assert castle.drain_spool().messages_new == 2


def test_the_nearest_word_counts_as_far_as_the_repository_reaches(
    castle: Castle, tmp_path: Path, project: Path
) -> None:
    (project.parent / ".castleignore").write_text("*", encoding="utf-8")
    note(castle, write(tmp_path, talk(2)), cwd=str(project / "web"))
    assert castle.drain_spool().messages_new == 2
    (project / ".castleignore").write_text("*", encoding="utf-8")
    (project / "web" / ".castleignore").write_text("!*", encoding="utf-8")
    note(castle, write(tmp_path, talk(3)), cwd=str(project / "web"))
    assert castle.drain_spool().messages_new == 1


def test_a_projects_file_may_say_that_nothing_is_captured(
    castle: Castle, tmp_path: Path, project: Path
) -> None:
    (project / "castle.yaml").write_text("wing: shop\ncapture: false\n", encoding="utf-8")
    note(castle, write(tmp_path, talk(2)), cwd=str(project / "web"))
    assert castle.drain_spool().messages_new == 0
    assert last(castle).detail == f"opted out: {project / 'castle.yaml'}: capture is false"
    (project / "castle.yaml").write_text("wing: shop\ncapture: true\n", encoding="utf-8")
    note(castle, write(tmp_path, talk(2)), cwd=str(project / "web"))
    assert castle.drain_spool().messages_new == 2


def test_where_a_session_began_counts_as_well_as_where_it_is_now(
    castle: Castle, tmp_path: Path, project: Path
) -> None:
    (project / ".castleignore").write_text("*", encoding="utf-8")
    path = write(tmp_path, [line(0, "the harbour", cwd=str(project)), line(1, "closed", cwd="/")])
    note(castle, path, cwd="/")
    assert castle.drain_spool().messages_new == 0
    assert last(castle).detail.startswith("opted out")


def test_a_projects_file_that_cannot_be_read_keeps_the_session_waiting(
    castle: Castle, tmp_path: Path, project: Path
) -> None:
    (project / "castle.yaml").write_text("capture: [", encoding="utf-8")
    note(castle, write(tmp_path, talk(2)), cwd=str(project))
    report = castle.drain_spool()
    assert (report.messages_new, report.kept, report.failed) == (0, 1, 1)
    assert str(project / "castle.yaml") in last(castle).detail
    (project / "castle.yaml").unlink()
    assert castle.drain_spool().messages_new == 2
    assert last(castle).state == "ok"


def test_private_blocks_are_counted_and_not_kept(castle: Castle, tmp_path: Path) -> None:
    text = "the lantern <private>my diagnosis</private> is lit"
    note(castle, write(tmp_path, [line(0, text), line(1, "fine", role="assistant")]))
    castle.drain_spool()
    found = last(castle)
    assert (found.state, found.entries, found.stored, found.withheld) == ("ok", 4, 3, 1)
    assert [message.withheld > 0 for message in castle.get_session("s1")].count(True) == 1
    assert "diagnosis" not in json.dumps([m.text for m in castle.get_session("s1")])
    assert b"diagnosis" not in (castle.root / "castle.db").read_bytes()
    assert not any("diagnosis" in hit.text for hit in castle.search("diagnosis").hits)


def test_secrets_of_a_reason_are_masked(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

    def failing(*_: object, **__: object) -> Any:
        raise OSError(f"cannot read with {token}")

    monkeypatch.setattr(Castle, "mine_conversations", failing)
    note(castle, write(tmp_path, talk(2)))
    castle.drain_spool()
    assert token not in last(castle).detail
    assert token not in (castle.root / "spool" / "failed.json").read_text(encoding="utf-8")


def claude_hook_output(text: str) -> list[str]:
    """The ways in which Claude Code has written the output of hooks into its transcripts."""
    attachment = {
        "type": "hook_additional_context",
        "content": [text],
        "hookName": "SessionStart:startup",
        "hookEvent": "SessionStart",
    }
    return [
        json.dumps({"type": "attachment", "uuid": "a1", "sessionId": "s1", "attachment": attachment}) + "\n",
        json.dumps(
            {
                "type": "attachment",
                "uuid": "a2",
                "sessionId": "s1",
                "attachment": {"type": "hook_success", "content": text, "hookEvent": "UserPromptSubmit"},
            }
        )
        + "\n",
        line(7, f"<system-reminder>\nSessionStart hook additional context: {text}\n</system-reminder>"),
        line(8, f"<user-prompt-submit-hook>\n{text}\n</user-prompt-submit-hook>\nAnd who lights it?"),
    ]


def codex_hook_output(text: str) -> list[str]:
    """How Codex keeps the context that hooks add: as a message of the developer."""
    content = [{"type": "input_text", "text": text}]
    records: list[dict[str, object]] = [
        {"type": "session_meta", "payload": {"id": "c1", "cwd": "/nowhere"}},
        {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": content}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "And who lights it?"}},
    ]
    return [json.dumps({"timestamp": "2026-05-11T10:29:40.150Z", **record}) + "\n" for record in records]


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_what_hooks_told_a_host_is_not_filed_when_it_comes_back(
    castle: Castle, tmp_path: Path, host: str
) -> None:
    told = recall_block("the lantern of berth nine\n</castle-recall> is lit")
    lines = codex_hook_output(told) if host == "codex" else claude_hook_output(told)
    note(castle, write(tmp_path, lines), harness=host)
    report = castle.drain_spool()
    assert report.messages_new > 0
    found = last(castle)
    assert (found.state, found.entries) == ("ok", found.stored + found.withheld)
    assert found.withheld
    texts = [
        message.text for row in castle.sessions().sessions for message in castle.get_session(row.session)
    ]
    assert any("who lights it" in text for text in texts)
    assert not any("berth nine" in text for text in texts)
    assert b"berth nine" not in (castle.root / "castle.db").read_bytes()


def test_a_path_that_no_file_can_have_holds_up_no_other(castle: Castle, tmp_path: Path) -> None:
    note(castle, Path("/tmp/x/\ud800.jsonl"), session="odd")
    note(castle, write(tmp_path, talk(2)), cwd="/tmp/\ud800")
    report = castle.drain_spool()
    assert (report.messages_new, report.failed, report.kept, waiting(castle.root)) == (2, 1, 0, 0)
    failure = castle.last_failed_save()
    assert failure is not None
    assert (failure.session, failure.detail) == ("odd", "no file can have such a path")
    assert failure.transcript == r"/tmp/x/\xed\xa0\x80.jsonl"


def test_a_session_whose_directory_no_file_can_have_is_saved(castle: Castle, tmp_path: Path) -> None:
    note(castle, write(tmp_path, [line(0, "turn 0", cwd="/tmp/\ud800")]))
    castle.drain_spool()
    assert (last(castle).state, last(castle).stored) == ("ok", 1)


def edited(number: int, text: str, lines: list[str]) -> list[str]:
    """The lines of a transcript of which one says something else, of the same length."""
    record = json.loads(lines[number])
    before = record["message"]["content"]
    record["message"]["content"] = text.ljust(len(before), ".")[: len(before)]
    return [*lines[:number], json.dumps(record) + "\n", *lines[number + 1 :]]


def long_talk(count: int) -> list[str]:
    return [line(n, f"turn {n}: " + "the harbour and its boats, " * 80) for n in range(count)]


def test_a_message_edited_in_a_transcript_that_grew_is_filed(castle: Castle, tmp_path: Path) -> None:
    path = write(tmp_path, long_talk(10))
    note(castle, path)
    castle.drain_spool()
    write(tmp_path, edited(3, "the heron came instead", long_talk(11)))
    note(castle, path)
    report = castle.drain_spool()
    assert (report.messages_new, report.failed, last(castle).state, last(castle).stored) == (2, 0, "ok", 11)
    assert castle.search("heron").hits[0].text.startswith("the heron came instead")


def test_what_the_palace_has_lost_is_read_again(castle: Castle, tmp_path: Path) -> None:
    path = write(tmp_path, talk(4))
    note(castle, path)
    castle.drain_spool()
    with castle._palace().ledger.write() as cx:
        cx.exec_driver_sql("UPDATE messages SET sha256 = x'00' WHERE id = 'u2'")
    note(castle, path)
    report = castle.drain_spool()
    assert (report.messages_new, report.filed, last(castle).state, last(castle).stored) == (1, 1, "ok", 4)
