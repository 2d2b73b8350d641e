"""Plain text: turns that begin with ``>``, or with a speaker's mark such as ``User:`` and ``Assistant:``.

The file is one session without an id of its own; its messages are numbered. Lines that begin with ``>`` are
the user's and what follows them is the reply; with speakers' marks, a turn reaches to the next mark. What
stands before the first turn has the role system; a text without any turn is one message of a user. The marks
stay in the text: every byte belongs to one message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from castle.mine.formats.base import HEAD_BYTES, Broken, Event, Role, Transcript
from castle.mine.formats.lines import decode
from castle.mine.formats.text import Turn, read_turns
from castle.mine.formats.values import READ_ERRORS, mapping, string

_SPEAKERS: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "you", "me", "q"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "a", "claude", "chatgpt", "gpt", "gemini", "copilot", "bot"), "assistant"
    ),
    "system": "system",
}
_MARK = re.compile(rf"\s{{0,3}}(?:#{{1,6}} +|\*\*|__)?({'|'.join(_SPEAKERS)})\s*(?:\*\*|__)?:", re.IGNORECASE)
_QUOTES_NEEDED = 3


def _speaker(text: str) -> Role | None:
    found = _MARK.match(text)
    return _SPEAKERS[found[1].lower()] if found else None


def _by_speaker(text: str, before: Turn | None) -> Turn:
    role = _speaker(text)
    if role is not None:
        return Turn(role, starts=True)
    return before or Turn("system")


def _by_quote(text: str, before: Turn | None) -> Turn:
    if text.startswith(">"):
        return Turn("user", starts=before is None or before.role != "user")
    if before is None:
        return Turn("system")
    if before.role == "user":
        return Turn("assistant", starts=True)
    return before


def _whole(text: str, before: Turn | None) -> Turn:
    return before or Turn("user", starts=True)


def _layout(head: bytes) -> str:
    """Tell how the turns of a text are marked: by ``speaker``, by ``quote``, or not at all (``whole``)."""
    lines = decode(head)[0].split("\n")
    speakers = [role for role in map(_speaker, lines) if role is not None]
    if {"user", "assistant"} <= set(speakers):
        return "speaker"
    return "quote" if sum(line.startswith(">") for line in lines) >= _QUOTES_NEEDED else "whole"


_CLASSIFIERS = {"speaker": _by_speaker, "quote": _by_quote, "whole": _whole}


class Plain:
    """Text with turns; ``read`` takes any text."""

    name = "plain"
    incremental = True
    certain = False
    global_sessions = False

    def detect(self, name: str, head: bytes) -> bool:
        """Look for turns in what is text and not JSON."""
        if b"\0" in head or head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            return False
        return _layout(head) != "whole"

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every file is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the turns of a text from an offset, by the layout of its first lines."""
        layout = string(mapping(state).get("layout"))
        if not layout:
            try:
                with transcript.open() as stream:
                    layout = _layout(stream.read(HEAD_BYTES))
            except READ_ERRORS as error:
                yield Broken(0, f"cannot be read: {error}", "file", transcript.address)
                return
        yield from read_turns(transcript, _CLASSIFIERS[layout], Turn("system"), from_offset, state)
