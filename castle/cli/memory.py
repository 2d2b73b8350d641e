"""``castle memory``: what an agent believes, can do, prefers and is working on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castle.cli import memory_plot
from castle.cli.common import MOST, AsJson, castle
from castle.cli.output import PARTIAL, counted, inline, note, say, say_json, say_table
from castle.cli.searching import unknown_place
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.mind.keeping import Kept
    from castle.mind.objects import Memory

app = typer.Typer(
    name="memory",
    help="What an agent believes, can do, prefers and is working on.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)

memory_plot.add_to(app)

Id = Annotated[str, typer.Argument(help="The id of a memory, or of a drawer.", metavar="ID")]
MOST_RELATED = 20

Reason = Annotated[str, typer.Option("--reason", help="Why; it stands in the history.")]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        help="A further option (repeat it); the value is JSON or a word.",
        metavar="NAME=VALUE",
    ),
]
Wing = Annotated[str | None, typer.Option("--wing", help="The wing that it is about.")]


@app.command()
def save(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="The exact words; - reads them from standard input.")],
    type: Annotated[
        str, typer.Option("--type", "-t", help="working, episodic, semantic or procedural.")
    ] = "episodic",
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="Of a fact; 0 if not given.", min=0.0, max=1.0)
    ] = None,
    trigger: Annotated[
        str | None, typer.Option("--trigger", help="Of a procedure: what calls it to mind.")
    ] = None,
    session: Annotated[str | None, typer.Option("--session", help="The session it belongs to.")] = None,
    wing: Wing = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag (repeat it).")] = None,
    option: Option = None,
    as_json: AsJson = False,
) -> None:
    """Keep words in mind. All but working items are filed word for word; no model is loaded."""
    options = {
        "confidence": confidence,
        "trigger_condition": trigger,
        "session_id": session,
        "wing": wing,
        "tags": tag or None,
        **_options(option),
    }
    with castle(context) as service:
        saved = service.memory_save(_words(text), type, options)
    if as_json:
        _say_memory_json(saved.memory, reinforced=saved.reinforced, notes=list(saved.notes))
        return
    say(saved.memory.id)
    for line in saved.notes:
        note(line)
    if saved.reinforced:
        note("it was in mind before")


@app.command()
def recall(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What is to be recalled.")],
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=200)] = 10,
    type: Annotated[
        list[str] | None, typer.Option("--type", "-t", help="Only this layer (repeat it).")
    ] = None,
    wing: Wing = None,
    cold: Annotated[bool, typer.Option("--cold", help="What is in cold storage, too.")] = False,
    expired: Annotated[bool, typer.Option("--expired", help="What holds no longer, too.")] = False,
    option: Option = None,
    as_json: AsJson = False,
) -> int:
    """Recall what the mind holds about something, from all layers.

    Exit code 3 if something could not be searched.
    """
    from castle.mind.envelopes import recalled

    options = {
        "top_k": limit,
        "memory_type": type or None,
        "wing": wing,
        "include_cold": cold,
        "include_expired": expired,
        **_options(option),
    }
    with castle(context) as service:
        found = service.memory_recall(query, options)
        hint = "" if found.memories or wing is None else unknown_place(service.places(), wing)
    if as_json:
        say_json(recalled(found))
    else:
        _say_memories(found.memories)
        for one in found.procedures:
            note(f"procedure {one.id}: {_line(one.content, 80)}")
        for preference in found.preferences:
            note(f"preferred: {preference.get('text') or preference.get('preference_text')}")
        for first, second in found.conflicts:
            note(f"{first} and {second} contradict each other")
        for raised in found.suggestions:
            note(suggested(raised.fact, raised.says, raised.command))
        for name, count in (found.hidden or {}).items():
            note(f"{count} more: {name}")
    for reason in (*found.degraded, hint):
        if reason:
            note(reason)
    return PARTIAL if found.degraded else 0


@app.command()
def get(context: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a memory with every change of it."""
    with castle(context) as service:
        memory, history = service.memory_get(id)
        joined = service.memory_related(memory.id)
    if as_json:
        _say_memory_json(memory, history=history, related=joined)
        return
    say(memory.content)
    note(f"{memory.layer} {memory.id}: {_state(memory)}, {_worth(memory)}, origin {memory.origin or '-'}")
    if memory.falsifiable_condition:
        note(f"it would be stale if {json.dumps(dict(memory.falsifiable_condition), ensure_ascii=False)}")
    for change in history:
        told = f"{change['old'] or '-'} to {change['new'] or '-'}"
        note(f"{change['at']} {change['what']}: {told} ({change['reason']}, {change['actor']})")
    for edge in joined[:MOST_RELATED]:
        note(f"{edge.relation} {edge.kind} {edge.id}: {edge.weight:.2g} ({edge.origin})")


@app.command()
def status(context: typer.Context, as_json: AsJson = False) -> int:
    """Say what the mind holds. Exit code 3 when something is not in order."""
    with castle(context) as service:
        report = service.memory_status()
    if as_json:
        say_json(report)
    else:
        rows = [
            (
                name,
                layer["entry_count"],
                ", ".join(f"{k} {inline(v)}" for k, v in layer.items() if k != "entry_count"),
            )
            for name, layer in report["layers"].items()
        ]
        say_table(("layer", "memories", "of them"), rows)
        graph, cycles = report["graph"], report["consolidation"]
        note(
            f"{counted(graph['edge_count'], 'association')}, {counted(cycles['cycles_run'], 'cycle')} of "
            f"consolidation, {counted(report['preferences']['total'], 'preference')}"
        )
        for one in report["suggestions"]:
            note(suggested(one["fact"], one["says"], one["command"]))
    for reason in report["reasons"]:
        note(reason)
    return 0 if report["health"] == "healthy" else PARTIAL


@app.command()
def associate(
    context: typer.Context,
    source: Id,
    target: Annotated[str, typer.Argument(help="The other one.", metavar="ID")],
    weight: Annotated[float, typer.Option("--weight", help="From -1 to 1.", min=-1.0, max=1.0)] = 1.0,
    relation: Annotated[
        str, typer.Option("--relation", help="associated_with, causes, contradicts, is_a or part_of.")
    ] = "associated_with",
    as_json: AsJson = False,
) -> None:
    """Join two memories; a negative weight says that they speak against each other.

    One may be a fact of the graph. Where a fact contradicts it, by -0.3 or less, it is suggested to end that.
    """
    with castle(context) as service:
        told = service.memory_associate(source, target, weight, relation)
    if as_json:
        say_json(told)
    else:
        say(f"{told['source']} {told['relation_type']} {told['target']}: {told['weight']:g}")
        for one in told.get("suggestions", ()):
            note(suggested(one["fact"], one["says"], one["command"]))


@app.command()
def forget(
    context: typer.Context,
    id: Id,
    reason: Reason = "",
    expire: Annotated[
        bool, typer.Option("--expire", help="It holds no longer, rather than is not needed now.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Though it is pinned or a locked fact.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put a memory into cold storage. The archive keeps it: castle search still finds what was filed."""
    with castle(context) as service:
        _say_kept(service.memory_forget(id, reason=reason, expire=expire, force=force), as_json)


@app.command()
def restore(context: typer.Context, id: Id, reason: Reason = "", as_json: AsJson = False) -> None:
    """Call a memory back from cold storage, or say that it holds after all."""
    with castle(context) as service:
        _say_kept(service.memory_restore(id, reason=reason), as_json)


@app.command()
def pin(
    context: typer.Context,
    id: Id,
    off: Annotated[bool, typer.Option("--off", help="Let go of it.")] = False,
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Pin a memory, so that it is never forgotten by itself."""
    with castle(context) as service:
        _say_kept(service.memory_pin(id, not off, reason=reason), as_json)


@app.command()
def cold(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="Only what holds one of these words.", metavar="[QUERY]")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 20,
    offset: Annotated[int, typer.Option("--offset", min=0, max=MOST, help="How many to pass over.")] = 0,
    as_json: AsJson = False,
) -> None:
    """List what is in cold storage; castle memory restore brings it back."""
    with castle(context) as service:
        found = service.memory_cold(query, limit=limit, offset=offset)
    if as_json:
        from castle.mind.envelopes import as_object

        say_json({"total": found.total, "offset": offset, "data": [as_object(m) for m in found.memories]})
        return
    _say_memories(found.memories)
    note(f"{len(found.memories)} of {found.total}")


@app.command("session-end")
def session_end(
    context: typer.Context,
    session: Annotated[str, typer.Argument(help="The session.")],
    completed: Annotated[
        list[str] | None, typer.Option("--completed", help="A working item whose task is done (repeat it).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """End a session: what is open stays in mind, what was done or used is filed."""
    with castle(context) as service:
        ended = service.memory_session_end(session, completed=completed or ())
    if as_json:
        say_json(ended)
        return
    for drawer in ended.episodes:
        say(drawer)
    note(f"{ended.kept} kept, {ended.completed} done, {ended.referenced} used, {ended.discarded} let go of")


@app.command("match")
def match_procedures(
    context: typer.Context,
    situation: Annotated[str, typer.Argument(help="What is to be done.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50, help="How many at most.")] = 5,
    threshold: Annotated[float, typer.Option("--threshold", min=-1.0, max=1.0, help="Least cosine.")] = 0.65,
    explore: Annotated[
        float, typer.Option("--explore", min=0.0, max=1.0, help="How often a less proven one comes first.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Find procedures that fit a situation."""
    with castle(context) as service:
        found = service.memory_match_procedures(
            situation, threshold=threshold, top_k=limit, explore_ratio=explore
        )
    if as_json:
        from castle.mind.envelopes import as_object

        say_json([{"template": as_object(m.template), "similarity": m.similarity} for m in found])
        return
    _say_memories([one.template for one in found])


@app.command()
def outcome(
    context: typer.Context,
    id: Id,
    success: Annotated[bool, typer.Option("--worked/--failed", help="How it went.")],
    session: Annotated[str, typer.Option("--session", help="In which session.")] = "",
    remark: Annotated[str, typer.Option("--note", help="What there is to say about it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say how a procedure went."""
    with castle(context) as service:
        memory = service.memory_record_outcome(id, success, session_id=session, note=remark)
    if as_json:
        _say_memory_json(memory)
    else:
        say(f"{memory.metadata['activation_weight']:.4g}")
        note(f"{_worth(memory)}, rate of success about {memory.metadata['estimate']:.2f}")


def suggested(fact: str, says: str, command: str) -> str:
    """Return the line of a suggestion."""
    return f"{fact} contradicts what the graph says, {says}; to end that: {command}"


def _words(text: str) -> str:
    from castle.cli.notes import given

    return given(text)


def _options(given: list[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals:
            raise UsageError(f"--option {one!r}: write NAME=VALUE")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
        except RecursionError as error:
            raise UsageError(f"--option {name.strip()}: the value is nested too deep") from error
    return found


def _say_memories(memories: Any) -> None:
    rows = [(one.id, one.layer, _state(one), _worth(one), _line(one.content, 70)) for one in memories]
    if rows:
        say_table(("id", "layer", "state", "worth", "text"), rows)


def _say_memory_json(memory: Memory, **beside: object) -> None:
    from castle.mind.envelopes import as_object

    say_json({**as_object(memory), **beside})


def _say_kept(done: Kept, as_json: bool) -> None:
    if as_json:
        say_json(done)
    else:
        say(f"{done.id} {done.action}")


def _state(memory: Memory) -> str:
    if not memory.expired:
        return memory.state
    return "expired" if memory.state == "active" else f"{memory.state}, expired"


def _worth(memory: Memory) -> str:
    if memory.layer == "semantic":
        return f"{memory.lifecycle} {memory.confidence:.2f}"
    if memory.layer == "procedural":
        return f"{memory.lifecycle} {memory.metadata.get('activation_weight', 0):.2f}"
    if memory.layer == "working":
        return f"{memory.zone} {memory.attention_score:.2f}"
    return f"{memory.valence:+.2f}"


def _line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
