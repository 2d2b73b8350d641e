"""The clients that Castle knows: where each keeps its servers and hooks, and in which form."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from castle.errors import UsageError

Form = Literal["json", "toml"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where files are looked for: the user's home, the environment and ``sys.platform``."""

    home: Path
    env: Mapping[str, str]
    system: str = sys.platform

    def named(self, variable: str) -> Path | None:
        """Return the directory that a variable names, None when it is not set."""
        value = self.env.get(variable, "")
        return Path(value).expanduser() if value else None


def places(home: Path | None = None, env: Mapping[str, str] = os.environ) -> Places:
    """Return where to look: in this user's home with this environment."""
    return Places(home or Path.home(), env)


@dataclass(frozen=True, slots=True)
class Client:
    """A program that can use a palace.

    ``key`` is where servers stand in its file, ``relaxed`` whether comments are allowed there, ``typed``
    whether an entry says that it is a stdio server. ``graphical`` clients are started from a desktop.
    ``variables`` are those that move the client's directory.
    """

    name: str
    title: str
    key: str
    form: Form
    file: Callable[[Places], Path] | None
    shown: str
    relaxed: bool = False
    typed: bool = False
    graphical: bool = False
    aliases: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    hooks_file: Callable[[Places], Path] | None = None
    hooks_shown: str = ""
    host: str = ""


def _claude(where: Places) -> Path:
    return (where.named("CLAUDE_CONFIG_DIR") or where.home) / ".claude.json"


def _claude_settings(where: Places) -> Path:
    return (where.named("CLAUDE_CONFIG_DIR") or where.home / ".claude") / "settings.json"


def _codex(where: Places) -> Path:
    return (where.named("CODEX_HOME") or where.home / ".codex") / "config.toml"


def _codex_hooks(where: Places) -> Path:
    return (where.named("CODEX_HOME") or where.home / ".codex") / "hooks.json"


def _cursor(where: Places) -> Path:
    return where.home / ".cursor" / "mcp.json"


def _vscode(where: Places) -> Path:
    if where.system == "win32":
        base = where.named("APPDATA") or where.home / "AppData" / "Roaming"
    elif where.system == "darwin":
        base = where.home / "Library" / "Application Support"
    else:
        base = where.named("XDG_CONFIG_HOME") or where.home / ".config"
    return base / "Code" / "User" / "mcp.json"


def _gemini(where: Places) -> Path:
    return (where.named("GEMINI_CLI_HOME") or where.home) / ".gemini" / "settings.json"


CLIENTS = (
    Client(
        name="claude",
        title="Claude Code",
        key="mcpServers",
        form="json",
        file=_claude,
        shown="~/.claude.json",
        typed=True,
        aliases=("claude-code",),
        variables=("CLAUDE_CONFIG_DIR",),
        hooks_file=_claude_settings,
        hooks_shown="~/.claude/settings.json",
        host="claude-code",
    ),
    Client(
        name="codex",
        title="Codex",
        key="mcp_servers",
        form="toml",
        file=_codex,
        shown="~/.codex/config.toml",
        variables=("CODEX_HOME",),
        hooks_file=_codex_hooks,
        hooks_shown="~/.codex/hooks.json",
        host="codex",
    ),
    Client(
        name="cursor",
        title="Cursor",
        key="mcpServers",
        form="json",
        file=_cursor,
        shown="~/.cursor/mcp.json",
        graphical=True,
    ),
    Client(
        name="vscode",
        title="VS Code",
        key="servers",
        form="json",
        file=_vscode,
        shown="~/.config/Code/User/mcp.json",
        relaxed=True,
        typed=True,
        graphical=True,
        variables=("XDG_CONFIG_HOME", "APPDATA"),
    ),
    Client(
        name="gemini-cli",
        title="Gemini CLI",
        key="mcpServers",
        form="json",
        file=_gemini,
        shown="~/.gemini/settings.json",
        relaxed=True,
        aliases=("gemini",),
        variables=("GEMINI_CLI_HOME",),
    ),
    Client(
        name="generic",
        title="any other",
        key="mcpServers",
        form="json",
        file=None,
        shown="",
        relaxed=True,
        graphical=True,
        aliases=("json",),
    ),
)


def client(name: str, *, with_file: bool = False) -> Client:
    """Return the client of a name; raises UsageError with the names there are.

    ``with_file``: only those with a file of their own are named then.
    """
    for known in CLIENTS:
        if name in (known.name, *known.aliases):
            return known
    names = [known.name for known in CLIENTS if known.file is not None or not with_file]
    raise UsageError(f"client {name!r} is none of {', '.join(names)}")
