"""Question sets with known answers, turned into transcripts that ``castle mine`` files.

LoCoMo (Maharana et al., 2024; CC BY-NC 4.0, for evaluation only): the turns of a conversation are messages,
and the answer to a question is the turns named as its evidence. LongMemEval (Wu et al., 2024; MIT): every
question has a haystack of sessions of its own, and its answer is the sessions that hold the evidence. Both
are read from where the user has them; neither is part of Castle.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from castle.search.options import Unit

_TURN = re.compile(r"D\d+:\d+")


@dataclass(frozen=True)
class Asked:
    """A question: where to look, what counts as found, and when it was asked (microseconds, None: now).

    ``gold`` is empty where the collection says that there is no answer.
    """

    text: str
    wing: str
    gold: frozenset[str]
    category: str
    now: int | None = None


@dataclass(frozen=True)
class Corpus:
    """A collection: its name, what a result is, its transcripts by wing, and its questions."""

    name: str
    by: Unit
    transcripts: dict[str, list[dict[str, Any]]]
    questions: list[Asked]

    def write(self, directory: Path) -> Iterator[tuple[str, Path]]:
        """Write one transcript per wing and yield both."""
        directory.mkdir(parents=True, exist_ok=True)
        for wing, messages in self.transcripts.items():
            path = directory / f"{wing}.jsonl"
            lines = (json.dumps(message, ensure_ascii=False) for message in messages)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            yield wing, path


def locomo(path: Path) -> Corpus:
    """Read LoCoMo in its original format; every conversation becomes a wing."""
    transcripts: dict[str, list[dict[str, Any]]] = {}
    questions = []
    for conversation in json.loads(path.read_text(encoding="utf-8")):
        wing = f"locomo_{conversation['sample_id'].replace('-', '_')}"
        talk, messages = conversation["conversation"], []
        for session, turns in talk.items():
            if not isinstance(turns, list):
                continue
            when = datetime.strptime(talk[f"{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(
                tzinfo=UTC
            )
            messages += [
                {
                    "session": f"{wing}-{session}", "id": turn["dia_id"], "role": "user",
                    "speaker": turn["speaker"], "text": turn["text"], "time": when.isoformat(),
                }
                for turn in turns
                if turn["text"]
            ]  # fmt: skip
        transcripts[wing] = messages
        known = {message["id"] for message in messages}
        asked_at = max(message["time"] for message in messages)
        for qa in conversation["qa"]:
            gold = frozenset(_TURN.findall(" ".join(map(str, qa.get("evidence", []))))) & known
            answered = int(qa["category"]) != 5
            if answered and not gold:
                continue
            questions.append(
                Asked(
                    qa["question"],
                    wing,
                    gold if answered else frozenset(),
                    f"category {qa['category']}",
                    _micros(datetime.fromisoformat(asked_at)),
                )
            )
    return Corpus("locomo", "message", transcripts, questions)


def longmemeval(directory: Path, limit: int | None = None) -> Corpus:
    """Read LongMemEval questions with their haystacks, evenly chosen when ``limit`` is given."""
    with lzma.open(directory / "questions.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows.sort(key=lambda row: (row["question_type"], row["question_id"]))
    if limit is not None and limit < len(rows):
        rows = [rows[n * len(rows) // limit] for n in range(limit)]
    wanted = {session for row in rows for session, _ in row["haystack"]}
    with lzma.open(directory / "sessions.jsonl.xz", "rt", encoding="utf-8") as file:
        sessions = {s["session_id"]: s["turns"] for s in map(json.loads, file) if s["session_id"] in wanted}
    transcripts, questions = {}, []
    for row in rows:
        wing = f"lme_{row['question_id']}"
        transcripts[wing] = [
            {
                "session": f"{wing}-{session}", "id": f"{number}", "role": turn["role"],
                "text": turn["content"], "time": _date(date).isoformat(),
            }
            for session, date in row["haystack"]
            for number, turn in enumerate(sessions[session])
            if turn["content"]
        ]  # fmt: skip
        gold = () if row["abstention"] else row["answer_session_ids"]
        questions.append(
            Asked(
                row["question"],
                wing,
                frozenset(f"{wing}-{session}" for session in gold),
                row["question_type"],
                _micros(_date(row["question_date"])),
            )
        )
    return Corpus("longmemeval", "session", transcripts, questions)


def _date(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)
