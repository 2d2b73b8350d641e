"""What earlier evaluations found: a line of numbers each, in ``evaluations.jsonl`` of the palace.

It holds no text of any drawer and no id, so nothing in it has to be purged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from castle.evaluation.measuring import Evaluation

FILE_NAME = "evaluations.jsonl"
MOST = 1000


@dataclass(frozen=True, slots=True)
class Past:
    """One evaluation: when, of what, by what, and its shares; see ``Evaluation``.

    Two are comparable when ``seed``, ``wing`` and the number of probes are the same and the palace has not
    changed much; ``drawers`` counts those in the scope.
    """

    at: int
    version: str
    embedder: str
    mode: str
    reranker: str
    seed: int
    wing: str | None
    drawers: int
    probes: int
    r1: float
    r5: float
    unsure: float
    absent: int
    false_confidence: float
    ms: float


def keep(root: Path, entry: Past) -> None:
    """Append one line; of more than a thousand the oldest go."""
    path = root / FILE_NAME
    line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        file.write(line.encode("utf-8"))
    lines = path.read_bytes().splitlines(keepends=True)
    if len(lines) > 2 * MOST:
        fresh = path.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(lines[-MOST:])
        fresh.replace(path)


def past(root: Path) -> tuple[Past, ...]:
    """Return what was kept, oldest first; a line that cannot be read is passed over."""
    path = root / FILE_NAME
    return tuple(_read(path)) if path.is_file() else ()


def _read(path: Path) -> Iterator[Past]:
    for line in path.read_bytes().splitlines():
        try:
            yield Past(**json.loads(line))
        except (ValueError, TypeError):
            continue


def entry_of(done: Evaluation, **about: object) -> Past:
    """Return the line of an evaluation; ``about`` are the fields that it does not have."""
    names = ("probes", "r1", "r5", "unsure", "absent", "false_confidence", "ms")
    return Past(**about, **{name: getattr(done, name) for name in names})  # type: ignore[arg-type]
