"""``python -m castle.clients.docs`` writes docs/mcp-clients.md from the tables of this package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from castle.clients.events import EVENTS, HookEvent
from castle.clients.files import BACKUP, MADE
from castle.clients.servers import Server, snippet
from castle.clients.table import CLIENTS

PLACE = Path(__file__).parents[2] / "docs" / "mcp-clients.md"

SOURCES = (
    ("Claude Code: form of hooks", "https://docs.claude.com/de/docs/claude-code/hooks", "–"),
    (
        "Claude Code: limits of SessionEnd, also of plugins",
        "https://github.com/Digital-Process-Tools/claude-remember/pull/561",
        "2026-09-05",
    ),
    (
        "Claude Code: background hooks end with it",
        "https://github.com/yonatangross/orchestkit/pull/2214",
        "2026-06-05",
    ),
    ("Claude Code: servers of a user", "https://www.mcpbundles.com/guides/claude-code", "–"),
    (
        "Claude Code: CLAUDE_CONFIG_DIR",
        "https://github.com/anthropics/claude-code/issues/24479",
        "2026-08-17",
    ),
    ("Codex: form, places and trust of hooks", "https://developers.openai.com/codex/hooks.md", "–"),
    (
        "Codex: key of a trusted hook",
        "https://github.com/openai/codex/blob/main/codex-rs/hooks/src/engine/discovery.rs",
        "–",
    ),
    ("Codex: SessionEnd and its limit", "https://github.com/openai/codex/pull/33895", "2026-07-17"),
    ("Codex: background hooks", "https://github.com/corveil/crow/issues/999", "2026-08-12"),
    (
        "Codex: servers",
        "https://dev.to/vibeidedev/codex-mcp-add-configure-and-debug-mcp-servers-in-codex-cli-1j1p",
        "2026-11",
    ),
    (
        "Cursor",
        "https://dev.to/skryvo/cursor-mcp-how-to-add-an-mcp-server-to-cursor-2ngc",
        "2026-10-22",
    ),
    ("Cursor: no trailing commas", "https://github.com/upstash/context7/issues/563", "2025-08-19"),
    ("VS Code", "https://code.visualstudio.com/docs/agents/reference/mcp-configuration.md", "–"),
    (
        "Gemini CLI",
        "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
        "–",
    ),
)
"""What is known from where: the fact, the page, and the day the page is of."""

_HEAD = """\
# Clients

What each client can be given, and how. Written by `python -m castle.clients.docs` from the tables that
`castle share` and `castle connect` use themselves. `castle share` lists the same for this machine.

```console
$ castle connect codex
# => hooks: added to
$ castle share
# => not trusted in Codex yet
$ castle disconnect codex
# => hooks: taken out of
```
"""

_FILES = f"""\
## What happens to your files

- An entry is inserted into the text of a file. Everything else stays byte for byte: comments, order,
  indentation, line ends, a byte order mark, permissions; a link stays a link. The new text takes the place of
  the old one at once, and not when another program has changed the file meanwhile.
- `FILE{BACKUP}` is the file as it was before the first entry. `castle disconnect` deletes it again when the
  file is the same as before; else it stays, and a note says so. `FILE{MADE}` marks a file that was not there.
- A file that does not parse is not touched: exit code 2 with line and column. Comments and trailing commas
  are allowed where the client reads such files (VS Code, Gemini CLI).
- The same entry again changes nothing. Another entry named `castle` is kept unless `--replace` is given;
  `castle connect` brings an older one of Castle's own up to date.
- `castle disconnect` takes out the entry that calls `castle-mcp` and the hooks that call `castle-hook`. What
  you changed meanwhile stays. A file is deleted only when Castle made it and nothing else is in it.
- An entry of Castle's that holds more than Castle writes (`env`, a time limit, a table below it) is kept and
  named, exit code 3; `--force` takes it out, and the file as it was is kept as `FILE{BACKUP}`.
- `castle disconnect CLIENT --path FILE` undoes `castle share --with CLIENT --write --path FILE`.
- `castle-mcp` is called by its path where the client would not find it by its name; a note says so, and why.
  `castle --palace PATH share` names a palace in the entry, otherwise the user's own settings decide.
- Codex runs a hook only after it was reviewed in `/hooks`, and again after it has changed. What it remembers
  of that in `config.toml` is Codex's own and stays when the hooks go.
"""


def page() -> str:
    """Return the text of the page."""
    return "\n".join((_HEAD, _setup(), _parity(), _hooks(), _FILES, _sources()))


def _setup() -> str:
    rows = []
    for known in CLIENTS:
        connects = f"`castle connect {known.name}`" if known.file is not None else ""
        line = connects or f"`castle share --with {known.name} --write --path FILE`"
        rows.append((known.title, line, f"`castle share --with {known.name}`"))
    claude = snippet(CLIENTS[0], Server("castle-mcp"))
    return (
        "## One line of setup\n\n"
        + _table(("client", "set up", "print the entry"), rows)
        + f"\nClaude Code takes the server alone with `{claude}`, too.\n"
        "A project's own file is named with `castle share --with vscode --write --path .vscode/mcp.json`,\n"
        "or `--with claude` and `.mcp.json`.\n"
    )


def _parity() -> str:
    rows = []
    for known in CLIENTS:
        hooks = f"{len(EVENTS[known.host])} events in `{known.hooks_shown}`" if known.host else "none"
        moved = ", ".join(f"`{name}`" for name in known.variables)
        file = f"`{known.shown}`" if known.shown else "printed, or `--path FILE`"
        rows.append((known.title, f"stdio, `{known.key}.castle`", file, moved or "–", hooks))
    return (
        "## Parity\n\n"
        + _table(("client", "MCP server: key", "file", "moved by", "hooks"), rows)
        + "\nOn macOS the file of VS Code is `~/Library/Application Support/Code/User/mcp.json`, on Windows\n"
        "`%APPDATA%\\Code\\User\\mcp.json`.\n"
    )


def _hooks() -> str:
    names = list(dict.fromkeys(event.event for events in EVENTS.values() for event in events))
    titles = [known.title for known in CLIENTS if known.host]
    rows = []
    for name in names:
        found = [next((e for e in EVENTS[k.host] if e.event == name), None) for k in CLIENTS if k.host]
        hook = next(event.hook for event in found if event is not None)
        rows.append((f"`{name}`", f"`{hook}`", *(_limit(event) for event in found)))
    return (
        "## Hooks\n\nEach event calls `castle-hook --hook HOOK --harness HOST` with this limit.\n\n"
        + _table(("event", "hook", *titles), rows)
    )


def _limit(event: HookEvent | None) -> str:
    if event is None:
        return "no"
    return f"{event.timeout} s" + (", in the background" if event.background else "")


def _sources() -> str:
    head = (
        "## Sources\n\nStored copies, read on 2026-11-30; the date is that of the copy where it has one. "
        "No host was here to run it.\n\n"
    )
    return head + _table(("what", "read", "of"), ((what, f"<{url}>", date) for what, url, date in SOURCES))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PLACE.write_text(page(), encoding="utf-8")
