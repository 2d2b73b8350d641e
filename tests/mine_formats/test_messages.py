from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.mine.formats import Checkpoint, Message, SessionInfo, detect, exact_bytes
from castle.mine.formats.messages import Messages
from tests.mine_formats.support import (
    broken_of,
    events_of,
    messages_of,
    silent_of,
    transcripts,
    without_checkpoints,
)

START = 1_777_629_600_000_000


def said(text: str, *, session: object = "s1", role: object = "user", **more: object) -> str:
    return json.dumps({"session": session, "role": role, "text": text, **more}) + "\n"


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talk.jsonl"


def test_every_field_arrives(path: Path) -> None:
    full = said(
        "closed",
        id="m2",
        speaker="Mara",
        time="2026-05-01T12:00:00+02:00",
        parent="m1",
        thread="t1",
        title="Harbour",
        cwd="/work/garden",
        mood={"calm": True},
    )
    info, message = without_checkpoints(events_of(written(path, full)))
    assert info == SessionInfo("s1", title="Harbour", cwd="/work/garden")
    assert message == Message(
        session="s1",
        id="m2",
        whole="m2",
        parent="m1",
        role="user",
        kind="message",
        text="closed",
        speaker="Mara",
        timestamp=START,
        thread="t1",
        metadata={"mood": {"calm": True}},
    )


def test_a_time_without_offset_is_utc(path: Path) -> None:
    times = ["2026-05-01T10:00:00", "2026-05-01T10:00:00Z", "2026-05-01T05:00:00-05:00"]
    events = events_of(written(path, *(said("a", id=n, time=time) for n, time in enumerate(times))))
    assert [one.timestamp for one in messages_of(events)] == [START] * 3


def test_a_time_that_is_none_is_reported_and_the_message_is_kept(path: Path) -> None:
    events = events_of(written(path, said("a", time="tomorrow"), said("b", time=None)))
    assert [(one.text, one.timestamp) for one in messages_of(events)] == [("a", None), ("b", None)]
    assert [(one.position, one.reason) for one in broken_of(events)] == [
        (1, "filed without its time: 'tomorrow' is no ISO time")
    ]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, "message"),
        ({"role": "tool"}, "tool"),
        ({"role": "assistant", "tool": "Bash"}, "tool"),
        ({"role": "assistant", "kind": "thinking"}, "thinking"),
        ({"role": "tool", "tool": "Bash", "kind": "message"}, "message"),
        ({"kind": "private"}, "private"),
    ],
)
def test_the_kind_of_a_message(path: Path, fields: dict[str, str], kind: str) -> None:
    (message,) = messages_of(events_of(written(path, said("x", **fields))))
    assert message.kind == kind


def test_private_blocks_are_cut_out(path: Path) -> None:
    found = messages_of(events_of(written(path, said("a <private>b</private> c", id="m"))))
    assert [(one.id, one.whole, one.kind) for one in found] == [
        ("m", "m", "message"),
        ("m@2", "m", "private"),
        ("m@22", "m", "message"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"session": "s1", "text": "x"}', "a message without role"),
        ('{"role": "user"}', "a message without session, text"),
        (said("x", session=None), "session is no name"),
        (said("x", session=""), "session is no name"),
        (said("x", role="king"), "role 'king' is none of user, assistant, system, tool"),
        (said("x", role=["user"]), "role ['user'] is none of"),
        ('{"session": "s1", "role": "user", "text": ["x"]}', "text is no string"),
        (said("x", kind="gossip"), "kind 'gossip' is none of"),
        ("{", "not JSON"),
        ("[]", "not a JSON object but list"),
    ],
)
def test_what_is_no_message_is_reported_and_stops_nothing(path: Path, line: str, reason: str) -> None:
    events = events_of(written(path, said("a", id=1), line.rstrip("\n") + "\n", said("b", id=2)))
    assert [one.text for one in messages_of(events)] == ["a", "b"]
    (broken,) = broken_of(events)
    assert broken.position == 2
    assert broken.reason.startswith(reason)


def test_a_message_without_text_is_counted(path: Path) -> None:
    assert silent_of(events_of(written(path, said("")))) == {"a message without text": 1}


def test_numbers_are_names_and_known_fields_of_another_type_are_kept(path: Path) -> None:
    line = said("x", session=7, id=3, parent=2, speaker=["Mara", "Jon"], title=None)
    events = without_checkpoints(events_of(written(path, line)))
    (message,) = messages_of(events)
    assert (message.session, message.id, message.parent) == ("7", "3", "2")
    assert message.metadata == {"speaker": ["Mara", "Jon"]}
    assert len(events) == 1


def test_a_message_without_id_keeps_the_one_it_gets(path: Path, tmp_path: Path) -> None:
    line = said("hello")
    first = messages_of(events_of(written(path, line)))[0]
    moved = messages_of(events_of(written(tmp_path / "b.jsonl", "\n", said("before"), line)))[1]
    assert first.id == moved.id
    assert len(first.id) == 24


def test_reading_goes_on_where_it_stopped(path: Path) -> None:
    lines = [
        said("a", id=1, title="Harbour"),
        said("b", session="s2", id=2, cwd="/work"),
        said("c", id=3, title="Harbour"),
        "{broken\n",
        said("d", session="s2", id=4, cwd="/other"),
    ]
    whole = events_of(written(path, *lines))
    (transcript,) = transcripts(path)
    for stop, event in enumerate(whole):
        if isinstance(event, Checkpoint):
            state = json.loads(json.dumps(event.state))
            assert list(transcript.read(event.offset, state)) == whole[stop + 1 :]
    told = [event for event in whole if isinstance(event, SessionInfo)]
    assert told == [
        SessionInfo("s1", title="Harbour"),
        SessionInfo("s2", cwd="/work"),
        SessionInfo("s2", cwd="/other"),
    ]


def test_the_state_stays_small(path: Path) -> None:
    events = events_of(written(path, *(said("x", session=f"s{n}", title=f"talk {n}") for n in range(300))))
    last = [event for event in events if isinstance(event, Checkpoint)][-1]
    assert len(json.dumps(last.state)) < 4000


def test_detection_is_by_the_first_record(path: Path) -> None:
    def name(*lines: str) -> str | None:
        found = detect(written(path, *lines))
        return found.name if found else None

    assert name(said("x")) == "messages"
    assert name("\ufeff" + said("x")) == "messages"
    assert name("\n", said("x"), "{broken\n") == "messages"
    assert name("{broken\n", said("x")) == "messages"
    assert (
        name('{"session": "s1", "id": "1", "role": "user", "text": "' + "x" * 100_000 + '"}\n') == "messages"
    )
    assert name('{"other": 1}\n', said("x")) is None
    assert name(said("x", role="king")) is None
    assert name('{"session": "s1", "role": "user", "content": "' + "x" * 100_000 + '"}\n') is None
    assert (
        name(json.dumps({"type": "user", "sessionId": "s", "message": {"content": "x"}}) + "\n") != "messages"
    )


def test_no_export_of_another_tool_is_taken_for_it(exports: Path) -> None:
    names = {one.format.name for one in transcripts(exports)}
    assert "messages" not in names
    format = Messages()
    taken = [path for path in exports.rglob("*") if path.is_file() and format.detect(path.name, head(path))]
    assert taken == []


def head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(65536)


@given(text=st.text(st.characters(), min_size=1), id_=st.text(min_size=1))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str, id_: str) -> None:
    path = tmp_path_factory.mktemp("talk") / "talk.jsonl"
    found = messages_of(events_of(written(path, said(text, id=id_))))
    assert "".join(one.text for one in found) == text
    assert {one.whole for one in found} == {id_}
    assert b"".join(exact_bytes(one.text) for one in found) == text.encode("utf-8", "surrogatepass")
