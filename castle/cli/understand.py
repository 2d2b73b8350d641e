"""``castle understand``: how a text is written and what it pins down."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from castle.cli.common import AsJson
from castle.cli.output import note, say, say_json, say_table
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.text.understanding import Profile

LARGEST_BYTES = 16 * 1024 * 1024
_INSTEAD = "castle understand takes a text file, or - for standard input"


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command()(understand)


def understand(
    file: Annotated[str, typer.Argument(help="A text file, or - for standard input.", metavar="FILE|-")],
    as_json: AsJson = False,
) -> int:
    """Measure how a text is written and what it pins down: 34 measures, and one number of them all.

    The number is what a search's quality stage goes by. The measures look for English words, are the same on
    every machine and are signals, not a judgement.
    """
    from castle.text.understanding import understand as measured

    profile = measured(_text_of(file))
    if as_json:
        say_json(profile)
    else:
        _show(profile)
    return 0


def _show(profile: Profile) -> None:
    say_table(
        ("layer", "category", "measure", "raw", "score", "weight"),
        [
            (m.layer, m.category, m.name, round(m.raw, 4), round(m.score, 4), m.weight)
            for m in profile.metrics
        ],
    )
    say()
    say_table(
        ("category", "score", "weight"), [(c.name, round(c.score, 4), c.weight) for c in profile.categories]
    )
    say()
    say(f"overall {profile.overall:.4f}, {profile.requirements:,} statements, {profile.words:,} words")
    note("signals of form, made for statements of what something does; they say nothing about truth or worth")


def _text_of(name: str) -> str:
    from castle.mine.read import open_regular
    from castle.records import Skipped

    if name == "-":
        return _decoded(sys.stdin.buffer, "standard input", "")
    # A file that the user names is read wherever the link leads; what is no file is not opened.
    opened = open_regular(Path(os.path.realpath(name)), shown=name)
    if isinstance(opened, Skipped):
        why = f"{opened.reason}: {opened.detail}" if opened.detail else opened.reason
        raise UsageError(f"{name or repr(name)}: {why}; {_INSTEAD}")
    with opened as file:
        return _decoded(file, name, Path(name).name)


def _decoded(file: BinaryIO, shown: str, name: str) -> str:
    """Read a stream to its end as the miner would, and say how its bytes were understood."""
    from io import BytesIO

    from castle.mine.encodings import SNIFF_BYTES, Binary, sniff
    from castle.mine.read import SourceReader

    try:
        data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{shown}: {error.strerror or error}; {_INSTEAD}") from error
    if len(data) > LARGEST_BYTES:
        raise UsageError(f"{shown}: more than {LARGEST_BYTES:,} bytes; measure a part of it: head -c 1000000")
    kind = sniff(data[:SNIFF_BYTES], name)
    if isinstance(kind, Binary):
        raise UsageError(f"{shown}: {kind.reason}; {_INSTEAD}")
    reader = SourceReader(BytesIO(data), kind)
    text = "".join(block.text for block in reader.blocks())
    for fact in reader.notes:
        note(f"{shown}: {fact}")
    return text
