"""Claude.ai: ``conversations.json`` (a list) or a single conversation, with content blocks and branches.

Ids: the message's ``uuid``. ``text`` repeats the text blocks; it is delivered (as ``uuid#text``) only where
it says more than they do, and then instead of the blocks it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castle.mine.formats.base import (
    Attachment,
    Broken,
    Event,
    Message,
    NoMessage,
    Role,
    SessionInfo,
    Transcript,
)
from castle.mine.formats.blocks import pieces_of
from castle.mine.formats.items import head_keys, read_items
from castle.mine.formats.slices import Piece, messages
from castle.mine.formats.values import (
    derived_id,
    json_text,
    mapping,
    mappings,
    micros,
    sequence,
    small,
    string,
)

_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant", "ai": "assistant"}
_PLACEHOLDER = re.compile(r"```\s*This block is not supported on your current device yet\.\s*```")


def _pieces(value: Mapping[str, Any]) -> list[Piece]:
    pieces = pieces_of(value.get("content"), {})
    text = string(value.get("text"))
    words = [piece for piece in pieces if piece.kind is None and piece.text]
    if not text or _says_no_more(text, [piece.text for piece in words]):
        pass
    elif not words:
        pieces.insert(0, Piece("text" if pieces else "", text))
    else:
        kept = [
            piece for piece in pieces if piece.kind is not None or piece.text not in text or not piece.text
        ]
        pieces = [Piece("text", text), *kept]
    for index, one in enumerate(mappings(value.get("attachments"))):
        file = Attachment(string(one.get("file_name")), string(one.get("file_type")))
        content = string(one.get("extracted_content"))
        pieces.append(Piece(f"a{index}", content, "attachment", attachments=(file,)))
    files = [*mappings(value.get("files")), *mappings(value.get("files_v2"))]
    seen: set[str] = set()
    for index, one in enumerate(files):
        ref = string(one.get("file_uuid")) or string(one.get("file_name"))
        if ref not in seen:
            file = Attachment(string(one.get("file_name")), string(one.get("file_kind")), None, ref)
            pieces.append(Piece(f"f{index}", "", attachments=(file,)))
        seen.add(ref)
    return pieces


def _says_no_more(text: str, words: Sequence[str]) -> bool:
    """Tell whether ``text`` is made of the lines of the text blocks (and of marks for blocks not shown)."""
    if text in words or text == "".join(words):
        return True
    known = {line.strip() for word in words for line in word.split("\n")} | {""}
    return bool(words) and all(line.strip() in known for line in _PLACEHOLDER.sub("", text).split("\n"))


def _shown(value: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]) -> set[str] | None:
    """Return the ids on the branch that is shown, None where the export has no branches."""
    parents = {string(turn.get("uuid")): string(turn.get("parent_message_uuid")) for turn in turns}
    if not any(parent in parents for parent in parents.values()):
        return None
    leaf = string(value.get("current_leaf_message_uuid"))
    if leaf not in parents:
        leaf = string(max(turns, key=lambda turn: micros(turn.get("created_at")) or 0).get("uuid"))
    shown: set[str] = set()
    while leaf in parents and leaf not in shown:
        shown.add(leaf)
        leaf = parents[leaf]
    return shown


def _conversation(value: Any, number: int, escaped: bool) -> Iterator[Event]:
    fields = mapping(value)
    listed = fields.get("chat_messages", fields.get("messages"))
    if not isinstance(listed, list):
        yield Broken(number, "not a conversation: it has no chat_messages", "item")
        return
    session = string(fields.get("uuid")) or string(fields.get("conversation_id"))
    session = session or derived_id(string(fields.get("name")), json_text(listed[:1]))
    yield SessionInfo(
        session,
        title=string(fields.get("name")),
        project=string(mapping(fields.get("project")).get("name")),
        started_at=micros(fields.get("created_at")),
        metadata=small(model=string(fields.get("model")), summary=string(fields.get("summary"))),
    )
    turns = list(mappings(listed))
    shown = _shown(fields, turns)
    model = string(fields.get("model"))
    for index, turn in enumerate(sequence(listed), 1):
        if not isinstance(turn, dict):
            yield Broken(number, f"message {index} of the conversation is not an object", "item")
            continue
        found = list(messages(_shell(session, turn, shown, model, escaped), _pieces(turn)))
        yield from found
        if not found:
            yield NoMessage(number, "message without text")


def _shell(
    session: str, turn: Mapping[str, Any], shown: set[str] | None, model: str, escaped: bool
) -> Message:
    author = string(turn.get("sender")) or string(turn.get("role"))
    role = _ROLES.get(author, "system")
    native = string(turn.get("uuid")) or derived_id(session, json_text(dict(turn)))
    return Message(
        session=session,
        id=native,
        whole=native,
        parent=string(turn.get("parent_message_uuid")),
        role=role,
        kind="message" if role != "system" else "injected",
        text="",
        timestamp=micros(turn.get("created_at")),
        shown=shown is None or native in shown,
        metadata=small(model=model if role == "assistant" else ""),
        escaped=escaped,
    )


class ClaudeAi:
    """The export of Claude.ai."""

    name = "claude-ai"
    incremental = False
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Look for ``chat_messages`` in a JSON document."""
        return "chat_messages" in head_keys(head)

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every file is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the conversations of an export, one after the other."""
        return read_items(transcript, _conversation)
