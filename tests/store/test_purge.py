"""Purging: no file of the palace holds what was purged, and nothing else is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from castle import Castle
from castle.errors import NotFoundError, PalaceBusyError, RefusedError, UsageError
from castle.store import purge as purging
from castle.store.locks import FileLock
from castle.store.palace import Palace
from castle.store.purge import finish, purge
from castle.store.purge_files import Finder
from castle.store.purge_guard import Guard, Quotes, marks_of
from castle.store.purge_plan import plan
from castle.store.purged import gaps, unfinished
from castle.store.repair import repair
from castle.store.schema import drawers, sources
from castle.store.verify import verify
from tests.mine.test_convos import line
from tests.store.filer import file

SECRET = (
    "Wilhelmina Oosterhuis-van der Zwaag owes 48,213 guilders to the «Zwarte Zwaan», "
    "and nobody at the shipyard is ever to hear of this debt again"
)
HEADING = "The debt of Wilhelmina Oosterhuis-van der Zwaag"
PIECE = 24


def windows(text: str) -> set[bytes]:
    """Every run of 24 bytes of a text, as UTF-8, UTF-16 and JSON have it."""
    found: set[bytes] = set()
    escaped = json.dumps(text)[1:-1]
    forms = [text.encode(name) for name in ("utf-8", "utf-16-le", "utf-16-be")] + [escaped.encode("ascii")]
    for form in forms:
        found.update(form[at : at + PIECE] for at in range(len(form) - PIECE + 1))
    return found


def holding(root: Path, text: str) -> dict[str, bytes]:
    """The files of a palace that hold a part of a text, each with the first part found."""
    wanted = windows(text)
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            for at in range(len(data) - PIECE + 1):
                if data[at : at + PIECE] in wanted:
                    found[str(path.relative_to(root))] = data[at : at + PIECE]
                    break
    return found


def states(palace: Palace) -> dict[str, str]:
    return {finding.check: finding.status for finding in verify(palace)}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return root


def paragraphs(name: str, count: int) -> str:
    return "\n\n".join(f"Paragraph {name} {n}. " + f"{name}{n} " * 60 for n in range(count))


@pytest.fixture
def castle(tmp_path: Path) -> Iterator[Castle]:
    with Castle(tmp_path / "palace", embedder="fake") as opened:
        opened._palace(create=True)
        yield opened


@pytest.fixture
def project(tmp_path: Path) -> Path:
    document = (
        f"# Plans\n\n{paragraphs('before', 3)}\n\n## {HEADING}\n\n{SECRET}.\n\n{paragraphs('after', 6)}\n"
    )
    return write(tmp_path / "project", {"plans.md": document, "other.md": paragraphs("other", 4)})


def the_one(castle: Castle, text: str = SECRET) -> str:
    """The id of the one drawer that holds the text."""
    with castle._palace().ledger.read() as cx:
        (id_,) = cx.execute(
            select(drawers.c.id).where(drawers.c.text.contains(text, autoescape=True))
        ).scalars()
    return str(id_)


def test_a_purged_drawer_is_in_no_file(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    palace = castle._palace()
    id_ = the_one(castle)
    text = castle.get(id_)[0].text
    castle.compress()
    castle.prepare_wake_up()
    castle.pin(id_)
    castle.get(id_)
    castle.backfill_novelty()
    castle.kg.add("Wilhelmina Oosterhuis-van der Zwaag", "owes", "48,213 guilders to the", drawer=id_)
    castle.kg.add("Ada", "knows", "Charles", source=SECRET)
    castle.search("who owes guilders", limit=5)
    spool = palace.root / "spool"
    spool.mkdir()
    event = {"v": 1, "at": 1, "hook": "stop", "transcript": "/nowhere/t.jsonl", "prompt": SECRET}
    (spool / "events.jsonl").write_text(json.dumps(event) + "\n", encoding="utf-8")
    (spool / "unreadable.jsonl").write_text(f"torn {SECRET}\nkept\n", encoding="utf-8")
    (spool / "drain.log").write_text(f"failed: {SECRET}\nstarted\n", encoding="utf-8")
    (palace.root / "backups").mkdir()
    with sqlite3.connect(palace.root / "castle.db") as cx:
        cx.execute("VACUUM INTO ?", (str(palace.root / "backups" / "schema-1.00000000000000000001.db"),))
    cx.close()
    (palace.root / "castle.db.pre-migration-backup").write_text(SECRET, encoding="utf-16")
    (palace.root / "notes-of-mine.txt").write_text(f"copied: {SECRET}", encoding="utf-16-le")
    (palace.root / ".wakeup.json.0a1b2c3d4e5f.tmp").write_text(f"{SECRET[:40]} and more", encoding="utf-8")
    before = holding(palace.root, text)
    assert {"castle.db.pre-migration-backup", "notes-of-mine.txt", "spool/drain.log"} <= before.keys()
    assert any(name.startswith("castle.db") for name in before)

    done = castle.purge(id_, reason="a private matter", actor="ada")

    assert (done.drawers, done.sources, done.unfinished) == (1, 1, "")
    assert holding(palace.root, text) == {}
    assert holding(palace.root, SECRET) == {}
    assert {Path(name).name for name in done.removed} >= {"notes-of-mine.txt"}
    assert not list(palace.root.glob(".wakeup*"))
    assert (spool / "unreadable.jsonl").read_text(encoding="utf-8") == "kept\n"
    (drained,) = spool.glob("drain-*.jsonl")
    assert json.loads(drained.read_text(encoding="utf-8"))["transcript"] == "/nowhere/t.jsonl"
    found = states(palace)
    assert found.pop("purged") == "ok"
    assert set(found.values()) == {"ok"}
    outside = {Path(path.path).name: path.holds for path in done.outside}
    assert outside == {"plans.md": True}
    assert all("guilders" not in hit.text for hit in castle.search('"guilders"').hits)
    with pytest.raises(NotFoundError, match="purged by ada.*a private matter"):
        castle.get(id_)
    with pytest.raises(NotFoundError, match="purged"):
        castle.restore(id_)
    assert castle.kg.query("Ada").facts
    # What stands around it is as it was.
    whole = project.joinpath("plans.md").read_text(encoding="utf-8")
    assert "".join(part.text for part in castle.get_source("plans.md")) == whole.replace(text, "")


def test_what_was_purged_is_not_filed_again_and_the_rest_is(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    palace = castle._palace()
    purged = castle.get(the_one(castle))[0].text
    castle.purge(the_one(castle), reason="private")
    again = castle.mine_project(project)
    assert [(skip.path, skip.reason) for skip in again.ignored] == [("plans.md", "purged")]
    assert (again.changed, again.unchanged, again.incomplete) == (0, 2, False)

    # Touched, moved, and with other words around it: what stands beside it is filed, word for word.
    os.utime(project / "plans.md")
    assert [skip.reason for skip in castle.mine_project(project).ignored] == ["purged"]
    plans = project / "plans.md"
    bare = purged.strip()
    text = plans.read_text(encoding="utf-8").replace(bare, f"Between us: {bare} That is all.")
    plans.write_text(text, encoding="utf-8")
    write(project, {"copy/plans.md": f"Quite new around it. {bare} Quite new after it.\n"})
    report = castle.mine_project(project)
    assert {skip.path: skip.reason for skip in report.ignored} == {
        "plans.md": "purged",
        "copy/plans.md": "purged",
    }
    assert "line" in report.ignored[0].detail
    assert holding(palace.root, purged) == {}
    copied = "".join(part.text for part in castle.get_source("copy/plans.md"))
    assert copied == "Quite new around it.  Quite new after it.\n"
    held = "".join(part.text for part in castle.get_source("project/plans.md"))
    assert "Between us: " in held
    assert " That is all." in held
    found = states(palace)
    assert set(found.values()) == {"ok"}
    assert len(gaps_of(palace)) >= 2
    # Once more, and nothing changes.
    os.utime(plans)
    assert castle.mine_project(project).changed == 0


def gaps_of(palace: Palace) -> set[str]:
    with palace.ledger.read() as cx:
        return {Path(gap.path).parent.name for gap in gaps(cx)}


def test_transcripts(castle: Castle, tmp_path: Path) -> None:
    long = f"{SECRET}. " + " ".join(f"word{n}" for n in range(600))
    talk = [
        line(0, "good morning"),
        line(1, "good morning to you", role="assistant"),
        line(2, long),
        line(3, "I see", role="assistant"),
        line(4, "ok"),
        line(5, "ok", role="assistant"),
        line(6, "ok"),
    ]
    titled = json.dumps({"type": "ai-title", "sessionId": "s1", "aiTitle": SECRET[:60]}) + "\n"
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(talk) + titled, encoding="utf-8")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    castle.mine_conversations(path)
    palace = castle._palace()
    with palace.ledger.read() as cx:
        assert any("Wilhelmina" in text for text in cx.execute(select(drawers.c.context)).scalars())
        assert "Wilhelmina" in cx.execute(select(sources.c.title)).scalar_one()
        first_ok = cx.execute(select(drawers.c.id).where(drawers.c.text == "ok")).scalars().first()
    text = castle.get(the_one(castle))[0].text
    castle.purge(the_one(castle), reason="private")
    castle.purge(str(first_ok), reason="said by mistake")
    assert holding(palace.root, text) == {}
    assert set(states(palace).values()) == {"ok"}

    # The session goes on, and is read from its beginning once more: nothing comes twice, and nothing back.
    with path.open("a", encoding="utf-8") as more:
        more.write(line(7, "ok", role="assistant"))
        more.write(line(8, f"as I said: {text}, remember"))
    report = castle.mine_conversations(path)
    assert report.messages_new == 2
    assert "purged" in [skip.reason for skip in report.ignored]
    assert holding(palace.root, SECRET) == {}
    assert set(states(palace).values()) == {"ok"}
    spoken = [message for message in castle.get_session("s1")]
    assert len(spoken) == 9
    with palace.ledger.read() as cx:
        left = cx.execute(select(drawers.c.text).where(drawers.c.text.in_(["ok", "as I said: "]))).scalars()
        assert sorted(left) == ["as I said: ", "ok", "ok", "ok"]
    copied = tmp_path / "again" / "s1.jsonl"
    copied.parent.mkdir()
    copied.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert castle.mine_conversations(copied).messages_new == 0
    assert set(states(palace).values()) == {"ok"}


def test_notes(castle: Castle) -> None:
    added = castle.add(f"{SECRET}.\n\n{paragraphs('rest', 5)}\n", wing="home", room="letters")
    palace = castle._palace()
    assert len(added.ids) > 1
    text = castle.get(added.ids[0])[0].text
    castle.purge(added.ids[0], reason="private")
    assert holding(palace.root, text) == {}
    with pytest.raises(RefusedError, match="purged"):
        castle.add(f"once more: {text}", wing="home", room="letters")
    with pytest.raises(RefusedError, match="purged"):
        castle.update(added.ids[1], f"once more: {text}", expected_sha256=castle.get(added.ids[1])[0].sha256)
    with pytest.raises(NotFoundError, match="purged"):
        castle.update(added.ids[0], "another text")
    held = castle.get(added.ids[1])[0]
    changed = castle.update(held.id, "a new beginning\n", expected_sha256=held.sha256)
    assert castle.get(changed.id)[0].text.startswith("a new beginning")
    assert set(states(palace).values()) == {"ok"}


def test_copies_and_quotations_are_named_and_left(castle: Castle, tmp_path: Path) -> None:
    palace = castle._palace()
    file(palace.ledger, [f"{SECRET}\n"], path="a.md")
    file(palace.ledger, [f"{SECRET}\n"], path="b.md")
    file(palace.ledger, [f"she said: {SECRET[:90]} and so on\n"], path="c.md")
    with palace.ledger.read() as cx:
        of = {row.path: row.id for row in cx.execute(select(drawers.c.id, sources.c.path).join(sources))}
    planned = plan(palace, id_=of["a.md"])
    assert (planned.copies, planned.quoting) == ((of["b.md"],), (of["c.md"],))
    done = purge(palace, id_=of["a.md"], reason="private", actor="ada")
    assert (done.drawers, done.copies, done.quoting) == (1, (of["b.md"],), (of["c.md"],))
    assert castle.get(of["b.md"])[0].text == f"{SECRET}\n"
    # What was left on purpose stays when its file is read again.
    file(palace.ledger, [f"{SECRET}\n", "one more line\n"], path="b.md", base=1)
    assert castle.get(of["b.md"])[0].state == "current"
    assert purge(palace, id_=of["b.md"], copies=True, reason="private", actor="ada").copies == ()
    assert purge(palace, id_=of["c.md"], reason="private", actor="ada").quoting == ()
    assert holding(palace.root, SECRET) == {}
    assert set(states(palace).values()) == {"ok"}
    with pytest.raises(NotFoundError, match="purged"):
        purge(palace, id_=of["a.md"], reason="private", actor="ada")


def test_a_source_and_a_wing(castle: Castle, project: Path) -> None:
    castle.mine_project(project, wing="papers")
    palace = castle._palace()
    (project / "plans.md").write_text(paragraphs("rewritten", 3), encoding="utf-8")
    castle.mine_project(project, wing="papers")
    done = castle.purge(source="plans.md", reason="all of it, also what it said before")
    assert done.drawers > 3
    assert holding(palace.root, SECRET) == holding(palace.root, paragraphs("rewritten", 3)) == {}
    assert (
        "Paragraph other 1." in castle.get_source("other.md")[0].text + castle.get_source("other.md")[1].text
    )
    assert set(states(palace).values()) == {"ok"}
    assert castle.purge(wing="papers", reason="the rest").drawers > 0
    assert holding(palace.root, paragraphs("other", 4)) == {}
    assert set(states(palace).values()) == {"ok"}
    with pytest.raises(NotFoundError, match="nothing is left"):
        castle.purge(wing="papers", reason="again")
    with pytest.raises(NotFoundError, match="no wing"):
        castle.purge(wing="nowhere", reason="again")


def test_what_only_a_killed_mine_has_staged_goes_with_it(palace: Palace) -> None:
    file(palace.ledger, [f"{SECRET}\n"], path="a.md")
    with palace.ledger.write() as cx:
        cx.exec_driver_sql(
            "INSERT INTO drawers SELECT NULL, 'staged', NULL, source, wing, room, hall, kind, role, speaker,"
            " message_id, text, raw, sha256, sealed, detector_version, context, authored_at, filed_at,"
            " ended_at, added_by, state, metadata FROM drawers"
        )
    id_ = plan(palace, source="a.md").ids[0]
    assert purge(palace, id_=id_, reason="private", actor="ada").drawers == 1
    assert holding(palace.root, SECRET) == {}


def test_the_record_says_when_who_why_and_how_much_and_never_what(palace: Palace) -> None:
    file(palace.ledger, [f"{SECRET}\n"])
    purge(palace, source="notes.md", reason="a private matter", actor="ada")
    with palace.ledger.read() as cx:
        (row,) = cx.exec_driver_sql("SELECT * FROM purges").mappings().all()
        kept = str(cx.exec_driver_sql("SELECT * FROM purged").mappings().all())
        assert cx.exec_driver_sql("SELECT count(*) FROM purge_inputs").scalar() == 0
    assert (row["actor"], row["reason"], row["state"], row["drawers"], row["sources"]) == (
        "ada",
        "a private matter",
        "done",
        1,
        1,
    )
    assert row["at"] < row["finished_at"]
    assert "Wilhelmina" not in kept


STOPS = ["clean_spool", "clean_directory", "erase", "_throw_away", "forget_inputs", "TokenCache"]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("way", ["purge", "repair"])
def test_a_purge_that_was_killed_is_finished(
    palace: Palace, monkeypatch: pytest.MonkeyPatch, stop: str, way: str
) -> None:
    file(palace.ledger, [f"{SECRET}\n", "the rest of it\n"])
    file(palace.ledger, ["something else\n"], path="other.md")
    repair(palace)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(purging, stop, killed)
        with pytest.raises(KeyboardInterrupt):
            purge(palace, source="notes.md", reason="private", actor="ada")
    with palace.ledger.read() as cx:
        assert unfinished(cx) == 1
    assert states(palace)["purged"] == "failed"
    if way == "repair":
        repair(palace)
    else:
        assert finish(palace) == 1
        repair(palace)
    with palace.ledger.read() as cx:
        assert unfinished(cx) == 0
    assert holding(palace.root, SECRET) == {}
    assert set(states(palace).values()) == {"ok"}
    assert finish(palace) == 0


KILLED = """
import sys
from pathlib import Path
from castle.store.palace import Palace
from castle.store.purge import purge

palace = Palace(Path(sys.argv[1]))
print("ready", flush=True)
purge(palace, wing="wing", reason="private", actor="ada")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
@pytest.mark.parametrize("after", [0.005, 0.03, 0.06, 0.1, 0.2])
def test_a_purge_that_was_really_killed_is_finished(palace: Palace, after: float) -> None:
    for number in range(40):
        file(palace.ledger, [f"{number} {SECRET}\n", f"{number} {'x ' * 300}\n"], path=f"{number}.md")
    file(palace.ledger, ["something else\n"], path="other.md", wing="elsewhere")
    repair(palace)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(palace.root)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(after)
    process.kill()
    process.communicate()
    with palace.ledger.read() as cx:
        begun = cx.exec_driver_sql("SELECT count(*) FROM purges").scalar()
    if not begun:
        purge(palace, wing="wing", reason="private", actor="ada")
    repair(palace)
    assert holding(palace.root, SECRET) == {}
    assert set(states(palace).values()) == {"ok"}


def test_a_reader_that_holds_an_old_state_is_waited_for(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "PATIENCE_SECONDS", 0.3)
    file(palace.ledger, [f"{SECRET}\n"])
    reader = sqlite3.connect(palace.ledger.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM drawers").fetchone()
    done = purge(palace, source="notes.md", reason="private", actor="ada")
    assert "in use" in done.unfinished
    assert states(palace)["purged"] == "failed"
    with pytest.raises(PalaceBusyError, match="not finished"):
        finish(palace)
    reader.execute("ROLLBACK")
    reader.close()
    assert finish(palace) == 1
    assert holding(palace.root, SECRET) == {}


def test_others_at_work_are_waited_for(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "PATIENCE_SECONDS", 0.2)
    file(palace.ledger, [f"{SECRET}\n"])
    (palace.root / "spool").mkdir()
    for path, what in (
        (palace.root / "purge.lock", "another purge"),
        (palace.root / "spool/drain.lock", "hooks"),
    ):
        with FileLock(path) as held:
            assert held
            with pytest.raises(PalaceBusyError, match=what):
                purge(palace, source="notes.md", reason="private", actor="ada")
    lock = palace.lock("vectors")
    assert lock.try_acquire()
    done = purge(palace, source="notes.md", reason="private", actor="ada")
    assert "vectors is being written" in done.unfinished
    lock.release()
    assert finish(palace) == 1


def test_writers_go_on_while_a_purge_is_at_work(castle: Castle, tmp_path: Path) -> None:
    palace = castle._palace()
    castle.add(SECRET, wing="home", room="letters")
    stop, failures = threading.Event(), []

    def write_on() -> None:
        with Castle(tmp_path / "palace") as other:
            number = 0
            while not stop.is_set():
                try:
                    other.add(f"note {number} of another writer", wing="home", room="notes")
                    number += 1
                except Exception as error:
                    failures.append(error)
                    return

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        done = castle.purge(the_one(castle), reason="private")
    finally:
        stop.set()
        writer.join()
    assert failures == []
    if done.unfinished:
        castle.finish_purges()
    assert holding(palace.root, SECRET) == {}
    repair(palace)
    assert set(states(palace).values()) == {"ok"}


def test_copies_of_the_palace_are_named(castle: Castle, tmp_path: Path) -> None:
    added = castle.add(SECRET, wing="home", room="letters")
    castle.backup(tmp_path / "palace.castle")
    castle.export(tmp_path / "tree")
    castle.backup(tmp_path / "gone.castle")
    (tmp_path / "gone.castle").unlink()
    aside = tmp_path / "palace.before-restore-20260101T000000Z"
    aside.mkdir()
    done = castle.purge(added.id, reason="private")
    assert {Path(path).name for path in done.backups} == {"palace.castle", "tree", aside.name}


def test_a_palace_that_was_moved_aside_is_purged_too(castle: Castle, tmp_path: Path) -> None:
    castle.add("the rest of it", wing="home", room="letters")
    castle.backup(tmp_path / "before.castle")
    added = castle.add(SECRET, wing="home", room="letters")
    castle.search("Wilhelmina")
    castle.backup(tmp_path / "after.castle")
    former = Path(castle.restore_backup(tmp_path / "after.castle", yes=True).aside)
    # What a restore that was killed leaves beside the palace is a copy, too.
    left = tmp_path / ".palace.0123abcd.draft"
    shutil.copytree(former, left / "work")
    assert holding(former, SECRET)
    done = castle.purge(added.id, reason="private")
    assert holding(former, SECRET) == {}
    assert f"1 purged in {former}, too" in done.notes
    assert not left.exists()
    assert {Path(path).name for path in done.backups} == {"before.castle", "after.castle"}
    with Castle(former) as opened:
        assert [drawer.text for drawer in opened.list_drawers().drawers] == ["the rest of it"]
        opened.repair()
        assert set(states(opened._palace()).values()) == {"ok"}


def test_one_that_was_moved_aside_and_holds_a_part_of_it_or_cannot_be_read_is_named(
    castle: Castle, tmp_path: Path
) -> None:
    added = castle.add(SECRET, wing="home", room="letters")
    castle.add(f"They wrote: {SECRET}, and more.", wing="home", room="letters")
    castle.backup(tmp_path / "palace.castle")
    aside = castle.restore_backup(tmp_path / "palace.castle", yes=True).aside
    assert aside in castle.purge(added.id, reason="private").backups
    assert len(holding(Path(aside), SECRET)) == 1  # the ledger, with the drawer that quotes it
    other = castle.add("another matter that is nobody's business", wing="home", room="letters")
    (Path(aside) / "castle.db").write_bytes(b"x" * 8192)
    done = castle.purge(other.id, reason="private")
    assert aside in done.backups
    assert any("moved aside" in note for note in done.notes)


def test_copies_are_known_after_a_restore(castle: Castle, tmp_path: Path) -> None:
    added = castle.add(SECRET, wing="home", room="letters")
    castle.backup(tmp_path / "first.castle")
    castle.export(tmp_path / "tree")
    (tmp_path / "first.castle").rename(tmp_path / "renamed.castle")
    castle.restore_backup(tmp_path / "renamed.castle", yes=True)
    named = {Path(path).name for path in castle.plan_purge(added.id).backups}
    assert {"renamed.castle", "tree"} <= named


def test_what_a_killed_backup_leaves_is_named(castle: Castle, tmp_path: Path) -> None:
    added = castle.add(SECRET, wing="home", room="letters")
    castle.backup(tmp_path / "palace.castle")
    left = tmp_path / ".palace.castle.0123abcd.draft"
    left.mkdir()
    assert str(left) in castle.plan_purge(added.id).backups


def test_a_palace_that_cannot_be_written_and_a_reason_that_is_none(
    castle: Castle, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = castle.add("a note", wing="home", room="letters")
    for reason in ("", " \n", "x" * 501):
        with pytest.raises(UsageError, match="reason"):
            castle.purge(added.id, reason=reason)
    with pytest.raises(UsageError, match="one of"):
        castle.purge(added.id, wing="home", reason="both")
    monkeypatch.setattr(castle._palace().ledger, "read_only", True)
    with pytest.raises(RefusedError, match="read-only"):
        castle.purge(added.id, reason="private")


def test_the_guard_finds_texts_among_others_and_nothing_else() -> None:
    salt = b"s" * 32
    texts = [f"{n} {SECRET} {n}" for n in range(30)] + [
        "日本語の秘密の文章はここにありますがもう誰も読めません"
    ]
    guard = Guard(
        salt,
        [
            (m.anchor or 0, m.length or 0, m.tag or b"", n)
            for n, m in enumerate(marks_of(salt, t) for t in texts)
        ],
    )
    body = "lorem ipsum dolor sit amet " * 200
    for number, text in enumerate(texts):
        (span,) = guard.find(f"{body}{text}{body}")
        assert (span.start, span.end, span.purge) == (len(body), len(body) + len(text), number)
    assert guard.find(body) == guard.find("") == []
    assert guard.find(texts[3][:-1]) == []
    assert marks_of(salt, " short ").tag is None
    assert marks_of(salt, f"  {SECRET}\n") == marks_of(salt, SECRET)
    assert marks_of(b"t" * 32, SECRET).tag != marks_of(salt, SECRET).tag


def test_what_quotes_and_what_does_not() -> None:
    quotes = Quotes([f"## {HEADING}\n\n{SECRET}\n"])
    assert HEADING in quotes
    assert SECRET[10:40] in quotes
    assert "The debt" not in quotes
    assert quotes.without(f"Plans › {HEADING} › Next") == "Plans › Next"
    assert quotes.without("Plans › Next") == "Plans › Next"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_the_finder_finds_a_text_wherever_it_stands(tmp_path: Path, encoding: str) -> None:
    finder = Finder([SECRET, "another text of some length that is not there"])
    data = SECRET.encode(encoding)
    path = tmp_path / "file"
    for at in (0, 1, (1 << 20) - 30, (1 << 20) + 7):
        path.write_bytes(b"\xff" * at + data + b"\x00" * 100)
        assert finder.look_into(path).most
    path.write_bytes(b"\xff" * 100 + data[: len(data) // 3])
    held = finder.look_into(path)
    assert (held.most, held.part) == (False, True)
    assert not finder.look(b"nothing of the kind, and long enough to be looked through").part
    assert not finder.look(b"").part
    assert not Finder(["short"]).look(b"short" * 20).part
