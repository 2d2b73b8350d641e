"""The vectors of a table in this process's memory, for all questions but the first.

LanceDB takes longer to begin a query than NumPy to compare a question with tens of thousands of vectors.
What is kept belongs to one commit of the table; with another one, the rows that changed since are read.
Vectors are kept as the table has them, in 16 bits, and once more in 8 bits, which choose those of 16 that are
compared (``castle.store.rough``); that takes three quarters of the memory of 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from castle.records import HIDDEN_KINDS, Scope
from castle.store.projection import legal_text
from castle.store.rough import Rough

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

MOST_BYTES = 90_000_000
"""Of the numbers of vectors; a table that has more is left to LanceDB. 78,000 drawers of the built-in."""
BYTES = 3
"""Of each number: 16 bits as the table has it, and 8 bits."""

NAMES = ("wing", "room", "kind", "role", "source", "state")
TIMES = ("authored_at", "filed_at", "ended_at")
COLUMNS = ("id", "sha256", *NAMES, *TIMES, "vector")
"""What is read of each row."""

ID = "S24"
"""The id of a drawer, as NumPy keeps it."""

_SPARE = 8
_LEAST_SPARE = 2048
_ROUNDING = 1e-5


@dataclass(frozen=True, slots=True)
class DenseMatch:
    """A drawer near a query; ``score`` is the cosine, in [-1, 1]."""

    id: str
    score: float
    sha256: str


class Resident:
    """The drawers of a table with their vectors; never changed once it is made.

    ``extended`` gives one with further rows, which shares the memory of this one.
    """

    def __init__(
        self,
        columns: dict[str, NDArray[Any]],
        rough: Rough,
        numbers: dict[str, dict[str, int]],
        alive: NDArray[np.bool_],
    ) -> None:
        self._columns = columns
        self._rough = rough
        # Of each value of a column of names; grows, and no number is ever given twice.
        self._numbers = numbers
        self._alive = alive

    @classmethod
    def of(cls, count: int, dim: int, batches: Iterable[pa.RecordBatch]) -> Resident | None:
        """Read a table of ``count`` drawers; None when it has more than that by now."""
        import numpy as np

        room = count + max(count // _SPARE, _LEAST_SPARE)
        columns: dict[str, NDArray[Any]] = {
            "id": np.empty(room, ID),
            "sha256": np.empty((room, 32), np.uint8),
            "vector": np.empty((room, dim), np.float16),
            **{name: np.empty(room, np.int32) for name in NAMES},
            **{name: np.empty(room, np.int64) for name in TIMES},
        }
        made = cls(columns, Rough.room(room, dim), {name: {} for name in NAMES}, np.zeros(0, bool))
        for batch in batches:
            further = made._with(batch, made._alive)
            if further is None:
                return None
            made = further
        return made

    def __len__(self) -> int:
        return int(self._alive.sum())

    def extended(self, rows: pa.Table) -> Resident | None:
        """Return what it is with rows that are new or changed; None where there is no room for them.

        Those that are forgotten are left out. Only the last one that was made may be extended.
        """
        import numpy as np

        ids = np.array(rows["id"].to_pylist(), ID)
        standing = [state != "forgotten" for state in rows["state"].to_pylist()]
        changed = np.isin(self._columns["id"][: len(self._alive)], ids)
        return self._with(rows.filter(np.array(standing, bool)), self._alive & ~changed)

    def _with(self, rows: pa.RecordBatch | pa.Table, alive: NDArray[np.bool_]) -> Resident | None:
        """Put rows behind those there are, of which ``alive`` ones stay."""
        import numpy as np

        start, stop = len(alive), len(alive) + len(rows)
        if stop > len(self._columns["id"]):
            return None
        ids, hashes = ids_and_hashes(rows)
        self._columns["id"][start:stop] = ids
        self._columns["sha256"][start:stop] = hashes
        for name in NAMES:
            numbers = self._numbers[name]
            self._columns[name][start:stop] = [
                numbers.setdefault(value, len(numbers)) for value in rows[name].to_pylist()
            ]
        for name in TIMES:
            self._columns[name][start:stop] = rows[name].to_numpy()
        vectors = halves(rows["vector"], self._columns["vector"].shape[1])
        self._columns["vector"][start:stop] = vectors
        self._rough.put(start, normal(vectors))
        alive = np.append(alive, np.ones(stop - start, bool))
        return Resident(self._columns, self._rough, self._numbers, alive)

    def search(self, vector: NDArray[np.float32], scope: Scope, limit: int) -> list[DenseMatch]:
        """Return the drawers in scope nearest to ``vector`` by cosine, nearest first, equal ones by id."""
        import numpy as np

        unit = vector / np.linalg.norm(vector)
        inside = np.flatnonzero(self._inside(scope))
        places = self._rough.first(len(self._alive)).among_nearest(unit, inside, limit, _ROUNDING)
        ids, hashes, held = (self._columns[name][places] for name in ("id", "sha256", "vector"))
        return nearest(ids, hashes, normal(held), vector, limit)

    def _inside(self, scope: Scope) -> NDArray[np.bool_]:
        """Return which rows lie in a scope, as ``castle.store.vectors.where_clause`` says it."""
        import numpy as np

        count = len(self._alive)
        inside = self._alive.copy()

        def among(name: str, values: Iterable[str]) -> NDArray[np.bool_]:
            known = self._numbers[name]
            wanted = [known[value] for value in map(legal_text, values) if value in known]
            column = self._columns[name][:count]
            return column == wanted[0] if len(wanted) == 1 else np.isin(column, wanted)

        def times(name: str) -> NDArray[np.int64]:
            column: NDArray[np.int64] = self._columns[name][:count]
            return column

        if scope.as_of is not None:
            inside &= (times("filed_at") <= scope.as_of) & (times("ended_at") > scope.as_of)
        elif not scope.history:
            inside &= among("state", ["current"])
        for name in ("wing", "room", "role", "source"):
            value = getattr(scope, name)
            if value is not None:
                inside &= among(name, [value])
        if scope.since is not None:
            inside &= times("authored_at") >= scope.since
        if scope.until is not None:
            inside &= times("authored_at") < scope.until
        inside &= among("kind", scope.kinds) if scope.kinds else ~among("kind", HIDDEN_KINDS)
        return inside


def nearest(
    ids: NDArray[np.bytes_],
    hashes: NDArray[np.uint8],
    held: NDArray[np.float32],
    vector: NDArray[np.float32],
    limit: int,
    inside: NDArray[np.bool_] | None = None,
) -> list[DenseMatch]:
    """Return those of the rows ``inside``, or of all, nearest to ``vector`` by cosine, equal ones by id.

    ``held`` are unit vectors, ``hashes`` the 32 bytes of each drawer's hash.
    """
    import numpy as np

    unit = vector / np.linalg.norm(vector)
    if inside is None:
        inside = np.ones(len(ids), bool)
    places = np.flatnonzero(inside)
    # Rows that lie apart are copied before they are compared.
    few = len(places) < len(inside) // 4
    scores = held[places] @ unit if few else (held @ unit)[places]
    if len(places) > limit:
        # With whatever is as near as the last but for rounding: equal scores come in the order of ids.
        least = np.partition(scores, -limit)[-limit] - _ROUNDING
        places = places[scores >= least]
    scores = np.clip(held[places] @ unit, -1.0, 1.0)
    order = np.lexsort((ids[places], -scores))[:limit]
    return [
        DenseMatch(id_.decode(), score, digest.tobytes().hex())
        for id_, score, digest in zip(
            ids[places[order]].tolist(), scores[order].tolist(), hashes[places[order]], strict=True
        )
    ]


def ids_and_hashes(rows: pa.RecordBatch | pa.Table) -> tuple[NDArray[np.bytes_], NDArray[np.uint8]]:
    """Return the first two columns of rows that were read as NumPy keeps them."""
    import numpy as np

    hashes = bytes.fromhex("".join(rows["sha256"].to_pylist()))
    return np.array(rows["id"].to_pylist(), ID), np.frombuffer(hashes, np.uint8).reshape(-1, 32)


def units(column: pa.Array | pa.ChunkedArray, dim: int) -> NDArray[np.float32]:
    """Return the vectors of a column of the table, widened and of unit length."""
    return normal(halves(column, dim))


def halves(column: pa.Array | pa.ChunkedArray, dim: int) -> NDArray[np.float16]:
    """Return the vectors of a column of the table as they are."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    found: NDArray[np.float16] = column.flatten().to_numpy().reshape(-1, dim)
    return found


def normal(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return vectors widened and of unit length."""
    import numpy as np

    wide = vectors.astype(np.float32)
    unit: NDArray[np.float32] = wide / np.linalg.norm(wide, axis=-1, keepdims=True)
    return unit
