"""Verification finds every way in which a message and its drawers can disagree."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle import Castle
from castle.records import Finding
from castle.store.sessions import drawer_key, message_of

LONG = "\n\n".join(f"Paragraph {n}: the harbour is closed. " + f"berth{n} " * 60 for n in range(12))
IMAGE = base64.b64encode(b"\x89PNG harbour").decode()


def record(id_: str, content: object, role: str = "user") -> str:
    message = {"role": role, "content": content}
    return json.dumps({"type": role, "uuid": id_, "sessionId": "s1", "message": message}) + "\n"


LINES = (
    record("u1", LONG),
    record("u2", "the harbour", "assistant"),
    record("u2", "the harbour is open", "assistant"),
    record("u3", "before <private>my diary</private> after"),
    record("u4", "one thing"),
    record("u4", "another"),
    record("u5~2", "an id like a version"),
    record("u5", "first"),
    record("u5", "second"),
    record("u6", "lone \ud83d surrogate and \x00"),
    record("u7", [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}]),
)


@pytest.fixture
def castle(tmp_path: Path) -> Iterator[Castle]:
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(LINES[:5]), encoding="utf-8")
    with Castle(tmp_path / "palace", embedder="fake") as opened:
        opened.mine(path, mode="convos")
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(LINES[5:]) + record("u4", "one thing and more"))
        opened.mine(path, mode="convos")
        yield opened


def check(castle: Castle) -> Finding:
    (finding,) = [finding for finding in castle.verify() if finding.check == "messages"]
    return finding


def run(castle: Castle, statement: str, *values: object) -> None:
    """Change the database behind the palace's back, foreign keys and all."""
    with closing(sqlite3.connect(castle.root / "castle.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


def test_a_whole_palace_is_ok(castle: Castle) -> None:
    assert {finding.status for finding in castle.verify()} == {"ok"}
    assert check(castle).detail == "14 checked"
    texts = {(message.id, message.text) for message in castle.get_session("s1")}
    assert {("u5~2", "an id like a version"), ("u5", "first"), ("u5", "second")} <= texts


def test_a_palace_without_conversations_is_ok(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("the harbour", encoding="utf-8")
    with Castle(tmp_path / "other", embedder="fake") as castle:
        castle.mine(tmp_path / "notes")
        assert check(castle) == Finding("messages", "ok", "0 checked")


def test_a_text_that_was_changed_with_its_hash(castle: Castle) -> None:
    text = "the harbour is gone"
    run(
        castle,
        "UPDATE drawers SET text = ?, sha256 = ? WHERE text = 'the harbour is open'",
        text,
        hashlib.sha256(text.encode()).digest(),
    )
    assert check(castle) == Finding("messages", "failed", "message u2~2: its drawers do not give it back")


def test_a_superseded_text_that_was_changed(castle: Castle) -> None:
    run(castle, "UPDATE drawers SET text = 'no thing' WHERE text = 'one thing' AND state = 'superseded'")
    assert check(castle).detail == "message u4: its drawers do not give it back"


def test_exact_bytes_that_were_changed(castle: Castle) -> None:
    run(castle, "UPDATE drawers SET raw = ? WHERE raw IS NOT NULL", b"other")
    assert check(castle).detail == "message u6: its drawers do not give it back"


def test_a_size_that_was_changed(castle: Castle) -> None:
    run(castle, "UPDATE messages SET size = size + 1 WHERE id = 'u6'")
    assert check(castle).detail == "message u6: its drawers do not give it back"


def test_drawers_that_changed_places(castle: Castle) -> None:
    run(
        castle, "UPDATE drawers SET rid = -1 WHERE rid = (SELECT max(rid) FROM drawers WHERE message_id='u1')"
    )
    assert "message u1: its drawers do not give it back" in check(castle).detail


def test_a_drawer_that_is_missing(castle: Castle) -> None:
    run(castle, "DELETE FROM drawers WHERE rid = (SELECT max(rid) FROM drawers WHERE message_id = 'u1')")
    assert check(castle).detail == "message u1: its drawers do not give it back"


def test_a_message_without_drawers(castle: Castle) -> None:
    run(castle, "DELETE FROM drawers WHERE message_id = 'u1'")
    assert check(castle).detail == "message u1: it has no drawers"


def test_a_drawer_that_was_given_to_another_message(castle: Castle) -> None:
    run(castle, "UPDATE drawers SET message_id = 'u9' WHERE message_id = 'u6'")
    detail = check(castle).detail
    assert "message u9: it has drawers and is not recorded" in detail
    assert "message u6: it has no drawers" in detail


def test_a_message_that_is_not_recorded(castle: Castle) -> None:
    run(castle, "DELETE FROM messages WHERE id = 'u6'")
    assert check(castle).detail == "message u6: it has drawers and is not recorded"


def test_a_replaced_message_that_nothing_goes_on_from(castle: Castle) -> None:
    run(castle, "UPDATE messages SET sha256 = ? WHERE id = 'u2' AND version = 1", b"0" * 32)
    assert check(castle).detail == "message u2: it has no drawers"


def test_what_should_have_been_counted_only(castle: Castle) -> None:
    run(castle, "UPDATE messages SET kind = 'private' WHERE id = 'u6'")
    assert check(castle).detail == "message u6: it is private and was stored all the same"


def test_a_file_that_was_changed(castle: Castle) -> None:
    digest = hashlib.sha256(b"\x89PNG harbour").hexdigest()
    run(castle, "UPDATE blobs SET data = ?", b"other")
    assert check(castle).detail == f"file {digest[:24]} of a message is not what was filed"


@given(st.tuples(st.text(), st.integers(1, 99)), st.tuples(st.text(), st.integers(1, 99)))
def test_keys_name_one_version_of_one_message(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert message_of(drawer_key(*one)) == one
    assert (drawer_key(*one) == drawer_key(*other)) == (one == other)


@pytest.mark.parametrize("id_", ["a~1", "a~2", "a~01", "~3", "a~2~3", "a\n~2", "~"])
def test_ids_that_look_like_keys(id_: str) -> None:
    assert [message_of(drawer_key(id_, version)) for version in (1, 2)] == [(id_, 1), (id_, 2)]
