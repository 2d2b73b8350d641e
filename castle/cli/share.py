"""``castle share``, ``connect`` and ``disconnect``: giving a palace to the programs that can use it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson
from castle.cli.output import PARTIAL, note, say, say_json, say_table
from castle.clients.table import CLIENTS, Client, Places, places
from castle.clients.table import client as client_named
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.clients.changes import Change
    from castle.clients.program import Program
    from castle.clients.servers import Server

Agent = Annotated[str, typer.Argument(help="claude, codex, cursor, vscode or gemini-cli.")]
_DONE = {
    "added": "added to",
    "replaced": "brought up to date in",
    "unchanged": "as it should be in",
    "removed": "taken out of",
    "absent": "not in",
    "left": "left in",
    "kept": "kept in",
}
_NAMES = {"mcp": "MCP server", "hooks": "hooks"}


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(share)
    app.command()(connect)
    app.command()(disconnect)


def share(
    context: typer.Context,
    client: Annotated[
        str | None,
        typer.Option(
            "--with", help="claude, codex, cursor, vscode, gemini-cli or generic.", metavar="CLIENT"
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Merge the entry into the client's file.")] = False,
    path: Annotated[
        Path | None,
        typer.Option("--path", help="The file to write, in the place of the client's own.", metavar="FILE"),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the entry in the place of another one named castle.")
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the entry; writes nothing, which is the default.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Give a client this palace as tools: print what goes into its settings, or put it there.

    Without --with it lists the clients and their files. With --write everything else in the file stays as it
    is, byte for byte; a copy of it from before is kept as FILE.castle-backup, and a file that does not parse
    is not touched.
    """
    from castle.clients import servers

    where = places()
    if client is None:
        if write or path is not None or replace:
            raise UsageError("name the client: --with CLIENT")
        _list(where, as_json)
        return
    known = client_named(client)
    if write and print_config:
        raise UsageError("--print-config writes nothing: leave it or --write out")
    if not write and (path is not None or replace):
        raise UsageError("--path and --replace go with --write")
    called, server = _server(context, known, where)
    if write:
        _write(known, server, where, path, replace, as_json)
    elif as_json:
        say_json({"client": known.name, "entry": server.entry(known), "text": servers.snippet(known, server)})
    else:
        say(servers.snippet(known, server))
        if known.file is not None:
            note(f"`castle share --with {known.name} --write` puts it into {known.file(where)}")
    _explain(called, server)


def connect(
    context: typer.Context,
    agent: Agent,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Only the MCP server.")] = False,
    no_mcp: Annotated[bool, typer.Option("--no-mcp", help="Only the hooks.")] = False,
    as_json: AsJson = False,
) -> None:
    """Connect an agent with this palace: its MCP server, and hooks where the agent has them.

    Hooks keep every session without being asked. Connecting again brings Castle's own entries up to date and
    leaves everything else alone; `castle disconnect` takes them out and leaves the files as they were.
    """
    from castle.clients import connect as connecting
    from castle.clients import hooks
    from castle.clients.program import program

    known = client_named(agent, with_file=True)
    if no_hooks and no_mcp:
        raise UsageError("with --no-hooks and --no-mcp there is nothing to connect")
    if no_mcp and known.hooks_file is None:
        raise UsageError(f"{known.title} has no hooks that Castle knows: leave --no-mcp out")
    where = places()
    called, server = _server(context, known, where)
    hook = program(hooks.PROGRAM, graphical=known.graphical, env=where.env)
    with_hooks = not no_hooks and known.hooks_file is not None
    if with_hooks:
        _compile(context)
    changes = connecting.connect(
        known, server, where, hook_program=hook.command, mcp=not no_mcp, with_hooks=with_hooks
    )
    _report(known, changes, as_json)
    if not no_mcp:
        _explain(called, server)
    if with_hooks and hook.why:
        note(f"hooks call {hook.command}: {hook.why}")
    for told in connecting.after(known, changes):
        note(told)
    if remark := connecting.seen(known, where).note:
        note(remark)
    _is_there(context)


def disconnect(
    agent: Annotated[str, typer.Argument(help="claude, codex, cursor, vscode, gemini-cli or generic.")],
    path: Annotated[
        Path | None,
        typer.Option(
            "--path",
            help="Take the server out of this file, as `share --write --path` wrote it.",
            metavar="FILE",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Take the entry out with what you have added to it.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Take Castle's MCP server and hooks out of an agent's files, and nothing else.

    A file is deleted only when Castle made it; in the others every byte that is not Castle's stays. An entry
    to which you have added keys of your own is kept, and named, with exit code 3, unless --force is given:
    then the file from before stays as FILE.castle-backup. The palace stays as it is.
    """
    from castle.clients import connect as connecting

    known = client_named(agent)
    file = path.expanduser().absolute() if path is not None else None
    changes = connecting.disconnect(known, places(), path=file, force=force)
    _report(known, changes, as_json)
    return PARTIAL if any(change.outcome == "kept" for change in changes) else 0


def _list(where: Places, as_json: bool) -> None:
    from castle.clients import connect as connecting

    seen = {one.client: one for one in connecting.installed(where.home, where.env)}
    rows = []
    for known in CLIENTS:
        one = seen.get(known.name)
        path = "" if known.file is None else str(known.file(where))
        rows.append(
            {
                "client": known.name,
                "title": known.title,
                "file": path,
                "mcp": one is not None and one.mcp,
                "hooks": list(one.hooks) if one is not None else [],
                "note": one.note if one is not None else "",
            }
        )
    if as_json:
        say_json(rows)
        return
    table = [
        (
            row["client"],
            row["file"] or "(printed)",
            "yes" if row["mcp"] else "no",
            "yes" if row["hooks"] else "no",
            row["note"],
        )
        for row in rows
    ]
    say_table(("client", "file", "server", "hooks", "note"), table)
    note("`castle share --with CLIENT` prints what goes into the file, --write puts it there")


def _server(context: typer.Context, known: Client, where: Places) -> tuple[Program, Server]:
    from castle.clients.program import program
    from castle.clients.servers import PROGRAM, Server

    palace = context.find_root().obj
    called = program(PROGRAM, graphical=known.graphical, env=where.env)
    return called, Server(called.command, str(palace.expanduser().absolute()) if palace is not None else "")


def _write(
    known: Client, server: Server, where: Places, path: Path | None, replace: bool, as_json: bool
) -> None:
    from castle.clients import connect as connecting
    from castle.clients import servers
    from castle.clients.files import read

    if path is None and known.file is None:
        raise UsageError(f"{known.name} has no file of its own: add --path FILE")
    file = path.expanduser().absolute() if path is not None else known.file(where) if known.file else Path()
    change = servers.adding(known, read(file), server, replace=replace).done()
    _report(known, [change], as_json)
    for told in connecting.after(known, [change]):
        note(told)


def _report(known: Client, changes: list[Change], as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "what": change.what,
                "file": str(change.path),
                "outcome": change.outcome,
                "backup": None if change.backup is None else str(change.backup),
                "note": change.note or None,
            }
            for change in changes
        ]
        say_json({"client": known.name, "changes": rows})
        return
    for change in changes:
        remark = f" ({change.note})" if change.note else ""
        say(f"{_NAMES[change.what]}: {_DONE[change.outcome]} {change.path}{remark}")
        if change.backup is not None and change.outcome in ("added", "replaced", "removed"):
            note(f"the file from before is kept as {change.backup}")


def _explain(called: Program, server: Server) -> None:
    if called.why:
        note(f"the entry calls {called.command}: {called.why}")
    if not server.palace and os.environ.get("CASTLE_PALACE_PATH"):
        note("CASTLE_PALACE_PATH is set here and may not be where the client runs: --palace names it there")


def _compile(context: typer.Context) -> None:
    """Bring the settings up to date that hooks read."""
    from castle import config
    from castle.config.compiled import compile_hooks

    compile_hooks(config.load({"palace_path": context.find_root().params.get("palace")}))


def _is_there(context: typer.Context) -> None:
    from castle import config

    palace = config.load({"palace_path": context.find_root().params.get("palace")}).palace_path
    if not palace.is_dir():
        note(f"there is no palace at {palace} yet: make one with `castle init DIR` or `castle mine DIR`")
