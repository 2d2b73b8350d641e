"""Catching up: replaying the ledger's changes into the projections.

Whoever holds a projection's kernel lock works for everybody. A projection whose epoch is not the ledger's, or
that claims more changes than the ledger has, is from another time and is built again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from castle.errors import ModelError, PalaceBusyError, PalaceError
from castle.store.ledger import batches, get_value, lineage_at, run_many
from castle.store.palace import POLL_SECONDS, Palace
from castle.store.projection import (
    Projection,
    ProjectionBlocked,
    ProjectionRow,
    ProjectionUnavailable,
    Watermark,
)
from castle.store.reading import changed_rows, count_changed
from castle.store.redetect import purge, redetect
from castle.store.schema import vectors as vector_cache
from castle.store.spaces import Space, sweep

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.models.base import EmbedderIdentity
    from castle.store.vectors import Vectors

Progress = Callable[[int, int], None]
"""Called with the number of drawers done and the number there are to do."""

LEXICON_BATCH = 2000
VECTOR_BATCH = 1024
LARGER_BATCH = 4
"""How many times as many drawers go into one commit once commits take less than ``QUICK_SECONDS``."""
QUICK_SECONDS = 1.0
EMBED_BATCH = 128
HASTY_BATCH = 8
HASTY_PATIENCE = 0.05
REDETECT_SECONDS = 20.0
HASTY_REDETECT = 0.1


def behind(palace: Palace, projection: Projection) -> int:
    """Return how many changes the projection does not hold yet."""
    mark = projection.watermark()
    with palace.ledger.read() as cx:
        return count_changed(cx, _reached(cx, mark))


def missing(palace: Palace, projection: Projection) -> int:
    """Return how many drawers cannot be found through the projection yet; forgotten ones need not be."""
    mark = projection.watermark()
    with palace.ledger.read() as cx:
        return count_changed(cx, _reached(cx, mark), forgotten=False)


def _reached(cx: Connection, mark: Watermark | None) -> int:
    return mark.seq if mark is not None and _fits(cx, mark) else 0


def catch_up_lexicon(
    palace: Palace, *, deadline: float | None = None, progress: Progress | None = None
) -> None:
    """Bring the index of words up to date; ``deadline`` (monotonic seconds) makes it stop early.

    Before that, some of the time is spent on drawers that were read with older rules for secrets.
    """
    _look_again(palace, deadline)

    def apply(rows: Sequence[ProjectionRow], mark: Watermark) -> None:
        palace.lexicon.apply(rows, mark)

    _catch_up(palace, palace.lexicon, apply, LEXICON_BATCH, deadline, progress)


def _look_again(palace: Palace, deadline: float | None) -> None:
    """Read drawers of older rules again; without a deadline, clear the indexes of what was found, too."""
    if deadline is not None:
        hasty = min(HASTY_REDETECT, (deadline - time.monotonic()) / 2)
        with suppress(PalaceBusyError):
            redetect(palace, deadline=time.monotonic() + hasty)
    elif not palace.ledger.read_only:
        redetect(palace, deadline=time.monotonic() + REDETECT_SECONDS)
        purge(palace)


def catch_up_vectors(
    palace: Palace, *, deadline: float | None = None, progress: Progress | None = None
) -> None:
    """Bring the vectors up to date, embedding what no cache holds; ``deadline`` makes it stop early."""
    space = palace.space
    if not space.loaded:
        palace.check_embedder()
    done = 0

    def report(count: int, total: int) -> None:
        if progress is not None:
            progress(done + count, total)

    def apply(rows: Sequence[ProjectionRow], mark: Watermark) -> None:
        nonlocal done
        total = done + behind(palace, space.vectors) if progress else 0
        patience = None if deadline is None else max(HASTY_PATIENCE, deadline - time.monotonic())
        matrix = vectors_for(palace, space, rows, lambda count: report(count, total), patience)
        space.vectors.apply(rows, matrix, mark)
        done += len(rows)

    _catch_up(palace, space.vectors, apply, VECTOR_BATCH, deadline, None)
    if deadline is None:
        _index(palace, space.vectors)
    sweep(palace, deadline)


def _index(palace: Palace, vectors: Vectors) -> None:
    """Make the indexes of a large table, unless another process is writing it, which does so in its turn."""
    lock = palace.lock(vectors.name)
    if vectors.watermark() is not None and lock.try_acquire():
        try:
            vectors.index()
        finally:
            lock.release()


def refresh(palace: Palace, seconds: float) -> None:
    """Bring both projections up to date as far as ``seconds`` go; a search reports what remains.

    Vectors wait for as long as models are not there.
    """
    for catch_up in (catch_up_lexicon,) if palace.unready else (catch_up_lexicon, catch_up_vectors):
        with suppress(ProjectionUnavailable, ProjectionBlocked, ModelError, PalaceBusyError):
            catch_up(palace, deadline=time.monotonic() + seconds)


def _catch_up(
    palace: Palace,
    projection: Projection,
    apply: Callable[[Sequence[ProjectionRow], Watermark], None],
    batch: int,
    deadline: float | None,
    progress: Progress | None,
) -> None:
    lock = palace.lock(projection.name)
    while behind(palace, projection):
        if lock.try_acquire():
            try:
                _replay(palace, projection, apply, batch, deadline, progress)
            finally:
                lock.release()
            return
        if not lock.reason.startswith("held"):
            raise PalaceError(f"the index of {projection.name} cannot be brought up to date: {lock.reason}")
        if deadline is not None:
            return
        time.sleep(POLL_SECONDS)


def _replay(
    palace: Palace,
    projection: Projection,
    apply: Callable[[Sequence[ProjectionRow], Watermark], None],
    batch: int,
    deadline: float | None,
    progress: Progress | None,
) -> None:
    palace.clear_the_way()
    mark = projection.watermark()
    if mark is None or not fits(palace, mark):
        projection.reset()
        mark = Watermark(palace.ledger.lineage(0), 0)
    total = behind(palace, projection) if progress else 0
    done = 0
    size = batch if deadline is None else HASTY_BATCH
    while deadline is None or time.monotonic() < deadline:
        started = time.monotonic()
        with palace.ledger.read() as cx:
            rows = changed_rows(cx, mark.seq, size)
        if not rows:
            return
        mark = Watermark(palace.ledger.lineage(rows[-1].seq), rows[-1].seq)
        try:
            apply(rows, mark)
        except ProjectionUnavailable:
            projection.reset()
            mark = Watermark(palace.ledger.lineage(0), 0)
            with palace.ledger.read() as cx:
                rows = changed_rows(cx, 0, batch)
            mark = Watermark(palace.ledger.lineage(rows[-1].seq), rows[-1].seq)
            apply(rows, mark)
        done += len(rows)
        if progress:
            progress(done, total)
        took = time.monotonic() - started
        if deadline is not None:
            size = _affordable(size, took, deadline - time.monotonic(), batch)
        elif took < QUICK_SECONDS:
            size = min(2 * size, LARGER_BATCH * batch)


def _affordable(size: int, took: float, left: float, most: int) -> int:
    """Return how many rows to take next, so that about half of the time that is left will do."""
    return max(HASTY_BATCH, min(most, int(size / max(took, 1e-3) * left / 2)))


def fits(palace: Palace, mark: Watermark) -> bool:
    """Whether the ledger is the one that a projection followed, and has come as far."""
    with palace.ledger.read() as cx:
        return _fits(cx, mark)


def _fits(cx: Connection, mark: Watermark) -> bool:
    return mark.seq <= int(get_value(cx, "seq") or 0) and mark.epoch == lineage_at(cx, mark.seq)


def input_hash(row: ProjectionRow) -> bytes:
    """Return the key of a drawer's vector in the cache."""
    return hashlib.sha256(row.embedded.encode("utf-8")).digest()


def cached_vectors(
    palace: Palace, keys: Sequence[bytes], embedder: EmbedderIdentity | None = None
) -> dict[bytes, NDArray[np.float32]]:
    """Return the vectors the ledger keeps for these inputs; a damaged one counts as not kept.

    They are those of the embedder in force unless another one is named.
    """
    import numpy as np

    embedder = embedder or palace.identity
    identity, size = embedder.identity, 2 * embedder.dim
    found: dict[bytes, NDArray[np.float32]] = {}
    with palace.ledger.read() as cx:
        for part in batches(keys):
            query = select(vector_cache.c.input, vector_cache.c.vector).where(
                vector_cache.c.embedder == identity, vector_cache.c.input.in_(part)
            )
            for key, blob in cx.execute(query):
                half = np.frombuffer(blob, dtype=np.float16) if len(blob) == size else np.zeros(1, np.float16)
                if np.isfinite(half).all() and half.any():
                    found[key] = _normal(half)
    return found


def vectors_for(
    palace: Palace,
    space: Space,
    rows: Sequence[ProjectionRow],
    progress: Callable[[int], None],
    patience: float | None = None,
    *,
    afresh: bool = False,
) -> NDArray[np.float32]:
    """Return one vector a row, from the cache or the embedder; forgotten rows get zeros.

    ``afresh`` leaves the cache aside and replaces what it holds.
    """
    import numpy as np

    keys = [input_hash(row) if row.state != "forgotten" else b"" for row in rows]
    texts = {key: row.embedded for key, row in zip(keys, rows, strict=True) if key}
    known = {} if afresh else cached_vectors(palace, list(texts), space.identity)
    progress(len(known))
    missing = sorted((key for key in texts if key not in known), key=lambda key: len(texts[key]))
    identity = space.identity.identity
    for part in batches(missing, EMBED_BATCH):
        halves = space.embedder.embed_documents([texts[key] for key in part]).astype(np.float16)
        with palace.ledger.write(patience) as cx:
            run_many(
                cx,
                "INSERT OR REPLACE INTO vectors(embedder, input, vector) VALUES (?, ?, ?)",
                [(identity, key, half.tobytes()) for key, half in zip(part, halves, strict=True)],
            )
        known.update((key, _normal(half)) for key, half in zip(part, halves, strict=True))
        progress(len(known))
    matrix = np.zeros((len(rows), space.identity.dim), dtype=np.float32)
    for index, key in enumerate(keys):
        if key:
            matrix[index] = known[key]
    return matrix


def _normal(half: NDArray[np.float16]) -> NDArray[np.float32]:
    """Widen a cached vector; the same bytes always give the same unit vector."""
    import numpy as np

    wide = half.astype(np.float32)
    unit: NDArray[np.float32] = wide / np.linalg.norm(wide)
    return unit
