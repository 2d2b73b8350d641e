"""From a message of a transcript to the drawers that hold it, word for word."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castle.mine.formats.base import Message, exact_bytes
from castle.mine.halls import hall_for
from castle.mine.topics import GENERAL, HEAD_CHARACTERS, memory_type, room_of
from castle.store.filing import NewDrawer
from castle.store.sessions import COUNTED_ONLY, NewAttachment, NewMessage
from castle.text.chunk import chunks
from castle.text.secrets import LONGEST_BLOCK
from castle.text.served import mask_secrets
from castle.text.wordpiece import count_tokens

CONTEXT_PIECES = 28
QUOTED_CHARACTERS = 160
NAME = "message.md"

_UNSHOWABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(slots=True)
class Exchange:
    """Where a session stands: the topic of the exchange that is going on, and the question it answers."""

    room: str = ""
    question: str = ""
    said_at: int = 0


def to_message(
    message: Message, exchange: Exchange, *, salt: bytes, halls: Mapping[str, Sequence[str]], general: bool
) -> NewMessage:
    """Return what is to be filed of a message, and move the exchange on.

    ``general`` labels each message with its type of memory. Times that the transcript does not give are those
    of the message before.
    """
    content = exact_bytes(message.text, escaped=message.escaped)
    shown = _UNSHOWABLE.sub(_replacement, message.text)
    speaks = message.kind in ("message", "queued", "attachment", "subagent")
    exchange.said_at = message.timestamp or exchange.said_at
    if message.role == "user" and speaks and message.kind != "subagent":
        exchange.room = room_of(shown)
        exchange.question = ""
    elif speaks and exchange.room in ("", GENERAL):
        exchange.room = room_of(shown)
    metadata: dict[str, object] = {}
    room = exchange.room or GENERAL
    if general and speaks and (label := memory_type(shown)):
        metadata["memory_type"] = label
    drawers = (
        ()
        if message.kind in COUNTED_ONLY
        else _drawers(message, shown, exchange, room, salt, halls, metadata)
    )
    if message.role == "user" and message.kind == "message":
        # Read so far that no secret is cut off where it could not be known any more.
        beginning = mask_secrets(shown[: 4 * QUOTED_CHARACTERS + LONGEST_BLOCK], salt)
        exchange.question = " ".join(beginning.split())[:QUOTED_CHARACTERS]
    return NewMessage(
        id=legal(message.id),
        whole=legal(message.whole),
        parent=legal(message.parent),
        role=message.role,
        kind=message.kind,
        content=content,
        drawers=drawers,
        speaker=legal(message.speaker),
        tool=legal(message.tool),
        thread=legal(message.thread),
        said_at=message.timestamp,
        shown=message.shown,
        attachments=[
            NewAttachment(legal(a.name), legal(a.media_type), legal(a.ref), a.data)
            for a in message.attachments
        ],
        metadata=_legal_values(message.metadata),
    )


def _legal_values(metadata: Mapping[str, object]) -> Mapping[str, object]:
    """Return the same values with every text in them legal."""
    if not metadata:
        return metadata
    values: dict[str, object] = json.loads(legal(json.dumps(metadata, ensure_ascii=False)))
    return values


def _drawers(
    message: Message,
    shown: str,
    exchange: Exchange,
    room: str,
    salt: bytes,
    halls: Mapping[str, Sequence[str]],
    metadata: dict[str, object],
) -> list[NewDrawer]:
    """Cut a message into exact slices; what came before it goes into their context."""
    hall = hall_for(shown[:HEAD_CHARACTERS], halls)
    context = _context(message, exchange)
    made = []
    for chunk in chunks([shown], name=NAME, salt=salt):
        exact = exact_bytes(message.text[chunk.start : chunk.end], escaped=message.escaped)
        made.append(
            NewDrawer(
                chunk,
                None if chunk.text.encode("utf-8") == exact else exact,
                hall,
                message.kind,
                context,
                exchange.said_at,
                role=message.role,
                speaker=legal(message.speaker),
                message_id=legal(message.id),
                room=room,
                metadata=metadata,
            )
        )
    return made


def _context(message: Message, exchange: Exchange) -> str:
    """Return who speaks and the question being answered, in few enough word pieces to be embedded with it."""
    question = exchange.question if message.role != "user" else ""
    words = " › ".join(part for part in (legal(message.speaker), question) if part).split(" ")
    while words and count_tokens(" ".join(words)) > CONTEXT_PIECES:
        words = words[: len(words) * 3 // 4]
    return " ".join(words)


def quoted(text: str) -> str:
    """Return the beginning of a served text on one line."""
    return " ".join(text.split())[:QUOTED_CHARACTERS]


def legal(text: str) -> str:
    """Return a text that every database takes: without NUL and lone surrogates."""
    return _UNSHOWABLE.sub(_replacement, text)


def _replacement(match: re.Match[str]) -> str:
    return "\u2400" if match.group() == "\0" else "\ufffd"
