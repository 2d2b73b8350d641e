"""``castle search`` and ``castle why``: asking the palace, and asking why it answers so."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from castle.cli.common import AsJson, AsOf, History, Kind, Room, Source, Wing, castle
from castle.cli.finding import indented, second, where
from castle.cli.output import PARTIAL, note, say, say_json, say_table

if TYPE_CHECKING:
    from castle.records import Hit, SearchResult
    from castle.search.why import Why
    from castle.store.reading import PlaceCount

Query = Annotated[str, typer.Argument(help="What you look for, in any words.")]
Limit = Annotated[int, typer.Option("--limit", "--results", "-n", help="How many at most.")]
Since = Annotated[
    str | None, typer.Option("--since", help="Written at or after this ISO date or time.", metavar="TIME")
]
Until = Annotated[
    str | None, typer.Option("--until", help="Written before this time, or up to this day.", metavar="TIME")
]
Role = Annotated[str | None, typer.Option("--role", help="Only this role (user, assistant).")]
Mode = Annotated[
    Literal["fast", "standard", "boosted", "max"] | None,
    typer.Option("--mode", help="Which stages run; without it the setting search_mode says."),
]
By = Annotated[
    Literal["drawer", "message", "session"],
    typer.Option("--by", help="What one result is: a drawer, or the message or session it is part of."),
]
Now = Annotated[
    str | None,
    typer.Option("--now", help="The time that recency and words like yesterday count from.", metavar="TIME"),
]
InfoWeight = Annotated[
    bool | None,
    typer.Option("--info-weight/--no-info-weight", help="Let drawers that say little new step back."),
]


_NAMED = 20
"""Wings or rooms that a hint names at most."""
_ALWAYS = ("opening", "catch-up", "question", "recency")


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(search)
    app.command()(why)


def search(
    context: typer.Context,
    query: Query,
    wing: Wing = None,
    room: Room = None,
    limit: Limit = 5,
    mode: Mode = None,
    by: By = "drawer",
    since: Since = None,
    until: Until = None,
    role: Role = None,
    source: Source = None,
    kind: Kind = None,
    history: History = False,
    as_of: AsOf = None,
    now: Now = None,
    info_weight: InfoWeight = None,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Go on where the page before ended.", metavar="CURSOR")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each hit's way through the stages.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Find the exact words again. Exit code 3 when something could not be searched."""
    with castle(context) as service:
        result = service.search(
            query,
            wing=wing,
            room=room,
            limit=limit,
            mode=mode,
            by=by,
            since=since,
            until=until,
            role=role,
            source=source,
            kinds=kind or (),
            history=history,
            as_of=as_of,
            now=now,
            info_weight=info_weight,
            cursor=cursor,
        )
        hint = "" if result.hits else unknown_place(service.places(), wing, room)
    if as_json:
        say_json(result)
    else:
        _say_hits(result, explain)
    if hint:
        note(hint)
    return PARTIAL if result.degraded else 0


def why(
    context: typer.Context,
    query: Query,
    drawer: Annotated[
        str | None, typer.Option("--drawer", help="Say what became of this drawer.", metavar="ID")
    ] = None,
    wing: Wing = None,
    room: Room = None,
    limit: Limit = 5,
    mode: Mode = None,
    since: Since = None,
    until: Until = None,
    role: Role = None,
    source: Source = None,
    kind: Kind = None,
    history: History = False,
    as_of: AsOf = None,
    now: Now = None,
    info_weight: InfoWeight = None,
    as_json: AsJson = False,
) -> int:
    """Show how each hit of a search came to its place, or why a drawer is not among them."""
    with castle(context) as service:
        found = service.why(
            query,
            drawer=drawer,
            wing=wing,
            room=room,
            limit=limit,
            mode=mode,
            since=since,
            until=until,
            role=role,
            source=source,
            kinds=kind or (),
            history=history,
            as_of=as_of,
            now=now,
            info_weight=info_weight,
        )
    if as_json:
        say_json(found)
    else:
        _say_why(found)
    return PARTIAL if found.result.degraded else 0


def _say_hits(result: SearchResult, explain: bool) -> None:
    for number, hit in enumerate(result.hits, start=1):
        say(_headline(number, hit))
        say(f"    {where(hit)}")
        say(f"    written {second(hit.authored_at)}, filed {second(hit.filed_at)}")
        for line in _audit(hit):
            say(f"    {line}")
        if explain:
            say()
            _say_way(hit)
        say()
        say(indented(hit.text))
        say()
    _say_end(result, explain)


def _say_end(result: SearchResult, explain: bool) -> None:
    if not result.hits:
        note("nothing found")
    elif not result.confident:
        note("no confident match: what is shown shares words or sense with the question, no more")
    status = result.judge_status
    if status is not None and status.reordered:
        note(f"JUDGE: reordered {status.n} hits ({status.model}, {status.elapsed_s:.1f} s)")
    if explain and result.read_as:
        note(f"read as {'; '.join(result.read_as)}")
    note(stages_line(result, explain))
    if result.cursor is not None:
        note(f"{len(result.hits)} of {result.ranked:,}; the next page: --cursor {result.cursor}")
    for reason in result.degraded:
        note(f"degraded: {reason}")


def stages_line(result: SearchResult, explain: bool = False) -> str:
    """Return one line that says what ran and what did not; explaining, in what time, and why not."""
    ran = [r for r in result.stages if r.status == "ran"]
    if explain:
        took = ", ms: " + " · ".join(f"{r.name} {1000 * r.seconds:.0f}" for r in ran)
    else:
        took = f": {', '.join(r.name for r in ran if r.name not in _ALWAYS)}"
        missing = ", ".join(r.name for r in result.stages if r.status != "ran")
        return f"mode {result.mode}{took}{f'; without {missing}' if missing else ''}"
    skipped: dict[str, list[str]] = {}
    for report in result.stages:
        if report.status != "ran":
            skipped.setdefault(report.status.removeprefix("skipped: "), []).append(report.name)
    left_out = "".join(f"; without {', '.join(names)} ({reason})" for reason, names in skipped.items())
    return f"mode {result.mode}{took}{left_out}"


def _headline(number: int, hit: Hit) -> str:
    marks = [f"score {hit.score:.3f}", f"{hit.wing} / {hit.room}"]
    if hit.speaker or hit.role:
        marks.append(hit.speaker or hit.role)
    if hit.state != "current":
        marks.append(hit.state)
    if hit.copies:
        marks.append(f"+{len(hit.copies)} cop{'y' if len(hit.copies) == 1 else 'ies'}")
    if hit.parts:
        marks.append(f"+{len(hit.parts)} more of it")
    return f"{number:>2}. {hit.id}  {'  '.join(marks)}"


def _audit(hit: Hit) -> Sequence[str]:
    lines = []
    if hit.soar_tags:
        before = f", {hit.score_pre_soar:.3f} before" if hit.score_pre_soar is not None else ""
        lines.append(f"SOAR: {', '.join(hit.soar_tags)} (×{hit.soar_boost:.3f}{before})")
    if hit.quality_tier is not None:
        lines.append(f"QUALITY: {hit.quality_tier} (×{hit.quality_boost:.3f}, {hit.quality_score:.2f})")
    return lines


def _say_way(hit: Hit) -> None:
    """Print the rank and score that a hit had in each list and after each stage."""
    rows: list[Sequence[Any]] = [
        (name, stage.rank, f"{stage.score:.4f}", _factors(hit, name)) for name, stage in hit.stages.items()
    ]
    say_table(("stage", "rank", "score", "factors"), rows)
    if hit.matched:
        say(f"matched words: {' '.join(hit.matched)}")


def _factors(hit: Hit, stage: str) -> str:
    parts = [
        f"{name} ×{factor:.3f}" for name, factor in hit.boosts.items() if name.partition(":")[0] == stage
    ]
    return ", ".join(parts)


def _say_why(found: Why) -> None:
    if found.fate is not None:
        say(f"{found.fate.id}: {found.fate.verdict}")
        say()
    for number, hit in enumerate(found.result.hits, start=1):
        say(_headline(number, hit))
        say(f"    {where(hit)}")
        say()
        _say_way(hit)
        say()
    _say_end(found.result, explain=True)


def unknown_place(places: Sequence[PlaceCount], wing: str | None, room: str | None = None) -> str:
    """Say that a wing or room that was asked for is not there, and which are, or which have near names."""
    wings = sorted({place.wing for place in places})
    if wing is not None and wing not in wings:
        return f"there is no wing {wing}{_there_are(wing, wings)}"
    rooms = sorted({place.room for place in places if wing in (None, place.wing)})
    if room is not None and room not in rooms:
        return f"there is no room {room}{_there_are(room, rooms)}"
    return ""


def _there_are(asked: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    if len(names) <= _NAMED:
        return f"; there are: {', '.join(names)}"
    near = get_close_matches(asked, names, _NAMED, 0.5)
    if near:
        return f"; near it are: {', '.join(near)}"
    return f"; there are: {', '.join(names[:_NAMED])} and {len(names) - _NAMED:,} more (`castle status`)"
