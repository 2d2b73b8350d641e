"""Content blocks as Anthropic's products write them: text, thinking, tools, images, documents."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from castle.mine.formats.base import Attachment
from castle.mine.formats.slices import Piece
from castle.mine.formats.values import (
    embedded,
    json_text,
    linked,
    mapping,
    said,
    sequence,
    small,
    string,
)


def pieces_of(content: object, calls: MutableMapping[str, str]) -> list[Piece]:
    """Turn a message's content (a string or a list of blocks) into pieces.

    ``calls`` maps ids of open tool calls to tool names; calls are added and answered ones removed.
    """
    if isinstance(content, str):
        return [Piece("", content)]
    pieces: list[Piece] = []
    for index, block in enumerate(sequence(content)):
        pieces.extend(_block(block, f"b{index}" if index else "", calls))
    return pieces


def _block(block: object, label: str, calls: MutableMapping[str, str]) -> list[Piece]:
    if isinstance(block, str):
        return [Piece(label, block)]
    fields = mapping(block)
    kind = string(fields.get("type"))
    if kind == "text":
        return [Piece(label, said(fields.get("text")))]
    if kind in ("thinking", "redacted_thinking"):
        return [Piece(label, said(fields.get("thinking")), "thinking")]
    if kind.endswith("tool_use"):
        return [_call(fields, label, calls)]
    if kind.endswith("tool_result"):
        return _result(fields, label, calls)
    if kind in ("image", "document"):
        return _media(fields, label)
    return _unknown(block, fields, label, calls)


def _call(fields: Mapping[str, Any], label: str, calls: MutableMapping[str, str]) -> Piece:
    name = string(fields.get("name"))
    call = string(fields.get("id"))
    if call:
        calls[call] = name
    # A call may have no input; it is still a call, so its empty object is kept.
    text = json_text(fields.get("input") if fields.get("input") is not None else {})
    return Piece(label, text, "tool", "assistant", name, metadata=small(tool_use_id=call))


def _result(fields: Mapping[str, Any], label: str, calls: MutableMapping[str, str]) -> list[Piece]:
    call = string(fields.get("tool_use_id"))
    name = calls.pop(call, "") or string(fields.get("name"))
    about = small(tool_use_id=call, is_error=fields.get("is_error") is True)
    content = fields.get("content")
    pieces: list[Piece] = []
    for index, part in enumerate(content if isinstance(content, list) else [content]):
        place = label if index == 0 else f"{label or 'b0'}.{index}"
        inner = mapping(part)
        if string(inner.get("type")) in ("image", "document"):
            pieces.extend(
                Piece(place, one.text, "tool", "tool", name, one.attachments, about)
                for one in _media(inner, place)
            )
            continue
        is_text = inner.get("type") == "text" and isinstance(inner.get("text"), str)
        text = inner["text"] if is_text else said(part)
        pieces.append(Piece(place, text, "tool", "tool", name, metadata=about))
    return pieces


def _media(fields: Mapping[str, Any], label: str) -> list[Piece]:
    source = mapping(fields.get("source"))
    name = string(fields.get("title")) or string(fields.get("name"))
    media_type = string(source.get("media_type"))
    if source.get("type") == "text":
        text = said(source.get("data"))
        return [Piece(label, text, "attachment", attachments=(Attachment(name, media_type),))]
    if source.get("type") == "base64":
        file = embedded(source.get("data"), media_type, name)
    elif source.get("url"):
        file = linked(source["url"], media_type, name)
    else:
        file = Attachment(
            name, media_type, None, string(source.get("file_id")) or string(fields.get("file_uuid"))
        )
    return [Piece(label, "", attachments=(file,))]


def _unknown(
    block: object, fields: Mapping[str, Any], label: str, calls: MutableMapping[str, str]
) -> list[Piece]:
    """Keep a block of a type that is not known: its text, thinking, input and content, or else all of it."""
    start = label or "b0"
    pieces = []
    if isinstance(fields.get("text"), str):
        pieces.append(Piece(label, fields["text"]))
    if isinstance(fields.get("thinking"), str):
        pieces.append(Piece(f"{start}.thinking", fields["thinking"], "thinking"))
    if fields.get("input"):
        pieces.append(Piece(f"{start}.input", *_as_call(fields)))
    if fields.get("content"):
        pieces.extend(_result({**fields, "tool_use_id": ""}, f"{start}.content", calls))
    if not any(piece.text or piece.attachments for piece in pieces):
        text = said(block)
        return [Piece(label, text, "tool", "system")] if text else []
    return pieces


def _as_call(fields: Mapping[str, Any]) -> tuple[str, Any, Any, str]:
    return said(fields["input"]), "tool", "assistant", string(fields.get("name"))
