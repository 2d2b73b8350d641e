"""Connecting an agent with a palace and taking the connection away, and seeing which are connected."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from castle.clients import hooks, servers, toml
from castle.clients.changes import Change, Step
from castle.clients.events import EVENTS
from castle.clients.files import read
from castle.clients.jsonc import mapping
from castle.clients.merge import opened
from castle.clients.program import quoted
from castle.clients.servers import Server
from castle.clients.table import CLIENTS, Client, Places, places
from castle.errors import CastleError, UsageError

PLUGIN = "castle@"
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Installed:
    """What one client has of Castle: the file of its servers, whether the server stands in it, its hooks.

    ``note`` says what is wrong or has to be done, "" when there is nothing to say.
    """

    client: str
    path: Path
    mcp: bool
    hooks: tuple[str, ...]
    note: str


def connect(
    client: Client,
    server: Server,
    where: Places,
    *,
    hook_program: str,
    mcp: bool = True,
    with_hooks: bool = True,
) -> list[Change]:
    """Put the server and, where the client has them, the hooks into its files.

    Every file is read and every change worked out before the first is written. Castle's own entries are
    brought up to date; another server of that name raises RefusedError, a file that does not parse
    ConfigError, and then nothing has been changed.
    """
    steps: list[Step] = []
    if mcp:
        steps.append(
            servers.adding(client, read(_file(client, where)), server, replace=False, replace_own=True)
        )
    if with_hooks and client.hooks_file is not None:
        file = read(client.hooks_file(where))
        palace = quoted(server.palace) if server.palace else ""
        steps.append(hooks.adding(client.host, file, quoted(hook_program), palace))
    return [step.done() for step in steps]


def disconnect(
    client: Client, where: Places, *, path: Path | None = None, force: bool = False
) -> list[Change]:
    """Take out of the client's files what is Castle's, and nothing else; of a ``path``, only of that file.

    A file that Castle made goes with it. An entry that its user has added to is kept unless ``force``. Raises
    ConfigError for a file that does not parse, before anything is changed.
    """
    if path is None and client.file is None:
        raise UsageError(
            f"{client.name} has no file of its own: `castle disconnect {client.name} --path FILE`"
        )
    file = read(path if path is not None else _file(client, where))
    below = _root(client, where) if path is None else None
    steps = [servers.removing(client, file, below=below, force=force)]
    if client.hooks_file is not None and path is None:
        file = read(client.hooks_file(where))
        steps.append(hooks.removing(file, below=_root(client, where)))
    return [step.done() for step in steps]


def _file(client: Client, where: Places) -> Path:
    if client.file is None:
        raise UsageError(
            f"{client.name} has no file of its own: `castle share --with {client.name} --write --path FILE`"
        )
    return client.file(where)


def _root(client: Client, where: Places) -> Path | None:
    """Return below what empty directories may go: the home, unless the user has named another place."""
    return None if any(where.env.get(variable) for variable in client.variables) else where.home


def installed(home: Path, env: Mapping[str, str] = os.environ) -> list[Installed]:
    """Return what each client that is on this machine has of Castle.

    A client is here when a file or the directory of its settings is. Never raises: what cannot be read is
    said in the note.
    """
    where = places(home, env)
    return [seen(client, where) for client in CLIENTS if client.file is not None and _is_here(client, where)]


def _is_here(client: Client, where: Places) -> bool:
    files = [place(where) for place in (client.file, client.hooks_file) if place is not None]
    return any(file.exists() or (file.parent != where.home and file.parent.is_dir()) for file in files)


def seen(client: Client, where: Places) -> Installed:
    """Return what one client has of Castle; never raises."""
    notes: list[str] = []
    path = _file(client, where)
    mcp = _tried(lambda: servers.is_own(servers.present(client, read(path))), False, notes)
    events: tuple[str, ...] = ()
    if client.hooks_file is not None:
        hooks_path = client.hooks_file(where)
        events = _tried(lambda: hooks.installed(read(hooks_path)), (), notes)
        if events and (missing := [one.event for one in EVENTS[client.host] if one.event not in events]):
            notes.append(f"hooks are missing: {', '.join(missing)}; `castle connect {client.name}`")
        look = _claude_notes if client.host == "claude-code" else _codex_notes
        notes += _tried(lambda: look(client, where, bool(events)), [], notes)
    return Installed(client.name, path, mcp, events, "; ".join(notes))


def _tried(look: Callable[[], Answer], otherwise: Answer, notes: list[str]) -> Answer:
    try:
        return look()
    except (CastleError, OSError) as error:
        if str(error) not in notes:
            notes.append(str(error))
        return otherwise


def _claude_notes(client: Client, where: Places, connected: bool) -> list[str]:
    assert client.hooks_file is not None
    file = read(client.hooks_file(where))
    settings = mapping(opened(file.text, file.path, relaxed=False).root)
    plugins = settings.get("enabledPlugins")
    notes = []
    if settings.get("disableAllHooks") is True:
        notes.append(f"disableAllHooks is set in {file.path}: no hook runs")
    if isinstance(plugins, dict):
        enabled = [name for name, on in plugins.items() if name.startswith(PLUGIN) and on is not False]
        if enabled:
            doubled = ", beside hooks of `castle connect`: each event is noted twice" if connected else ""
            notes.append(f"the plugin {enabled[0]} is enabled{doubled}")
    return notes


def _codex_notes(client: Client, where: Places, connected: bool) -> list[str]:
    file = read(_file(client, where))
    config = toml.parse(file.text, file.path)
    features = config.get("features")
    off = isinstance(features, dict) and (features.get("hooks", features.get("codex_hooks", True)) is False)
    if not connected:
        return []
    notes = [f"features.hooks is off in {file.path}: no hook runs"] if off else []
    inline = config.get("hooks")
    if isinstance(inline, dict) and set(inline) - {"state"}:
        notes.append(f"Codex warns of hooks both in {file.path} and in hooks.json; it runs all of them")
    untrusted = _untrusted(client, where, config)
    if untrusted:
        which = "hooks" if len(untrusted) == len(EVENTS["codex"]) else f"hooks of {', '.join(untrusted)}"
        notes.append(f"{which} are not trusted in Codex yet: type /hooks in Codex")
    return notes


def _untrusted(client: Client, where: Places, config: Mapping[str, Any]) -> list[str]:
    """Return the events whose hooks Codex was never told to trust, as far as its file tells."""
    assert client.hooks_file is not None
    file = read(client.hooks_file(where))
    state = toml.at(config, ("hooks", "state"))
    known = state if isinstance(state, dict) else {}
    missing = []
    for handler in hooks.handlers(opened(file.text, file.path, relaxed=False)):
        place = f":{_snake(handler.event)}:{handler.place}:{handler.index}"
        entries = [known.get(f"{path}{place}") for path in (file.path, file.path.resolve())]
        if not any(isinstance(entry, dict) and entry.get("trusted_hash") for entry in entries):
            missing.append(handler.event)
    return missing


def _snake(event: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in event).lstrip("_")


def after(client: Client, changes: list[Change]) -> list[str]:
    """Return what the user has to do after a change, one sentence each."""
    made = any(change.outcome in ("added", "replaced") for change in changes)
    name = client.title if client.file is not None else "the program that reads this file"
    return [f"restart {name} to have it read its settings again"] if made else []
