"""Running the table of checks."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from castle import Castle
from castle.doctor import CHECKS, Context, examine
from castle.doctor.line import Result, bad, good, unknown
from castle.errors import PalaceError
from tests.doctor.conftest import named


def context(tmp_path: Path) -> Context:
    castle = Castle(tmp_path / "none")
    return Context(castle.settings, castle._palace)


def test_a_check_that_breaks_is_a_line(tmp_path: Path) -> None:
    def breaks(_: Context) -> Result:
        raise ZeroDivisionError("a fault of ours")

    def refuses(_: Context) -> Result:
        raise PalaceError("the disk is full")

    def needs(context: Context) -> Result:
        context.palace()
        return good("never")

    checks = [named("a", breaks), named("b", refuses), named("c", needs), named("d", lambda _: good("yes"))]
    found = examine(context(tmp_path), checks)
    assert [(line.check, line.status) for line in found.lines] == [
        ("a", "failed"),
        ("b", "failed"),
        ("c", "not checked"),
        ("d", "ok"),
    ]
    assert "ZeroDivisionError: a fault of ours" in found.lines[0].detail
    assert found.lines[1].detail == "the disk is full"
    assert not found.in_force


def test_a_check_that_takes_too_long_is_left_alone(tmp_path: Path) -> None:
    over = threading.Event()

    def slow(_: Context) -> Result:
        over.wait(60)
        return good("late")

    found = examine(context(tmp_path), [named("slow", slow, 0.05), named("next", lambda _: good("yes"))])
    over.set()
    assert [line.status for line in found.lines] == ["not checked", "ok"]
    assert "no result" in found.lines[0].detail


def test_only_what_failed_counts(tmp_path: Path) -> None:
    yes, no, who = good("yes"), bad("no", "castle verify"), unknown("who knows")
    assert examine(context(tmp_path), [named("a", lambda _: yes), named("b", lambda _: who)]).in_force
    assert not examine(context(tmp_path), [named("a", lambda _: yes), named("b", lambda _: no)]).in_force


def test_the_palace_is_opened_once(tmp_path: Path) -> None:
    tries = []

    def fails() -> None:
        tries.append(1)
        raise PalaceError("damaged")

    looking = Context(context(tmp_path).settings, fails)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(PalaceError, match="damaged"):
            looking.opened()
    assert len(tries) == 1


def test_every_check_has_its_own_name() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names) > 15
