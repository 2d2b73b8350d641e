"""What hosts write to a hook's stdin, read with bounds, and the event that is made of it.

Both hosts send one JSON object with ``session_id``, ``transcript_path``, ``cwd`` and ``hook_event_name``
beside what belongs to the event. Nobody's words are taken from it: they stand in the transcript.
"""

from __future__ import annotations

import json
import os
import string
import sys
import time
from collections.abc import Mapping

MAX_BYTES = 8 << 20
WAIT_SECONDS = 0.2
MAX_PATH = 4096

_HEAD = 1 << 16
_ID = frozenset(string.ascii_letters + string.digits + "_-")
_MAX_ID = 128
_NAME = _ID | frozenset(".:/ ")
_SUFFIXES = (".jsonl", ".json")
_DETAILS = ("source", "reason", "trigger", "stop_hook_active", "turn_id")
_MAX_DETAIL = 128

EARLY = ("session-start", "user-prompt-submit")
"""Hooks that may run before there is a transcript."""


class Unusable(Exception):
    """A payload that names no transcript."""


def read(descriptor: int, seconds: float = WAIT_SECONDS) -> tuple[bytes, bool]:
    """Read a payload to its end, ``MAX_BYTES``, or for ``seconds``; return it and whether it ended."""
    if sys.platform == "win32":
        return _read_in_a_thread(descriptor, seconds)
    import select

    deadline = time.monotonic() + seconds
    parts: list[bytes] = []
    size = 0
    while size < MAX_BYTES:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return b"".join(parts), False
        part = os.read(descriptor, min(1 << 16, MAX_BYTES - size))
        if not part:
            return b"".join(parts), True
        parts.append(part)
        size += len(part)
    return b"".join(parts), False


def _read_in_a_thread(descriptor: int, seconds: float) -> tuple[bytes, bool]:
    """Read where pipes cannot be waited for; the thread ends with the process."""
    import threading

    parts: list[bytes] = []
    ended = threading.Event()

    def pull() -> None:
        while sum(map(len, parts)) < MAX_BYTES and (part := os.read(descriptor, 1 << 16)):
            parts.append(part)
        ended.set()

    threading.Thread(target=pull, daemon=True).start()
    whole = ended.wait(seconds)
    data = b"".join(parts)
    return data[:MAX_BYTES], whole and len(data) < MAX_BYTES


def fields(data: bytes, whole: bool) -> dict[str, object]:
    """Return the fields of a payload; raises Unusable when it is no JSON object."""
    # Stray bytes become surrogates, so that a path which is no UTF-8 still names its file.
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        loaded = None
    if isinstance(loaded, dict):
        return loaded
    if whole or not text.strip():
        what = "no JSON object" if text.strip() else "empty"
        raise Unusable(f"the payload on stdin is {what}, nothing was noted")
    return _from_the_head(text[:_HEAD])


def event(hook: str, harness: str, given: Mapping[str, object]) -> dict[str, object]:
    """Return the event to be spooled; raises Unusable when the payload names no transcript.

    Before anything has been said a host may have no transcript yet: then ``transcript`` is empty.
    """
    early = hook in EARLY and given.get("transcript_path") is None
    found = _base(hook, harness, given)
    found["transcript"] = "" if early else _transcript(given.get("transcript_path"))
    found["cwd"] = place(given.get("cwd"))
    for name in _DETAILS:
        value = given.get(name)
        if isinstance(value, bool) or (isinstance(value, str) and len(value) <= _MAX_DETAIL):
            found[name] = value
    return found


def signal(hook: str, harness: str, given: Mapping[str, object]) -> dict[str, object]:
    """Return what is noted of a tool's use or a subagent's end: which, where, how it went; nobody's words."""
    found = _base(hook, harness, given)
    for name, field in (("tool", "tool_name"), ("agent", "agent_id"), ("call", "tool_use_id")):
        if field in given:
            value = given[field]
            found[name] = value if isinstance(value, str) and _NAME.issuperset(value[:_MAX_ID]) else ""
            found[name] = str(found[name])[:_MAX_ID]
    if "tool" in found:
        from castle.calls import went_well

        found["cwd"] = place(given.get("cwd"))
        succeeded = went_well(str(given.get("hook_event_name")), given)
        if succeeded is not None:
            found["success"] = succeeded
    return found


def _base(hook: str, harness: str, given: Mapping[str, object]) -> dict[str, object]:
    return {
        "v": 1,
        "at": time.time_ns() // 1000,
        "hook": hook,
        "harness": harness,
        "session": _session(given.get("session_id")),
    }


def _from_the_head(text: str) -> dict[str, object]:
    """Find what is needed at the beginning of a payload whose end did not come.

    A name inside somebody's words cannot be mistaken for a field, because JSON puts a backslash before the
    quotes there.
    """
    import re

    found: dict[str, object] = {}
    for name in ("session_id", "transcript_path", "cwd"):
        match = re.search(rf'(?<!\\)"{name}"\s*:\s*("(?:[^"\\]|\\.)*")', text)
        if match is not None:
            try:
                found[name] = json.loads(match[1])
            except ValueError:
                continue
    return found


def _session(value: object) -> str:
    """Return a session's id, "" for anything that could not be one."""
    if isinstance(value, str) and 0 < len(value) <= _MAX_ID and _ID.issuperset(value):
        return value
    return ""


def _transcript(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise Unusable("the payload names no transcript, nothing was noted")
    path = os.path.expanduser(value)  # noqa: PTH111  (pathlib costs a hook several milliseconds)
    parts = path.replace("\\", "/").split("/")
    legal = os.path.isabs(path) and path.endswith(_SUFFIXES) and ".." not in parts  # noqa: PTH117
    if not legal or not _names(path) or len(path) > MAX_PATH:
        raise Unusable(f"transcript_path {path[:200]!r} is no absolute path of a .jsonl or .json file")
    return path


def place(value: object) -> str:
    """Return the path of a directory, "" for anything else."""
    path = text(value, MAX_PATH)
    return path if _names(path) else ""


def _names(path: str) -> bool:
    """Whether a file can have this path: JSON can write surrogates that stand for no byte."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def text(value: object, limit: int) -> str:
    """Return a text that is not longer than ``limit`` characters, "" for anything else."""
    return value if isinstance(value, str) and len(value) <= limit else ""
