"""``castle memory``, the rest: what the mind does with what it holds, and what comes in and goes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castle.cli.common import AsJson, castle, path_argument
from castle.cli.memory import Wing, app
from castle.cli.output import PARTIAL, note, progress, say, say_json, say_outline, say_table
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.mind.exporting import TakenIn
    from castle.mind.importing import Imported

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")]
Confirmed = Annotated[bool, typer.Option("--yes/--no", help="Whether it is right.")]

__all__ = ["app"]


@app.command()
def consolidate(
    context: typer.Context,
    wing: Wing = None,
    dry_run: DryRun = False,
    force: Annotated[bool, typer.Option("--force", help="Though the last cycle was a moment ago.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a cycle: score episodes, put away what counts little, find patterns."""
    with castle(context) as service:
        _say_told(service.memory_consolidate(wing=wing, dry_run=dry_run, force=force), as_json)


@app.command()
def verify(
    context: typer.Context,
    id: Annotated[str | None, typer.Argument(help="A memory; without it all.", metavar="[ID]")] = None,
    environment: Annotated[
        Path | None, typer.Option("--env", help="A JSON file with the environment.", metavar="FILE")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Check falsifiable conditions and expire what is met."""
    given = None if environment is None else _json_file(environment)
    with castle(context) as service:
        _say_told(service.memory_verify(id, given, dry_run=dry_run), as_json)


@app.command()
def env(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON file with the environment.", metavar="FILE")],
    wing: Wing = None,
    merge: Annotated[bool, typer.Option("--merge", help="It is a part of the environment.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare an environment with the last one; castle check-env collects that of a project by itself."""
    with castle(context) as service:
        told = service.memory_check_environment(_json_file(file), wing=wing, merge=merge)
    _say_told(told, as_json)


@app.command()
def reflect(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="What was to be done.")],
    result: Annotated[str, typer.Option("--outcome", help="success, partial or failure.")] = "failure",
    dimensions: Annotated[
        str, typer.Option("--dimensions", help="failure, strategy, gaps, process or all.")
    ] = "failure",
    apply: Annotated[bool, typer.Option("--apply", help="Do what is proposed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Think about how a task went."""
    with castle(context) as service:
        told = service.memory_reflect(task, outcome=result, dimensions=dimensions, apply=apply)
    _say_told(told, as_json)


@app.command()
def replay(
    context: typer.Context,
    theme: Annotated[str | None, typer.Argument(help="What it should be about.", metavar="[THEME]")] = None,
    as_json: AsJson = False,
) -> None:
    """Look for hypotheses that join what is far apart."""
    with castle(context) as service, progress() as line:
        told = service.memory_replay(theme, progress=line)
    _say_told(told, as_json)


@app.command()
def pool(
    context: typer.Context,
    status: Annotated[
        str | None,
        typer.Option("--status", help="pending (if not given), confirmed, promoted, rejected or expired."),
    ] = None,
    feedback: Annotated[
        str | None, typer.Option("--feedback", help="Say whether this one is right.", metavar="ID")
    ] = None,
    confirmed: Confirmed = True,
    as_json: AsJson = False,
) -> None:
    """List hypotheses, or say whether one is right."""
    _one_of({"--status": status, "--feedback": feedback})
    with castle(context) as service:
        if feedback is None:
            told = service.memory_creative_pool(status)
        else:
            told = service.memory_hypothesis_feedback(feedback, confirmed)
    _say_told(told, as_json)


@app.command()
def prefs(
    context: typer.Context,
    add: Annotated[str | None, typer.Option("--add", help="Keep this preference.", metavar="TEXT")] = None,
    type: Annotated[str | None, typer.Option("--type", help="Its type, or only this type.")] = None,
    extract: Annotated[bool, typer.Option("--extract", help="Look for some in episodes.")] = False,
    conflicts: Annotated[bool, typer.Option("--conflicts", help="Those against each other.")] = False,
    feedback: Annotated[
        str | None, typer.Option("--feedback", help="Say whether this one is right.", metavar="ID")
    ] = None,
    confirmed: Confirmed = True,
    about: Annotated[str | None, typer.Option("--about", help="Those first that fit this.")] = None,
    as_json: AsJson = False,
) -> None:
    """List preferences, keep one, look for some, or say whether one is right."""
    _one_of({"--add": add, "--extract": extract, "--conflicts": conflicts, "--feedback": feedback})
    with castle(context) as service:
        if add is not None:
            told = service.memory_inject_preference(add, preference_type=type or "general")
        elif feedback is not None:
            told = service.memory_record_preference_feedback(feedback, confirmed)
        elif extract:
            told = service.memory_extract_preferences()
        elif conflicts:
            told = service.memory_check_preference_conflicts()
        else:
            told = service.memory_get_preferences(about, preference_type=type)
    _say_told(told, as_json)


@app.command()
def seed(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON file with seed_knowledge.", parser=path_argument)],
    as_json: AsJson = False,
) -> int:
    """Believe the facts of a file. The same file again changes nothing; exit code 3 for wrong entries."""
    with castle(context) as service:
        done = service.memory_seed(file)
    if as_json:
        say_json(done)
    else:
        say(f"{done.added} added, {done.updated} updated, {done.unchanged} unchanged")
    for line in done.warnings:
        note(line)
    return PARTIAL if done.warnings else 0


@app.command("import")
def take_in(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="What castle memory export wrote.", parser=path_argument)],
    as_json: AsJson = False,
) -> int:
    """Add what an export holds and this mind lacks, drawers first.

    Exit code 3 if something was left out.
    """
    with castle(context) as service:
        return _say_came(service.memory_take_in(file), as_json)


@app.command("import-cellmem")
def import_cellmem(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(help="The database, cell_mem.db.", parser=path_argument, envvar="CELL_MEM_DB"),
    ],
    wing: Wing = None,
    as_json: AsJson = False,
) -> int:
    """Take over a cell_mem.db. The same one again adds nothing; exit code 3 when something was left out."""
    with castle(context) as service:
        return _say_came(service.memory_import(file, wing=wing), as_json)


def _say_came(done: Imported | TakenIn, as_json: bool) -> int:
    if as_json:
        say_json(done)
    else:
        rows = [
            (name, done.added[name], done.known[name], done.dropped[name])
            for name in sorted({*done.added, *done.known, *done.dropped})
        ]
        say_table(("what", "added", "known", "left out"), rows)
    for line in done.warnings:
        note(line)
    return PARTIAL if done.warnings or done.dropped else 0


@app.command()
def export(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A new file.", parser=path_argument)],
    as_json: AsJson = False,
) -> None:
    """Write what the mind holds beside the drawers, as JSON lines; castle export writes the drawers."""
    with castle(context) as service:
        counts = service.memory_export(file)
    if as_json:
        say_json(counts)
    else:
        say_table(("table", "rows"), sorted(counts.items()))


def _one_of(given: Mapping[str, object]) -> None:
    """Refuse options that ask for different things, of which only one could be done."""
    named = [name for name, value in given.items() if value is not None and value is not False]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} ask for different things: give one of them")


def _json_file(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f'{path} is no environment: write an object such as {{"node_version": "20"}}')
    return found


def _say_told(told: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(told)
        return
    say_outline(told)
