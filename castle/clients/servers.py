"""The entry that gives a client the palace as tools: shown, merged into its file, taken out again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castle.clients import merge, toml
from castle.clients.changes import Change, Outcome, Step, remainder, restoring, writing
from castle.clients.files import UserFile
from castle.clients.jsonc import found, where
from castle.clients.program import is_program
from castle.clients.table import Client
from castle.errors import RefusedError, UsageError

SERVER = "castle"
PROGRAM = "castle-mcp"
_WRITTEN = frozenset({"command", "args"})


@dataclass(frozen=True, slots=True)
class Server:
    """How a client starts the server: the program, and the palace it is to serve ("" for the user's own)."""

    command: str
    palace: str = ""

    @property
    def args(self) -> list[str]:
        """The arguments that the program gets."""
        return ["--palace", self.palace] if self.palace else []

    def entry(self, client: Client) -> dict[str, object]:
        """Return what stands in the client's file."""
        typed: dict[str, object] = {"type": "stdio"} if client.typed else {}
        args: dict[str, object] = {"args": self.args} if self.args else {}
        return {**typed, "command": self.command, **args}


def snippet(client: Client, server: Server) -> str:
    """Return what a person puts in by hand: a command for Claude Code, else a piece of the client's file."""
    if client.name == "claude":
        words = ["claude", "mcp", "add", SERVER, "--scope", "user", "--", server.command, *server.args]
        return shlex.join(words)
    if client.form == "toml":
        return toml.rendered((client.key, SERVER), server.entry(client))
    return json.dumps({client.key: {SERVER: server.entry(client)}}, indent=2, ensure_ascii=False)


def adding(
    client: Client, file: UserFile, server: Server, *, replace: bool, replace_own: bool = False
) -> Step:
    """Return the step that puts the entry into a file.

    Nothing is to be done where it stands there already, with whatever else the user has put into it. Raises
    RefusedError for another entry of that name unless ``replace``, or ``replace_own`` and it is Castle's;
    ConfigError for a file that cannot be read as what it should be.
    """
    entry = server.entry(client)
    there = present(client, file)
    own = is_own(there)
    if there is not None and all(_said(there, key) == entry.get(key) for key in ("command", "args")):
        return Step(Change("mcp", file.path, "unchanged"))
    if there is not None and not replace and not (own and replace_own):
        raise RefusedError(
            f"{file.path}: {client.key} has another {SERVER} already: {_line(there)}; "
            "nothing was changed, --replace puts this one in its place"
        )
    outcome: Outcome = "added" if there is None else "replaced"
    return writing(file, _with(client, file, entry, there), "mcp", outcome, own=own)


def removing(client: Client, file: UserFile, *, below: Path | None, force: bool = False) -> Step:
    """Return the step that takes the entry out; one that is not Castle's is left, and said to be.

    One that its user has added to is kept, because without it what was added would be lost or of no use;
    with ``force`` it goes, and a copy of the file stays.
    """
    there = present(client, file)
    if there is None:
        return Step(Change("mcp", file.path, "absent"))
    if not is_own(there):
        return Step(
            Change("mcp", file.path, "left", None, f"its {SERVER} calls {_line(there)}, not {PROGRAM}")
        )
    added = _added(client, there)
    if added and not force:
        held = f"it also holds what Castle did not write: {', '.join(added)}; --force takes it out with them"
        return Step(Change("mcp", file.path, "kept", None, held))
    before = _stripped(client, file.before, file)
    text = remainder(file, _without(client, file.text, file, before))
    return restoring(file, text, "mcp", below=below, forced=bool(added))


def _added(client: Client, entry: Mapping[str, Any]) -> list[str]:
    """Return the keys of an entry that only its user can have put there; an empty value says nothing."""
    known = _WRITTEN | ({"type"} if client.typed else set())
    return sorted(key for key, value in entry.items() if key not in known and value not in ({}, [], "", None))


def present(client: Client, file: UserFile) -> Mapping[str, Any] | None:
    """Return the entry of that name in a file, None when there is none."""
    if client.form == "toml":
        there = toml.at(toml.parse(file.text, file.path), (client.key, SERVER))
    else:
        opened = merge.opened(file.text, file.path, relaxed=client.relaxed)
        node = found(opened.root, (client.key, SERVER))
        there = None if node is None else node.value()
        if there is not None and not isinstance(there, dict) and node is not None:
            place = where(opened.text, node.start)
            raise RefusedError(f"{file.path}:{place}: {client.key}.{SERVER} is not an object")
    if there is not None and not isinstance(there, dict):
        raise RefusedError(f"{file.path}: {client.key}.{SERVER} is not a table")
    return there


def is_own(entry: Mapping[str, Any] | None) -> bool:
    """Say whether an entry starts Castle's server."""
    return entry is not None and is_program(entry.get("command"), PROGRAM)


def _said(entry: Mapping[str, Any], key: str) -> object:
    """Return a value of an entry; no arguments and an empty list of them are the same."""
    return entry.get(key) or None


def _line(entry: Mapping[str, Any]) -> str:
    args = entry.get("args")
    words = [str(entry.get("command") or entry.get("url") or "nothing that is known here")]
    return shlex.join([*words, *(map(str, args) if isinstance(args, list) else ())])


def _with(client: Client, file: UserFile, entry: dict[str, object], there: Mapping[str, Any] | None) -> str:
    path = (client.key, SERVER)
    if client.form == "toml":
        if there is None:
            return toml.with_table(file.text, path, entry, file.path)
        values = {"command": entry["command"], "args": entry.get("args")}
        return toml.with_values(file.text, path, values, file.path)
    opened = merge.opened(file.text, file.path, relaxed=client.relaxed)
    value = {**(there or {}), **entry}
    if "args" not in entry:
        value.pop("args", None)
    return merge.confirmed(opened, merge.with_value(opened, path, value), _is_entry).text


def _without(client: Client, text: str, file: UserFile, before: str | None) -> str:
    path = (client.key, SERVER)
    if client.form == "toml":
        return toml.without_table(text, path, file.path)
    opened = merge.opened(text, file.path, relaxed=client.relaxed)
    container = found(opened.root, path[:1])
    item = container.member(SERVER) if container is not None else None
    assert item is not None
    known = None if before is None else merge.opened(before, file.backup, relaxed=client.relaxed)
    return merge.confirmed(opened, merge.without(opened, path[:1], item, known), _is_entry).text


def _is_entry(key: str, value: object) -> bool:
    return key == SERVER


def _stripped(client: Client, before: str | None, file: UserFile) -> str | None:
    """Return a copy of the file without Castle's entry, should it hold one; None when it is of no use."""
    if before is None:
        return None
    copy = UserFile(file.backup, b"", before)
    try:
        return _without(client, before, copy, None) if is_own(present(client, copy)) else before
    except (RefusedError, UsageError):
        return None
