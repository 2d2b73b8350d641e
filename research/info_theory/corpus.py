"""What is studied: palaces, one's own or those made of question sets, and the drawers in them."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from benchmarks.retrieval.cases import Collection
from benchmarks.retrieval.filing import Say, file_all, home
from benchmarks.retrieval.readers import locomo, longmemeval
from castle.errors import PalaceError
from castle.records import HIDDEN_KINDS
from castle.store.catchup import cached_vectors, catch_up_vectors, input_hash
from castle.store.palace import Palace
from castle.store.projection import ProjectionRow
from castle.store.reading import changed_rows
from castle.store.schema import drawers
from research.info_theory.cache import Arrays

READERS = {"locomo": locomo.read, "longmemeval": longmemeval.read}
FEW_PALACES = 20
LEAST_PILOT = 200
_ALL = 2**40


@dataclass(frozen=True, slots=True)
class Dataset:
    """Palaces that are studied together, by name; ``collection`` is the question set that they came from.

    ``first`` limits the drawers of each palace to the first of them, for a pilot; 0 takes all.
    ``filed`` names the states of Castle that filed them.
    """

    name: str
    palaces: Mapping[str, Path]
    collection: Collection | None = None
    work: Path | None = None
    first: int = 0
    filed: tuple[str, ...] = ()


def own(path: Path) -> Dataset:
    """Return one's own palace as a data set; nothing in it is changed but vectors that it lacks."""
    if not (path / "castle.db").is_file():
        raise PalaceError(f"there is no palace at {path}: castle init makes one")
    return Dataset(path.resolve().name, {path.resolve().name: path})


def question_set(name: str, path: Path, work: Path, say: Say) -> Dataset:
    """Return a question set as palaces below ``work``, filing what is not there yet."""
    collection = READERS[name](path)
    filed = tuple(sorted({entry.code for entry in file_all(collection, work, say)}))
    palaces = {case.name: home(work, collection, case) / "palace" for case in collection.cases}
    return Dataset(name, palaces, collection, work, filed=filed)


def pilot(dataset: Dataset, share: float, seed: int) -> Dataset:
    """Return a share of the data: of many palaces some, of few the first drawers of each."""
    if len(dataset.palaces) < FEW_PALACES:
        return replace(dataset, first=LEAST_PILOT)
    names = sorted(dataset.palaces)
    chosen = set(random.Random(seed).sample(names, math.ceil(share * len(names))))
    collection = dataset.collection
    if collection is not None:
        cases = tuple(case for case in collection.cases if case.name in chosen)
        collection = replace(collection, cases=cases)
    return replace(
        dataset,
        palaces={name: path for name, path in dataset.palaces.items() if name in chosen},
        collection=collection,
    )


def stratum(dataset: str, palace: str, wing: str, session: str) -> str:
    """Return the kind of source: the conversation, where a session of a haystack comes from, or the wing.

    In LongMemEval the name of a session tells: evidence was written for the question, chats come from two
    public collections, and the rest are generated talks of the same person.
    """
    if dataset == "locomo":
        return palace
    if dataset == "longmemeval":
        origin = session.split("_", 1)[0]
        return {"answer": "evidence", "sharegpt": "ShareGPT", "ultrachat": "UltraChat"}.get(origin, "persona")
    return wing


@dataclass(frozen=True, slots=True)
class Loaded:
    """The current drawers of a palace in order of filing, without what is hidden by its kind."""

    rows: tuple[ProjectionRow, ...]
    embedder: str

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the embedder and, for each drawer, where it is and what it says."""
        digest = hashlib.sha256(self.embedder.encode() + b"\n")
        for row in self.rows:
            digest.update(f"{row.wing}\0{row.source}\0{row.role}\0{row.sha256}\n".encode())
        return digest.hexdigest()

    def arrays(self, dataset: str, palace: str) -> Arrays:
        """Return what is known of each drawer beside its text."""
        sessions = [row.source.split(":", 2)[-1] for row in self.rows]
        found = zip(self.rows, sessions, strict=True)
        return {
            "wing": np.array([row.wing for row in self.rows]),
            "session": np.array(sessions),
            "role": np.array([row.role for row in self.rows]),
            "chars": np.array([len(row.text) for row in self.rows], dtype=np.int64),
            "text": np.array([row.sha256[:16] for row in self.rows]),
            "stratum": np.array([stratum(dataset, palace, row.wing, name) for row, name in found]),
        }


def load(palace: Palace, first: int = 0) -> Loaded:
    """Read the drawers; ``first`` takes only so many."""
    with palace.ledger.read() as cx:
        filed = {id_: rid for id_, rid in cx.execute(select(drawers.c.id, drawers.c.rid))}
        rows = [
            row
            for row in changed_rows(cx, 0, _ALL)
            if row.state == "current" and row.kind not in HIDDEN_KINDS
        ]
    rows.sort(key=lambda row: filed[row.id])
    return Loaded(tuple(rows[: first or None]), palace.identity.identity)


def units_of(palace: Palace, rows: Sequence[ProjectionRow]) -> NDArray[np.float32]:
    """Return the unit vectors of the drawers, shape (n, dim), making those that are not there."""
    keys = [input_hash(row) for row in rows]
    known = cached_vectors(palace, keys)
    if len(known) < len(set(keys)):
        catch_up_vectors(palace)
        known = cached_vectors(palace, keys)
    if not keys:
        return np.zeros((0, palace.identity.dim), dtype=np.float32)
    return np.stack([known[key] for key in keys])
