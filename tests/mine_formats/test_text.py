from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.mine.formats import Checkpoint, Event, Format, Message, Transcript, exact_bytes
from castle.mine.formats.aider import Aider
from castle.mine.formats.container import Single
from castle.mine.formats.plain import Plain
from tests.mine_formats.support import messages_of, transcripts

LINES = [
    b"# aider chat started at 2024-08-05 19:33:02\n",
    b"# aider chat started at 2024-08-05 19:33:02\r\n",
    b"#### do it\n",
    b"####\n",
    b"##### a heading\n",
    b"> output\n",
    b">\n",
    b"\n",
    b"  \n",
    b"text\r\n",
    b"User: hi\n",
    b"**Assistant:** ho\n",
    b"\xff\x00 stray\n",
    b"\xef\xbb\xbf",
    b"<private>x</private>\n",
]


def read(path: Path, data: bytes, format: Format, offset: int = 0, state: object = None) -> list[Event]:
    path.write_bytes(data)
    kept = json.loads(json.dumps(state)) if state else None
    return list(Transcript(Single(path), path.name, format).read(offset, kept))


def joined(messages: list[Message]) -> bytes:
    return b"".join(exact_bytes(one.text, escaped=one.escaped) for one in messages)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text") / "history.md"


@settings(max_examples=150, deadline=None)
@given(
    data=st.lists(st.sampled_from(LINES), max_size=14).map(b"".join),
    format=st.sampled_from([Aider(), Plain()]),
)
def test_every_byte_belongs_to_one_message(path: Path, data: bytes, format: Format) -> None:
    assert joined(messages_of(read(path, data, format))) == data


@settings(max_examples=150, deadline=None)
@given(data=st.lists(st.sampled_from(LINES), max_size=10).map(b"".join), cut=st.integers(0, 200))
def test_going_on_gives_the_same_messages(path: Path, data: bytes, cut: int) -> None:
    whole = {(one.session, one.id): one for one in messages_of(read(path, data, Aider()))}
    first = read(path, data[:cut], Aider())
    last = [event for event in first if isinstance(event, Checkpoint)][-1:]
    offset, state = (last[0].offset, last[0].state) if last else (0, None)
    later = messages_of(read(path, data, Aider(), offset, state))
    # The turn that was open is read again, and the later version counts.
    together = {(one.session, one.id): one for one in [*messages_of(first), *later]}
    if not any(data[:cut].endswith(line[:part]) for line in LINES for part in range(1, len(line))):
        assert together == whole


def test_turns_of_aider(path: Path) -> None:
    data = (
        b"-*- mode -*-\n"
        b"# aider chat started at 2024-08-05 19:33:02\n\n> Aider v1\n> Model\n\n"
        b"#### first line  \n#### second\n\nreply\n\n> Applied\n\n#### /diff\n\n#### /exit\n"
        b"# aider chat started at 2024-08-05 19:33:02\n"
    )
    found = messages_of(read(path, data, Aider()))
    assert [(one.id, one.role, one.kind, one.text) for one in found] == [
        ("1", "system", "injected", "-*- mode -*-\n"),
        ("2024-08-05 19:33:02/1", "system", "injected", "# aider chat started at 2024-08-05 19:33:02\n\n"),
        ("2024-08-05 19:33:02/2", "tool", "tool", "> Aider v1\n> Model\n\n"),
        ("2024-08-05 19:33:02/3", "user", "message", "#### first line  \n#### second\n\n"),
        ("2024-08-05 19:33:02/4", "assistant", "message", "reply\n\n"),
        ("2024-08-05 19:33:02/5", "tool", "tool", "> Applied\n\n"),
        ("2024-08-05 19:33:02/6", "user", "message", "#### /diff\n\n"),
        ("2024-08-05 19:33:02/7", "user", "message", "#### /exit\n"),
        ("2024-08-05 19:33:02 #2/1", "system", "injected", "# aider chat started at 2024-08-05 19:33:02\n"),
    ]
    assert found[1].timestamp == 1_722_886_382_000_000


def test_a_growing_history_is_read_from_its_last_turn(exports: Path, path: Path) -> None:
    data = (exports / "aider" / "aider_chat-history.md").read_bytes()
    first = read(path, data[:100_000], Aider())
    last = [event for event in first if isinstance(event, Checkpoint)][-1]
    later = read(path, data, Aider(), last.offset, last.state)
    assert data[: last.offset] + joined(messages_of(later)) == data
    ids = [(one.session, one.id) for one in messages_of(first)[:-1] + messages_of(later)]
    assert ids == [(one.session, one.id) for one in messages_of(read(path, data, Aider()))]


def test_turns_by_quote(path: Path) -> None:
    data = b"Title\n\n> how?\n> really\nlike this\n\n> and then?\nso\n> ok\n"
    assert Plain().detect("x.txt", data)
    found = messages_of(read(path, data, Plain()))
    assert [(one.id, one.role, one.text) for one in found] == [
        ("1", "system", "Title\n\n"),
        ("2", "user", "> how?\n> really\n"),
        ("3", "assistant", "like this\n\n"),
        ("4", "user", "> and then?\n"),
        ("5", "assistant", "so\n"),
        ("6", "user", "> ok\n"),
    ]
    assert {one.session for one in found} == {""}


def test_turns_by_speaker(path: Path) -> None:
    data = b"Human: hi\n> quoted\n\n**Assistant**: hello\nUsers: not a mark\n### User:\nbye"
    assert Plain().detect("x.txt", data)
    found = messages_of(read(path, data, Plain()))
    assert [(one.role, one.text) for one in found] == [
        ("user", "Human: hi\n> quoted\n\n"),
        ("assistant", "**Assistant**: hello\nUsers: not a mark\n"),
        ("user", "### User:\nbye"),
    ]


def test_a_text_without_turns_is_one_message(path: Path) -> None:
    assert not Plain().detect("x.txt", b"notes\nmore\n")
    assert [(one.role, one.text) for one in messages_of(read(path, b"notes\nmore", Plain()))] == [
        ("user", "notes\nmore")
    ]
    assert not Plain().detect("x.json", b'{"a": "\n> b\n> c\n> d"}')


def test_private_words_in_plain_text(path: Path) -> None:
    data = b"User: my pin is <private>1234</private>\nAssistant: ok\n"
    found = messages_of(read(path, data, Plain()))
    assert [(one.id, one.kind) for one in found] == [
        ("1", "message"),
        ("1@16", "private"),
        ("1@39", "injected"),
        ("2", "message"),
    ]
    assert joined(found) == data


def test_a_file_by_its_usual_name(tmp_path: Path) -> None:
    history = tmp_path / ".aider.chat.history.md"
    history.write_text("> Aider v1\n", encoding="utf-8")
    assert [one.format.name for one in transcripts(tmp_path)] == ["aider"]
