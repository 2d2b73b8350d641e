"""Duplicates: whether a text is filed already, word for word or nearly so."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from castle.errors import ModelError, PalaceError, UsageError
from castle.mine.formats.base import exact_bytes
from castle.mine.turns import legal
from castle.records import Chunk, Scope
from castle.store.catchup import catch_up_vectors, missing
from castle.store.palace import Palace
from castle.store.projection import ProjectionBlocked, ProjectionUnavailable
from castle.store.reading import copies_of, drawers_by_id, served, within
from castle.text.chunk import chunks
from castle.text.served import served_text

THRESHOLD = 0.9
EXCERPT = 200
MOST_MATCHES = 10
MOST_PIECES = 32
"""Pieces of a long text that are compared by meaning."""

FEW, CATCH_UP_SECONDS = 64, 10.0
"""So many drawers without a vector are given theirs first, within so many seconds; of more, some are."""
HASTY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Match:
    """A drawer that says nearly the same, with the first 200 characters of it; ``similarity`` 1 is equal."""

    id: str
    wing: str
    room: str
    similarity: float
    text: str


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Whether everything in a text is filed already, the nearest drawers, and what was not in force.

    A long text is compared piece by piece, as it would be filed.
    """

    is_duplicate: bool
    matches: tuple[Match, ...]
    degraded: tuple[str, ...] = ()


def check_duplicate(palace: Palace, text: str, threshold: float = THRESHOLD) -> Duplicates:
    """Compare a text with every current drawer: by its hash first, then by the cosine of the embedder.

    ``threshold`` in [0, 1] is the least similarity of a match. Without the embedder or its vectors only equal
    texts are found, and ``degraded`` says so. Raises UsageError.
    """
    if not text.strip():
        raise UsageError("the text is empty: give the words that may be filed already")
    if not 0 <= threshold <= 1:
        raise UsageError(f"threshold {threshold} is not between 0 and 1")
    pieces = list(chunks([legal(text)], name="note.md", salt=palace.salt))
    found = [dict.fromkeys(same, 1.0) for same in _equal(palace, text, pieces)]
    degraded: list[str] = []
    if not all(found):
        degraded += _nearest(palace, pieces, found, threshold)
    best: dict[str, float] = {}
    for near in found:
        for id_, similarity in near.items():
            best[id_] = max(similarity, best.get(id_, 0.0))
    return Duplicates(all(found), _matches(palace, best), tuple(degraded))


def _equal(palace: Palace, text: str, pieces: Sequence[Chunk]) -> list[list[str]]:
    """Return, for each piece, the drawers that hold it."""
    hashes = [_hashes(text[piece.start : piece.end]) for piece in pieces]
    with palace.ledger.read() as cx:
        same = copies_of(cx, list(dict.fromkeys(chain.from_iterable(hashes))), Scope())
    return [[id_ for digest in variants for id_ in same[digest]] for variants in hashes]


def _hashes(text: str) -> list[str]:
    """Return the hashes under which a text may be filed: a line end more or less makes no other text."""
    bare = text.rstrip("\n")
    variants = dict.fromkeys((text, bare, f"{bare}\n"))
    return [hashlib.sha256(exact_bytes(variant)).hexdigest() for variant in variants]


def _nearest(
    palace: Palace, pieces: Sequence[Chunk], found: Sequence[dict[str, float]], threshold: float
) -> list[str]:
    """Add drawers that mean the same as pieces without an equal; return what was not in force."""
    if palace.unready:
        return [f"only equal texts were found: {palace.unready}"]
    lacking = [index for index, near in enumerate(found) if not near]
    asked = lacking[:MOST_PIECES]
    try:
        # Loaded before the clock runs: the time is for the drawers.
        space = palace.space
        late = missing(palace, space.vectors)
        if late:
            _ = space.embedder
            seconds = CATCH_UP_SECONDS if late <= FEW else HASTY_SECONDS
            with suppress(PalaceError, ProjectionBlocked):
                catch_up_vectors(palace, deadline=time.monotonic() + seconds)
        late = missing(palace, space.vectors)
        units = space.embedder.embed_documents(
            [served_text(pieces[index].text, pieces[index].sealed) for index in asked]
        )
        for index, unit in zip(asked, units, strict=True):
            near = space.vectors.search(unit, Scope(), MOST_MATCHES)
            found[index].update((match.id, match.score) for match in near if match.score >= threshold)
    except (ModelError, ProjectionUnavailable, ProjectionBlocked) as error:
        return [f"only equal texts were found: {error}"]
    told = []
    if late:
        told.append(f"drawers compared by hash only, because they have no vector yet: {late}")
    if len(lacking) > len(asked):
        told.append(f"pieces of the text compared by hash only: {len(lacking) - len(asked)} of {len(pieces)}")
    return told


def _matches(palace: Palace, similarity: Mapping[str, float]) -> tuple[Match, ...]:
    nearest = sorted(similarity, key=lambda id_: (-similarity[id_], id_))
    with palace.ledger.read() as cx:
        # The ledger knows what was changed or forgotten since the vectors were made.
        inside = within(cx, nearest, Scope())
        nearest = [id_ for id_ in nearest if id_ in inside][:MOST_MATCHES]
        by_id = drawers_by_id(cx, nearest)
    return tuple(
        Match(
            id_,
            by_id[id_].wing,
            by_id[id_].room,
            round(similarity[id_], 4),
            served(by_id[id_])[:EXCERPT],
        )
        for id_ in nearest
    )
