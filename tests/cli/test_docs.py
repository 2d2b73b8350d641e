from __future__ import annotations

from castle.cli.docs import PLACE, commands, help_of, reference


def test_the_reference_is_what_the_program_says() -> None:
    written = PLACE.read_text(encoding="utf-8")
    assert written == reference(), "run python -m castle.cli.docs"


def test_every_command_says_what_it_does() -> None:
    for path in commands():
        text = help_of(path)
        usage, what, *_ = text.split("\n\n")
        assert usage.startswith("Usage: castle")
        assert what.rstrip().endswith(".")
