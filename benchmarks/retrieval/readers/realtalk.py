"""REALTALK (Lee et al., 2025): chats of two people over three weeks, each in a file of its own.

Read by its documentation, never run here. A file holds ``session_N`` with messages (``clean_text``,
``speaker``, ``date_time``, ``dia_id``) and ``qa`` with questions and the messages that are their evidence.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.retrieval.cases import Case, Collection, Message, Question, files_sha256, micros, text_of

_SESSION = re.compile(r"session_\d+$")
_TURN = re.compile(r"D\d+:\d+")
_KINDS = {1: "1 fact", 2: "2 date", 3: "3 inference"}


def read(path: Path) -> Collection:
    """Read a file or every ``.json`` of a directory; questions without usable evidence are counted."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    cases, lost = [], 0
    for file in files:
        case, without = _case(file.stem, json.loads(text_of(file)))
        cases.append(case)
        lost += without
    notes = (f"{lost} questions name no turn as evidence and are left out",) if lost else ()
    return Collection("realtalk", tuple(cases), files_sha256(files), notes=notes)


def _case(name: str, chat: dict[str, Any]) -> tuple[Case, int]:
    messages = [
        Message(
            session,
            said["dia_id"],
            "user",
            said["clean_text"],
            micros(said.get("date_time") or "", "%d.%m.%Y, %H:%M:%S"),
            said["speaker"],
        )
        for session, listed in chat.items()
        if _SESSION.match(session) and isinstance(listed, list)
        for said in listed
        if said.get("clean_text")
    ]
    by_id = {message.id: message for message in messages}
    last = max((message.time or 0 for message in messages), default=0) or None
    questions, lost = [], 0
    for number, asked in enumerate(chat.get("qa") or ()):
        gold = [by_id[id_] for id_ in _TURN.findall(str(asked.get("evidence"))) if id_ in by_id]
        if not gold:
            lost += 1
            continue
        questions.append(
            Question(
                str(number),
                asked["question"],
                _KINDS.get(asked.get("category"), str(asked.get("category"))),
                frozenset(message.session for message in gold),
                frozenset(message.turn for message in gold),
                last,
            )
        )
    return Case(name, messages=tuple(messages), questions=tuple(questions)), lost
