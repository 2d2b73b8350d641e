from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import func, select

from castle import Castle
from castle.mine import unreadable
from castle.mine.convos import session_key
from castle.mine.formats import Message, Transcript, exact_bytes, open_container, recall_block
from castle.mine.report import ConvoReport
from castle.models.fake import FakeEmbedder
from castle.store.reading import members
from castle.store.schema import drawers
from castle.store.session_tables import messages
from castle.store.sessions import drawer_key

EXPORTS = Path(__file__).parents[3] / "shared" / "data" / "exports"


def line(number: int, text: str, *, role: str = "user", session: str = "s1", **more: object) -> str:
    """One record of Claude Code."""
    record = {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": session,
        "cwd": "/nowhere/garden-shop",
        "timestamp": f"2026-05-01T10:{number // 60:02}:{number % 60:02}.000Z",
        "message": {"role": role, "content": text},
        **more,
    }
    return json.dumps(record) + "\n"


def talk(count: int) -> list[str]:
    return [
        line(n, f"turn {n}: the harbour at berth{n}", role="user" if n % 2 == 0 else "assistant")
        for n in range(count)
    ]


def mine(castle: Castle, path: Path, **options: object) -> ConvoReport:
    report = castle.mine(path, mode="convos", **options)  # type: ignore[arg-type]
    assert isinstance(report, ConvoReport)
    return report


def all_ok(castle: Castle) -> bool:
    return {finding.status for finding in castle.verify()} == {"ok"}


def aged(path: Path, text: str) -> Path:
    """Write a file that is old enough for its time to be trusted."""
    path.write_text(text, encoding="utf-8")
    stamp = path.stat().st_mtime - 3600 + len(text)
    os.utime(path, (stamp, stamp))
    return path


def drawer_count(castle: Castle) -> int:
    with castle._palace().ledger.read() as cx:
        return cx.execute(select(func.count()).select_from(drawers)).scalar_one()


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    original = FakeEmbedder.embed_documents

    def spy(self: FakeEmbedder, given: list[str]) -> object:
        texts.extend(given)
        return original(self, given)

    monkeypatch.setattr(FakeEmbedder, "embed_documents", spy)
    return texts


def test_every_message_of_every_export_comes_back_byte_for_byte(castle: Castle) -> None:
    report = mine(castle, EXPORTS)
    assert report.transcripts == 35
    assert all_ok(castle)
    checked = 0
    with castle._palace().ledger.read() as cx, open_container(EXPORTS) as found:
        held: dict[str, dict[str, list[bytes]]] = {}
        for entry in found:
            if not isinstance(entry, Transcript):
                continue
            for event in entry.read():
                if not isinstance(event, Message) or event.kind in ("private", "recalled"):
                    continue
                key = session_key(entry, event.session)
                if key not in held:
                    parts: dict[str, list[bytes]] = {}
                    for drawer, _ in members(cx, key):
                        content = drawer.text.encode() if drawer.raw is None else drawer.raw
                        parts.setdefault(drawer.message_id, []).append(content)
                    held[key] = parts
                exact = exact_bytes(event.text, escaped=event.escaped)
                versions = [b"".join(held[key].get(drawer_key(event.id, n), [])) for n in range(1, 6)]
                assert exact in versions, (entry.address, event.id)
                checked += 1
    assert checked > 1600


def test_exports_are_filed_once(castle: Castle, embedded: list[str]) -> None:
    first = mine(castle, EXPORTS)
    before = drawer_count(castle)
    embedded.clear()
    again = mine(castle, EXPORTS)
    assert (again.messages_new, again.drawers_new, again.unchanged) == (0, 0, first.transcripts)
    assert (drawer_count(castle), embedded) == (before, [])


def test_a_transcript_that_grows_is_filed_as_it_grows(
    castle: Castle, tmp_path: Path, embedded: list[str]
) -> None:
    lines = talk(40)
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(lines[:12]), encoding="utf-8")
    assert mine(castle, path).messages_new == 12
    for count in range(13, 41):
        embedded.clear()
        with path.open("a", encoding="utf-8") as file:
            file.write(lines[count - 1])
        report = mine(castle, path)
        assert (report.messages_new, report.messages_known, report.drawers_new) == (1, 0, 1)
        assert len(embedded) == 1
        assert drawer_count(castle) == count
    texts = [message.text for message in castle.get_session("s1")]
    assert texts == [f"turn {n}: the harbour at berth{n}" for n in range(40)]
    assert all_ok(castle)


def test_growing_and_whole_give_the_same_drawers(castle: Castle, tmp_path: Path) -> None:
    lines = talk(9)
    grown, whole = tmp_path / "grown.jsonl", tmp_path / "whole.jsonl"
    for count in range(1, 10):
        grown.write_text("".join(lines[:count]), encoding="utf-8")
        mine(castle, grown)
    whole.write_text("".join(lines), encoding="utf-8")
    with Castle(tmp_path / "other", embedder="fake") as other:
        mine(other, whole)
        found = [
            [(d.id, d.text, d.room, d.authored_at, d.role) for d in each.list_drawers(limit=100).drawers]
            for each in (castle, other)
        ]
    assert found[0] == found[1]


def test_the_same_session_by_another_way_is_the_same(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(talk(6)), encoding="utf-8")
    mine(castle, path)
    moved = tmp_path / "elsewhere" / "copy.jsonl"
    moved.parent.mkdir()
    shutil.copy(path, moved)
    report = mine(castle, moved.parent)
    assert (report.messages_new, report.messages_known) == (0, 6)
    assert drawer_count(castle) == 6


def test_a_half_written_line_waits_for_its_end(castle: Castle, tmp_path: Path) -> None:
    lines = talk(3)
    path = tmp_path / "s1.jsonl"
    path.write_text(lines[0] + lines[1][:40], encoding="utf-8")
    report = mine(castle, path)
    assert (report.messages_new, report.incomplete) == (1, False)
    assert any("waits for its end" in text for text in report.notes)
    path.write_text("".join(lines), encoding="utf-8")
    assert mine(castle, path).messages_new == 2


def test_a_file_that_became_shorter_or_was_rewritten_loses_nothing(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(talk(6)), encoding="utf-8")
    mine(castle, path)
    path.write_text("".join(talk(2)), encoding="utf-8")
    assert mine(castle, path).messages_new == 0
    path.write_text(line(50, "written anew"), encoding="utf-8")
    assert mine(castle, path).messages_new == 1
    assert len(castle.get_session("s1")) == 7
    assert castle.search("berth5").hits[0].state == "current"


def test_a_message_that_goes_on_replaces_its_beginning(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(line(0, "the harbour is"), encoding="utf-8")
    mine(castle, path)
    path.write_text(line(0, "the harbour is") + line(0, "the harbour is closed today"), encoding="utf-8")
    report = mine(castle, path)
    assert (report.messages_new, report.drawers_superseded) == (1, 1)
    assert [message.text for message in castle.get_session("s1")] == ["the harbour is closed today"]
    assert mine(castle, path).messages_new == 0
    os.utime(path, (1, 1))
    assert mine(castle, path).messages_new == 0
    assert all_ok(castle)


def test_one_id_with_two_texts_keeps_both(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(line(0, "one thing") + line(0, "another"), encoding="utf-8")
    mine(castle, path)
    assert sorted(message.text for message in castle.get_session("s1")) == ["another", "one thing"]


def test_broken_lines_are_listed_and_stop_nothing(castle: Castle, tmp_path: Path) -> None:
    lines = talk(4)
    lines.insert(2, "{not json\n")
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    report = mine(castle, path)
    assert report.messages_new == 4
    (skip,) = report.skipped
    assert skip.path.endswith("s1.jsonl, line 3")
    assert report.incomplete


def test_broken_lines_are_told_at_every_run_while_they_are_there(castle: Castle, tmp_path: Path) -> None:
    lines = talk(4)
    lines.insert(2, "{not json\n")
    path = aged(tmp_path / "s1.jsonl", "".join(lines))
    first = mine(castle, path)
    again = mine(castle, path)
    assert (again.unchanged, again.messages_new) == (1, 0)
    assert again.skipped == first.skipped
    aged(path, "".join(lines) + line(9, "one more") + "[]\n")
    grown = mine(castle, path)
    assert grown.messages_new == 1
    assert [skip.path.rpartition(", ")[2] for skip in grown.skipped] == ["line 3", "line 7"]
    assert mine(castle, path).skipped == grown.skipped
    aged(path, "".join(talk(4)))
    assert mine(castle, path).skipped == ()
    assert mine(castle, path).skipped == ()
    assert all_ok(castle)


def test_of_very_many_broken_lines_the_first_are_kept(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unreadable, "MOST", 3)
    path = aged(tmp_path / "s1.jsonl", line(0, "said") + "{no\n" * 10)
    first = mine(castle, path)
    assert [skip.reason for skip in first.skipped] == ["broken"] * 4
    assert first.skipped[-1].detail == "and 7 more"
    assert mine(castle, path).skipped == first.skipped


@pytest.mark.parametrize(
    "text", ["a\x00b harbour", "lone \ud83d surrogate", "crlf\r\nharbour\r\n", "\ufeffbom", "  spaces \n\n\n"]
)
def test_odd_characters_come_back_as_they_were(castle: Castle, tmp_path: Path, text: str) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(line(0, text), encoding="utf-8")
    mine(castle, path)
    with castle._palace().ledger.read() as cx:
        parts = [drawer for drawer, _ in members(cx, "session:claude-code:s1")]
    exact = b"".join(part.text.encode() if part.raw is None else part.raw for part in parts)
    assert exact == text.encode("utf-8", "surrogatepass")
    assert all_ok(castle)


def test_private_blocks_are_counted_and_never_stored(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(line(0, "before <private>my diary entry</private> after"), encoding="utf-8")
    report = mine(castle, path)
    assert report.private == 1
    castle.close()
    for file in castle.root.rglob("*"):
        if file.is_file():
            assert b"diary entry" not in file.read_bytes()
    assert [m.text for m in castle.get_session("s1") if m.text] == ["before ", " after"]
    assert [m.withheld for m in castle.get_session("s1") if m.withheld] == [33]


def test_what_castle_recalled_is_not_filed_again(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(line(0, recall_block("an old harbour memory") + "\nnew words"), encoding="utf-8")
    report = mine(castle, path)
    assert report.recalled == 1
    assert not any("old harbour" in hit.text for hit in castle.search("old harbour memory").hits)


def test_tool_output_is_whole_hidden_and_found_on_request(castle: Castle, tmp_path: Path) -> None:
    output = "drwx harbour " * 2000
    block = [{"type": "tool_result", "tool_use_id": "t1", "content": output}]
    path = tmp_path / "s1.jsonl"
    path.write_text(talk(1)[0] + line(1, block), encoding="utf-8")  # type: ignore[arg-type]
    mine(castle, path)
    assert all(hit.kind == "message" for hit in castle.search("drwx harbour").hits)
    assert castle.search("drwx harbour", kinds=["tool"]).hits[0].kind == "tool"
    (tool,) = [message for message in castle.get_session("s1") if message.kind == "tool"]
    assert tool.text == output


def test_the_wing_is_the_repository_of_the_working_directory(castle: Castle, tmp_path: Path) -> None:
    main = tmp_path / "garden-shop"
    main.mkdir()
    git = ["git", "-c", "user.name=Mara", "-c", "user.email=mara@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *command], cwd=main, check=True)
    linked = tmp_path / "feature-x"
    subprocess.run([*git, "worktree", "add", "-q", str(linked)], cwd=main, check=True, capture_output=True)
    (main / "sub").mkdir()
    for number, cwd in enumerate((main, linked, main / "sub", Path("/gone/my-app"))):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(line(0, f"harbour {number}", session=f"s{number}", cwd=str(cwd)), encoding="utf-8")
        mine(castle, path)
    wings = {row.session: row.wing for row in castle.sessions().sessions}
    assert wings == {"s0": "garden_shop", "s1": "garden_shop", "s2": "garden_shop", "s3": "my_app"}


def test_rooms_follow_the_topic_of_the_exchange(castle: Castle, tmp_path: Path) -> None:
    turns = [
        ("user", "the server crashed with an exception in the database code"),
        ("assistant", "let me look"),
        ("user", "what are the milestones and the deadline of the roadmap?"),
        ("assistant", "three"),
    ]
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(line(n, t, role=r) for n, (r, t) in enumerate(turns)), encoding="utf-8")
    mine(castle, path)
    rooms = [drawer.room for drawer in castle.list_drawers().drawers]
    assert rooms == ["technical", "technical", "planning", "planning"]


def test_extract_general_labels_and_drops_nothing(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(line(0, "We decided to switch: we chose GraphQL.") + line(1, "ok"), encoding="utf-8")
    mine(castle, path, extract="general")
    with castle._palace().ledger.read() as cx:
        found = [drawer.metadata for drawer, _ in members(cx, "session:claude-code:s1")]
    assert found == [{"memory_type": "decision"}, {}]


def test_images_are_kept_by_their_hash(castle: Castle) -> None:
    from castle.store.session_tables import attachments, blobs

    mine(castle, EXPORTS / "claude_code" / "moredip" / "images-in-user-messages.jsonl")
    with castle._palace().ledger.read() as cx:
        kept = cx.execute(select(func.count()).select_from(blobs)).scalar_one()
        named = cx.execute(select(func.count()).select_from(attachments)).scalar_one()
    assert 1 <= kept <= named


def test_an_interrupted_run_goes_on_where_it_was(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castle.mine.convos.BATCH_DRAWERS", 5)
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(talk(30)), encoding="utf-8")

    def interrupt(phase: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    first = mine(castle, path, progress=interrupt)
    assert first.interrupted
    assert first.messages_new == 5
    rest = mine(castle, path)
    assert (rest.messages_new, rest.messages_known) == (25, 0)
    assert all_ok(castle)


def test_auto_tells_projects_and_transcripts_apart(castle: Castle, tmp_path: Path, project: Path) -> None:
    path = tmp_path / "talks" / "s1.jsonl"
    path.parent.mkdir()
    path.write_text("".join(talk(2)), encoding="utf-8")
    assert isinstance(castle.mine(path), ConvoReport)
    assert isinstance(castle.mine(path.parent), ConvoReport)
    assert not isinstance(castle.mine(project), ConvoReport)
    (path.parent / "castle.yaml").write_text("wing: talks\n", encoding="utf-8")
    assert not isinstance(castle.mine(path.parent), ConvoReport)


def test_a_dry_run_writes_nothing(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(talk(4)), encoding="utf-8")
    assert mine(castle, path, dry_run=True).messages_new == 4
    assert not castle.root.exists()


def test_message_rows_carry_what_the_transcript_says(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(talk(2)), encoding="utf-8")
    mine(castle, path)
    with castle._palace().ledger.read() as cx:
        rows = list(cx.execute(select(messages).order_by(messages.c.position)))
    assert [(row.id, row.parent, row.role, row.said_at) for row in rows] == [
        ("u0", "", "user", 1777629600000000),
        ("u1", "u0", "assistant", 1777629601000000),
    ]


def test_pictures_are_not_gathered_in_memory(
    castle: Castle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castle.mine.convos.BATCH_BYTES", 1000)
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD" * 200}
    picture = [{"type": "text", "text": "look"}, {"type": "image", "source": source}]
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(line(n, picture) for n in range(8)), encoding="utf-8")  # type: ignore[arg-type]
    filed: list[int] = []
    mine(castle, path, progress=lambda phase, done, total: filed.append(done) if phase == "filing" else None)
    assert len(filed) == 4
    assert len(castle.get_session("s1")) == 8


def test_surrogates_beside_the_text_stop_nothing(castle: Castle, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    odd = {"gitBranch": "b\ud83d", "version": "1\x00", "cwd": "/nowhere/\udc80", "sessionId": "s\udfff"}
    path.write_text(line(0, "harbour", **odd) + line(1, "berth"), encoding="utf-8")
    report = mine(castle, path)
    assert (report.messages_new, report.skipped) == (2, ())
    assert all_ok(castle)


def test_an_edit_in_what_was_read_is_found_when_the_transcript_has_grown(
    castle: Castle, tmp_path: Path
) -> None:
    said = [line(n, f"turn {n}: " + "the harbour and its boats, " * 80) for n in range(10)]
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(said), encoding="utf-8")
    mine(castle, path)
    said[3] = said[3].replace("boats", "heron")
    path.write_text("".join([*said, line(10, "turn 10")]), encoding="utf-8")
    report = mine(castle, path)
    assert (report.messages_new, report.messages_known) == (2, 9)
    with path.open("a", encoding="utf-8") as file:
        file.write(line(11, "turn 11"))
    report = mine(castle, path)
    assert (report.messages_new, report.messages_known) == (1, 0)
