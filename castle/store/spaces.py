"""Spaces of vectors: an embedder, the table of what it made, and the rows of the ledger that name them.

The ledger names the space in force, the one that a reindex builds, and those that were in force before, which
readers of other processes may use for a while. Every other table, and every cached vector of another
embedder, is waste.
"""

from __future__ import annotations

import json
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, select

from castle.errors import PalaceError
from castle.models.base import Embedder, EmbedderIdentity
from castle.store.ledger import get_value, set_value, to_json
from castle.store.schema import meta
from castle.store.schema import vectors as vector_cache

if TYPE_CHECKING:
    from castle.store.palace import Palace
    from castle.store.vectors import Vectors

IN_FORCE = "embedder"
BUILDING = "embedder_building"
RETIRED = "embedder_retired"
"""Rows of ``meta``."""

DIRECTORY = "drawers.lance"
LOCK = "vectors"
TABLES_LOCK = "tables"
"""Held for a moment while a table that is being built grows, and while tables are deleted."""
RETENTION_SECONDS = 600
"""How long a space that is no longer in force is kept for readers of other processes."""
FORGET_AT_ONCE = 2000

NATIVE = threading.RLock()
"""Whoever imports the native libraries has to do it alone: a thread that meets numpy half imported fails."""


@dataclass(frozen=True, slots=True)
class Named:
    """A space as the ledger names it; ``table`` is empty where the embedder's identity names its table."""

    identity: EmbedderIdentity
    table: str = ""

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps of it."""
        found: dict[str, Any] = {
            "name": self.identity.name,
            "dim": self.identity.dim,
            "identity": self.identity.identity,
        }
        return {**found, "table": self.table} if self.table else found


@dataclass(frozen=True, slots=True)
class Building:
    """A space that a reindex builds; ``afresh`` says that cached vectors do not count.

    ``pid``, ``host`` and ``started_at`` are those of the last process that worked on it.
    """

    space: Named
    afresh: bool
    pid: int
    host: str
    started_at: int


class Space:
    """A space that is open: what is embedded for it and what is searched in it belong together.

    It stays what it is when another one comes into force: whoever works with it goes on to its end.
    ``load`` gives the embedder of that identity.
    """

    def __init__(self, root: Path, named: Named, load: Callable[[], Embedder]) -> None:
        self.named = named
        self._root = root
        self._load = load
        self._vectors: Vectors | None = None
        self._embedder: Embedder | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """The embedder whose vectors the table holds."""
        return self.named.identity

    @property
    def opened(self) -> bool:
        """Whether the table has been used."""
        return self._vectors is not None

    @property
    def loaded(self) -> bool:
        """Whether using the embedder costs no loading."""
        return self._embedder is not None

    @property
    def vectors(self) -> Vectors:
        """The table."""
        if self._vectors is None:
            with NATIVE:
                if self._vectors is None:
                    from castle.store.lance import import_lancedb
                    from castle.store.vectors import Vectors

                    import_lancedb()
                    self._vectors = Vectors(self._root / DIRECTORY, self.identity, self.named.table)
        return self._vectors

    def whole(self) -> bool:
        """Whether the table is there and undamaged; looks at its files without what opens it."""
        from castle.store.vectors import Vectors

        return Vectors(self._root / DIRECTORY, self.identity, self.named.table).whole()

    @property
    def embedder(self) -> Embedder:
        """The embedder, loaded at first use, by whichever thread comes first; raises what loading raises."""
        if self._embedder is None:
            with NATIVE:
                if self._embedder is None:
                    self._embedder = self._load()
        return self._embedder

    def close(self) -> None:
        """Let go of the table."""
        if self._vectors is not None:
            self._vectors.close()


def in_force(cx: Connection) -> Named:
    """Return the space that searches use; raises PalaceError when the ledger does not say."""
    found = _named(get_value(cx, IN_FORCE))
    if found is None:
        raise PalaceError("the ledger does not say which embedder it is for: it is damaged")
    return found


def building(cx: Connection) -> Building | None:
    """Return the space that a reindex builds or was building when it ended early; None when there is none."""
    text = get_value(cx, BUILDING)
    named = _named(text)
    if text is None or named is None:
        return None
    stored = json.loads(text)
    return Building(
        named,
        bool(stored.get("afresh")),
        int(stored.get("pid") or 0),
        str(stored.get("host") or ""),
        int(stored.get("started_at") or 0),
    )


def set_building(cx: Connection, found: Building) -> None:
    """Record what is being built."""
    extra = {
        "afresh": found.afresh,
        "pid": found.pid,
        "host": found.host,
        "started_at": found.started_at,
    }
    set_value(cx, BUILDING, to_json({**found.space.stored(), **extra}))


def put_in_force(cx: Connection, space: Named, now: int) -> None:
    """Let searches use a space from now on; the one before is retired."""
    kept = [*_retired(cx), (in_force(cx), now)]
    set_value(cx, IN_FORCE, to_json(space.stored()))
    set_value(cx, RETIRED, to_json([{**named.stored(), "at": at} for named, at in kept]))
    cx.execute(delete(meta).where(meta.c.key == BUILDING))


def embedders(cx: Connection) -> list[str]:
    """Return the identities of which the ledger keeps vectors."""
    found: list[str] = []
    last = ""
    while True:
        query = select(func.min(vector_cache.c.embedder)).where(vector_cache.c.embedder > last)
        least = cx.execute(query).scalar()
        if least is None:
            return found
        last = least
        found.append(last)


def discard_others(palace: Palace) -> None:
    """Throw away every table but the one in force, at once; a reindex that is at work begins again.

    For what must not stay in any file. The caller holds the lock of the vectors.
    """
    with palace.exclusively(TABLES_LOCK):
        with palace.ledger.write() as cx:
            cx.execute(delete(meta).where(meta.c.key.in_((BUILDING, RETIRED))))
            keep = {table_name(in_force(cx))}
        _remove_tables(palace.root, keep)


def sweep(palace: Palace, deadline: float | None = None) -> None:
    """Delete what no reader needs any more, as far as ``deadline`` (monotonic seconds) lets it.

    Does nothing while another process writes vectors: that one, or the next, does it.
    """
    if palace.ledger.read_only:
        return
    with palace.ledger.read() as cx:
        due = len(_retired(cx)) > len(_kept(cx, palace.ledger.clock()))
    lock = palace.lock(LOCK)
    if not due or not lock.try_acquire():
        return
    try:
        clear_waste(palace, deadline)
    finally:
        lock.release()


def clear_waste(palace: Palace, deadline: float | None = None) -> None:
    """Delete tables that nothing names and cached vectors of embedders that nothing names.

    The caller holds the lock of the vectors.
    """
    now = palace.ledger.clock()
    with palace.exclusively(TABLES_LOCK):
        with palace.ledger.read() as cx:
            kept = _kept(cx, now)
            built = building(cx)
            spaces = [in_force(cx), *(named for named, _ in kept), *([built.space] if built else ())]
            waste = sorted(set(embedders(cx)) - {space.identity.identity for space in spaces})
        _remove_tables(palace.root, {table_name(space) for space in spaces})
    for identity in waste:
        for _ in _forget(palace, identity):
            if deadline is not None and time.monotonic() > deadline:
                return
    with palace.ledger.write() as cx:
        still = [{**named.stored(), "at": at} for named, at in _kept(cx, now)]
        if still:
            set_value(cx, RETIRED, to_json(still))
        else:
            cx.execute(delete(meta).where(meta.c.key == RETIRED))


def table_name(named: Named) -> str:
    """Return the name of a space's table."""
    from castle.store.vectors import table_of

    return named.table or table_of(named.identity)


def _named(text: str | None) -> Named | None:
    try:
        stored = json.loads(text or "")
        identity = EmbedderIdentity(str(stored["name"]), int(stored["dim"]), str(stored["identity"]))
        return Named(identity, str(stored.get("table") or ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _retired(cx: Connection) -> list[tuple[Named, int]]:
    """Return the spaces that were in force before, each with the time when that ended."""
    try:
        stored = json.loads(get_value(cx, RETIRED) or "[]")
    except ValueError:
        return []
    found = [(_named(to_json(each)), each.get("at")) for each in stored if isinstance(each, dict)]
    return [(named, at) for named, at in found if named is not None and isinstance(at, int)]


def _kept(cx: Connection, now: int) -> list[tuple[Named, int]]:
    """Return those retired spaces that readers may still use; a clock that went back keeps none."""
    return [(named, at) for named, at in _retired(cx) if 0 <= now - at < RETENTION_SECONDS * 1_000_000]


def _forget(palace: Palace, identity: str) -> Iterator[int]:
    """Delete the cached vectors of an embedder, a bounded number in each transaction."""
    own = vector_cache.c.embedder == identity
    while True:
        some = select(vector_cache.c.input).where(own).limit(FORGET_AT_ONCE)
        with palace.ledger.write() as cx:
            count = cx.execute(delete(vector_cache).where(own, vector_cache.c.input.in_(some))).rowcount
        if not count:
            return
        yield count


def _remove_tables(root: Path, keep: set[str]) -> None:
    for place in (root / DIRECTORY).glob("drawers_*.lance"):
        if place.name.removesuffix(".lance") not in keep:
            # Renamed first, so that no reader ever sees half a table.
            gone = place.with_name(f"{place.stem}.discarded-{secrets.token_hex(4)}")
            with suppress(OSError):
                place.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)
