from __future__ import annotations

from dataclasses import replace

import pytest

from castle.store import receipts as module
from castle.store.palace import Palace
from castle.store.receipts import (
    Receipt,
    ReceiptPage,
    State,
    last_failed,
    list_receipts,
    mark_seen,
    record,
    unseen,
)


def receipt(at: int, state: State = "ok", session: str = "s1", **more: object) -> Receipt:
    made = Receipt(0, at, "codex", "stop", session, f"/t/{session}.jsonl", 3, 3, "d", state, "why")
    return replace(made, **more)  # type: ignore[arg-type]


def keep(palace: Palace, *made: Receipt) -> None:
    for one in made:
        with palace.ledger.write() as cx:
            record(cx, one)


def page(palace: Palace, session: str | None = None, failed: bool = False, limit: int = 100) -> ReceiptPage:
    with palace.ledger.read() as cx:
        return list_receipts(cx, limit, 0, session, failed)


def failure(palace: Palace) -> Receipt | None:
    with palace.ledger.read() as cx:
        return last_failed(cx)


def test_receipts_are_given_back_the_latest_first(palace: Palace) -> None:
    keep(palace, receipt(1), receipt(3, session="s2", new=2), receipt(2, digest="e"))
    found = page(palace)
    assert (found.total, found.offset, found.failing) == (3, 0, 0)
    assert [one.at for one in found.receipts] == [3, 2, 1]
    newest = found.receipts[0]
    assert newest == receipt(3, session="s2", new=2, id=newest.id)
    with palace.ledger.read() as cx:
        second = list_receipts(cx, 1, 1, None, False)
    assert (second.total, second.offset, [one.at for one in second.receipts]) == (3, 1, [2])


def test_sessions_are_named_by_their_beginning(palace: Palace) -> None:
    keep(palace, receipt(1, session="abc"), receipt(2, session="abd"), receipt(3, session="x%"))
    assert page(palace, "ab").total == 2
    assert page(palace, "abc").total == 1
    assert page(palace, "%").total == 0


def test_a_failure_is_open_until_the_session_is_saved(palace: Palace) -> None:
    keep(palace, receipt(1, "failed"), receipt(2, "failed", "s2"))
    found = failure(palace)
    assert found is not None
    assert found.session == "s2"
    keep(palace, receipt(3, session="s2"))
    found = failure(palace)
    assert found is not None
    assert found.session == "s1"
    assert page(palace, failed=True).total == 1
    keep(palace, receipt(4, transcript="/t/moved.jsonl"))
    assert failure(palace) is None
    assert {one.settled_at for one in page(palace).receipts} == {None, 3, 4}


def test_sessions_without_an_id_settle_only_their_own_transcript(palace: Palace) -> None:
    keep(palace, receipt(1, "failed", "", transcript="/t/a"), receipt(2, session="", transcript="/t/b"))
    assert failure(palace) is not None
    keep(palace, receipt(3, session="", transcript="/t/a"))
    assert failure(palace) is None


def test_the_same_failure_again_is_one_receipt(palace: Palace) -> None:
    keep(palace, receipt(1, "failed"), receipt(2, "waiting"), receipt(3, "failed", detail="full"))
    (one,) = page(palace).receipts
    assert (one.at, one.state, one.detail) == (3, "failed", "full")
    keep(palace, receipt(4), receipt(5, "failed"))
    assert [found.at for found in page(palace).receipts] == [5, 4, 3]


def test_what_is_let_go_is_not_open(palace: Palace) -> None:
    keep(palace, receipt(1, "failed"), receipt(2, "failed", settled_at=2))
    assert failure(palace) is None
    assert page(palace).total == 1


def test_the_same_success_again_is_one_receipt(palace: Palace) -> None:
    keep(
        palace,
        receipt(1, new=3),
        receipt(2),
        receipt(3, hook="session-start"),
        receipt(4, session="", transcript="/t/s1.jsonl"),
    )
    (one,) = page(palace).receipts
    assert (one.at, one.hook, one.session, one.new) == (4, "stop", "s1", 3)
    keep(
        palace,
        receipt(5, digest="e"),
        receipt(6, digest="e", new=1),
        receipt(7, session="s2", transcript="/t/s1.jsonl", digest="e"),
    )
    assert [found.at for found in page(palace).receipts] == [7, 6, 5, 4]
    keep(palace, receipt(8, session="s2", transcript="/t/s1.jsonl", digest="e", detail="opted out"))
    assert [found.at for found in page(palace).receipts] == [8, 7, 6, 5, 4]


def test_the_last_ones_and_the_open_ones_are_kept(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 5)
    keep(palace, receipt(1, "failed", "lost"))
    keep(palace, *(receipt(at, digest=str(at)) for at in range(2, 20)))
    assert [one.at for one in page(palace).receipts] == [19, 18, 17, 16, 15, 1]


def test_what_was_asked_for_is_not_told_again(palace: Palace) -> None:
    with palace.ledger.write() as cx:
        assert unseen(cx) == (0, None)
    keep(palace, receipt(1, new=2), receipt(2, new=3), receipt(3, "failed", "s2", new=5))
    with palace.ledger.write() as cx:
        assert unseen(cx) == (5, 2)
        mark_seen(cx)
        assert unseen(cx) == (0, None)
    keep(palace, receipt(4, new=1))
    with palace.ledger.read() as cx:
        assert unseen(cx) == (1, 4)


def test_a_ledger_without_the_table_has_none(palace: Palace) -> None:
    with palace.ledger.write() as cx:
        cx.exec_driver_sql("DROP TABLE receipts")
        assert list_receipts(cx, 10, 0, None, False) == ReceiptPage(0, 0, 0, ())
        assert last_failed(cx) is None
        assert unseen(cx) == (0, None)


def test_what_a_killed_save_has_not_told_is_told_by_the_next(palace: Palace) -> None:
    keep(palace, receipt(1, new=2, entries=2, stored=2, digest="a"))
    keep(palace, receipt(2, new=0, entries=5, stored=5, digest="b"))
    assert page(palace).receipts[0].new == 3
