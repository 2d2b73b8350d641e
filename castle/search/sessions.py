"""What speaks for a session as a whole: the words that all of its drawers hold, and its nearest drawer.

A question to several sessions ("how many museums did I visit?") shares a few words with many drawers of the
right ones, and a drawer by itself shows little of that. So sessions are compared by BM25 with the session as
the text and its drawers as the occurrences: a word counts the more, the fewer of these sessions hold it, and
by how many of a session's drawers hold it, which a long session has to hold in more. The nearest drawer
counts by its cosine, no matter whether the cross-encoder read it.

Both are evidence on the scale of log odds. Cosines and BM25 are taken as they are and not brought to
z-scores: these blow up what tells nothing where all sessions are about the same.

Measured on 101 questions of LongMemEval-S and every third question to 5 conversations of LoCoMo (299), which
the two constants were chosen on, rounded; docs/search.md has the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from castle.records import Drawer, Scope
from castle.search.candidates import Candidate
from castle.store.ledger import batches
from castle.store.palace import Palace
from castle.store.schema import drawers as drawer_table
from castle.store.schema import sources as source_table

WORDS = 0.3
"""What a point of a session's BM25 counts in log odds; .2 to .5 did nearly the same."""
NEAREST = 5.0
"""What the cosine of a session's nearest drawer counts in log odds, per 1; 3 and 7.5 did nearly the same."""
UNSEEN = 0.1
"""How far below the last recalled cosine a session is taken to be that has no drawer among the nearest."""
MOST = 40
"""Sessions that are compared, in the order of their best candidate."""

_K1 = 1.2
_B = 0.75


@dataclass(frozen=True, slots=True)
class Spread:
    """How many drawers a session has, and for each word of a question how many of them have it."""

    drawers: int
    having: tuple[int, ...]


def evidence_for(
    palace: Palace,
    query: str,
    scope: Scope,
    ranked: Sequence[Candidate],
    nearest: Sequence[Candidate],
    drawers: Mapping[str, Drawer],
) -> dict[str, float]:
    """Return the evidence for the sources of a ranking's candidates, in log odds; only differences matter.

    ``nearest`` is what recall found by meaning, in any order. Raises ProjectionUnavailable when there is no
    index of words.
    """
    sources = list(dict.fromkeys(drawers[candidate.id].source for candidate in ranked))[:MOST]
    if len(sources) < 2:
        return {}
    by_words = bm25(_spreads(palace, query, scope, sources))
    by_meaning = cosines(sources, nearest, drawers)
    return {source: WORDS * by_words[source] + NEAREST * by_meaning[source] for source in sources}


def _spreads(palace: Palace, query: str, scope: Scope, sources: Sequence[str]) -> dict[str, Spread]:
    """Look for the words of a query in all drawers of the sources that lie in the scope."""
    held = palace.lexicon.spread(query, scope, sources)
    words = max(held.values(), default=0).bit_length()
    masks: dict[str, list[int]] = {source: [] for source in sources}
    with palace.ledger.read() as cx:
        for part in batches(list(held)):
            rows = cx.execute(
                select(drawer_table.c.seq, source_table.c.key)
                .join(source_table, source_table.c.id == drawer_table.c.source)
                .where(drawer_table.c.seq.in_(part))
            )
            for seq, key in rows:
                masks.setdefault(key, []).append(held[seq])
    return {
        source: Spread(
            len(masks[source]),
            tuple(sum(mask >> bit & 1 for mask in masks[source]) for bit in range(words)),
        )
        for source in sources
    }


def bm25(spreads: Mapping[str, Spread]) -> dict[str, float]:
    """Return the BM25 of sessions among themselves: drawers are what is counted, of a word and in all."""
    count = len(spreads)
    mean = sum(spread.drawers for spread in spreads.values()) / count or 1.0
    holding = [sum(map(bool, column)) for column in zip(*(s.having for s in spreads.values()), strict=True)]
    rarity = [math.log1p((count - held + 0.5) / (held + 0.5)) for held in holding]
    scores = {}
    for source, spread in spreads.items():
        length = _K1 * (1.0 - _B + _B * spread.drawers / mean)
        shares = (having * (_K1 + 1.0) / (having + length) for having in spread.having)
        scores[source] = sum(share * rare for share, rare in zip(shares, rarity, strict=True))
    return scores


def cosines(
    sources: Sequence[str], nearest: Sequence[Candidate], drawers: Mapping[str, Drawer]
) -> dict[str, float]:
    """Return the best cosine of each source."""
    best: dict[str, float] = {}
    for candidate in nearest:
        source = drawers[candidate.id].source
        best[source] = max(candidate.score, best.get(source, -1.0))
    beyond = min((candidate.score for candidate in nearest), default=0.0) - UNSEEN
    return {source: best.get(source, beyond) for source in sources}
