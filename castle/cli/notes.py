"""``castle add``, ``update`` and ``check-duplicate``: texts that are filed one by one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson, castle
from castle.cli.output import PARTIAL, note, say, say_json, say_table
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.mine.duplicates import Duplicates

Text = Annotated[str, typer.Argument(help="The exact words; - reads them from standard input.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(add)
    app.command()(update)
    app.command("check-duplicate")(check_duplicate)


def add(
    context: typer.Context,
    text: Text,
    wing: Annotated[str, typer.Option("--wing", help="The wing it goes to.")],
    room: Annotated[str, typer.Option("--room", help="The room in it.")],
    source_file: Annotated[
        str | None, typer.Option("--source-file", help="Where it comes from.", metavar="NAME")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="Who gives it; by default you.")] = None,
    as_json: AsJson = False,
) -> None:
    """File a text word for word as a note. The same text in the same place is filed once."""
    words = given(text)
    with castle(context) as service:
        added = service.add(words, wing=wing, room=room, source_file=source_file, added_by=by)
    if as_json:
        say_json(added)
        return
    for id in added.ids:
        say(id)
    done = "is filed already" if added.reason else "filed"
    note(f"{done} in {added.wing} / {added.room}, sha256 {added.sha256}")


def update(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="A drawer's id or its beginning.")],
    text: Annotated[
        str | None,
        typer.Argument(help="What it is to say; - reads it from standard input.", metavar="[TEXT]"),
    ] = None,
    wing: Annotated[str | None, typer.Option("--wing", help="Move its note to this wing.")] = None,
    room: Annotated[str | None, typer.Option("--room", help="Move its note to this room.")] = None,
    expected_sha256: Annotated[
        str | None,
        typer.Option("--expected-sha256", help="Only if it, or its whole note, still has this hash."),
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="Who changes it; by default you.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change a note: another text is its next revision, and --history finds what it said before.

    Of a note of several drawers the hash says what is replaced: the drawer, or the whole note. Text that
    comes from files and sessions is changed where it comes from.
    """
    words = None if text is None else given(text)
    with castle(context) as service:
        changed = service.update(
            id, words, wing=wing, room=room, expected_sha256=expected_sha256, added_by=by
        )
    if as_json:
        say_json(changed)
    else:
        for id in changed.ids:
            say(id)
        what = "nothing to change" if changed.noop else f"revision {changed.revision}"
        note(f"{what}: {changed.wing} / {changed.room}, sha256 {changed.sha256}")
    for line in changed.notes:
        note(line)


def check_duplicate(
    context: typer.Context,
    text: Text,
    threshold: Annotated[
        float, typer.Option("--threshold", help="The least similarity of a match.", min=0.0, max=1.0)
    ] = 0.9,
    as_json: AsJson = False,
) -> int:
    """Say whether a text is filed already, word for word or nearly so; files nothing.

    Exit code 3 when not everything could be compared.
    """
    words = given(text)
    with castle(context) as service:
        found = service.check_duplicate(words, threshold=threshold)
    if as_json:
        say_json(found)
    else:
        _say_matches(found)
    for reason in found.degraded:
        note(reason)
    return PARTIAL if found.degraded else 0


def _say_matches(found: Duplicates) -> None:
    rows = [
        (match.id, f"{match.similarity:.2f}", match.wing, match.room, " ".join(match.text.split())[:60])
        for match in found.matches
    ]
    if rows:
        say_table(("id", "similarity", "wing", "room", "text"), rows)
    note("filed already" if found.is_duplicate else "not filed yet")


def given(text: str) -> str:
    """Return the text that an argument holds or stands for."""
    try:
        if text == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        text.encode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8 (byte {error.start})") from error
    except UnicodeEncodeError as error:
        raise UsageError(f"the text is not UTF-8 (character {error.start})") from error
    return text
