"""LongMemEval (Wu et al., 2024; MIT): every question has a haystack of sessions of its own.

A file is the original (``longmemeval_s_cleaned.json``, also xz); a directory holds ``questions.jsonl.xz`` and
``sessions.jsonl.xz``, where sessions that several haystacks share stand once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.retrieval.cases import (
    Case,
    Collection,
    Message,
    Question,
    files_sha256,
    micros,
    records,
    text_of,
)


def read(path: Path) -> Collection:
    """Read the questions with their haystacks; the turns of a haystack keep the numbers of the data."""
    files = [path / "questions.jsonl.xz", path / "sessions.jsonl.xz"] if path.is_dir() else [path]
    rows = _of_directory(*files) if path.is_dir() else json.loads(text_of(path))
    return Collection("longmemeval", tuple(_cases(rows)), files_sha256(files))


def _of_directory(questions: Path, sessions: Path) -> list[dict[str, Any]]:
    """Return the rows as the original has them."""
    turns = {row["session_id"]: row["turns"] for row in records(sessions)}
    rows = []
    for row in records(questions):
        evidence = {(session, number) for session, number in row["evidence_turns"]}
        ids = [session for session, _ in row["haystack"]]
        rows.append(
            {
                **row,
                "haystack_session_ids": ids,
                "haystack_dates": [date for _, date in row["haystack"]],
                "haystack_sessions": [
                    [{**turn, "has_answer": (id_, n) in evidence} for n, turn in enumerate(turns[id_])]
                    for id_ in ids
                ],
            }
        )
    return rows


def _cases(rows: list[dict[str, Any]]) -> Iterator[Case]:
    for row in rows:
        messages, gold = [], set()
        haystack = zip(
            row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"], strict=True
        )
        for session, date, turns in haystack:
            for number, turn in enumerate(turns):
                message = Message(session, str(number), turn["role"], turn["content"], _time(date))
                if turn["content"]:
                    messages.append(message)
                if turn.get("has_answer"):
                    gold.add(message.turn)
        question = Question(
            row["question_id"],
            row["question"],
            row["question_type"],
            frozenset(row["answer_session_ids"]),
            frozenset(gold),
            _time(row["question_date"]),
            answered=not row["question_id"].endswith("_abs"),
        )
        yield Case(row["question_id"], messages=tuple(messages), questions=(question,))


def _time(text: str) -> int | None:
    return micros(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M")
