"""``castle config``: what is set, where it came from, and changing it."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from castle import config
from castle.cli.output import note, say, say_json, visible, write
from castle.config.compiled import compile_hooks
from castle.config.values import MASK, plain, to_yaml

app = typer.Typer(help="Show and change settings.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_WIDTH = 60


@app.command()
def show(context: typer.Context, as_json: AsJson = False) -> None:
    """Show every setting, its value and where the value came from."""
    settings = _settings(context)
    rows = [_row(settings, key) for key in config.keys().values()]
    if as_json:
        say_json(rows)
    else:
        _print_rows([row for row in rows if row["pending"] is None])
        say("\nAccepted, but not read by this version:")
        _print_rows([row for row in rows if row["pending"] is not None])
    for hint in config.hints():
        note(f"note: {hint}")


@app.command()
def get(context: typer.Context, key: str, as_json: AsJson = False) -> None:
    """Print the value of one setting."""
    found = config.find_key(key)
    row = _row(_settings(context), found)
    if as_json:
        say_json(row)
    else:
        write(f"{_text(row['value'])}\n")


@app.command("set")
def set_(
    key: str,
    value: Annotated[str, typer.Argument(help="The value; - reads it from standard input.")],
) -> None:
    """Set a key in the user's castle.yaml; the rest of the file stays as it is."""
    found = config.find_key(key)
    path = config.set_user(key, sys.stdin.readline().rstrip("\r\n") if value == "-" else value)
    compile_hooks(config.load(env={}, home=path.parent))
    note(f"{key} is set in {path}")
    variable = next((name for name in found.env if os.environ.get(name)), None)
    if variable:
        note(f"note: the environment variable {variable} is set and goes before the file")
    if found.pending:
        note(f"note: this version does not read {key} yet ({found.pending})")


@app.command()
def unset(key: str) -> None:
    """Take a key out of the user's castle.yaml; the rest of the file stays as it is."""
    path, was_there = config.unset_user(key)
    if was_there:
        compile_hooks(config.load(env={}, home=path.parent))
    note(f"{key} is no longer set in {path}" if was_there else f"{key} is not set in {path}")
    row = _row(config.load(), config.find_key(key))
    note(f"in force is {_text(row['value'])} ({row['origin']})")


def _settings(context: typer.Context) -> config.Settings:
    """Load the settings with the flags given before the subcommand."""
    return config.load({"palace_path": context.find_root().params.get("palace")})


def _row(settings: config.Settings, key: config.Key) -> dict[str, object]:
    value = settings.value(key.name)
    shown = MASK if key.secret and value is not None else plain(value)
    return {
        "key": key.name,
        "value": shown,
        "origin": settings.origin(key.name),
        "pending": key.pending or None,
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else to_yaml(value)


def _print_rows(rows: list[dict[str, object]]) -> None:
    cells = []
    for row in rows:
        text = visible(_text(row["value"]))
        remark = f"  (for: {row['pending']})" if row["pending"] else ""
        cells.append(
            (row["key"], text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "...", row["origin"], remark)
        )
    widths = [max(len(str(cell[column])) for cell in cells) for column in (0, 1)]
    for name, text, origin, remark in cells:
        say(f"{name!s:{widths[0]}}  {text:{widths[1]}}  {origin}{remark}")
