"""Asking about novelty: what a text would add, which drawers add little. Nothing here changes a drawer."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, func, select

from castle.errors import CastleError, NotFoundError, UsageError
from castle.novelty.compare import novelty_of
from castle.novelty.nearby import Nearby
from castle.novelty.scoring import refresh
from castle.records import Scope
from castle.store import novelty as store
from castle.store.catchup import behind, catch_up_vectors
from castle.store.ledger import batches
from castle.store.novelty import STANDING, nearest
from castle.store.novelty_tables import novelty
from castle.store.palace import Palace
from castle.store.projection import ProjectionUnavailable, legal_text
from castle.store.reading import (
    copies_of,
    drawers_by_id,
    full_id,
    scope_clause,
    served,
    within,
)
from castle.store.schema import drawers, sources
from castle.store.sealing import shown_texts
from castle.text.served import mask_secrets

Band = Literal["low", "medium", "high"]

LOW = 0.10
MEDIUM = 0.50
TOP_K = 5
CATCH_UP_SECONDS = 1.0
REFRESH_SECONDS = 10.0
EXCERPT = 200
MOST_NEIGHBOURS = 100
SEED = 42


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored drawer near what was asked about; ``cosine`` in [-1, 1], ``text`` the first 200 characters."""

    id: str
    cosine: float
    wing: str
    room: str
    text: str


@dataclass(frozen=True, slots=True)
class InfoScore:
    """How much something adds: ``novelty`` in [0, 1], its band, and the nearest drawers, nearest first.

    ``drawer`` is the full id of the drawer that was asked about, None for a text; it is compared only with
    what was filed before it. ``behind`` drawers have no vector yet and were not compared with.
    """

    novelty: float
    band: Band
    neighbours: tuple[Neighbour, ...]
    drawer: str | None
    behind: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A drawer that adds little to ``nearest``, an earlier one; both with the first 200 characters."""

    id: str
    novelty: float
    wing: str
    room: str
    source: str
    text: str
    nearest: str
    nearest_source: str
    nearest_text: str


@dataclass(frozen=True, slots=True)
class Pruning:
    """Drawers below ``threshold``, the least novel first.

    ``examined`` of the ``drawers`` in question were looked at; ``unscored`` of them have no score yet.
    """

    threshold: float
    drawers: int
    examined: int
    unscored: int
    suggestions: tuple[Suggestion, ...]


def band_of(novelty: float) -> Band:
    """Return low below 0.10, medium below 0.50, else high."""
    return "low" if novelty < LOW else "medium" if novelty < MEDIUM else "high"


def info_score(
    palace: Palace,
    text: str | None = None,
    *,
    id_: str | None = None,
    wing: str | None = None,
    top_k: int = TOP_K,
) -> InfoScore:
    """Say how new a text would be beside everything filed, or a drawer beside what was filed before it.

    For a text novelty is 1 - the greatest cosine, 1 when there is nothing to compare with. ``wing`` limits
    what is compared with. Raises UsageError for an empty text, NotFoundError, and ModelError when the text
    cannot be embedded.
    """
    if (text is None) == (id_ is None):
        raise UsageError("name one of: a text, --drawer ID")
    if not 1 <= top_k <= MOST_NEIGHBOURS:
        raise UsageError(f"top_k {top_k} is not between 1 and {MOST_NEIGHBOURS}")
    # What cannot be caught up now is reported as behind.
    with suppress(CastleError):
        catch_up_vectors(palace, deadline=time.monotonic() + CATCH_UP_SECONDS)
    late = behind(palace, palace.vectors)
    with palace.ledger.read() as cx:
        _count(cx, Scope(wing=wing))
    if text is not None:
        return _of_text(palace, text, Scope(wing=wing), top_k, late)
    assert id_ is not None
    return _of_drawer(palace, id_, Scope(wing=wing), top_k, late)


def prune_suggest(
    palace: Palace,
    *,
    threshold: float = LOW,
    wing: str | None = None,
    sample: int = 0,
    seed: int = SEED,
) -> Pruning:
    """List the drawers whose novelty is below ``threshold``, for somebody to look at; changes nothing.

    ``wing`` limits what is listed, not what it was compared with. ``sample`` looks only at so many drawers
    with a score, drawn at random with ``seed``; 0 looks at all. Up to REFRESH_SECONDS are spent on scores
    first. Raises UsageError, and NotFoundError for a wing without drawers.
    """
    if not 0 <= threshold <= 1:
        raise UsageError(f"threshold {threshold} is not between 0 and 1")
    if sample < 0:
        raise UsageError(f"sample {sample} is less than 0")
    refresh(palace, REFRESH_SECONDS)
    with palace.ledger.read() as cx:
        inside = scope_clause(Scope(wing=wing))
        total = _count(cx, Scope(wing=wing))
        scored: list[tuple[int, float]] = []
        if store.in_force(cx):
            query = select(novelty.c.drawer, novelty.c.score).select_from(STANDING)
            rows = cx.execute(query.where(store.stands(), inside).order_by(novelty.c.drawer))
            scored = [(rid, score) for rid, score in rows]
        looked_at = random.Random(seed).sample(scored, sample) if 0 < sample < len(scored) else scored
        low = sorted((score, rid) for rid, score in looked_at if score < threshold)
        suggestions = _suggestions(cx, [rid for _, rid in low])
    return Pruning(threshold, total, len(looked_at), total - len(scored), suggestions)


def _count(cx: Connection, scope: Scope) -> int:
    """Return how many drawers lie in scope; raises NotFoundError for a wing without any."""
    query = select(func.count()).select_from(drawers).where(scope_clause(scope))
    total: int = cx.execute(query).scalar_one()
    if not total and scope.wing is not None:
        raise NotFoundError(f"no drawers in wing {scope.wing}: `castle status` shows the wings")
    return total


def _of_text(palace: Palace, text: str, scope: Scope, top_k: int, late: int) -> InfoScore:
    text = legal_text(text)
    if not text.strip():
        raise UsageError('the text is empty: castle info-score "what you would file", or give it on stdin')
    # Masked as stored drawers are, so that equal texts have equal vectors.
    space = palace.space
    unit = space.embedder.embed_documents([mask_secrets(text, palace.salt)])[0]
    cosines: dict[str, float] = {}
    with suppress(ProjectionUnavailable):
        cosines.update((match.id, match.score) for match in space.vectors.search(unit, scope, top_k))
    with palace.ledger.read() as cx:
        cosines = {id_: cosines[id_] for id_ in within(cx, list(cosines), scope)}
        for same in copies_of(cx, _hashes(text), scope).values():
            cosines.update((id_, 1.0) for id_ in same[:top_k])
        neighbours = _neighbours(cx, cosines, top_k)
    novelty = novelty_of(neighbours[0].cosine) if neighbours else 1.0
    return InfoScore(novelty, band_of(novelty), neighbours, None, late)


def _of_drawer(palace: Palace, id_: str, scope: Scope, top_k: int, late: int) -> InfoScore:
    with palace.ledger.read() as cx:
        id_ = full_id(cx, id_)
        stored = store.scores(cx, [id_]).get(id_)
        own = store.standing(cx, [id_]).get(id_)
        drawer = drawers_by_id(cx, [id_])[id_]
    if own is None:
        raise NotFoundError(f"drawer {id_} is {drawer.state}: only current drawers have a novelty")
    unit = None
    with suppress(ProjectionUnavailable):
        unit = palace.vectors.vectors_of([id_]).get(id_)
    if unit is None:
        raise NotFoundError(f"drawer {id_} has no vector yet: `castle repair` makes it")
    nearby = Nearby(palace)
    same = store.tag(bytes.fromhex(drawer.sha256))
    if stored is None:
        stored = nearby.score(own.rid, own.hidden, same, unit)[0].score
    found = nearby.around(unit, same, scope, own.rid, top_k)
    cosines = {near.id: near.cosine for near in found if near.other.rid < own.rid}
    with palace.ledger.read() as cx:
        return InfoScore(stored, band_of(stored), _neighbours(cx, cosines, top_k), id_, late)


def _hashes(text: str) -> list[str]:
    """Return the hashes under which the text may be filed: a line end more or less makes no other text."""
    bare = text.rstrip("\n")
    variants = dict.fromkeys((text, bare, f"{bare}\n"))
    return [hashlib.sha256(variant.encode("utf-8")).hexdigest() for variant in variants]


def _neighbours(cx: Connection, cosines: Mapping[str, float], top_k: int) -> tuple[Neighbour, ...]:
    nearest_first = sorted(cosines, key=lambda id_: (-cosines[id_], id_))[:top_k]
    found = drawers_by_id(cx, nearest_first)
    return tuple(
        Neighbour(id_, cosines[id_], drawer.wing, drawer.room, served(drawer)[:EXCERPT])
        for id_ in nearest_first
        if (drawer := found.get(id_)) is not None
    )


def _suggestions(cx: Connection, rids: Sequence[int]) -> tuple[Suggestion, ...]:
    """Return the drawers with their nearest earlier ones, in the order given."""
    near_source = sources.alias("near_source")
    query = (
        select(
            novelty.c.drawer,
            novelty.c.score,
            novelty.c.nearest,
            *(drawers.c[name] for name in ("id", "wing", "room")),
            sources.c.path,
            nearest.c.id.label("near_id"),
            near_source.c.path.label("near_path"),
        )
        .select_from(STANDING)
        .join(sources, sources.c.id == drawers.c.source)
        .join(near_source, near_source.c.id == nearest.c.source)
    )
    found: dict[int, Suggestion] = {}
    for part in batches(rids):
        rows = cx.execute(query.where(novelty.c.drawer.in_(part))).all()
        texts = shown_texts(cx, [rid for row in rows for rid in (row.drawer, row.nearest)])
        for row in rows:
            found[row.drawer] = Suggestion(
                id=row.id,
                novelty=row.score,
                wing=row.wing,
                room=row.room,
                source=row.path,
                text=texts[row.drawer][:EXCERPT],
                nearest=row.near_id,
                nearest_source=row.near_path,
                nearest_text=texts[row.nearest][:EXCERPT],
            )
    return tuple(found[rid] for rid in rids if rid in found)
