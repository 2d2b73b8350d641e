"""Why a drawer is where it is in the answer to a question, or why it is not in it."""

from __future__ import annotations

from dataclasses import dataclass

from castle.records import Drawer, Hit, Scope, SearchResult
from castle.search.candidates import Candidate
from castle.search.options import Options
from castle.search.pipeline import Ranking, found
from castle.search.refine import Engines
from castle.store.catchup import cached_vectors, input_hash
from castle.store.palace import Palace
from castle.store.reading import changed_rows, drawers_by_id, full_id, served, within
from castle.text.words import words


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one drawer: its place in the ranking (from 1, None: none) and a sentence on it."""

    id: str
    rank: int | None
    verdict: str
    hit: Hit | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to a question, and the fate of the drawer that was asked about."""

    result: SearchResult
    fate: Fate | None = None


def explain(
    palace: Palace,
    query: str,
    scope: Scope,
    limit: int,
    options: Options,
    engines: Engines,
    id_: str | None,
) -> Why:
    """Search, and say what became of the drawer with that id or beginning; raises NotFoundError."""
    whole = None
    if id_ is not None:
        with palace.ledger.read() as cx:
            whole = full_id(cx, id_)
    ranking, result = found(palace, query, scope, limit, options, engines)
    return Why(result, None if whole is None else fate_of(palace, ranking, result, whole))


def fate_of(palace: Palace, ranking: Ranking, result: SearchResult, id_: str) -> Fate:
    """Say where a drawer stands in a ranking, or what kept it out."""
    with palace.ledger.read() as cx:
        drawer = drawers_by_id(cx, [id_])[id_]
        inside = any(within(cx, [id_], scope) for scope in ranking.scopes)
    for rank, candidate in enumerate(ranking.candidates, start=1):
        if candidate.sha256 == drawer.sha256 and inside:
            return _ranked(candidate, rank, id_, result, len(ranking.candidates))
    if not inside:
        return Fate(id_, None, f"it is outside of what was searched: {_outside(drawer)}")
    return Fate(id_, None, _unrecalled(palace, ranking, drawer))


def _ranked(candidate: Candidate, rank: int, id_: str, result: SearchResult, count: int) -> Fate:
    hit = next((h for h in result.hits if candidate.id == h.id or candidate.id in h.parts), None)
    place = f"candidate {rank} of {count}"
    if candidate.id != id_:
        return Fate(id_, rank, f"it has the same text as {candidate.id}, which is {place}", hit)
    return Fate(id_, rank, place if hit else f"{place}, beyond the limit", hit)


def _outside(drawer: Drawer) -> str:
    parts = [f"wing {drawer.wing}", f"room {drawer.room}", f"kind {drawer.kind}"]
    if drawer.state != "current":
        parts.append(drawer.state)
    return ", ".join(parts)


def _unrecalled(palace: Palace, ranking: Ranking, drawer: Drawer) -> str:
    """Compare a drawer with the last entries of the lists that it is not on."""
    shared = set(words(ranking.question.query)) & set(words(served(drawer)))
    parts = [f"it shares the words {' '.join(sorted(shared))}" if shared else "it shares no word"]
    floors = {name: listed[-1].score for name, listed in ranking.lists.items() if listed}
    with palace.ledger.read() as cx:
        rows = changed_rows(cx, drawer.seq - 1, 1)
    key = input_hash(rows[0])
    vector = cached_vectors(palace, [key]).get(key)
    if vector is None:
        parts.append("it has no vector yet (castle repair)")
    else:
        cosine = float(palace.embedder.embed_query(ranking.question.text) @ vector)
        parts.append(f"its cosine is {cosine:.3f}")
        if "dense" in floors:
            nearest = len(ranking.lists["dense"])
            parts[-1] += f", the last of the {nearest} nearest has {floors['dense']:.3f}"
    return f"it was not recalled: {'; '.join(parts)}"
