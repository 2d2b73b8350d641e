"""What the faults are tried on: inputs that are always the same, palaces made of them, and what they hold."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from castle import Castle, config
from castle.store.graph_tables import entities, triples
from castle.store.schema import drawers, sources
from castle.store.session_tables import messages

SCRIPTS = Path(sys.executable).parent
LATER = "2027-01-01T00:00:00+00:00"
"""The time that recency counts from, so that a search asks the same whenever it is asked."""
WORDS = (
    "harbour berth crane ledger pilot tide rope lantern anchor cargo captain storm chart compass galley "
    "rudder signal barrel customs quay ferry mast sail keel deck hold cabin watch bell log"
).split()
QUERIES = (
    *(" ".join(WORDS[n : n + 3]) for n in range(0, 28, 4)),
    *(f"{word} lantern" for word in ("file7x3", "note11x", "turn4x", "Ada")),
)
"""Each has a common word: a thousand drawers to which the fake embedder gives the cosine 0 are no answer."""


def settle_environment(home: Path) -> None:
    """Let everything that is started use the fake embedder, a home of its own and no language model."""
    os.environ |= {
        "CASTLE_HOME": str(home),
        "CASTLE_EMBEDDER_MODEL": "fake",
        "CASTLE_LLM_ENDPOINT": "http://127.0.0.1:9",
    }
    os.environ.pop("CASTLE_PALACE_PATH", None)


def words(seed: str, count: int) -> str:
    """Return words in an order that is always the same for a seed."""
    chance = random.Random(seed)
    return " ".join(chance.choice(WORDS) for _ in range(count))


def note(number: int) -> str:
    """Return the text of a note; no two are of one length."""
    return f"note{number}x of {words(f'note {number}', 8 + number % 23)} {'z' * (number % 7)}\n"


class NoteClock:
    """A clock that says when a note was written: for each number the same in every palace.

    Where a query is answered by nothing in particular, times decide; palaces can be compared all the same.
    """

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> int:
        """Return the time of the note, in microseconds."""
        return 1_790_000_000_000_000 + self.number * 1_000_000


def fact(number: int) -> tuple[str, str, str]:
    """Return a fact."""
    return (f"Ada{number % 13}", f"knows_{number % 5}", f"Charles{number}")


def write_project(root: Path, first: int, last: int) -> None:
    """Write files of a project, old enough for their times to be trusted."""
    for number in range(first, last):
        path = root / f"part{number % 7}" / f"file{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [f"# Chapter {number}\n"]
        parts += [f"file{number}x{n} {words(f'file {number} {n}', 60 + n)}.\n" for n in range(6)]
        path.write_text("\n".join(parts), encoding="utf-8")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def write_transcript(path: Path, first: int, last: int) -> None:
    """Append messages to a transcript."""
    with path.open("a", encoding="utf-8") as out:
        for number in range(first, last):
            role = "user" if number % 2 == 0 else "assistant"
            hour, minute, second = 10 + number // 3600, number // 60 % 60, number % 60
            record = {
                "type": role,
                "uuid": f"u{number}",
                "parentUuid": f"u{number - 1}" if number else None,
                "sessionId": "s1",
                "cwd": "/nowhere/shop",
                "timestamp": f"2026-05-01T{hour:02}:{minute:02}:{second:02}.000Z",
                "message": {"role": role, "content": f"turn{number}x {words(f'turn {number}', 30)}"},
            }
            out.write(json.dumps(record) + "\n")


@dataclass(frozen=True)
class Inputs:
    """How much of everything a palace gets, and where it comes from."""

    folder: Path
    files: int
    turns: int
    notes: int
    facts: int

    @property
    def project(self) -> Path:
        """The directory of the project."""
        return self.folder / "project"

    @property
    def transcript(self) -> Path:
        """The file of the session."""
        return self.folder / "s1.jsonl"

    def write(self) -> None:
        """Write everything at once."""
        write_project(self.project, 0, self.files)
        self.transcript.unlink(missing_ok=True)
        write_transcript(self.transcript, 0, self.turns)


def fill(palace: Path, inputs: Inputs) -> None:
    """File everything, without any fault."""
    clock = NoteClock()
    with Castle(palace, embedder="fake", clock=clock) as castle:
        castle.mine_project(inputs.project)
        castle.mine_conversations(inputs.transcript)
        for number in range(inputs.notes):
            clock.number = number
            castle.add(note(number), wing="notes", room=f"room{number % 3}")
        for number in range(inputs.facts):
            castle.kg.add(*fact(number))
        castle.repair()


def content(palace: Path) -> dict[str, set[tuple[Any, ...]]]:
    """Return what a palace holds: drawers, the bytes of sources, messages and facts."""
    with Castle(palace) as castle, castle._palace().ledger.read() as cx:
        held: dict[str, set[tuple[Any, ...]]] = {
            "drawers": {
                (row.id, row.sha256, row.state, row.wing, row.room)
                for row in cx.execute(select(drawers).where(drawers.c.seq.is_not(None)))
            },
            "messages": {(row.id, row.version, row.sha256) for row in cx.execute(select(messages))},
        }
        names = {row.id: row.name for row in cx.execute(select(entities))}
        live = select(triples).where(triples.c.ended_at.is_(None))
        held["facts"] = {(names[row.subject], row.predicate, names[row.object]) for row in cx.execute(live)}
        keys = list(cx.execute(select(sources.c.key).where(sources.c.revision > 0)).scalars())
    with Castle(palace) as castle:
        held["sources"] = {
            (key, hashlib.sha256("".join(part.text for part in castle.get_source(key)).encode()).digest())
            for key in keys
        }
    return held


def tops(palace: Path, queries: Sequence[str] = QUERIES) -> dict[str, list[str]]:
    """Return the ids of the ten best drawers for each query, not counting when anything was filed."""
    settings = config.load({"palace_path": str(palace), "recency_max_boost": 1.0})
    with Castle(settings=settings) as castle:
        found = {}
        for query in queries:
            result = castle.search(query, limit=10, mode="fast", now=LATER)
            found[query] = [hit.id for hit in result.hits]
    return found


@dataclass(frozen=True)
class Run:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The last line that it said to the person at the terminal."""
        lines = self.err.strip().splitlines()
        return lines[-1] if lines else ""

    @property
    def crashed(self) -> bool:
        """Whether it ended otherwise than with a line and an exit code."""
        return self.code < 0 or self.code > 3 or "Traceback" in self.err or "panicked" in self.err

    @property
    def json(self) -> Any:
        """What it printed."""
        return json.loads(self.out) if self.out.strip() else None


def castle(palace: Path, *arguments: str, timeout: float = 300, prefix: Sequence[str] = ()) -> Run:
    """Run a command to its end."""
    command = [*prefix, str(SCRIPTS / "castle"), "--palace", str(palace), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    return Run(done.returncode, done.stdout, done.stderr)


def start(arguments: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a process whose lines are read while it works."""
    return subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )


def work(verb: str, palace: Path, *arguments: object) -> list[str]:
    """Return the command that does one kind of work, see ``fault_work``."""
    return [sys.executable, "-m", "benchmarks.fault_work", verb, str(palace), *map(str, arguments)]
