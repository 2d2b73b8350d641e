"""``castle init``, ``mine`` and ``sync``: filing a project and keeping up with it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import MOST, AsJson, castle, path_argument
from castle.cli.output import PARTIAL, counted, note, progress, say, say_json, say_table
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.mine.layout import Plan
    from castle.mine.report import ConvoReport, MineReport
    from castle.mine.spool import DrainReport
    from castle.service import Castle

_SKIPS_SHOWN = 20
Directory = Annotated[
    Path, typer.Argument(help="The project's directory.", metavar="DIR", parser=path_argument)
]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(init)
    app.command()(mine)
    app.command()(sweep)
    app.command()(sync)


def init(
    context: typer.Context,
    directory: Directory,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept the rooms and mine at once.")] = False,
    as_json: AsJson = False,
) -> int:
    """Prepare a project: find its rooms, write castle.yaml, and offer to mine it."""
    from castle.config.compiled import compile_hooks

    with castle(context) as service:
        plan = service.plan(directory)
        if not as_json:
            _say_plan(plan)
        if not yes and not plan.written:
            plan = _approved(plan)
        written = service.init(directory, plan)
        if written is not None:
            note(f"wrote {written}")
        compile_hooks(service.settings)
        if not yes and not _agrees("Mine this directory now?"):
            note(f"nothing mined; `castle mine {directory}` does it")
            return 0
        return _mine(service, directory, as_json, mode="projects")


def mine(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A project, a transcript, an export or a folder of them.",
            metavar="[PATH]",
            parser=path_argument,
        ),
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="auto, projects or convos.")] = "auto",
    wing: Annotated[str | None, typer.Option("--wing", help="File it under this wing.")] = None,
    no_gitignore: Annotated[bool, typer.Option("--no-gitignore", help="Do not heed .gitignore.")] = False,
    include_ignored: Annotated[
        list[str] | None,
        typer.Option("--include-ignored", help="File these paths all the same (comma list, repeatable)."),
    ] = None,
    agent: Annotated[str, typer.Option("--agent", help="Who files it.")] = "cognitive-castle",
    limit: Annotated[
        int, typer.Option("--limit", help="Read this many files at most; 0 is all.", min=0, max=MOST)
    ] = 0,
    extract: Annotated[
        str, typer.Option("--extract", help="exchange, or general: label messages by type of memory.")
    ] = "exchange",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be filed, write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """File text word for word: a project's files, or the messages of transcripts. Only what is new is read.

    Without PATH it offers the transcript folders found on this machine. Exit code 3 when something could not
    be filed, 130 when interrupted: the same command goes on.
    """
    if extract not in ("exchange", "general"):
        raise UsageError(f"extract {extract!r} is neither exchange nor general")
    with castle(context) as service:
        paths = [path] if path is not None else _offered()
        codes = [
            _mine(
                service,
                each,
                as_json,
                mode=mode,
                wing=wing,
                gitignore=not no_gitignore,
                include_ignored=[
                    part for named in include_ignored or () for part in named.split(",") if part
                ],
                agent=agent,
                limit=limit,
                extract=extract,
                dry_run=dry_run,
            )
            for each in paths
        ]
    return max(codes, default=0)


def sweep(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(help="A transcript, or a folder of them.", metavar="[PATH]", parser=path_argument),
    ] = None,
    wing: Annotated[str | None, typer.Option("--wing", help="File it under this wing.")] = None,
    as_json: AsJson = False,
) -> int:
    """File what is new in transcripts, message by message; the same as mine --mode convos.

    Without PATH it files the transcripts that agents' hooks have named since the last time. Exit code 3 when
    one could not be filed; it is tried again by the next sweep.
    """
    if path is None and wing is not None:
        raise UsageError("--wing goes with a PATH: hooks name transcripts of many projects")
    with castle(context) as service:
        if path is None:
            return _drain(service, as_json)
        return _mine(service, path, as_json, mode="convos", wing=wing)


def sync(
    context: typer.Context,
    directory: Directory,
    apply: Annotated[bool, typer.Option("--apply", help="Mark what is gone as superseded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Report filed files that are gone from disk. Their drawers are kept in any case."""
    with castle(context) as service:
        report = service.sync(directory, apply=apply)
    if as_json:
        say_json(report)
        return
    for path in report.gone:
        say(path)
    done = "marked superseded" if report.applied else "gone; `castle sync --apply` marks them superseded"
    note(f"{len(report.gone):,} of {counted(report.checked, 'file')} {done if report.gone else 'gone'}")


def _offered() -> list[Path]:
    """Ask whether to file the transcripts that tools keep on this machine."""
    from castle.mine.modes import transcript_folders

    places = list(transcript_folders())
    if not places:
        raise UsageError("nothing to file: name a directory or an export, `castle mine PATH`")
    for place in places:
        say(f"{place.tool}: {place.path}")
    if _agrees("File these transcripts?"):
        return [place.path for place in places]
    note("nothing filed; `castle mine PATH` files one of them")
    return []


def _mine(service: Castle, path: Path, as_json: bool, **options: object) -> int:
    from castle.mine.report import MineReport

    with progress() as line:
        report = service.mine(path, progress=line, **options)  # type: ignore[arg-type]
    if as_json:
        say_json(report)
    elif isinstance(report, MineReport):
        _say_files(report)
    else:
        _say_messages(report)
        if options.get("mode") == "auto":
            note("filed as transcripts, message by message; --mode projects files the same as files")
    if report.interrupted:
        note(f"interrupted; what was filed is kept, `castle mine {path}` goes on")
        return 130
    return PARTIAL if report.incomplete else 0


def _drain(service: Castle, as_json: bool) -> int:
    with progress() as line:
        report = service.capture(progress=line)
    if as_json:
        say_json(report)
    else:
        say(f"{counted(report.events, 'hook event')}, {counted(report.transcripts, 'transcript')} named")
        say(f"{counted(report.messages_new, 'message')} filed as {counted(report.drawers_new, 'drawer')}")
        if report.kept or report.given_up:
            note(f"{counted(report.kept, 'event')} kept for the next sweep, {report.given_up:,} let go")
        _say_left_out(report)
    if report.interrupted:
        note("interrupted; what was filed is kept, `castle sweep` goes on")
        return 130
    return PARTIAL if report.incomplete else 0


def _say_plan(plan: Plan) -> None:
    say(f"wing {plan.wing}")
    say_table(("room", "what"), [(room.name, room.description) for room in plan.rooms])
    say(f"{counted(plan.files, 'file')}, {plan.bytes / 1e6:,.1f} MB, about {_duration(plan.seconds)} to mine")


def _approved(plan: Plan) -> Plan:
    """Let the person drop and add rooms."""
    answer = _ask("Rooms: Enter keeps them; or names to drop, +name to add:").strip()
    return plan if answer.lower() in ("", "y", "yes") else plan.edited(answer.split())


def _ask(question: str) -> str:
    sys.stderr.write(f"{question} ")
    sys.stderr.flush()
    return sys.stdin.readline()


def _agrees(question: str) -> bool:
    """Ask; an empty line is yes, the end of the input is no."""
    answer = _ask(f"{question} [Y/n]")
    return answer != "" and answer.strip().lower() in ("", "y", "yes")


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(seconds, 1):.0f} s"


def _say_files(report: MineReport) -> None:
    if report.dry_run:
        say_table(("file", "room", "drawers"), report.planned)
    say(
        f"wing {report.wing}: {counted(report.files, 'file')}"
        f" ({report.new:,} new, {report.changed:,} changed, {report.unchanged:,} unchanged)"
    )
    say(
        f"{counted(report.drawers_new, 'drawer')} {'would be ' if report.dry_run else ''}filed, "
        f"{report.drawers_superseded:,} superseded, {report.seconds:.1f} s"
    )
    if report.rooms:
        say_table(("room", "files"), sorted(report.rooms.items()))
    _say_left_out(report)


def _say_messages(report: ConvoReport) -> None:
    say(
        f"{counted(report.transcripts, 'transcript')} ({report.unchanged:,} unchanged), "
        f"{counted(report.sessions, 'session')} ({report.sessions_new:,} new)"
    )
    say(
        f"{counted(report.messages_new, 'message')} {'would be ' if report.dry_run else ''}filed as "
        f"{counted(report.drawers_new, 'drawer')}, {report.messages_known:,} known before, "
        f"{report.seconds:.1f} s"
    )
    if report.kinds:
        say_table(("kind", "messages met"), sorted(report.kinds.items()))
    if report.private or report.recalled:
        note(
            f"{report.private:,} private and {report.recalled:,} recalled blocks were counted and not stored"
        )
    _say_left_out(report)


def _say_left_out(report: MineReport | ConvoReport | DrainReport) -> None:
    for text in report.notes:
        note(text)
    ignored = Counter(skip.reason for skip in report.ignored)
    for reason, count in sorted(ignored.items()):
        note(f"ignored: {count:,} by {reason.removeprefix('ignored: ')}")
    if report.skipped:
        note(f"{len(report.skipped):,} not filed:")
    for skip in report.skipped[:_SKIPS_SHOWN]:
        note(f"  {skip.path}: {skip.reason}{f' ({skip.detail})' if skip.detail else ''}")
    if len(report.skipped) > _SKIPS_SHOWN:
        note(f"  and {len(report.skipped) - _SKIPS_SHOWN:,} more: --json lists them all")
