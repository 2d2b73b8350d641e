"""Other ways to search the same data, asked the same questions and measured alike.

``bm25`` is bm25s over turns, stemmed where PyStemmer is there. ``dense`` is the built-in embedder over pieces
of what people said (an assistant's turns are left out, as is usual) and an exact scan in NumPy. ``mempalace``
is that product, mined and searched as it comes. A unit that was searched in pieces has the score of its best.
None of them is a dependency: one that cannot be imported is refused by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks.retrieval.asking import Answer, Granularity, Ranked, Searcher, answer_of, warm
from benchmarks.retrieval.cases import Case, Collection, Question
from benchmarks.retrieval.filing import Say, home, size_of
from benchmarks.retrieval.memo import Memo
from benchmarks.retrieval.results import Measured, groups_of, measured

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.retrieval.running import Run

PEERS = ("bm25", "dense", "mempalace")
NEEDS = {"bm25": "bm25s", "dense": "numpy", "mempalace": "mempalace"}
_PIECE = 800


@dataclass(frozen=True, slots=True)
class Unit:
    """A text that is searched, what it is part of, and its wing."""

    text: str
    session: str
    turn: str
    wing: str = ""
    said: bool = True

    def name(self, granularity: Granularity) -> str:
        """Return the gold name that it stands for."""
        return self.session if granularity == "session" else self.turn


class Built(Searcher, Protocol):
    """A searcher that knows what its index costs."""

    size: int
    seconds: float
    model_seconds: float


def missing(name: str) -> str:
    """Say what a peer lacks here, nothing if it can be measured."""
    return "" if importlib.util.find_spec(NEEDS[name]) else f"{name}: {NEEDS[name]} is not installed"


def units(case: Case) -> list[Unit]:
    """Return the turns or documents of a case."""
    talk = [
        Unit(message.text, message.session, message.turn, said=message.role != "assistant")
        for message in case.messages
    ]
    texts = [
        Unit(f"{document.title}\n{document.text}".strip(), document.id, document.id, document.wing)
        for document in case.documents
    ]
    return talk + texts


def best_first(
    scores: Sequence[float], listed: Sequence[Unit], question: Question, granularity: Granularity, depth: int
) -> Ranked:
    """Rank names by the best of their units."""
    found: dict[str, float] = {}
    for unit, score in zip(listed, scores, strict=True):
        if question.wing in (None, unit.wing) and score > 0:
            name = unit.name(granularity)
            found[name] = max(score, found.get(name, 0.0))
    ordered = sorted(found, key=lambda name: -found[name])[:depth]
    return Ranked(tuple(ordered), max(found.values(), default=0.0), True, 0.0)


class Bm25:
    """BM25 (Lucene's form, k1 1.5, b 0.75) over whole turns."""

    def __init__(self, case: Case, directory: Path) -> None:
        self._library: Any = importlib.import_module("bm25s")
        started = time.perf_counter()
        self._units = units(case)
        self._stemmer: Any = None
        if importlib.util.find_spec("Stemmer"):
            self._stemmer = importlib.import_module("Stemmer").Stemmer("english")
        tokens = self._tokens([unit.text for unit in self._units])
        self._index = self._library.BM25()
        self._index.index(tokens, show_progress=False)
        self.seconds, self.model_seconds = time.perf_counter() - started, 0.0
        self._index.save(directory, show_progress=False)
        self.size = size_of(directory) + sum(len(unit.text.encode()) for unit in self._units)

    def search(self, question: Question, granularity: Granularity, depth: int) -> Ranked:
        """Score every turn."""
        words = self._tokens([question.text], as_ids=False)[0]
        scores = self._index.get_scores(words) if words else [0.0] * len(self._units)
        return best_first([float(score) for score in scores], self._units, question, granularity, depth)

    def _tokens(self, texts: Sequence[str], *, as_ids: bool = True) -> Any:
        return self._library.tokenize(
            list(texts), stopwords="en", stemmer=self._stemmer, return_ids=as_ids, show_progress=False
        )

    def close(self) -> None:
        """Nothing is open."""


class Dense:
    """Cosine of the built-in embedder, over pieces of at most 800 characters."""

    def __init__(self, case: Case, memo: Memo) -> None:
        started = time.perf_counter()
        before = memo.seconds
        self._units = [
            Unit(piece, unit.session, unit.turn, unit.wing)
            for unit in units(case)
            if unit.said
            for piece in pieces(unit.text)
        ]
        self._memo = memo
        self._matrix: NDArray[np.float32] = memo.documents([unit.text for unit in self._units])
        self.model_seconds = memo.seconds - before
        self.seconds = time.perf_counter() - started - self.model_seconds
        self.size = self._matrix.nbytes + sum(len(unit.text.encode()) for unit in self._units)

    def search(self, question: Question, granularity: Granularity, depth: int) -> Ranked:
        """Compare the question with every piece."""
        started = time.perf_counter()
        vector = self._memo.query(question.text)
        spent = 1000 * (time.perf_counter() - started)
        scores = (self._matrix @ vector).tolist()
        found = best_first(scores, self._units, question, granularity, depth)
        return Ranked(found.names, found.score, True, spent)

    def close(self) -> None:
        """Nothing is open."""


def pieces(text: str) -> list[str]:
    """Cut a text at spaces into pieces of at most 800 characters."""
    found: list[str] = []
    while len(text) > _PIECE:
        cut = text.rfind(" ", 1, _PIECE)
        cut = cut if cut > 0 else _PIECE
        found.append(text[:cut])
        text = text[cut:].lstrip()
    return [*found, text]


class MemPalace:
    """MemPalace as a user has it: sessions as text files, its miner, its search; a file is a session."""

    def __init__(self, case: Case, directory: Path) -> None:
        from benchmarks.retrieval.mempalace import mine

        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        self._palace, self._sessions, self.seconds = mine(case, directory)
        self.model_seconds = 0.0
        self.size = size_of(self._palace)

    def search(self, question: Question, granularity: Granularity, depth: int) -> Ranked:
        """Search, and name the sessions in the order of their best drawers."""
        from benchmarks.retrieval.mempalace import search

        if granularity != "session":
            raise SystemExit("mempalace files whole sessions: --granularity session")
        return Ranked(tuple(search(self._palace, question.text, self._sessions, depth)), 0.0, True, 0.0)

    def close(self) -> None:
        """Nothing is open."""


def measure(name: str, run: Run, collection: Collection, say: Say) -> tuple[list[Answer], Measured]:
    """Index every case and ask its questions; raises SystemExit when the peer is not installed."""
    if lacking := missing(name):
        raise SystemExit(lacking)
    answers: list[Answer] = []
    cost = {"size": 0.0, "seconds": 0.0, "model_seconds": 0.0}
    memo = Memo(run.work / "vectors.db", collection.embedder) if name == "dense" else None
    try:
        for number, case in enumerate(collection.cases, start=1):
            searcher = _built(name, case, home(run.work, collection, case) / f"peer-{name}", memo)
            warm(searcher, case.questions[0], run.granularity, run.depth)
            answers += [
                answer_of(searcher, case, question, run.granularity, run.depth)[0]
                for question in case.questions
            ]
            for key in cost:
                cost[key] += getattr(searcher, key)
            searcher.close()
            say(f"{name}: {number}/{len(collection.cases)}")
    finally:
        if memo is not None:
            memo.close()
    found = measured(
        name,
        answers,
        run.depth,
        groups=groups_of(collection.name, answers),
        size=int(cost["size"]),
        seconds=cost["seconds"],
        model_seconds=cost["model_seconds"],
        confidence=False,
    )
    return answers, found


def _built(name: str, case: Case, directory: Path, memo: Memo | None) -> Built:
    if name == "bm25":
        return Bm25(case, directory)
    if memo is not None:
        return Dense(case, memo)
    return MemPalace(case, directory)
