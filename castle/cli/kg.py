"""``castle kg``: the temporal knowledge graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from castle.cli.common import MOST, AsJson, castle
from castle.cli.output import note, plain, say, say_json, say_table
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.store.graph_values import Fact, Facts

app = typer.Typer(help="Facts about people and things, and when they held.", no_args_is_help=True)

Subject = Annotated[str, typer.Argument(help="Whom or what it is about.")]
Predicate = Annotated[str, typer.Argument(help="How the two are related: works_at, lives_in.")]
Object = Annotated[str, typer.Argument(help="The other one.")]
Confidence = Annotated[float, typer.Option("--confidence", help="How sure it is, from 0 to 1.")]
Drawer = Annotated[
    str | None, typer.Option("--drawer", help="The drawer that says so: its id or its beginning.")
]
FactSource = Annotated[str | None, typer.Option("--source", help="Who or what says so, in any words.")]
FactAsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", help="Only what held at this ISO time, or at any time of this day.", metavar="TIME"
    ),
]
AsRecorded = Annotated[
    str | None,
    typer.Option(
        "--as-recorded", help="What the graph said at this time, or at the end of this day.", metavar="TIME"
    ),
]
Offset = Annotated[int, typer.Option("--offset", help="How many to pass over.", min=0, max=MOST)]

_MOMENTS = ("valid_from", "valid_to")


@app.command()
def add(
    context: typer.Context,
    subject: Subject,
    predicate: Predicate,
    object: Object,
    valid_from: Annotated[
        str | None,
        typer.Option("--valid-from", help="Since this ISO time or the start of this day.", metavar="TIME"),
    ] = None,
    valid_to: Annotated[
        str | None,
        typer.Option(
            "--valid-to", help="Until this ISO time or the start of this day, not after.", metavar="TIME"
        ),
    ] = None,
    confidence: Confidence = 1.0,
    drawer: Drawer = None,
    source: FactSource = None,
    as_json: AsJson = False,
) -> None:
    """Record a fact; one that is known already is found, not doubled."""
    with castle(context) as service:
        added = service.kg.add(
            subject,
            predicate,
            object,
            valid_from=valid_from,
            valid_to=valid_to,
            confidence=confidence,
            drawer=drawer,
            source=source,
        )
    if as_json:
        say_json(_dated(plain(added)))
    else:
        say(f"{_OUTCOMES[added.outcome]}: {_line(added.fact)}")


@app.command()
def query(
    context: typer.Context,
    entity: Annotated[str, typer.Argument(help="A person or thing.")],
    as_of: FactAsOf = None,
    direction: Annotated[
        Literal["outgoing", "incoming", "both"],
        typer.Option("--direction", help="Facts with it as subject, as object, or both."),
    ] = "both",
    as_recorded: AsRecorded = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=MOST)] = 100,
    offset: Offset = 0,
    as_json: AsJson = False,
) -> None:
    """Show the facts about somebody or something: what holds, then what will, then what did."""
    with castle(context) as service:
        found = service.kg.query(
            entity, as_of=as_of, direction=direction, as_recorded=as_recorded, limit=limit, offset=offset
        )
    _say_facts(found, as_json)


@app.command()
def invalidate(
    context: typer.Context,
    subject: Subject,
    predicate: Predicate,
    object: Object,
    ended: Annotated[
        str | None,
        typer.Option(
            "--ended",
            help="When it ceased to hold: an ISO time, or the first day without it.",
            metavar="TIME",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """End a fact, now or at a time; what held before stays known."""
    with castle(context) as service:
        fact = service.kg.invalidate(subject, predicate, object, ended=ended)
    if as_json:
        say_json(_dated(plain(fact)))
    else:
        say(f"ended: {_line(fact)}")


@app.command()
def retract(
    context: typer.Context, subject: Subject, predicate: Predicate, object: Object, as_json: AsJson = False
) -> None:
    """Take back a fact that never held; `--as-recorded` still shows it."""
    with castle(context) as service:
        facts = service.kg.retract(subject, predicate, object)
    if as_json:
        say_json(_dated(plain(facts)))
    else:
        for fact in facts:
            say(f"taken back: {_line(fact)}")


@app.command()
def supersede(
    context: typer.Context,
    subject: Subject,
    predicate: Predicate,
    old: Annotated[str, typer.Argument(help="What held until then.")],
    new: Annotated[str, typer.Argument(help="What holds from then on.")],
    at: Annotated[
        str | None,
        typer.Option(
            "--at", help="When it changed: an ISO time, or the first day of the new.", metavar="TIME"
        ),
    ] = None,
    confidence: Confidence = 1.0,
    drawer: Drawer = None,
    source: FactSource = None,
    as_json: AsJson = False,
) -> None:
    """End one fact and begin another at the same moment."""
    with castle(context) as service:
        changed = service.kg.supersede(
            subject, predicate, old, new, at=at, confidence=confidence, drawer=drawer, source=source
        )
    if as_json:
        say_json(_dated(plain(changed)))
    else:
        say(f"ended: {_line(changed.ended)}")
        say(f"{_OUTCOMES[changed.added.outcome]}: {_line(changed.added.fact)}")


@app.command()
def timeline(
    context: typer.Context,
    entity: Annotated[str | None, typer.Argument(help="Only facts about this person or thing.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=MOST)] = 100,
    offset: Offset = 0,
    as_json: AsJson = False,
) -> None:
    """List facts in the order in which they began; those without a date last."""
    with castle(context) as service:
        found = service.kg.timeline(entity, limit=limit, offset=offset)
    _say_facts(found, as_json)


@app.command()
def stats(context: typer.Context, as_json: AsJson = False) -> None:
    """Count entities, facts and predicates."""
    with castle(context) as service:
        numbers = service.kg.stats()
    if as_json:
        say_json(numbers)
        return
    counts = ("entities", "facts", "current", "ended", "future", "hidden", "evidence")
    say_table(("what", "number"), [(name, getattr(numbers, name)) for name in counts])
    if numbers.predicates:
        say()
        say_table(("predicate", "facts"), list(numbers.predicates.items()))


_OUTCOMES = {
    "added": "added",
    "known": "already known",
    "widened": "already known, now from an earlier time",
    "dated": "already known, now with its start",
}


def _say_facts(found: Facts, as_json: bool) -> None:
    if as_json:
        say_json(_dated(plain(found)))
    elif found.facts:
        say_table(
            ("subject", "predicate", "object", "from", "to", "state", "sure", "evidence"),
            [_row(fact) for fact in found.facts],
        )
    else:
        note("no facts")
    shown = found.offset + len(found.facts)
    if found.facts and shown < found.total:
        note(f"{len(found.facts):,} of {found.total:,} facts; go on with --offset {shown}")
    if found.hidden:
        verb = "fact is" if found.hidden == 1 else "facts are"
        note(f"{found.hidden:,} {verb} hidden, because every drawer that says so is forgotten")


def _row(fact: Fact) -> tuple[object, ...]:
    from castle.store.graph_values import show_moment

    cited = [item.drawer[:10] for item in fact.evidence if item.drawer is not None]
    ground = ", ".join((fact.evidence_state, *cited[:3]))
    start, end = show_moment(fact.valid_from), show_moment(fact.valid_to)
    return (fact.subject, fact.predicate, fact.object, start, end, fact.state, str(fact.confidence), ground)


def _line(fact: Fact) -> str:
    from castle.store.graph_values import show_validity

    return f"{fact.sentence}, {show_validity(fact.valid_from, fact.valid_to)} ({fact.id})"


def _dated(value: object) -> object:
    """Write the bounds of validity in what ``plain`` made as ISO 8601 with offset."""
    if isinstance(value, Mapping):
        return {
            key: to_iso(item) if key in _MOMENTS and isinstance(item, int) else _dated(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_dated(item) for item in value]
    return value
