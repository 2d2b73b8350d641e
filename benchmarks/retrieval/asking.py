"""Asking the questions of a collection, one way of searching at a time, and keeping what came back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from benchmarks.retrieval.cases import Case, Collection, Question
from benchmarks.retrieval.filing import Say, document_names, home
from benchmarks.retrieval.metrics import judged
from castle import Castle, config
from castle.clock import to_iso
from castle.config.values import from_text
from castle.records import Hit
from castle.search.options import Unit

Granularity = Literal["drawer", "turn", "session"]

UNITS: Mapping[Granularity, Unit] = {"drawer": "drawer", "turn": "message", "session": "session"}
NO_LLM: Mapping[str, object] = {"search_mode": "boosted"}
"""What the harness sets: all that a new installation runs, but for the judge, which is a language model."""

RELEVANCE = "cross-encoder"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question got: the ranks of its gold items, of ``gold``; times in milliseconds.

    ``answered`` is false where the collection has no answer; ``score`` is the best relevance of a result, and
    ``confident`` what the product said. No text of the collection is kept.
    """

    case: str
    id: str
    kind: str
    answered: bool
    ranks: tuple[int, ...]
    gold: int
    score: float
    confident: bool
    wall_ms: float
    model_ms: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranking of gold names, and what was said beside it."""

    names: tuple[str, ...]
    score: float
    confident: bool
    model_ms: float
    degraded: tuple[str, ...] = ()


class Searcher(Protocol):
    """A way of searching one case."""

    def search(self, question: Question, granularity: Granularity, depth: int) -> Ranked:
        """Return the best ``depth`` results."""

    def close(self) -> None:
        """Let go of what was opened."""


class CastleSearcher:
    """Castle itself, through ``Castle.search``, with some settings other than the defaults."""

    def __init__(self, palace: Path, case: Case, settings: Mapping[str, object]) -> None:
        flags = {**NO_LLM, **settings, "palace_path": str(palace)}
        self._castle = Castle(settings=config.load(flags, env={}, home=palace.parent))
        names = document_names(case)
        self._documents = {
            f"{document.wing}/{name}": document.id
            for document, name in zip(case.documents, names, strict=True)
        }

    def search(self, question: Question, granularity: Granularity, depth: int) -> Ranked:
        """Return the best results as names of sessions, documents or turns."""
        found = self._castle.search(
            question.text,
            wing=question.wing,
            limit=depth,
            by=UNITS[granularity],
            now=None if question.now is None else to_iso(question.now),
        )
        return Ranked(
            tuple(self._name(hit, turns=granularity != "session") for hit in found.hits),
            max((_relevance(hit) for hit in found.hits), default=0.0),
            found.confident and bool(found.hits),
            1000 * sum(stage.model_seconds for stage in found.stages),
            found.degraded,
        )

    def close(self) -> None:
        """Close the palace."""
        self._castle.close()

    def _name(self, hit: Hit, *, turns: bool) -> str:
        if self._documents:
            return self._documents["/".join(Path(hit.address.path).parts[-2:])]
        session = hit.source.split(":", 2)[2]
        return f"{session}#{hit.message_id}" if turns else session


def _relevance(hit: Hit) -> float:
    stage = hit.stages.get(RELEVANCE)
    return hit.score if stage is None else stage.score


def settings_of(pairs: Mapping[str, str]) -> dict[str, object]:
    """Read settings as they are written on a command line; raises ConfigError."""
    return {name: from_text(config.find_key(name), value) for name, value in pairs.items()}


def ask(
    collection: Collection,
    work: Path,
    settings: Mapping[str, object],
    granularity: Granularity,
    depth: int,
    journal: Path,
    say: Say,
) -> tuple[list[Answer], tuple[str, ...]]:
    """Ask every question; what is in the journal already is not asked again.

    Returns the answers in the order of the questions, and everything that was said to be degraded.
    """
    known = {(answer.case, answer.id): answer for answer in _read(journal)}
    degraded: set[str] = set()
    journal.parent.mkdir(parents=True, exist_ok=True)
    kept = "".join(json.dumps(asdict(answer)) + "\n" for answer in known.values())
    journal.write_text(kept, encoding="utf-8")
    total = sum(1 for _ in collection.questions)
    answers: list[Answer] = []
    started, said = time.monotonic(), 0.0
    with journal.open("a", encoding="utf-8") as file:
        for case in collection.cases:
            searcher: Searcher | None = None
            for question in case.questions:
                answer = known.get((case.name, question.id))
                if answer is None:
                    if searcher is None:
                        searcher = CastleSearcher(home(work, collection, case) / "palace", case, settings)
                        warm(searcher, question, granularity, depth)
                    answer, notes = answer_of(searcher, case, question, granularity, depth)
                    degraded.update(notes)
                    file.write(json.dumps(asdict(answer)) + "\n")
                    file.flush()
                answers.append(answer)
                if time.monotonic() - said > 10:
                    said = time.monotonic()
                    say(f"asked {len(answers)}/{total}, {said - started:.0f} s")
            if searcher is not None:
                searcher.close()
    return answers, tuple(sorted(degraded))


def warm(searcher: Searcher, question: Question, granularity: Granularity, depth: int) -> None:
    """Let a searcher load what it loads once, by a question that has nothing to do with those to come."""
    searcher.search(replace(question, text="nothing in particular"), granularity, depth)


def answer_of(
    searcher: Searcher, case: Case, question: Question, granularity: Granularity, depth: int
) -> tuple[Answer, tuple[str, ...]]:
    """Ask one question and compare what comes with what should."""
    started = time.perf_counter()
    ranked = searcher.search(question, granularity, depth)
    wall = 1000 * (time.perf_counter() - started)
    gold = question.sessions if granularity == "session" else question.turns or question.sessions
    found = judged(ranked.names, gold)
    answer = Answer(
        case.name,
        question.id,
        question.kind,
        question.answered,
        found.ranks,
        found.gold,
        round(ranked.score, 5),
        ranked.confident,
        round(wall, 2),
        round(ranked.model_ms, 2),
    )
    return answer, ranked.degraded


def _read(journal: Path) -> Iterator[Answer]:
    """Yield what a run that was broken off had written; a torn last line is asked again."""
    if not journal.is_file():
        return
    for line in journal.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            return
        yield Answer(**{**row, "ranks": tuple(row["ranks"])})
