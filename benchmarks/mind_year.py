"""A year of episodes for ``benchmarks.mind_bench``: filed week by week, consolidated whenever it is due.

Texts and vectors are those of ``benchmarks.synthetic``. One episode in fifty is important: it has an outcome
and a strong feeling. One in ten belongs to one of forty themes that come up again all year, in other words
each time. The rest is said once. Every vector, score and state is made by the palace's own functions.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import synthetic
from castle.mind.consolidation.cycle import consolidate, should_run
from castle.mind.mind import Mind
from castle.novelty.scoring import update
from castle.records import Chunk, Scope
from castle.search.options import Options
from castle.search.pipeline import search
from castle.store.catchup import catch_up_lexicon, catch_up_vectors
from castle.store.filing import Filing, NewDrawer, Place, Version
from castle.store.mind_cycles import STATES, columns
from castle.store.mind_episodes import set_outcome, set_valence
from castle.store.palace import Palace

WEEKS = 52
WEEK = 7 * 86_400_000_000
PAUSE = 301_000_000
START = 1_700_000_000_000_000
PER_SESSION = 50
THEMES = 40
IMPORTANT, THEMED = 0.02, 0.10
CLASSES = ("important", "theme", "once, first half", "once, second half")
WORDS_ASKED = 6
TOP_K = 10


@dataclass(frozen=True)
class Planted:
    """One episode: its drawer, its class, and its text."""

    id: str
    kind: str
    text: str


class Year:
    """The clock of the simulation, and what was filed."""

    def __init__(self, root: Path, episodes: int, weeks: int) -> None:
        self.now = START
        self.weeks = weeks
        self.per_week = episodes // weeks
        self.random = random.Random(6)
        self.palace = Palace(root, create=True, embedder=synthetic.NAME, clock=lambda: self._tick())
        self.planted: list[Planted] = []
        self.cycles: list[dict[str, Any]] = []
        self.seconds: dict[str, float] = defaultdict(float)

    def _tick(self) -> int:
        self.now += 1_000
        return self.now

    def run(self) -> None:
        """Live through the year."""
        for week in range(self.weeks):
            self._file(week)
            self.now = START + (week + 1) * WEEK
            self._timed("words", lambda: catch_up_lexicon(self.palace))
            self._timed("vectors", lambda: catch_up_vectors(self.palace))
            self._timed("novelty", lambda: update(self.palace))
            while should_run(self.palace):
                started = time.perf_counter()
                told = consolidate(self.palace, actor="benchmark")
                kept = (
                    "total_scored", "forget_candidates", "forget_threshold", "archived", "dimmed",
                    "recovered", "patterns_detected", "patterns_reinforced", "waiting",
                )  # fmt: skip
                row = {"week": week, **{key: told[key] for key in kept}}
                self.cycles.append({**row, "seconds": round(time.perf_counter() - started, 3)})
                print(f"  {self.cycles[-1]}", file=sys.stderr)
                self.now += PAUSE

    def _timed(self, name: str, work: Any) -> None:
        started = time.perf_counter()
        work()
        self.seconds[name] += time.perf_counter() - started

    def _file(self, week: int) -> None:
        started = time.perf_counter()
        once = synthetic.texts(week, self.per_week, synthetic.MOST_TOPICS)
        words = synthetic.vocabulary()
        themes = [random.Random(theme).sample(words[300:], 30) for theme in range(THEMES)]
        kinds, texts = [], []
        for text in once:
            drawn = self.random.random()
            if drawn < IMPORTANT:
                kinds.append("important")
            elif drawn < IMPORTANT + THEMED:
                kinds.append("theme")
                theme = self.random.choice(themes)
                text = " ".join([*self.random.sample(theme, 26), *text.split()[:6]])
            else:
                kinds.append(CLASSES[2] if week < self.weeks / 2 else CLASSES[3])
            texts.append(text)
        for start in range(0, len(texts), PER_SESSION):
            part = texts[start : start + PER_SESSION]
            ids = self._session(f"{week}-{start}", part)
            for id_, kind, text in zip(ids, kinds[start : start + PER_SESSION], part, strict=True):
                self.planted.append(Planted(id_, kind, text))
        self.seconds["filing"] += time.perf_counter() - started

    def _session(self, name: str, texts: Sequence[str]) -> list[str]:
        when = self.palace.ledger.clock()
        place = Place(f"synthetic:{name}", "conversation", f"/{name}", name, "year", "talk")
        items = [
            NewDrawer(Chunk(text, i, i + 1, i + 1, i + 1), None, "", "message", "", when, role="user")
            for i, text in enumerate(texts)
        ]
        filing = Filing(self.palace.ledger, place, 0)
        with self.palace.ledger.write() as cx:
            before = cx.exec_driver_sql("SELECT coalesce(max(rid), 0) FROM drawers").scalar_one()
            filing.stage(cx, items, "benchmark")
            version = Version(bytes(32), len(texts), "", "synthetic/1", "utf-8", when, "benchmark")
            filing.complete(cx, version)
            query = "SELECT id FROM drawers WHERE rid > ? ORDER BY rid"
            return [id_ for (id_,) in cx.exec_driver_sql(query, (before,))]

    def mark(self) -> None:
        """Say of the important episodes of the last week how they felt and went."""
        with self.palace.ledger.write() as cx:
            for one in self.planted:
                if one.kind == "important":
                    set_valence(cx, one.id, -0.8, 1.0, "user", actor="benchmark", now=self.now)
                    set_outcome(cx, one.id, -1.0, reason="simulated", actor="benchmark", now=self.now)


class Marked(Year):
    """A year whose important episodes are marked as they are filed."""

    def _file(self, week: int) -> None:
        done = len(self.planted)
        super()._file(week)
        everything, self.planted = self.planted, self.planted[done:]
        self.mark()
        self.planted = everything


def simulate(root: Path, episodes: int, weeks: int, questions: int) -> tuple[Palace, dict[str, Any]]:
    """Live through a year and ask about it; returns the palace, still open, and what was measured."""
    synthetic.register()
    year = Marked(root, episodes, weeks)
    year.run()
    with year.palace.ledger.read() as cx:
        found = columns(cx)
    state = {id_: STATES[at] for id_, at in zip(found.ids, found.state.tolist(), strict=True)}
    forgotten = {
        kind: dict(Counter(state[one.id] for one in year.planted if one.kind == kind)) for kind in CLASSES
    }
    told = {
        "episodes": len(year.planted),
        "weeks": weeks,
        "cycles": year.cycles,
        "states": forgotten,
        "seconds": {name: round(value, 1) for name, value in year.seconds.items()},
        "recall": _recall(year, state, questions),
        "idempotent": _again(year),
    }
    return year.palace, told


def _again(year: Year) -> dict[str, Any]:
    """Run ten further cycles on unchanged data; none may change anything after the first."""
    times, changed, backlog = [], 0, False
    for number in range(11):
        year.now += WEEK
        started = time.perf_counter()
        told = consolidate(year.palace, actor="benchmark", force=True)
        times.append(time.perf_counter() - started)
        # A backlog of new episodes is gone through first, to its end; until then the data are new.
        changed += bool(number and told["ran"] and not backlog)
        backlog = bool(told["waiting"])
    return {"cycles": 10, "changed_anything": changed, "seconds_p50": round(statistics.median(times[1:]), 3)}


def _recall(year: Year, state: dict[str, str], questions: int) -> dict[str, Any]:
    """Ask for episodes of each class by some of their words: of the archive, as usual, and with cold ones."""
    drawn = random.Random(7)
    mind = Mind(year.palace, actor="benchmark", halls={}, wing="year")
    found: dict[str, Any] = {}
    for kind in CLASSES:
        pool = [one for one in year.planted if one.kind == kind]
        asked = drawn.sample(pool, min(questions, len(pool)))
        hits: dict[str, list[bool]] = {"castle_search": [], "memory_recall": [], "with cold": []}
        for one in asked:
            telling = sorted(set(one.text.split()), key=lambda word: (-len(word), word))[: 3 * WORDS_ASKED]
            query = " ".join(drawn.sample(telling, min(WORDS_ASKED, len(telling))))
            archive = search(year.palace, query, Scope(), TOP_K, Options(mode="fast", now=year.now)).hits
            hits["castle_search"].append(one.id in [hit.id for hit in archive])
            for name, cold in (("memory_recall", False), ("with cold", True)):
                options = {"memory_type": "episodic", "top_k": TOP_K, "include_cold": cold}
                memories = mind.recall(query, options).memories
                hits[name].append(one.id in [memory.id for memory in memories])
        shares = {name: round(sum(values) / len(values), 4) for name, values in hits.items() if values}
        kept = sum(state[one.id] != "cold" for one in asked)
        found[kind] = {"questions": len(asked), "kept": kept, **shares}
    return found
