"""Catching up: replaying the ledger's changes into the projections.

Whoever holds a projection's kernel lock works for everybody. A projection whose epoch is not the ledger's, or
that claims more changes than the ledger has, is from another time and is built again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from castle.errors import ModelError, PalaceBusyError, PalaceError
from castle.store.ledger import batches, get_value, lineage_at, marks, run, run_many
from castle.store.palace import POLL_SECONDS, Palace
from castle.store.projection import (
    Projection,
    ProjectionBlocked,
    ProjectionRow,
    ProjectionUnavailable,
    Watermark,
)
from castle.store.reading import changed_rows, count_changed
from castle.store.redetect import left, purge, redetect
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
EMBED_BATCH = 256
KEEP_SECONDS = 4.0
"""After how much embedding the vectors are written into the cache, so that no more is lost by a kill."""
HASTY_BATCH = 8
HASTY_PATIENCE = 0.05
REDETECT_SECONDS = 20.0
HASTY_REDETECT = 0.1


def behind(palace: Palace, projection: Projection) -> int:
    """Return how many changes the projection does not hold yet."""
    mark = projection.watermark()
    with palace.ledger.read() as cx:
        return count_changed(cx, _reached(cx, mark))


def up_to_date(palace: Palace, projection: Projection) -> bool:
    """Whether the projection holds every change, and no drawer waits to be read with today's rules."""
    mark = projection.watermark()
    with palace.ledger.read() as cx:
        return not count_changed(cx, _reached(cx, mark)) and not left(cx)


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
    embedder = embedder or palace.identity
    kept = _cached_halves(palace, keys, embedder)
    return dict(zip(kept, _units(list(kept.values()), embedder.dim), strict=True))


def _cached_halves(
    palace: Palace, keys: Sequence[bytes], embedder: EmbedderIdentity
) -> dict[bytes, NDArray[np.float16]]:
    import numpy as np

    found: dict[bytes, bytes] = {}
    with palace.ledger.read() as cx:
        for part in batches(keys):
            query = f"SELECT input, vector FROM vectors WHERE embedder = ? AND input IN ({marks(part)})"
            found.update(run(cx, query, (embedder.identity, *part)))
    whole = [key for key, blob in found.items() if len(blob) == 2 * embedder.dim]
    halves = np.frombuffer(b"".join(found[key] for key in whole), np.float16).reshape(-1, embedder.dim)
    usable = np.logical_and(np.isfinite(halves).all(axis=1), halves.any(axis=1)).tolist()
    return {key: half for key, half, good in zip(whole, halves, usable, strict=True) if good}


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
    known = halves_for(palace, space, texts, progress, patience, afresh=afresh)
    matrix = np.zeros((len(rows), space.identity.dim), dtype=np.float32)
    there = [index for index, key in enumerate(keys) if key]
    matrix[there] = _units([known[keys[index]] for index in there], space.identity.dim)
    return matrix


def halves_for(
    palace: Palace,
    space: Space,
    texts: Mapping[bytes, str],
    progress: Callable[[int], None],
    patience: float | None = None,
    *,
    afresh: bool = False,
    part: int = 0,
) -> dict[bytes, NDArray[np.float16]]:
    """Return the vectors of texts, given by their ``input_hash``, as the cache keeps them.

    Those that it lacks are made, ``part`` texts at once (0: EMBED_BATCH), and put there even where
    ``progress`` raises. ``afresh`` leaves the cache aside and replaces what it holds.
    """
    import numpy as np

    known = {} if afresh else _cached_halves(palace, list(texts), space.identity)
    progress(len(known))
    missing = sorted((key for key in texts if key not in known), key=lambda key: len(texts[key]))
    fresh: dict[bytes, NDArray[np.float16]] = {}
    kept = time.monotonic()
    try:
        for some in batches(missing, part or EMBED_BATCH):
            made = space.embedder.embed_documents([texts[key] for key in some]).astype(np.float16)
            fresh.update(zip(some, made, strict=True))
            known.update(zip(some, made, strict=True))
            progress(len(known))
            if time.monotonic() - kept >= KEEP_SECONDS:
                waiting, fresh, kept = fresh, {}, time.monotonic()
                _keep(palace, space.identity, waiting, patience)
    finally:
        if fresh:
            _keep(palace, space.identity, fresh, patience)
    return known


def _keep(
    palace: Palace,
    embedder: EmbedderIdentity,
    made: dict[bytes, NDArray[np.float16]],
    patience: float | None,
) -> None:
    """Write vectors into the cache."""
    rows = [(embedder.identity, key, half.tobytes()) for key, half in sorted(made.items())]
    with palace.ledger.write(patience) as cx:
        run_many(cx, "INSERT OR REPLACE INTO vectors(embedder, input, vector) VALUES (?, ?, ?)", rows)


def _units(halves: Sequence[NDArray[np.float16]], dim: int) -> NDArray[np.float32]:
    """Widen cached vectors; the same bytes always give the same unit vector, whatever stands beside it."""
    import numpy as np

    units = np.array(halves, dtype=np.float32).reshape(-1, dim)
    for row in units:
        row /= np.sqrt(row.dot(row))  # a sum over an axis would add in another order
    return units
