"""What hosts tell while a session goes on: found at once, and one drawer in the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from castle import Castle
from castle.errors import PalaceNotFoundError, UsageError
from castle.mind.events import read
from castle.mind.ingest import IDLE_SECONDS, MISSING_SECONDS
from castle.mind.objects import Memory
from castle.store.mind_episodes import episodes
from castle.store.mind_ingest import count_queued, session_row
from castle.store.mind_working import items
from tests.conftest import TurnedClock
from tests.mine.test_convos import line

START = 1_800_000_000_000_000
ASKED = "Why does the ferry need two replicas?"
SECOND = 1_000_000


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock(START)


@pytest.fixture
def castle(tmp_path: Path, clock: TurnedClock) -> Castle:
    made = Castle(tmp_path / "palace", embedder="fake", clock=clock)
    made.memory_save("the harbour is open")
    return made


def told(name: str, **more: object) -> dict[str, Any]:
    """A payload as Claude Code writes it."""
    return {"hook_event_name": name, "session_id": "s1", "cwd": "/nowhere/ferry", **more}


def prompt(text: str = ASKED, **more: object) -> dict[str, Any]:
    return told("UserPromptSubmit", prompt=text, **more)


def used(call: str, response: object, **more: object) -> dict[str, Any]:
    answer = {"tool_input": {"command": "make"}, "tool_response": response}
    return told("PostToolUse", tool_name="Bash", tool_use_id=call, **answer, **more)


def transcript(path: Path, *texts: str) -> Path:
    """A transcript that says these, the user first, then the assistant, and so on."""
    lines = [line(n, text, role="assistant" if n % 2 else "user") for n, text in enumerate(texts)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def recalled(castle: Castle, query: str, **options: object) -> list[Memory]:
    """What is recalled that shares a word with the query; the fake embedder finds everything."""
    found = castle.memory_recall(query, options).memories
    return [memory for memory in found if set(query.split()) & set(memory.content.rstrip("?").split())]


def filed(castle: Castle) -> list[str]:
    """The texts of all drawers but the first."""
    with castle._palace().ledger.read() as cx:
        return [one.text for one in episodes(cx)][1:]


def test_what_was_asked_is_found_at_once_and_is_one_drawer_when_the_transcript_comes(
    castle: Castle, tmp_path: Path, clock: TurnedClock
) -> None:
    path = transcript(tmp_path / "s1.jsonl", ASKED, "For the tide.")
    first = castle.ingest(prompt(transcript_path=str(path)))
    assert (first.new, first.waiting, first.reason) == (True, 1, "")
    assert not castle.ingest(prompt(transcript_path=str(path))).new
    found = recalled(castle, "ferry replicas", memory_type="episodic")
    assert [(m.content, m.state, m.origin) for m in found] == [(ASKED, "pending", "user")]
    assert [m.content for m in recalled(castle, "ferry replicas", memory_type="working")] == [ASKED]
    assert filed(castle) == []

    castle.ingest(used("toolu_1", {"exit_code": 0}))
    castle.ingest(used("toolu_2", {"is_error": True}))
    castle.ingest(used("toolu_3", {"stdout": "ok"}))
    castle.ingest(told("Stop", transcript_path=str(path)))
    clock.now += 60 * SECOND
    assert castle.capture().messages_new == 2
    found = recalled(castle, "ferry replicas", memory_type="episodic")
    assert [(m.content, m.state) for m in found[:1]] == [(ASKED, "active")]
    assert found[0].metadata["outcome_valence"] == pytest.approx(1 / 3)
    assert filed(castle) == [ASKED, "For the tide."]
    with castle._palace().ledger.read() as cx:
        assert count_queued(cx) == {"linked": 1, "covered": 3, "noted": 1}
        session = session_row(cx, "s1")
        assert session is not None and (session["succeeded"], session["failed"]) == (2, 1)
        assert session["wing"] == "ferry"


def test_the_end_of_a_session_links_what_the_transcript_holds(
    castle: Castle, tmp_path: Path, clock: TurnedClock
) -> None:
    path = transcript(tmp_path / "s1.jsonl", ASKED, "For the tide.")
    castle.ingest(prompt(transcript_path=str(path)))
    recalled(castle, "ferry replicas", memory_type="working")
    clock.now += 1_000 * SECOND
    castle.ingest(told("SessionEnd", transcript_path=str(path)))
    castle.capture()
    with castle._palace().ledger.read() as cx:
        assert items(cx) == []
        session = session_row(cx, "s1")
        assert session is not None and session["ended_at"] is not None
    found = recalled(castle, "ferry replicas", memory_type="episodic")
    assert [(m.content, m.was_in_wm) for m in found] == [(ASKED, True)]
    assert filed(castle) == [ASKED, "For the tide."]


def test_hooks_end_sessions_through_the_spool(castle: Castle, tmp_path: Path, clock: TurnedClock) -> None:
    path = transcript(tmp_path / "s1.jsonl", ASKED, "For the tide.")
    castle.memory_save("mind the tide", "working", {"session_id": "s1"})
    clock.now += 2_000 * SECOND
    spool = castle.root / "spool"
    spool.mkdir(exist_ok=True)
    event = {"v": 1, "at": clock.now, "hook": "session-end", "harness": "claude-code", "session": "s1"}
    line = json.dumps({**event, "transcript": str(path), "cwd": "/nowhere/ferry"})
    (spool / "events.jsonl").write_text(line + "\n", encoding="utf-8")
    assert castle.capture().messages_new == 2
    with castle._palace().ledger.read() as cx:
        assert items(cx) == []
        assert count_queued(cx) == {"ended": 1}


def spooled(castle: Castle, clock: TurnedClock, hook: str, path: Path, **more: object) -> None:
    """Note an event as a hook of the session does."""
    spool = castle.root / "spool"
    spool.mkdir(exist_ok=True)
    event = {"v": 1, "at": clock.now, "hook": hook, "harness": "claude-code", "session": "s1", **more}
    tool = hook == "post-tool-use"
    event |= {"cwd": "/nowhere/ferry"} | ({} if tool else {"transcript": str(path)})
    with (spool / ("signals.jsonl" if tool else "events.jsonl")).open("a", encoding="utf-8") as file:
        file.write(json.dumps({**event, **more}) + "\n")


def called(number: int, call: str) -> str:
    """A line of a transcript in which a tool is called."""
    message = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": call, "name": "Bash", "input": {}}],
    }
    return line(number, "", type="assistant", message=message)


def test_how_calls_of_tools_went_is_told_by_hooks_through_the_spool(
    castle: Castle, tmp_path: Path, clock: TurnedClock
) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text("".join([line(0, ASKED), called(1, "c1"), called(2, "c2")]), encoding="utf-8")
    spooled(castle, clock, "user-prompt-submit", path)
    for call, success in (("c1", True), ("c2", False), ("c2", False)):
        spooled(castle, clock, "post-tool-use", path, tool="Bash", call=call, success=success)
    spooled(castle, clock, "stop", path)
    castle.capture()
    assert recalled(castle, "ferry replicas", memory_type="episodic")[0].metadata["outcome_valence"] == 0
    assert [m.content for m in recalled(castle, "ferry replicas", memory_type="working")] == [ASKED]

    with path.open("a", encoding="utf-8") as file:
        file.write(called(3, "c3") + line(4, "And the buoy?") + called(5, "c4"))
    for call, success in (("c3", False), ("c4", True)):
        spooled(castle, clock, "post-tool-use", path, tool="Bash", call=call, success=success)
    spooled(castle, clock, "stop", path)
    castle.capture()
    outcomes = {
        m.content: m.metadata["outcome_valence"]
        for m in castle.memory_recall("buoy ferry replicas", {"memory_type": "episodic"}).memories
        if "outcome_valence" in m.metadata
    }
    assert outcomes == {ASKED: pytest.approx(-1 / 3), "And the buoy?": 1}
    assert list((castle.root / "spool").glob("signals*")) == []
    with castle._palace().ledger.read() as cx:
        session = session_row(cx, "s1")
        assert session is not None and (session["succeeded"], session["failed"]) == (2, 2)


@pytest.mark.parametrize("by_hook", [True, False])
def test_what_a_project_no_longer_is_expires_when_a_session_begins(
    castle: Castle, tmp_path: Path, clock: TurnedClock, by_hook: bool
) -> None:
    project = tmp_path / "ferry"
    (project / "src").mkdir(parents=True)
    manifest = project / "requirements.txt"
    manifest.write_text("timetable==1.0\n", encoding="utf-8")
    (project / "notes.md").write_text("Ferries leave at noon.\n", encoding="utf-8")
    castle.mine(project)
    castle.check_env(project)
    condition = {"field": "requirements.txt.timetable", "operator": "version_changed"}
    options = {"falsifiable_condition": condition, "wing": "ferry", "confidence": 0.9}
    castle.memory_save("The timetable has no Sundays", "semantic", options)

    def begin(session: str) -> list[Memory]:
        where = {"session_id": session, "cwd": str(project / "src")}
        if by_hook:
            spooled(
                castle, clock, "session-start", tmp_path / "none.jsonl", session=session, cwd=where["cwd"]
            )
            castle.capture()
        else:
            castle.ingest(told("SessionStart", **where))
            castle.absorb()
        return recalled(castle, "timetable Sundays", memory_type="semantic")

    assert len(begin("s1")) == 1
    manifest.write_text("timetable==2.0\n", encoding="utf-8")
    assert begin("s2") == []
    castle.prepare_wake_up()
    rendered = json.loads((castle.root / "wakeup.json").read_text(encoding="utf-8"))
    assert "No longer so" in rendered["places"][str(project)]


def test_a_script_that_sends_a_payload_as_a_text_tells_an_event(castle: Castle, tmp_path: Path) -> None:
    """What the hook of another program sends is nobody's words."""
    path = transcript(tmp_path / "s1.jsonl", ASKED)
    inside = used("toolu_1", {"is_error": True}, transcript_path=str(path))
    told_so = {"content": json.dumps(inside), "tags": ["hook", "tool:Bash"], "session_id": "s1"}
    assert [event.kind for event in read(told_so)] == ["tool"]
    castle.ingest({**told_so, "content": json.dumps(prompt(transcript_path=str(path)))}, local=False)
    with castle._palace().ledger.read() as cx:
        session = session_row(cx, "s1")
        assert session is not None and not session["transcript"]
    (cut,) = read({**told_so, "content": json.dumps(inside)[:50]})
    assert (cut.kind, cut.role) == ("said", "tool")


def test_without_a_transcript_the_event_becomes_the_drawer(castle: Castle, clock: TurnedClock) -> None:
    castle.ingest(prompt("The buoy is red <private>my PIN</private>", harness="codex"))
    assert castle.absorb() is not None
    assert filed(castle) == []
    clock.now += (IDLE_SECONDS + 60) * SECOND
    done = castle.absorb()
    assert done is not None and (done.filed, done.ended) == (1, ("s1",))
    assert filed(castle) == ["The buoy is red "]
    assert [m.state for m in recalled(castle, "buoy", memory_type="episodic")] == ["active"]
    assert castle.absorb() is None


def test_what_could_not_be_filed_is_told_and_tried_again(
    castle: Castle, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    castle.ingest(prompt())
    castle.absorb()
    clock.now += (IDLE_SECONDS + 1) * SECOND
    with monkeypatch.context() as patch:

        def fails(*_: object) -> None:
            raise UsageError("the harbour is closed")

        patch.setattr("castle.mind.mind.Mind.save", fails)
        castle.absorb()
    told = castle.memory_status()
    assert told["health"] == "degraded"
    assert any("1 events of hosts" in why and "the harbour is closed" in why for why in told["reasons"])
    done = castle.absorb()
    assert done is not None and done.filed == 1
    assert not any("of hosts" in why for why in castle.memory_status()["reasons"])


def test_a_transcript_that_never_comes_loses_nothing(castle: Castle, clock: TurnedClock) -> None:
    castle.ingest(prompt(transcript_path="/nowhere/s1.jsonl"))
    clock.now += (MISSING_SECONDS - 60) * SECOND
    castle.absorb()
    assert filed(castle) == []
    clock.now += 120 * SECOND
    castle.absorb()
    assert filed(castle) == [ASKED]


def test_recorded_turns_and_plain_texts_are_kept(castle: Castle) -> None:
    turn = {"type": "turn", "session_id": "s9", "turn_id": "t1", "user_message": "Which buoy?"}
    castle.ingest({**turn, "assistant_message": "The red one.", "timestamp": "2026-05-01T10:00:00Z"})
    castle.ingest({"content": "Buoys are painted in May", "tags": ["paint"], "session_id": "s9"})
    castle.ingest({"content": "Paint is on shelf 3", "memory_type": "semantic"})
    done = castle.absorb()
    assert done is not None and done.filed == 4
    found = {m.content: m for m in castle.memory_recall("buoy paint red", {"top_k": 20}).memories}
    assert found["The red one."].origin == "assistant"
    assert found["Buoys are painted in May"].tags == ("paint",)
    assert found["Paint is on shelf 3"].layer == "semantic"


def test_a_project_that_opted_out_is_left_alone(castle: Castle, tmp_path: Path) -> None:
    project = tmp_path / "quiet"
    project.mkdir()
    (project / "castle.yaml").write_text("capture: false\n", encoding="utf-8")
    done = castle.ingest({**prompt(), "cwd": str(project)})
    assert "capture is false" in done.reason and not done.new
    assert recalled(castle, "ferry replicas") == []
    with castle._palace().ledger.read() as cx:
        assert session_row(cx, "s1") is None


def test_transcripts_are_noted_for_the_drainer_only_when_told_here(castle: Castle, tmp_path: Path) -> None:
    path = transcript(tmp_path / "s1.jsonl", ASKED)
    castle.ingest(told("Stop", transcript_path=str(path)), local=False)
    assert castle.drain_spool().events == 0
    castle.ingest({**told("Stop", transcript_path=str(path)), "event_id": "again"})
    assert castle.drain_spool().messages_new == 1


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"hook_event_name": "Reboot"},
        {"type": "dance"},
        {"content": " "},
        {"content": "x", "memory_type": "eternal"},
        {"content": "x", "event_id": "two words"},
        {"content": 5},
        {"content": "x", "metadata": {"n": float("nan")}},
        {"content": "x", "tags": ["t" * 501]},
    ],
)
def test_what_is_no_event_is_refused(castle: Castle, body: object) -> None:
    with pytest.raises(UsageError):
        castle.ingest(body)


def test_no_palace_is_made_for_an_event(tmp_path: Path) -> None:
    with pytest.raises(PalaceNotFoundError):
        Castle(tmp_path / "none", embedder="fake").ingest(prompt())
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("name", "response", "success"),
    [
        ("PostToolUse", {"stdout": "x"}, True),
        ("PostToolUse", {"success": False}, False),
        ("PostToolUse", {"exitCode": 2}, False),
        ("PostToolUse", [{"type": "text", "is_error": True}], False),
        ("PostToolUse", None, None),
        ("PostToolUseFailure", None, False),
    ],
)
def test_whether_a_call_went_well(name: str, response: object, success: bool | None) -> None:
    (event,) = read({**used("toolu_1", response), "hook_event_name": name})
    assert event.success is success
