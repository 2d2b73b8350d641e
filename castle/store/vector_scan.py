"""Comparing with the vectors of a small scope as the ledger's cache holds them, without the table of vectors.

A process that asks one question and ends, as a command does, takes longer to import LanceDB than to read some
thousand vectors. The table is derived from the cache, so scores are the same. It is left alone only where its
files are whole and every drawer in scope has its vector in the cache; whoever has opened it already uses it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, select

from castle.errors import CastleError
from castle.records import Scope
from castle.store import novelty
from castle.store.catchup import fits, input_hash
from castle.store.ledger import batches, get_value
from castle.store.novelty_tables import novelty as inputs
from castle.store.palace import Palace
from castle.store.reading import changed_in_scope, scope_clause
from castle.store.resident import ID, DenseMatch, nearest
from castle.store.schema import drawers, sources
from castle.store.schema import vectors as vector_cache
from castle.store.spaces import BUILDING
from castle.store.vectors import as_stored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.models.base import EmbedderIdentity

MOST_DRAWERS = 20_000
"""Drawers in scope up to which reading all of their vectors takes less time than the import."""
MOST_LATE = 1000
"""Drawers whose key in the cache is not known and has to be computed from their text, at most."""

Row = tuple[str, bytes, int, bytes]
"""Id, hash of the text, time of writing, and the vector of a drawer as 16-bit floats."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The vectors of all drawers in a scope, in the space of one embedder; ``units`` are as stored."""

    identity: EmbedderIdentity
    ids: NDArray[np.bytes_]
    hashes: NDArray[np.uint8]
    authored_at: NDArray[np.int64]
    units: NDArray[np.float32]

    def search(self, vector: NDArray[np.float32], scope: Scope, limit: int) -> list[DenseMatch]:
        """Return the drawers nearest to ``vector`` by cosine, nearest first, as ``Vectors.search`` does.

        ``scope`` is that of the scan, or narrower by its times.
        """
        import numpy as np

        inside = np.ones(len(self.ids), dtype=bool)
        if scope.since is not None:
            inside &= self.authored_at >= scope.since
        if scope.until is not None:
            inside &= self.authored_at < scope.until
        return nearest(self.ids, self.hashes, self.units, vector, limit, inside)


def scan_of(palace: Palace, scope: Scope) -> Scan | None:
    """Return the vectors of a scope; None where the table of vectors is to be used.

    It is from the second question on and where its library is there already, where it is damaged, where the
    scope is large or reaches into the past, and where a vector is lacking.
    """
    if palace.asked or _is_loaded() or scope.history or scope.as_of is not None:
        return None
    palace.asked = True
    try:
        space = palace.space
        if not space.whole():
            return None
        with palace.ledger.read() as cx:
            mark = None if get_value(cx, BUILDING) else novelty.reached(cx)
        after = mark.seq if mark is not None and fits(palace, mark) else 0
        with palace.ledger.read() as cx:
            rows = _rows(cx, space.identity.identity, scope, after)
    except CastleError:  # whoever uses the table says so
        return None
    return None if rows is None else _scan(space.identity, rows)


def _is_loaded() -> bool:
    """Whether the import has been paid for."""
    return "lancedb" in sys.modules


def _rows(cx: Connection, embedder: str, scope: Scope, after: int) -> list[Row] | None:
    """Return the drawers in scope: up to change ``after`` the table of novelty knows the keys of vectors."""
    own = and_(vector_cache.c.embedder == embedder, vector_cache.c.input == inputs.c.input)
    query = (
        select(drawers.c.id, drawers.c.sha256, drawers.c.authored_at, vector_cache.c.vector)
        .select_from(
            drawers.join(sources, sources.c.id == drawers.c.source)
            .outerjoin(inputs, inputs.c.drawer == drawers.c.rid)
            .outerjoin(vector_cache, own)
        )
        .where(scope_clause(scope), drawers.c.seq <= after)
        .limit(MOST_DRAWERS + 1)
    )
    known: list[Any] = list(cx.execute(query).all()) if after else []
    total, late = changed_in_scope(cx, after, scope, MOST_LATE)
    if total > MOST_LATE or len(known) + total > MOST_DRAWERS:
        return None
    keys = {row.id: input_hash(row) for row in late}
    kept: dict[bytes, bytes] = {}
    for part in batches(list(keys.values())):
        wanted = select(vector_cache.c.input, vector_cache.c.vector).where(
            vector_cache.c.embedder == embedder, vector_cache.c.input.in_(part)
        )
        kept.update((key, vector) for key, vector in cx.execute(wanted))
    rows = [tuple(row) for row in known]
    rows += [(row.id, bytes.fromhex(row.sha256), row.authored_at, kept.get(keys[row.id])) for row in late]
    return rows


def _scan(identity: EmbedderIdentity, rows: list[Row]) -> Scan | None:
    """Derive from the cache what the table holds; None where a vector is lacking or damaged."""
    import numpy as np

    blobs = [vector for *_, vector in rows]
    if any(blob is None or len(blob) != 2 * identity.dim for blob in blobs):
        return None
    wide = np.frombuffer(b"".join(blobs), dtype=np.float16).reshape(-1, identity.dim).astype(np.float32)
    # One by one, as for the table: a sum over many rows at once rounds in another way.
    norms: NDArray[np.float32] = np.sqrt(np.array([row.dot(row) for row in wide], dtype=np.float32))
    if not (np.isfinite(norms).all() and norms.all()):
        return None
    return Scan(
        identity,
        np.array([id_ for id_, *_ in rows], ID),
        np.frombuffer(b"".join(sha256 for _, sha256, *_ in rows), np.uint8).reshape(-1, 32),
        np.array([at for _, _, at, _ in rows], dtype=np.int64),
        as_stored(wide / norms[:, None]),
    )
