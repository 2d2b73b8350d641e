"""The table of vectors: drawers with their embeddings in LanceDB, searched exactly by cosine.

One table for each embedder, so that vectors of two models never share a space. The watermark is a row of the
same table and is written by the same commit as the batch it speaks of. Vectors are kept as 16-bit floats, as
in the ledger's cache; every score is computed from them in 32 bits.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from castle.errors import ModelError
from castle.records import HIDDEN_KINDS, Scope
from castle.store import vector_index
from castle.store.lance import damaged_deletions, import_lancedb
from castle.store.native import native_edge
from castle.store.projection import (
    ProjectionRow,
    ProjectionUnavailable,
    Watermark,
    disk_bytes,
    legal_text,
)
from castle.store.resident import (
    BYTES,
    COLUMNS,
    MOST_BYTES,
    DenseMatch,
    Resident,
    ids_and_hashes,
    nearest,
    normal,
    units,
)
from castle.store.sums import Sums

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from castle.models.base import EmbedderIdentity

T = TypeVar("T")
Commit = tuple[str, int, int]
"""The last commit of a table: its file's name, number and time."""

RETENTION = timedelta(minutes=10)
"""How long versions are kept for readers of other processes."""
FRAGMENTS = 48
"""Small fragments beyond which they are joined."""
FULL_FRAGMENT = 1000
"""Rows from which a fragment is not small."""
STALE_VERSIONS = 64
"""Versions past their retention beyond which they are deleted, plus one for every ``ROWS_PER_VERSION``."""
ROWS_PER_VERSION = 1000
FILES = 8
"""Files for each fragment and each of STALE_VERSIONS beyond which those of no current use are deleted."""
STALE_BYTES = 64_000_000
"""Bytes of no current use, on top of the size of the table, beyond which they are deleted."""

_MARK = "#watermark"
# Rewritten at each commit, and of no consequence when it is wrong.
_HINT = "_versions/latest_version_hint.json"
_VERSION = re.compile(r"[0-9]+\.manifest")
_LOOKS = 10
# For each of the two caches that LanceDB keeps; left alone, they may grow to seven gigabytes.
_CACHE_BYTES = 64_000_000
_NEVER = 2**62
# Hits beyond the limit that are read so that equal scores at its edge come in the order of their ids.
_SLACK = 32
# As many where more than those are equal.
_MUCH_SLACK = 1000
_IDS_AT_ONCE = 1000
_ROWS_AT_ONCE = 1024
_TRIES = 3
_CONDITIONS = 64
_TOGETHER = 8
_TEXTS = ("id", "source", "wing", "room", "kind", "role", "state", "sha256", "text")
# The watermark has no state.
_STANDING = "state IN ('current', 'superseded')"
_INTEGERS = ("seq", "authored_at", "filed_at", "ended_at")


class Vectors:
    """The projection of drawers onto the vectors of one embedder, in the LanceDB database at ``path``.

    Every read sees the last commit of any process. Writers hold the projection's FileLock. Every method but
    ``watermark`` raises ProjectionUnavailable when the table is missing or damaged.

    Bounds, apart from what the last ten minutes left: at most STALE_VERSIONS + rows / ROWS_PER_VERSION
    versions, and twice the size of the table + STALE_BYTES. Fragments: FRAGMENTS + rows / FULL_FRAGMENT.
    Files: FILES for each fragment and each of STALE_VERSIONS.
    """

    name = "vectors"

    def __init__(self, path: Path, identity: EmbedderIdentity, table: str = "") -> None:
        """``table`` names the table where that is not the one that the embedder's identity names."""
        self.path = path
        self.dim = identity.dim
        self.table_name = table or table_of(identity)
        self._table: Any = None
        self._sums = Sums(self.directory, passed_over=(_HINT,))
        self._known: tuple[Commit, Watermark | None] | None = None
        self._pays: tuple[Commit | None, dict[str, bool]] = (None, {})
        self._asked = False
        self._resident: tuple[Commit, int, Resident | None] | None = None
        self._loading = threading.Lock()

    @property
    def directory(self) -> Path:
        """Where the table lies."""
        return self.path / f"{self.table_name}.lance"

    def watermark(self) -> Watermark | None:
        """Return what it has reached, None when it is empty, missing or unreadable."""
        try:
            if self._known is not None and self._known[0] == self._commit():
                return self._known[1]
            return self._read(self._mark)
        except ProjectionUnavailable:
            return None

    def _mark(self, table: Any) -> Watermark | None:
        """Return the watermark of the last commit; that of one that was read before is known."""
        commit = self._commit()
        if self._known is None or self._known[0] != commit:
            found = _rows(table, where=f"id = '{_MARK}'", columns=["source", "seq"]).to_pylist()
            self._known = (commit, Watermark(found[0]["source"], found[0]["seq"]) if found else None)
        return self._known[1]

    def _commit(self) -> Commit:
        """Return the last commit, by a look at the files; a table that was built again has others."""
        versions = self.directory / "_versions"
        with self._edge():
            for _ in range(_LOOKS):
                try:
                    # Newest first: LanceDB names a version by what is left to the largest integer. A name
                    # that ends otherwise is a commit being written, one with a letter not of a whole commit.
                    with os.scandir(versions) as files:
                        whole = (file for file in files if _VERSION.fullmatch(file.name))
                        newest = min(whole, key=attrgetter("name"))
                    status = newest.stat()
                except (FileNotFoundError, ValueError):
                    # Gone since it was listed, where another process commits and cleans up.
                    if not versions.is_dir():
                        break
                    continue
                return newest.name, status.st_ino, status.st_mtime_ns
        raise self._absent()

    def apply(self, rows: Sequence[ProjectionRow], vectors: NDArray[np.float32], reached: Watermark) -> None:
        """Bring the rows in and record the watermark, in one commit; applying twice changes nothing.

        ``vectors`` has one row for each of ``rows``; those of forgotten drawers do not matter. Raises
        ModelError for a vector that is not finite or is zero, and nothing is written then.
        """
        latest = {row.id: index for index, row in enumerate(rows)}
        batch = self._batch(
            [rows[index] for index in latest.values()], vectors, list(latest.values()), reached
        )
        with self._edge():
            try:
                table = self._open()
            except ProjectionUnavailable:
                self.path.mkdir(mode=0o700, exist_ok=True)
                if self.directory.exists() and any(self.directory.glob("_versions/*")):
                    raise
                self._table = self._connect().create_table(self.table_name, data=batch)
                self._sums.note()
                return
            self._tidy(table)
            merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.execute(batch)
            self._sums.note()

    def search(
        self, vector: NDArray[np.float32], scope: Scope, limit: int, *, exact: bool = False
    ) -> list[DenseMatch]:
        """Return the drawers in scope nearest to ``vector`` by cosine, nearest first.

        A large scope is answered by the index of vectors, which may miss a few, unless it has to be
        ``exact``; scores are exact in either case. ``scope.source`` is a source key. ``scope.as_of`` may let
        through drawers that were away at that time and came back later: the ledger knows. Raises ModelError
        for a vector of another length.
        """
        if limit <= 0:
            return []
        if vector.shape != (self.dim,):
            raise ModelError(f"a vector of {vector.size} was compared with vectors of {self.dim}")
        if (resident := self._in_memory()) is not None:
            return resident.search(vector, scope, limit)
        where = where_clause(scope)

        def chosen(table: Any, slack: int) -> pa.Table:
            query = table.search(vector, vector_column_name="vector").distance_type("cosine")
            query = query.where(where, prefilter=True)
            # One source is small. When drawers were filed and ended is not indexed: to count costs a search.
            alone = exact or scope.source is not None or scope.as_of is not None
            if alone or not self._index_pays(table, where):
                query = query.bypass_vector_index()
            else:
                query = query.nprobes(vector_index.EVERY_PART).refine_factor(vector_index.REFINE)
            # Leaving _distance out makes the native side warn on stderr at every query.
            return query.select(["id", "sha256", "vector", "_distance"]).limit(limit + slack).to_arrow()

        found = self._read(partial(chosen, slack=_SLACK))
        distances = found["_distance"]
        if len(found) == limit + _SLACK and distances[-1] == distances[limit - 1]:
            found = self._read(partial(chosen, slack=_MUCH_SLACK))
        # LanceDB rounds the query to 16 bits: its distances choose, and these scores rank.
        return nearest(*ids_and_hashes(found), self._units(found), vector, limit)

    def _index_pays(self, table: Any, where: str) -> bool:
        """Return ``vector_index.pays``; to count what fulfils a condition takes as long as to search it."""
        commit = self._commit()
        if self._pays[0] != commit or len(self._pays[1]) >= _CONDITIONS:
            self._pays = (commit, {})
        known = self._pays[1]
        if where not in known:
            known[where] = vector_index.pays(table, where)
        return known[where]

    def _in_memory(self) -> Resident | None:
        """Return the drawers of the last commit as this process keeps them.

        None for the first question, to which reading them all would cost more than it saves, where they are
        too many, and where they change as fast as they are read.
        """
        if not self._asked:
            self._asked = True
            return None
        with self._loading:
            for _ in range(_TRIES):
                commit = self._commit()
                if self._resident is None or self._resident[0] != commit:
                    seq, resident = self._read(self._load)
                    self._resident = (commit, seq, resident)
                    if self._commit() != commit:
                        continue
                return self._resident[2]
        return None

    def _load(self, table: Any) -> tuple[int, Resident | None]:
        """Read the drawers with their vectors, those that changed where others are known."""
        mark = self._mark(table)
        seq = mark.seq if mark else 0
        count = table.count_rows(_STANDING)
        fits = BYTES * self.dim * count <= MOST_BYTES
        _, reached, known = self._resident or (None, 0, None)
        if fits and known is not None and seq > reached:
            rows = _rows(table, where=f"seq > {reached} AND id != '{_MARK}'", columns=list(COLUMNS))
            resident = known.extended(rows)
            if resident is not None and len(resident) == count:
                return seq, resident
        # Let go of before all are read once more.
        self._resident = known = None
        if not fits:
            return seq, None
        query = table.search().where(_STANDING).select(list(COLUMNS)).limit(None)
        return seq, Resident.of(count, self.dim, query.to_batches(_ROWS_AT_ONCE))

    def index(self) -> None:
        """Make the indexes that a table of this size needs, or make them anew where they are late.

        Takes a few seconds for a million rows, and a minute or two once that many vectors are to be indexed.
        The caller holds the projection's lock; nobody who searches waits for it.
        """
        with self._edge():
            vector_index.gather(self._open())
            vector_index.refresh(self._open())
            self._sums.note()

    def vectors_of(self, ids: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """Return the stored vectors of those ids that it holds, see ``as_stored``."""
        wanted = [id_ for id_ in ids if id_ != _MARK]
        found: dict[str, NDArray[np.float32]] = {}
        for start in range(0, len(wanted), _IDS_AT_ONCE):
            where = f"{_among('id', wanted[start : start + _IDS_AT_ONCE])} AND state != 'forgotten'"
            part = self._read(partial(_rows, where=where, columns=["id", "vector"]))
            found.update(zip(part["id"].to_pylist(), self._units(part), strict=True))
        return found

    def damaged_files(self) -> list[str]:
        """Return the names of files that are not as they were written; reads all of them."""
        return self._sums.damaged(thorough=True) if self.directory.exists() else []

    def whole(self) -> bool:
        """Whether the table is there and its files are as they were written, as far as their notes tell.

        A list of deleted rows that was not noted would have to be read.
        """
        lists = {file.relative_to(self.directory).as_posix() for file in self.directory.glob("_deletions/*")}
        there = any(self.directory.glob("_versions/*"))
        return there and lists <= self._sums.names() and not self._sums.damaged()

    def count(self) -> int:
        """Return the number of drawers it holds."""
        return int(self._read(lambda table: table.count_rows(f"id != '{_MARK}' AND state != 'forgotten'")))

    def disk_bytes(self) -> int:
        """Return the size of its files, those of older versions included; 0 when there are none."""
        return disk_bytes(self.directory)

    def reset(self) -> None:
        """Throw everything away, older versions included."""
        self.close()
        # Renamed first, so that no reader ever sees half a table.
        if self.directory.exists():
            self.directory.rename(self.path / f"{self.table_name}.discarded-{secrets.token_hex(4)}")
        for old in self.path.glob(f"{self.table_name}.discarded-*"):
            shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Let go of the table; the next call opens it again."""
        self._table = None
        self._resident = None

    def _units(self, rows: pa.Table) -> NDArray[np.float32]:
        """Return the vectors of rows that were read, widened and of unit length."""
        return units(rows["vector"], self.dim)

    # Opening

    def _edge(self) -> Any:
        return native_edge("table of vectors", self.directory)

    def _absent(self) -> ProjectionUnavailable:
        return ProjectionUnavailable(f"there is no table of vectors at {self.directory}: run castle repair")

    def _connect(self) -> Any:
        lancedb = import_lancedb()
        session = lancedb.Session(index_cache_size_bytes=_CACHE_BYTES, metadata_cache_size_bytes=_CACHE_BYTES)
        return lancedb.connect(str(self.path), read_consistency_interval=timedelta(0), session=session)

    def _open(self) -> Any:
        if not self.directory.exists():
            self._table = None
            raise self._absent()
        if self._table is None:
            with self._edge():
                # LanceDB compares no checksums, and ends the process over some files that are damaged.
                if damaged := [*self._sums.damaged(), *damaged_deletions(self.directory)]:
                    raise ProjectionUnavailable(
                        f"{self.directory / damaged[0]} is damaged: run castle repair"
                    )
                table = self._connect().open_table(self.table_name)
                if not str(table.schema.field("vector").type).startswith("fixed_size_list<item: halffloat"):
                    raise ProjectionUnavailable(
                        f"{self.directory} was made by an older Castle: run castle repair"
                    )
                self._table = table
        return self._table

    def _read(self, read: Callable[[Any], T]) -> T:
        """Read at the last commit; once more with a new handle when a file of an older version is gone."""
        try:
            with self._edge():
                return read(self._open())
        except ProjectionUnavailable:
            self._table = None
            with self._edge():
                return read(self._open())

    # Writing

    def _batch(
        self,
        rows: Sequence[ProjectionRow],
        vectors: NDArray[np.float32],
        order: Sequence[int],
        reached: Watermark,
    ) -> pa.Table:
        """Return the rows and the watermark as Arrow; forgotten drawers keep their id and nothing else."""
        import numpy as np
        import pyarrow as pa

        matrix = np.zeros((len(rows) + 1, self.dim), dtype=np.float16)
        with np.errstate(over="ignore"):
            matrix[:-1] = vectors[list(order)] if len(rows) else 0
        forgotten = np.array([row.state == "forgotten" for row in rows], dtype=bool)
        matrix[:-1][forgotten] = 0
        unusable = ~np.isfinite(matrix[:-1]).all(axis=1) | ~(matrix[:-1].any(axis=1) | forgotten)
        if unusable.any():
            bad = rows[int(np.argmax(unusable))]
            raise ModelError(
                f"drawer {bad.id}: the embedder's vector is zero or not finite; nothing was stored"
            )
        columns: dict[str, list[object]] = {name: [] for name in (*_TEXTS, *_INTEGERS)}
        for row in rows:
            gone = row.state == "forgotten"
            for name in _TEXTS:
                value = "" if gone and name not in ("id", "state") else getattr(row, name)
                columns[name].append(legal_text(value))
            for name in _INTEGERS:
                number = getattr(row, name)
                columns[name].append(_NEVER if number is None else number)
        mark: dict[str, object] = {"id": _MARK, "kind": _MARK, "source": reached.epoch, "seq": reached.seq}
        for name, values in columns.items():
            values.append(mark.get(name, "" if name in _TEXTS else 0))
        arrays = [pa.array(columns[name], pa.string()) for name in _TEXTS]
        arrays += [pa.array(columns[name], pa.int64()) for name in _INTEGERS]
        arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), self.dim))
        return pa.table(arrays, names=[*_TEXTS, *_INTEGERS, "vector"])

    def _tidy(self, table: Any) -> None:
        """Keep fragments, versions and bytes bounded, see the class.

        ``optimize`` rewrites every fragment below a million rows before it deletes old versions, so it waits
        for its bounds; with a single fragment there is nothing to rewrite and it costs next to nothing.
        """
        stats = table.stats()
        fragments, rows, size = (
            stats["fragment_stats"]["num_fragments"],
            stats["num_rows"],
            stats["total_bytes"],
        )
        if fragments > FRAGMENTS + rows // FULL_FRAGMENT:
            self._join_small(table)
        # Without it, every batch reads the ids of all rows.
        vector_index.refresh(table, ("id",))
        stale = self._stale_versions()
        if not stale:
            return
        many = stale > STALE_VERSIONS + rows // ROWS_PER_VERSION
        many = many or _files(self.directory) > FILES * (STALE_VERSIONS + fragments)
        if many or fragments == 1 or self.disk_bytes() > 2 * size + STALE_BYTES:
            table.optimize(cleanup_older_than=RETENTION)

    def _stale_versions(self) -> int:
        """Return how many versions before the last one are past their retention."""
        before = time.time() - RETENTION.total_seconds()
        # Newest first: LanceDB names a version by what is left to the largest integer.
        manifests = sorted(self.directory.glob("_versions/*.manifest"))[1:]
        return sum(1 for manifest in manifests if manifest.stat().st_mtime < before)

    def _join_small(self, table: Any) -> None:
        """Rewrite small fragments as one, by size classes of eight, so that a row moves once per class.

        ``optimize`` would rewrite the largest fragments each time, too.
        """
        import numpy as np

        addresses = table.search().with_row_id(True).select(["_rowid"]).to_arrow()["_rowid"].to_numpy()
        fragments, counts = np.unique(addresses >> 32, return_counts=True)
        fragments, counts = fragments[counts < FULL_FRAGMENT], counts[counts < FULL_FRAGMENT]
        classes = np.log2(counts).astype(int) // 3
        for largest in range(4):
            chosen = fragments[classes <= largest]
            if len(chosen) >= _TOGETHER:
                moved = addresses[np.isin(addresses >> 32, chosen)]
                rows = table.take_row_ids(moved.tolist()).to_arrow()
                # Should anybody have changed a row meanwhile, theirs stays.
                table.merge_insert("id").when_matched_update_all(where="target.seq = source.seq").execute(
                    rows
                )
                return


def _files(directory: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(directory))


def table_of(identity: EmbedderIdentity) -> str:
    """Return the name of the first table of an embedder; a reindex gives others to those it builds."""
    return f"drawers_{hashlib.sha256(identity.identity.encode()).hexdigest()[:12]}"


def as_stored(unit: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what the table gives back of a vector: rounded to 16 bits, and of unit length again."""
    import numpy as np

    return normal(unit.astype(np.float16))


def where_clause(scope: Scope) -> str:
    """Return the scope as an SQL condition; every value of the user is a quoted literal."""
    current = not scope.history and scope.as_of is None
    terms = ["state = 'current'" if current else _STANDING]
    if scope.as_of is not None:
        terms.append(f"filed_at <= {int(scope.as_of)} AND ended_at > {int(scope.as_of)}")
    for column in ("wing", "room", "role", "source"):
        value = getattr(scope, column)
        if value is not None:
            terms.append(f"{column} = {quoted(value)}")
    if scope.since is not None:
        terms.append(f"authored_at >= {int(scope.since)}")
    if scope.until is not None:
        terms.append(f"authored_at < {int(scope.until)}")
    terms.append(_among("kind", scope.kinds) if scope.kinds else f"NOT {_among('kind', HIDDEN_KINDS)}")
    return " AND ".join(terms)


def quoted(value: str) -> str:
    """Return a value as a literal of LanceDB's SQL, where a doubled quote is the only escape."""
    return "'" + legal_text(value).replace("'", "''") + "'"


def _among(column: str, values: Collection[str]) -> str:
    return f"({column} IN ({', '.join(quoted(value) for value in values)}))"


def _rows(table: Any, where: str, columns: list[str]) -> pa.Table:
    return table.search().where(where).select(columns).limit(None).to_arrow()
