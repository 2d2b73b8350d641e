"""aider: ``.aider.chat.history.md``, Markdown that grows with every session in a folder.

A session begins with ``# aider chat started at <local time>`` (taken as UTC: the file names no zone) and is
called after that time; its messages are ``<session>/<n>``. ``#### `` lines are the user's, ``>`` lines
aider's own output (kind ``tool``), everything else the model's. The marks stay in the text: every byte
belongs to one message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from castle.mine.formats.base import Event, Transcript
from castle.mine.formats.text import Turn, read_turns
from castle.mine.formats.values import micros

_HEADER = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_DETECT = re.compile(rb"(?:^|\n)# aider chat started at \d{4}-")


def _classify(text: str, before: Turn | None) -> Turn:
    header = _HEADER.match(text)
    if header is not None:
        return Turn("system", "injected", starts=True, session=header[1], started_at=micros(header[1]))
    if text.startswith("####") and text[4:5] in ("", " ", "\n", "\r"):
        return Turn("user", starts=before is None or before.role != "user" or before.closed)
    if text.startswith(">"):
        return Turn("tool", "tool", starts=before is None or before.role != "tool")
    if not text.strip():
        # A blank line belongs to what it follows; it ends what the user typed.
        return Turn(before.role, before.kind, closed=True) if before else Turn("assistant")
    return Turn("assistant", starts=before is not None and before.role != "assistant")


class Aider:
    """aider's chat history."""

    name = "aider"
    incremental = True
    certain = True
    global_sessions = False

    def detect(self, name: str, head: bytes) -> bool:
        """Look for the header of a session, or the file's usual name."""
        return _DETECT.search(head) is not None or name.endswith(".aider.chat.history.md")

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every file is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the turns of a history from an offset."""
        return read_turns(transcript, _classify, Turn("system", "injected"), from_offset, state)
