"""``castle config``: what is set, where it came from, and changing it."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from castle import config
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
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        _print_rows([row for row in rows if row["pending"] is None])
        typer.echo("\nAccepted, but not read by this version:")
        _print_rows([row for row in rows if row["pending"] is not None])
    for hint in config.hints():
        typer.echo(f"note: {hint}", err=True)


@app.command()
def get(context: typer.Context, key: str, as_json: AsJson = False) -> None:
    """Print the value of one setting."""
    found = config.find_key(key)
    row = _row(_settings(context), found)
    typer.echo(json.dumps(row, ensure_ascii=False) if as_json else _text(row["value"]))


@app.command("set")
def set_(
    key: str,
    value: Annotated[str, typer.Argument(help="The value; - reads it from standard input.")],
) -> None:
    """Set a key in the user's castle.yaml; the rest of the file stays as it is."""
    found = config.find_key(key)
    path = config.set_user(key, sys.stdin.readline().rstrip("\r\n") if value == "-" else value)
    typer.echo(f"{key} is set in {path}", err=True)
    variable = next((name for name in found.env if os.environ.get(name)), None)
    if variable:
        typer.echo(f"note: the environment variable {variable} is set and goes before the file", err=True)
    if found.pending:
        typer.echo(f"note: this version does not read {key} yet ({found.pending})", err=True)


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
        text = _text(row["value"])
        note = f"  (for: {row['pending']})" if row["pending"] else ""
        cells.append(
            (row["key"], text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "...", row["origin"], note)
        )
    widths = [max(len(str(cell[column])) for cell in cells) for column in (0, 1)]
    for name, text, origin, note in cells:
        typer.echo(f"{name!s:{widths[0]}}  {text:{widths[1]}}  {origin}{note}")
