"""``python -m castle.cli.docs`` writes the reference of the command line to docs/cli.md."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import typer.main
from typer.core import TyperGroup

from castle.cli.app import app

PLACE = Path(__file__).parents[2] / "docs" / "cli.md"
_WIDTH = 100
_HEAD = """# Command line

What `castle COMMAND --help` says, written by `python -m castle.cli.docs`. `--palace` and `--debug` may stand
anywhere on the line. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done in part, 130 interrupted, 143
terminated.
"""


def reference() -> str:
    """Return the help of every command as Markdown."""
    parts = [_HEAD]
    for path in commands():
        parts.append(f"## castle {' '.join(path)}".rstrip() + f"\n\n```text\n{help_of(path)}\n```\n")
    return "\n".join(parts)


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the path of every command, groups before their members."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    yield ()
    for name, command in sorted(root.commands.items()):
        yield (name,)
        if isinstance(command, TyperGroup):
            yield from ((name, inner) for inner in sorted(command.commands))


def help_of(path: tuple[str, ...]) -> str:
    """Return what a command prints for ``--help``."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        app([*path, "--help"], prog_name="castle", standalone_mode=False, terminal_width=_WIDTH)
    return printed.getvalue().rstrip()


if __name__ == "__main__":
    PLACE.write_text(reference(), encoding="utf-8")
