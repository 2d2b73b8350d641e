"""ConvoMem (Pakhomov et al., 2025): evidence items with the conversations that hold their evidence.

Read by its documentation, never run here. A file holds ``evidence_items``, each with a question, the messages
that are its evidence, and conversations of messages; a directory is read with all its ``.json`` files. Every
item is a palace. Conversations carry no dates, so nothing is dated. An evidence message is found in a
conversation by its words, as one text within the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.retrieval.cases import Case, Collection, Message, Question, files_sha256, text_of

_UNANSWERED = "abstention"


def read(path: Path) -> Collection:
    """Read every item; one whose evidence is in none of its conversations is left out and counted."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    cases: list[Case] = []
    lost = 0
    for file in files:
        kind = file.parent.name if path.is_dir() else ""
        for number, item in enumerate(_items(json.loads(text_of(file)))):
            case = _case(f"{file.stem}-{number}", kind, item)
            lost += case is None
            cases += [] if case is None else [case]
    notes = (f"{lost} items name no evidence that is in their conversations",) if lost else ()
    return Collection("convomem", tuple(cases), files_sha256(files), notes=notes)


def _items(data: Any) -> Iterator[dict[str, Any]]:
    """Yield evidence items, bare or inside test cases that share conversations."""
    rows = data if isinstance(data, list) else [data]
    for row in rows:
        shared = row.get("conversations", [])
        for item in row.get("evidence_items") or row.get("evidenceItems") or [row]:
            yield {**item, "conversations": item.get("conversations") or shared}


def _case(name: str, kind: str, item: dict[str, Any]) -> Case | None:
    messages = []
    for place, conversation in enumerate(item["conversations"]):
        session = str(conversation.get("id") or place)
        for number, said in enumerate(conversation["messages"]):
            role = "assistant" if said["speaker"].casefold() == "assistant" else "user"
            if said["text"].strip():
                messages.append(Message(session, str(number), role, said["text"], None))
    evidence = [said["text"] for said in item.get("message_evidences") or ()]
    gold = [message for message in messages if any(t in message.text or message.text in t for t in evidence)]
    if not gold:
        return None
    kind = str(item.get("category") or kind or "all")
    question = Question(
        name,
        item["question"],
        kind,
        frozenset(message.session for message in gold),
        frozenset(message.turn for message in gold),
        answered=_UNANSWERED not in kind.casefold(),
    )
    return Case(name, messages=tuple(messages), questions=(question,))
