"""Telling projects and transcripts apart, and where agents leave transcripts on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from castle.config import FILE_NAME
from castle.mine.read import existing

Mode = Literal["auto", "projects", "convos"]
MODES: tuple[Mode, ...] = ("auto", "projects", "convos")
SAMPLE = 300


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which a tool keeps its transcripts."""

    tool: str
    path: Path


def mode_of(path: Path) -> Mode:
    """Return ``convos`` for a transcript, an export or a folder that mostly holds them, else ``projects``.

    A folder with a castle.yaml or a repository is a project whatever it holds. Raises UsageError when there
    is nothing at the path.
    """
    path = existing(path)
    if path.is_dir() and ((path / FILE_NAME).exists() or (path / ".git").exists()):
        return "projects"
    from castle.mine.formats import Transcript, open_container

    transcripts = others = 0
    with open_container(path) as found:
        for entry in islice(found, SAMPLE):
            if isinstance(entry, Transcript) and entry.format.certain:
                transcripts += 1
            else:
                others += 1
    return "convos" if transcripts and transcripts >= others else "projects"


def transcript_folders(env: Mapping[str, str] = os.environ) -> Iterator[Place]:
    """Yield the folders of known tools that exist for this user."""
    home = Path(env.get("HOME") or Path.home())
    data = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share")
    if sys.platform == "darwin":
        editor = home / "Library" / "Application Support" / "Cursor"
    elif sys.platform == "win32":
        editor = Path(env.get("APPDATA") or home) / "Cursor"
    else:
        editor = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "Cursor"
    known = (
        Place("Claude Code", home / ".claude" / "projects"),
        Place("Codex", Path(env.get("CODEX_HOME") or home / ".codex") / "sessions"),
        Place("Gemini CLI", home / ".gemini" / "tmp"),
        Place("opencode", data / "opencode" / "storage"),
        Place("Cursor", editor / "User" / "globalStorage" / "state.vscdb"),
    )
    yield from (place for place in known if place.path.exists())
