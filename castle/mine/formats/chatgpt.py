"""ChatGPT: ``conversations.json`` (a list) or a single conversation, each a tree of nodes in ``mapping``.

Ids: the node's id. Every branch is delivered; ``shown`` tells which are on the path to ``current_node``. The
parent is the nearest node above that has a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castle.mine.formats.base import (
    Attachment,
    Broken,
    Event,
    Kind,
    Message,
    NoMessage,
    Role,
    SessionInfo,
    Transcript,
)
from castle.mine.formats.items import head_keys, read_items
from castle.mine.formats.slices import Piece, messages
from castle.mine.formats.values import (
    derived_id,
    json_text,
    mapping,
    mappings,
    micros,
    said,
    sequence,
    small,
    string,
)

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}
_THINKING = frozenset({"thoughts", "reasoning_recap"})
_CONTEXT = frozenset({"user_editable_context", "model_editable_context"})
_TEXTS = (
    "text",
    "content",
    "result",
    "summary",
    "user_profile",
    "user_instructions",
    "model_set_context",
    "repository",
    "repo_summary",
    "structured_context",
)
_KEYS = frozenset({"current_node", "conversation_id", "id", "create_time", "title"})


def _pieces(content: Mapping[str, Any]) -> list[Piece]:
    """Turn a message's content of any type into pieces: its parts, its thoughts, then its other texts."""
    pieces: list[Piece] = []
    for part in sequence(content.get("parts")):
        pieces.append(_part(part, f"b{len(pieces)}" if pieces else ""))
    for index, thought in enumerate(mappings(content.get("thoughts"))):
        for field in ("summary", "content"):
            pieces.append(Piece(f"t{index}.{field}", string(thought.get(field)), "thinking"))
    for field in _TEXTS:
        text = said(content.get(field))
        if text:
            pieces.append(Piece(field if pieces else "", text))
    for field, value in content.items():
        if field not in ("parts", "thoughts") and "asset_pointer" in mapping(value):
            pieces.append(_part(value, field))
    rest = {key: value for key, value in content.items() if key != "content_type"}
    if not any(piece.text or piece.attachments for piece in pieces) and any(
        value for key, value in rest.items() if key != "parts"
    ):
        return [Piece("", json_text(rest))]
    return pieces


def _part(part: object, label: str) -> Piece:
    if isinstance(part, str):
        return Piece(label, part)
    fields = mapping(part)
    pointer = string(fields.get("asset_pointer"))
    inner = mapping(fields.get("audio_asset_pointer"))
    if pointer or inner:
        pointer = pointer or string(inner.get("asset_pointer"))
        media = string(fields.get("content_type")).removesuffix("_asset_pointer")
        file = Attachment("", string(fields.get("format")) or media, None, pointer)
        return Piece(label, string(fields.get("text")), attachments=(file,))
    return Piece(label, fields["text"] if isinstance(fields.get("text"), str) else said(part))


def _kind(message: Mapping[str, Any], role: str, what: str) -> Kind:
    about = mapping(message.get("metadata"))
    if role == "system" or what in _CONTEXT or about.get("is_visually_hidden_from_conversation") is True:
        return "injected"
    if what in _THINKING:
        return "thinking"
    if role == "tool" or message.get("recipient") not in (None, "", "all"):
        return "tool"
    return "message"


class _Tree:
    """The nodes of one conversation."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.nodes = {key: mapping(node) for key, node in mapping(fields.get("mapping")).items()}
        current = string(fields.get("current_node"))
        leaf = current if current in self.nodes else self._latest()
        self.shown = set(self._above(leaf))

    def _latest(self) -> str:
        """Return the node with the latest message, for exports that name no current node."""
        times = {
            key: micros(mapping(node.get("message")).get("create_time")) or 0
            for key, node in self.nodes.items()
        }
        return max(times, key=lambda key: times[key], default="")

    def _above(self, key: str) -> Iterator[str]:
        """Walk from a node to its root; a loop ends the walk."""
        met: set[str] = set()
        while key in self.nodes and key not in met:
            met.add(key)
            yield key
            key = string(self.nodes[key].get("parent"))

    def parent(self, key: str) -> str:
        """Return the nearest node above that has a message."""
        above = self._above(string(self.nodes[key].get("parent")))
        return next((one for one in above if isinstance(self.nodes[one].get("message"), dict)), "")

    def order(self) -> Iterator[str]:
        """Walk all nodes, each branch to its end before the next begins."""
        met: set[str] = set()
        roots = [key for key, node in self.nodes.items() if string(node.get("parent")) not in self.nodes]
        stack = [*reversed(self.nodes), *reversed(roots)]
        while stack:
            key = stack.pop()
            if key in met or key not in self.nodes:
                continue
            met.add(key)
            yield key
            stack.extend(string(child) for child in reversed(sequence(self.nodes[key].get("children"))))


def _conversation(value: Any, number: int, escaped: bool) -> Iterator[Event]:
    fields = mapping(value)
    if not isinstance(fields.get("mapping"), dict):
        yield Broken(number, "not a conversation: it has no mapping", "item")
        return
    session = string(fields.get("conversation_id")) or string(fields.get("id"))
    session = session or derived_id(string(fields.get("title")), json_text(fields.get("create_time")))
    yield SessionInfo(
        session,
        title=string(fields.get("title")),
        project=string(fields.get("gizmo_id")) or string(fields.get("conversation_template_id")),
        started_at=micros(fields.get("create_time")),
        metadata=small(model=string(fields.get("default_model_slug"))),
    )
    tree = _Tree(fields)
    for key in tree.order():
        message = tree.nodes[key].get("message")
        if message is None:
            yield NoMessage(number, "node without a message")
        elif not isinstance(message, dict):
            yield Broken(number, f"node {key}: its message is not an object", "item")
        else:
            found = list(_node(session, key, message, tree, escaped))
            yield from found
            if not found:
                yield NoMessage(number, "message without text")


def _node(
    session: str, key: str, message: Mapping[str, Any], tree: _Tree, escaped: bool
) -> Iterator[Message]:
    author = mapping(message.get("author"))
    role = _ROLES.get(string(author.get("role")), "system")
    body = message.get("content")
    content = mapping(body) if isinstance(body, dict) else {"text": body}
    what = string(content.get("content_type"))
    about = mapping(message.get("metadata"))
    kind = _kind(message, role, what)
    recipient = string(message.get("recipient"))
    weight = message.get("weight")
    shell = Message(
        session=session,
        id=key,
        whole=key,
        parent=tree.parent(key),
        role=role,
        kind=kind,
        text="",
        speaker=string(author.get("name")) if role in ("user", "assistant") else "",
        timestamp=micros(message.get("create_time")),
        tool=(recipient if role == "assistant" else string(author.get("name"))) if kind == "tool" else "",
        shown=key in tree.shown,
        metadata=small(
            model=string(about.get("model_slug")),
            content_type=what if what not in ("", "text") else "",
            message_id=string(message.get("id")) if message.get("id") != key else "",
            hidden=about.get("is_visually_hidden_from_conversation") is True,
            **{field: string(content.get(field)) for field in ("language", "title", "url", "domain")},
        )
        | ({"weight": weight} if isinstance(weight, int | float) and weight == 0 else {}),
        escaped=escaped,
    )
    files = tuple(
        Attachment(
            string(one.get("name")),
            string(one.get("mime_type")) or string(one.get("mimeType")),
            None,
            string(one.get("file_id")) or string(one.get("id")),
        )
        for one in mappings(about.get("attachments"))
    )
    return messages(
        shell,
        [*_pieces(content), *(Piece(f"f{index}", "", attachments=(one,)) for index, one in enumerate(files))],
    )


class ChatGpt:
    """The export of ChatGPT."""

    name = "chatgpt"
    incremental = False
    certain = True
    global_sessions = True

    def detect(self, name: str, head: bytes) -> bool:
        """Look for a conversation's ``mapping`` in a JSON document."""
        keys = head_keys(head)
        return "mapping" in keys and not keys.isdisjoint(_KEYS)

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return nothing: every file is a transcript."""
        return {}

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the conversations of an export, one after the other."""
        return read_items(transcript, _conversation)
