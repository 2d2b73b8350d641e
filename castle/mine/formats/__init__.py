"""Transcript formats: one module each, found by content, read as a stream of events.

    with open_container(path) as found:
        for transcript in found:
            if isinstance(transcript, Transcript):
                for event in transcript.read(): ...

``castle.mine.formats.base`` says what the events mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from castle.mine.formats.aider import Aider
from castle.mine.formats.base import (
    HEAD_BYTES,
    RECALL_CLOSE,
    RECALL_OPEN,
    Attachment,
    Box,
    Broken,
    Checkpoint,
    Event,
    Format,
    Kind,
    Message,
    NoMessage,
    Pending,
    Role,
    SessionInfo,
    SessionTitle,
    Transcript,
    Withdrawn,
    exact_bytes,
)
from castle.mine.formats.chatgpt import ChatGpt
from castle.mine.formats.claude_ai import ClaudeAi
from castle.mine.formats.claude_code import ClaudeCode
from castle.mine.formats.codex import Codex
from castle.mine.formats.container import Archive, Container, Folder, Single, Unread
from castle.mine.formats.cursor import Cursor
from castle.mine.formats.gemini_cli import GeminiCli
from castle.mine.formats.messages import Messages
from castle.mine.formats.opencode import OpenCode
from castle.mine.formats.plain import Plain
from castle.mine.formats.recorded import Recorded
from castle.mine.formats.slack import Slack
from castle.mine.formats.slices import recall_block

__all__ = [
    "HEAD_BYTES",
    "RECALL_CLOSE",
    "RECALL_OPEN",
    "Archive",
    "Attachment",
    "Box",
    "Broken",
    "Checkpoint",
    "Container",
    "Event",
    "Folder",
    "Format",
    "Kind",
    "Message",
    "NoMessage",
    "Pending",
    "Role",
    "SessionInfo",
    "SessionTitle",
    "Single",
    "Transcript",
    "Unread",
    "Withdrawn",
    "detect",
    "exact_bytes",
    "formats",
    "open_container",
    "recall_block",
]

_FORMATS: tuple[Format, ...] = (
    ClaudeCode(),
    Codex(),
    GeminiCli(),
    Messages(),
    Recorded(),
    ClaudeAi(),
    ChatGpt(),
    Slack(),
    OpenCode(),
    Cursor(),
    Aider(),
    Plain(),
)


def formats() -> Sequence[Format]:
    """Return every format in the order in which they are tried; the last ones only guess."""
    return _FORMATS


def detect(path: Path) -> Format | None:
    """Return the format of a single file by its content, None if no format knows it; raises OSError."""
    single = Single(path)
    with single.open(path.name) as stream:
        head = stream.read(HEAD_BYTES)
    return next((format for format in _FORMATS if format.detect(path.name, head)), None)


def open_container(path: Path) -> Container:
    """Look for transcripts in a file, a folder or a zip; iterate the result, and close it after reading."""
    return Container(path, _FORMATS)
