"""The command line with all its commands, each built when it is asked for.

To build all of them takes longer than most of them take to run: the help of ``castle`` is printed from the
table, and a command brings its own module only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

from castle.cli.root import new_app

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("filing", "Prepare a project: find its rooms, write castle.yaml, and offer to mine it."),
    "mine": ("filing", "File text word for word: a project's files, or the messages of transcripts."),
    "sweep": (
        "filing",
        "File what is new in transcripts, message by message; the same as mine --mode convos.",
    ),
    "sync": ("filing", "Report filed files that are gone from disk."),
    "add": ("notes", "File a text word for word as a note."),
    "update": (
        "notes",
        "Change a note: another text is its next revision, and --history finds what it said before.",
    ),
    "check-duplicate": (
        "notes",
        "Say whether a text is filed already, word for word or nearly so; files nothing.",
    ),
    "search": ("searching", "Find the exact words again."),
    "why": (
        "searching",
        "Show how each hit of a search came to its place, or why a drawer is not among them.",
    ),
    "get": (
        "finding",
        "Print a drawer, its surroundings, its whole source or session, or a message, word for word.",
    ),
    "list": ("finding", "List drawers or sources, a page at a time."),
    "sessions": ("finding", "List the conversations that are filed, the latest first."),
    "status": ("finding", "Show what the palace holds."),
    "receipts": (
        "receipts",
        "List what saves of agents' sessions were to store and did store, the latest first.",
    ),
    "wake-up": (
        "wakeup",
        "Print what an agent should know when it begins: who you are, then the essentials, best first.",
    ),
    "recall": (
        "wakeup",
        "Print what a wing or a room holds, the newest first, with the beginning of each drawer.",
    ),
    "pin": ("wakeup", "Put a drawer first at every wake-up, until it is unpinned."),
    "unpin": ("wakeup", "Take a drawer's pin away."),
    "pins": (
        "wakeup",
        "List the pinned drawers, the latest pin first; those that are not current are not shown at wake-up.",
    ),
    "info-score": ("novelty", "Say how new a text would be beside what is filed; files nothing."),
    "prune-suggest": (
        "novelty",
        "List drawers that add little to what was filed before them; changes nothing.",
    ),
    "eval": ("evaluating", "Measure how well the palace finds its own drawers again; changes none."),
    "understand": (
        "understand",
        "Measure how a text is written and what it pins down: 34 measures, and one number of them all.",
    ),
    "verify": (
        "keeping",
        "Prove that nothing is lost: every text against its hash, every index against the ledger.",
    ),
    "repair": ("keeping", "Build damaged or incomplete indexes again from the ledger, then verify."),
    "forget": ("keeping", "Put a drawer, a source or a wing out of sight; `castle restore` brings it back."),
    "restore": ("keeping", "Bring back what was forgotten; with --from, a whole palace from its backup."),
    "purge": ("purge", "Destroy a drawer, a source or a wing for good, with everything that was made of it."),
    "reindex": (
        "reindex",
        "Make the vectors of all drawers anew from what is filed, with the palace's embedder or another.",
    ),
    "backup": (
        "backup",
        "Write the whole palace into one file, as it is at this moment, while others may write.",
    ),
    "export": (
        "backup",
        "Write the palace into a new directory, as Markdown to read or as JSON lines that lose nothing.",
    ),
    "import": (
        "backup",
        "Merge an export into this palace or a new one; what is here already is known and stays as it is.",
    ),
    "repair-status": (
        "backup",
        "Show how every part of the palace stands: ok, failed, or not checked and why; changes nothing.",
    ),
    "doctor": ("doctor", "Show what works and what does not, each line with the command that helps."),
    "reveal": (
        "doctor",
        "Show the exact text of a drawer, its sealed secrets included, to the person at this terminal.",
    ),
    "check": (
        "check",
        "Report contradicting facts, stale facts and similar names in the graph; changes nothing.",
    ),
    "check-env": (
        "environment",
        "Check what is believed of a project against its manifests, lock files and tools.",
    ),
    "compress": (
        "compress",
        "Write AAAK lines and closets for what has changed: pointers at drawers, which stay as they are.",
    ),
    "split": (
        "split",
        "Cut text files that hold several terminal sessions into one file each; no byte is lost.",
    ),
    "mcp": ("mcp", "Print the line that gives an agent this palace as tools; changes nothing."),
    "serve": (
        "serve",
        "Serve the palace to agents over HTTP (streamable, Model Context Protocol) until a signal ends it.",
    ),
    "share": (
        "share",
        "Give a client this palace as tools: print what goes into its settings, or put it there.",
    ),
    "connect": (
        "share",
        "Connect an agent with this palace: its MCP server, and hooks where the agent has them.",
    ),
    "disconnect": ("share", "Take Castle's MCP server and hooks out of an agent's files, and nothing else."),
    "instructions": ("instructions", "Print what an agent is to do for a task, as Markdown."),
    "diary": ("diary", "Write, read and ingest diaries."),
    "tunnels": ("tunnels", "Ways from wing to wing: same rooms, and tunnels made by hand."),
    "kg": ("kg", "Facts about people and things, and when they held."),
    "entities": ("entities", "People, projects and topics, and who mentions them."),
    "memory": ("mind", "What an agent believes, can do, prefers and is working on."),
    "sue": ("sue", "Examine how chosen requirements can be read; not whether they are true."),
    "wing": ("wing", "Rename wings."),
    "hook": ("hook", "Notes of agents' hooks."),
    "config": ("config", "Show and change settings."),
}
"""The module of each command below ``castle.cli`` and the first sentence of its help."""


class _Commands(Mapping[str, TyperCommand | TyperGroup]):
    """The commands by name; looking one up builds it."""

    def __getitem__(self, name: str) -> TyperCommand | TyperGroup:
        module = import_module(f"castle.cli.{COMMANDS[name][0]}")
        part = new_app()
        if hasattr(module, "add_to"):
            module.add_to(part)
        else:
            part.add_typer(module.app, name=name)
        group = typer.main.get_command(part)
        assert isinstance(group, TyperGroup)
        command: TyperCommand | TyperGroup = group.commands[name]  # type: ignore[assignment]
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Castle(TyperGroup):
    """The group of all commands."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Commands()  # type: ignore[assignment]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does from the table."""
        told: dict[str, Any] = {name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()}
        TyperGroup(commands=told).format_commands(ctx, formatter)


app = new_app(_Castle)
