"""``castle entities``: the people, projects and topics that are looked for in what is filed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from castle.cli.common import MOST, AsJson, castle
from castle.cli.output import counted, note, progress, say, say_json, say_table
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.store.entities import Entity

app = typer.Typer(
    name="entities", help="People, projects and topics, and who mentions them.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="Its name or another name of it.")]
EntityKind = Literal["person", "project", "topic"]


@app.command("list")
def list_(
    context: typer.Context,
    kind: Annotated[EntityKind | None, typer.Option("--kind", help="Only these.")] = None,
    forgotten: Annotated[bool, typer.Option("--forgotten", help="Those that were forgotten.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=MOST)] = 100,
    offset: Annotated[int, typer.Option("--offset", help="How many to pass over.", min=0, max=MOST)] = 0,
    as_json: AsJson = False,
) -> None:
    """List who and what is known by name, the most often mentioned first."""
    with castle(context) as service:
        page = service.entities.list(kind=kind, forgotten=forgotten, limit=limit, offset=offset)
    if as_json:
        say_json(page)
        return
    if page.entities:
        say_table(
            ("name", "kind", "source", "sure", "drawers", "first", "last", "also"),
            [_row(entity) for entity in page.entities],
        )
    else:
        note("no entities: `castle mine` notices them, `castle entities add` registers one")
    shown = offset + len(page.entities)
    if page.entities and shown < page.total:
        note(f"{len(page.entities):,} of {page.total:,} entities; go on with --offset {shown}")
    if page.left:
        note(f"to be read for new names: {counted(page.left, 'earlier drawer')}; `castle entities relink`")


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What it is called.")],
    kind: Annotated[EntityKind, typer.Option("--kind", help="What it is.")],
    alias: Annotated[
        list[str] | None, typer.Option("--alias", help="Another name of it (repeat it for several).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Register somebody or something; what was forgotten comes back."""
    with castle(context) as service:
        entity = service.entities.add(name, kind, aliases=alias or ())
    _tell(entity, "registered", as_json)


@app.command()
def alias(
    context: typer.Context,
    name: Name,
    alias: Annotated[str, typer.Argument(help="The name that means the same.")],
    as_json: AsJson = False,
) -> None:
    """Let another name stand for somebody or something."""
    with castle(context) as service:
        entity = service.entities.alias(name, alias)
    _tell(entity, "registered", as_json)


@app.command()
def forget(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Look for a name no more; only `castle entities add` brings it back."""
    with castle(context) as service:
        entity = service.entities.forget(name)
    _tell(entity, "forgotten", as_json)


@app.command()
def relink(context: typer.Context, as_json: AsJson = False) -> None:
    """Read all drawers that were filed before a name was known for it."""
    with castle(context) as service, progress():
        done = service.entities.relink()
    if as_json:
        say_json(done)
    else:
        note(f"{counted(done.read, 'drawer')} read, {counted(done.found, 'mention')} found")


def _tell(entity: Entity, what: str, as_json: bool) -> None:
    if as_json:
        say_json(entity)
        return
    also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    say(f"{what}: {entity.name}, {entity.kind}{also}, mentioned in {counted(entity.mentions, 'drawer')}")


def _row(entity: Entity) -> tuple[object, ...]:
    doubt = " (also a word)" if entity.ambiguous else ""
    first, last = (
        to_iso(moment)[:10] if moment is not None else ""
        for moment in (entity.first_seen_at, entity.last_seen_at)
    )
    return (
        entity.name + doubt,
        entity.kind,
        entity.source,
        f"{entity.confidence:.2f}",
        entity.mentions,
        first,
        last,
        ", ".join(entity.aliases),
    )
