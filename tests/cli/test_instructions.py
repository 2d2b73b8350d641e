from __future__ import annotations

import json

import pytest

from castle.instructions import NAMES, text
from tests.cli.conftest import Run


@pytest.mark.parametrize("name", NAMES)
def test_instructions_are_printed_as_they_are(run: Run, name: str) -> None:
    done = run("instructions", name)
    assert (done.code, done.err) == (0, "")
    assert done.out == text(name)
    assert done.out.startswith("# ")
    assert json.loads(run("instructions", name, "--json").out) == {"name": name, "text": text(name)}


def test_without_a_name_it_is_the_help_that_names_all(run: Run) -> None:
    assert run("instructions").out == text("help")
    assert all(name in text("help") for name in NAMES if name != "help")


@pytest.mark.parametrize(("name", "near"), [("serach", "search"), ("Mine", "mine"), ("docter", "doctor")])
def test_a_slip_of_the_pen_is_answered_with_the_nearest_name(run: Run, name: str, near: str) -> None:
    done = run("instructions", name)
    assert (done.code, done.out) == (2, "")
    assert f"`castle instructions {near}`" in done.err


def test_an_unknown_name_is_answered_with_all_names(run: Run) -> None:
    done = run("instructions", "../../etc/passwd")
    assert done.code == 2
    assert ", ".join(NAMES) in done.err
