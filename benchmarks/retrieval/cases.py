"""What every question set is turned into: cases to file, and questions about each with their answers."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from castle.clock import to_iso

SPLITS = ("all", "a", "b")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; ``time`` in microseconds. ``id`` is unique in its session."""

    session: str
    id: str
    role: str
    text: str
    time: int | None
    speaker: str = ""

    @property
    def turn(self) -> str:
        """The name of the turn in gold sets and results."""
        return f"{self.session}#{self.id}"

    def record(self) -> dict[str, str]:
        """Return the message in Castle's interchange format."""
        found = {"session": self.session, "id": self.id, "role": self.role, "text": self.text}
        if self.speaker:
            found["speaker"] = self.speaker
        if self.time is not None:
            found["time"] = to_iso(self.time)
        return found


@dataclass(frozen=True, slots=True)
class Document:
    """One text that is not part of a conversation; ``wing`` keeps languages apart."""

    id: str
    text: str
    title: str = ""
    wing: str = "documents"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and what should be found for it: sessions (or documents), and turns where they are known.

    ``answered`` is false where the collection says that what was filed has no answer; what should be found is
    then what comes nearest. ``now`` is when it was asked, in microseconds. ``wing`` limits where is looked.
    """

    id: str
    text: str
    kind: str
    sessions: frozenset[str]
    turns: frozenset[str] = frozenset()
    now: int | None = None
    wing: str | None = None
    answered: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """What one palace holds, and the questions about it."""

    name: str
    messages: tuple[Message, ...] = ()
    documents: tuple[Document, ...] = ()
    questions: tuple[Question, ...] = ()

    @property
    def hash(self) -> str:
        """SHA-256 of what is filed."""
        digest = hashlib.sha256()
        for item in (*self.messages, *self.documents):
            digest.update(repr(item).encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Collection:
    """A question set: its cases, the hash of the files it was read from, and what is worth knowing of it.

    ``embedder`` is the one its palaces are made with. ``notes`` say what was left out in reading it.
    """

    name: str
    cases: tuple[Case, ...]
    data_sha256: str
    embedder: str = "builtin"
    notes: tuple[str, ...] = field(default=())

    @property
    def questions(self) -> Iterator[tuple[Case, Question]]:
        """Every question with its case."""
        return ((case, question) for case in self.cases for question in case.questions)


def half(name: str) -> str:
    """Return the half that a case belongs to, by the hash of its name: the same in any selection."""
    return "ab"[hashlib.sha256(name.encode()).digest()[0] % 2]


def selected(cases: Iterable[Case], split: str, limit: int | None) -> tuple[Case, ...]:
    """Return the cases of a split with ``limit`` of their questions, evenly chosen by kind and id."""
    chosen = [case for case in cases if split == "all" or half(case.name) == split]
    asked = sorted(
        ((question.kind, case.name, question.id) for case in chosen for question in case.questions),
    )
    if limit is not None and limit < len(asked):
        asked = [asked[number * len(asked) // limit] for number in range(limit)]
    wanted = {(case, question) for _, case, question in asked}
    kept = (
        Case(
            case.name,
            case.messages,
            case.documents,
            tuple(question for question in case.questions if (case.name, question.id) in wanted),
        )
        for case in chosen
    )
    return tuple(case for case in kept if case.questions)


def files_sha256(paths: Iterable[Path]) -> str:
    """Return one hash for the bytes of several files, in the order given."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def text_of(path: Path) -> str:
    """Read a text file, compressed with xz or not."""
    if path.suffix == ".xz":
        with lzma.open(path, "rt", encoding="utf-8") as file:
            return file.read()
    return path.read_text(encoding="utf-8")


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file that has one in each line; other line ends of Unicode belong to texts."""
    return (json.loads(line) for line in text_of(path).split("\n") if line.strip())


def micros(text: str, *formats: str) -> int | None:
    """Read a time in one of the formats, or ISO 8601, as UTC; None where it is none of them."""
    for layout in formats:
        try:
            return _micros(datetime.strptime(text.strip(), layout))
        except ValueError:
            continue
    try:
        return _micros(datetime.fromisoformat(text.strip()))
    except ValueError:
        return None


def _micros(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000_000)
