"""BEAM (Tavakoli et al., 2025): long conversations in batches, with questions of ten abilities.

Read by its documentation, never run here. A directory holds one directory for each conversation, with
``chat.json`` and ``probing_questions/probing_questions.json``. A batch counts as a session. Questions name
their evidence by the ids of messages, nested in any way; an id that several messages have means all of them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.retrieval.cases import Case, Collection, Message, Question, files_sha256, micros, text_of

_UNANSWERED = "abstention"


def read(path: Path) -> Collection:
    """Read every conversation; questions that name no message are left out and counted."""
    chats = sorted(path.rglob("chat.json"))
    cases, files, lost = [], [], 0
    for chat in chats:
        asked = chat.parent / "probing_questions" / "probing_questions.json"
        files += [chat, asked]
        name = "-".join(chat.parent.relative_to(path).parts) or chat.parent.name
        case, without = _case(name, json.loads(text_of(chat)), json.loads(text_of(asked)))
        cases.append(case)
        lost += without
    notes = (f"{lost} questions name no message as evidence and are left out",) if lost else ()
    return Collection("beam", tuple(cases), files_sha256(files), notes=notes)


def _case(name: str, chat: Any, asked: dict[str, list[dict[str, Any]]]) -> tuple[Case, int]:
    messages: list[Message] = []
    by_id: dict[int, list[Message]] = defaultdict(list)
    for session, batch in enumerate(_batches(chat)):
        time = None
        for number, said in enumerate(_messages(batch)):
            time = _time(said) or time or _time(batch if isinstance(batch, dict) else {})
            message = Message(str(session), str(number), said["role"], said["content"], time)
            messages.append(message)
            if isinstance(said.get("id"), int):
                by_id[said["id"]].append(message)
    last = max((message.time or 0 for message in messages), default=0) or None
    questions, lost = [], 0
    for kind, listed in asked.items():
        for number, one in enumerate(listed):
            gold = [message for id_ in _ids(one.get("source_chat_ids")) for message in by_id.get(id_, ())]
            if not gold:
                lost += 1
                continue
            questions.append(
                Question(
                    f"{kind}-{number}",
                    one["question"],
                    kind,
                    frozenset(message.session for message in gold),
                    frozenset(message.turn for message in gold),
                    last,
                    answered=kind != _UNANSWERED,
                )
            )
    return Case(name, messages=tuple(messages), questions=tuple(questions)), lost


def _batches(chat: Any) -> Iterator[Any]:
    """Yield batches; the longest conversations hold them under the names of plans."""
    for item in chat:
        if isinstance(item, dict) and "turns" not in item and "content" not in item:
            for batches in item.values():
                yield from batches if isinstance(batches, list) else ()
        else:
            yield item


def _messages(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        if value["content"].strip() and value.get("role") in ("user", "assistant"):
            yield value
    elif isinstance(value, dict):
        yield from _messages(value.get("turns") or [])
    elif isinstance(value, list):
        for item in value:
            yield from _messages(item)


def _ids(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _ids(item)


def _time(item: dict[str, Any]) -> int | None:
    return micros(str(item.get("time_anchor") or ""), "%B-%d-%Y", "%B %d, %Y")
