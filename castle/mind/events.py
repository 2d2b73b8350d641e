"""What hosts tell of a session, in the three shapes there are, read into one.

A host's own payload has ``hook_event_name``: what is written to a hook's stdin may be sent as it is. A
recorded event has ``type``: session_start, session_end, turn or context. Everything else that has ``content``
is a text to be kept. Each may carry an ``event_id``; without one, the id is the hash of what it says.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from castle.calls import went_well
from castle.clock import parse_iso
from castle.errors import UsageError
from castle.mind.given import Given
from castle.mine.formats.base import exact_bytes
from castle.mine.formats.claude_code import INJECTED as CLAUDE
from castle.mine.formats.codex import INJECTED as CODEX
from castle.mine.formats.slices import cut
from castle.store.projection import legal_text

HOOKS: Mapping[str, tuple[str, str]] = {
    "sessionstart": ("start", "session-start"),
    "userpromptsubmit": ("prompt", "user-prompt-submit"),
    "posttooluse": ("tool", ""),
    "posttoolusefailure": ("tool", ""),
    "subagentstop": ("note", ""),
    "stop": ("note", "stop"),
    "precompact": ("note", "precompact"),
    "sessionend": ("end", "session-end"),
}
"""Names of hosts' events, without case and marks: what each is, and the hook that notes its transcript."""
MOST_TEXT = 1_000_000
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MOST_NAME = 128
_SUFFIXES = (".jsonl", ".json")
_MOST_PATH = 4096


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a session.

    ``kind`` is start, prompt (the user's words), tool, said (words that no transcript tells), note or end.
    ``hook`` is the name under which its transcript is to be noted, "" for none. ``success`` is None where it
    is not known whether a call went well. ``parts`` are the SHA-256 of the pieces of ``text`` as a transcript
    has them.
    """

    id: str
    kind: str
    session: str = ""
    platform: str = ""
    cwd: str = ""
    transcript: str = ""
    hook: str = ""
    role: str = ""
    text: str = ""
    tool: str = ""
    call: str = ""
    success: bool | None = None
    at: int | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    memory_type: str = "episodic"

    @property
    def visible(self) -> str:
        """The text without what its author marked private and without what hosts and Castle put into it."""
        return "".join(self.text[start:end] for start, end in self._spans())

    @property
    def parts(self) -> list[bytes]:
        """The hashes of the pieces that a transcript of this text would have."""
        pieces = (self.text[start:end] for start, end in self._spans())
        return [hashlib.sha256(exact_bytes(piece)).digest() for piece in pieces if piece.strip()]

    def _spans(self) -> list[tuple[int, int]]:
        if self.role != "user":
            return [(0, len(self.text))] if self.text else []
        injected = CODEX if self.platform == "codex" else CLAUDE
        slices = cut(self.text, "user", "message", injected)
        return [(start, end) for start, end, kind in slices if kind == "message"]


def unpacked(body: object) -> object:
    """Return the payload of a host that a hook script sent as a text to be kept; others as they are."""
    if isinstance(body, Mapping) and _by_hook(body):
        try:
            inside = json.loads(str(body.get("content")))
        except (ValueError, RecursionError):
            return body
        if isinstance(inside, dict) and inside.get("hook_event_name"):
            return {"session_id": body.get("session_id"), **inside}
    return body


def _by_hook(body: Mapping[str, Any]) -> bool:
    """Whether a text comes from a hook script, which marks it, and so not from anybody's mouth."""
    tags = body.get("tags")
    return "content" in body and isinstance(tags, list | tuple) and "hook" in tags


def read(body: object) -> list[Event]:
    """Return the events of one message; raises UsageError for what is none."""
    body = unpacked(body)
    if not isinstance(body, Mapping):
        raise UsageError("an event is a JSON object")
    if "hook_event_name" in body or "hook" in body:
        return [_of_host(body)]
    if "type" in body:
        return _recorded(body)
    if "content" in body:
        return [_content(body)]
    raise UsageError("an event has hook_event_name, type or content: see docs/agents.md")


def _of_host(body: Mapping[str, Any]) -> Event:
    name = str(body.get("hook_event_name") or body.get("hook"))
    known = HOOKS.get(re.sub("[^a-z]", "", name.lower()))
    if known is None:
        raise UsageError(f"hook_event_name {name[:80]!r} is none that is known")
    kind, hook = known
    call = _text(body, "tool_use_id")
    session = _session(body)
    text, role = "", ""
    if kind == "prompt":
        text, role = _text(body, "prompt", MOST_TEXT), "user"
    elif kind == "tool":
        text, role = _used(body), "tool"
    own = f"{session}:{kind}:{call}" if kind == "tool" and session and _ID.fullmatch(call) else ""
    return Event(
        _event_id(body, own),
        kind,
        session=session,
        platform=_platform(body),
        cwd=_path(body.get("cwd")),
        transcript=transcript(body.get("transcript_path")),
        hook=hook,
        role=role,
        text=text,
        tool=_text(body, "tool_name") or _text(body, "toolName"),
        call=call if _ID.fullmatch(call) else "",
        success=went_well(name, body) if kind == "tool" else None,
        at=_at(body),
    )


def _recorded(body: Mapping[str, Any]) -> list[Event]:
    """Read an event that a recorder of sessions wrote; a turn has what was asked and what was answered."""
    kind = str(body.get("type"))
    id_ = _event_id(body, "")
    shared: dict[str, Any] = {
        "session": _session(body),
        "platform": _platform(body),
        "cwd": _path(body.get("cwd")),
        "at": _at(body),
    }
    if kind in ("session_start", "session_end"):
        return [Event(id_, kind.removeprefix("session_"), **shared)]
    if kind == "context":
        return [Event(id_, "said", role="context", text=_text(body, "content", MOST_TEXT), **shared)]
    if kind != "turn":
        raise UsageError(f"type {kind[:80]!r} is none of session_start, session_end, turn, context")
    said = (("user", "user_message"), ("assistant", "assistant_message"))
    metadata = {key: body[key] for key in ("turn_id", "model") if isinstance(body.get(key), str)}
    found = [
        Event(f"{id_}:{role}", "said", role=role, text=text, metadata=metadata, **shared)
        for role, name in said
        if (text := _text(body, name, MOST_TEXT)).strip()
    ]
    return found or [Event(id_, "note", **shared)]


def _content(body: Mapping[str, Any]) -> Event:
    text = _text(body, "content", MOST_TEXT)
    if not text.strip():
        raise UsageError("content is empty: give the exact words that are to be kept")
    tags = body.get("tags") or ()
    metadata = body.get("metadata") or {}
    if not isinstance(tags, list | tuple) or not isinstance(metadata, Mapping):
        raise UsageError("tags are a list of texts, metadata is an object")
    # What a save would refuse must not be acknowledged first.
    given = Given({"tags": tags, "metadata": metadata}, b"")
    _ = given.tags, given.metadata
    memory_type = body.get("memory_type") or "episodic"
    if memory_type not in ("working", "episodic", "semantic", "procedural"):
        raise UsageError(f"memory_type {memory_type!r} is none of working, episodic, semantic, procedural")
    return Event(
        _event_id(body, ""),
        "said",
        session=_session(body),
        platform=_platform(body),
        cwd=_path(body.get("cwd")),
        role="tool" if _by_hook(body) else "user",
        text=text,
        at=_at(body),
        tags=tuple(str(tag) for tag in tags),
        metadata=dict(metadata),
        memory_type=memory_type,
    )


def transcript(value: object) -> str:
    """Return the absolute path of a transcript that a host names, "" for anything else."""
    path = os.path.expanduser(value) if isinstance(value, str) else ""  # noqa: PTH111
    parts = path.replace("\\", "/").split("/")
    fits = os.path.isabs(path) and path.endswith(_SUFFIXES) and ".." not in parts  # noqa: PTH117
    return _path(path) if fits else ""


def _event_id(body: Mapping[str, Any], own: str) -> str:
    # A host's payloads of one turn share its turn_id; a recorded turn is one event.
    given = body.get("event_id") or (body.get("turn_id") if body.get("type") == "turn" else None)
    if given is not None:
        if not isinstance(given, str) or not _ID.fullmatch(given):
            raise UsageError("event_id has 1 to 200 of the characters A-Z a-z 0-9 _ . : -")
        return given
    if own:
        return own
    said = json.dumps(body, sort_keys=True, ensure_ascii=True, default=str)
    return f"sha256:{hashlib.sha256(said.encode('ascii')).hexdigest()[:32]}"


def _session(body: Mapping[str, Any]) -> str:
    inner = body.get("session")
    nested = inner.get("id") if isinstance(inner, Mapping) else inner
    value = body.get("session_id") or body.get("sessionId") or nested
    return value if isinstance(value, str) and _SESSION.fullmatch(value) else ""


def _platform(body: Mapping[str, Any]) -> str:
    given = _text(body, "harness") or _text(body, "platform")
    return given if _SESSION.fullmatch(given) else ""


def _at(body: Mapping[str, Any]) -> int | None:
    given = body.get("timestamp")
    try:
        return parse_iso(given) if isinstance(given, str) else None
    except ValueError:
        return None


def _path(value: object) -> str:
    fits = isinstance(value, str) and len(value) <= _MOST_PATH and "\0" not in value
    return str(value) if fits and legal_text(str(value)) == value else ""


def _text(body: Mapping[str, Any], name: str, most: int = _MOST_PATH) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > most:
        raise UsageError(f"{name} is a text of at most {most} characters")
    return value


def _used(body: Mapping[str, Any]) -> str:
    """Return a call of a tool and what came of it, each as JSON on a line of its own."""
    names = (("tool_input",), ("tool_response", "tool_result", "result", "error"))
    found = (next((body[name] for name in group if body.get(name) is not None), None) for group in names)
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in found if value is not None)
