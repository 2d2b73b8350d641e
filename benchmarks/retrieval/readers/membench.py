"""MemBench (Tan et al., 2025): dialogues and streams of observations, each with one question.

Read by its documentation, never run here. A file maps scenarios to lists of records with ``message_list`` and
``QA``, at any depth; a directory is read with all its ``.json`` files. A message is a text, or an object with
what the user and the agent said, or with one ``message``; sessions may be nested or not. ``target_step_id``
names the evidence by the number of the step, alone or before the number of its session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.retrieval.cases import Case, Collection, Message, Question, files_sha256, micros, text_of

_TIME = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")
_SAID = (
    ("user", ("user", "user_message", "message", "observation")),
    ("assistant", ("agent", "assistant", "assistant_message")),
)


def read(path: Path) -> Collection:
    """Read every record; one whose target names no step is left out and counted."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    cases: list[Case] = []
    lost = 0
    for file in files:
        for number, (kind, record) in enumerate(_records(json.loads(text_of(file)), file.stem)):
            case = _case(f"{file.stem}-{number}", kind, record)
            lost += case is None
            cases += [] if case is None else [case]
    notes = (f"{lost} records name no step as evidence",) if lost else ()
    return Collection("membench", tuple(cases), files_sha256(files), notes=notes)


def _records(value: Any, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict) and "message_list" in value and "QA" in value:
        yield kind, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _records(item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _records(item, kind)


def _case(name: str, kind: str, record: dict[str, Any]) -> Case | None:
    messages: list[Message] = []
    steps: dict[int, list[Message]] = {}
    for number, (session, step) in enumerate(_steps(record["message_list"])):
        found = list(_said(step, session, number))
        steps[_number_of(step, number)] = found
        messages += found
    asked = record["QA"]
    gold = [m for step in _targets(asked.get("target_step_id")) for m in steps.get(step, ())]
    if not gold:
        return None
    question = Question(
        name,
        asked["question"],
        kind,
        frozenset(message.session for message in gold),
        frozenset(message.turn for message in gold),
        _time(str(asked.get("time") or "")),
    )
    return Case(name, messages=tuple(messages), questions=(question,))


def _steps(listed: list[Any]) -> Iterator[tuple[int, Any]]:
    for session, item in enumerate(listed):
        for step in item if isinstance(item, list) else [item]:
            yield session if isinstance(item, list) else 0, step


def _number_of(step: Any, number: int) -> int:
    named = step.get("sid", step.get("mid")) if isinstance(step, dict) else None
    return named if isinstance(named, int) else number


def _said(step: Any, session: int, number: int) -> Iterator[Message]:
    if isinstance(step, str):
        step = {"message": step}
    for role, keys in _SAID:
        text = next((step[key] for key in keys if isinstance(step.get(key), str)), "")
        if text.strip():
            time = _time(str(step.get("time") or text))
            yield Message(str(session), f"{number}-{role}", role, text, time)


def _targets(value: Any) -> Iterator[int]:
    for item in value if isinstance(value, list) else [value]:
        first = item[0] if isinstance(item, list) and item else item
        if str(first).strip().isdigit():
            yield int(first)


def _time(text: str) -> int | None:
    match = _TIME.search(text)
    return micros(match[0]) if match else None
