"""What speaks for a session as a whole: its words, its nearest drawer, and what was read of it as one text.

A question to several sessions ("how many museums did I visit?") shares a few words with many drawers of the
right ones, and a drawer by itself shows little of that. So sessions are compared by BM25 with the session as
the text and its drawers as the occurrences: a word counts the more, the fewer of these sessions hold it, and
by how many of a session's drawers hold it, which a long session has to hold in more. What the cross-encoder
read of a session is read as one text, too, where each part of the question may be answered by another drawer;
a part that most sessions answer tells them apart the least (``castle.models.late``). The nearest drawer
counts by its cosine, no matter whether the cross-encoder read it: in full where it holds a statement, less
where it holds hardly a word, for short texts lie near to many questions. Who asks for advice shares few words
with what helps, so there the nearest counts for more. And a narrow time that a question names is one in which
few sessions were.

All are evidence on the scale of log odds. Cosines and BM25 are taken as they are and not brought to
z-scores: these blow up what tells nothing where all sessions are about the same.

The weights lie in the middle of a plain: ``benchmarks.tuning.sessions`` chooses them anew by cross-validation
over LongMemEval-S and LoCoMo, and benchmarks/BENCHMARKS.md has what came out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import select

from castle.records import Drawer, Scope
from castle.search.candidates import Candidate
from castle.search.question import Question
from castle.search.surroundings import substance
from castle.store.graph_values import DAY
from castle.store.ledger import batches
from castle.store.palace import Palace
from castle.store.schema import drawers as drawer_table
from castle.store.schema import sources as source_table
from castle.text.when import Interval

NARROW_DAYS = 3
"""The length of a time from which it counts less, by the root."""
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


@dataclass(frozen=True, slots=True)
class Weights:
    """What each sign of a session counts in log odds: a point of BM25, a cosine of 1, a time of few days.

    ``advice`` takes the place of ``nearest`` where advice is asked for. ``together`` is what the log odds of
    what was read of a session count.
    """

    words: float = 0.4
    nearest: float = 2.0
    advice: float = 28.0
    narrow: float = 3.0
    together: float = 2.4


@dataclass(frozen=True, slots=True)
class Sign:
    """What speaks for a session.

    Its BM25, the cosine of its nearest drawer, its fit to a narrow time, and the log odds of what was read.
    """

    words: float
    nearest: float
    narrow: float
    together: float

    def evidence(self, weights: Weights, *, advice: bool) -> float:
        """Return the log odds; only differences matter."""
        return (
            weights.words * self.words
            + (weights.advice if advice else weights.nearest) * self.nearest
            + weights.narrow * self.narrow
            + weights.together * self.together
        )


SHIPPED = Weights()


@dataclass(frozen=True, slots=True)
class Seen:
    """What a search has seen: its candidates in their order, their drawers by id, and what is known of them.

    ``nearest`` is what recall found by meaning, in any order; ``timely`` has how well drawers fit the times
    of the question, by id; ``together`` the log odds of what was read of sessions, by source.
    """

    ranked: Sequence[Candidate]
    drawers: Mapping[str, Drawer]
    nearest: Sequence[Candidate] = ()
    timely: Mapping[str, float] = field(default_factory=dict)
    together: Mapping[str, float] = field(default_factory=dict)


def signs(palace: Palace, question: Question, scope: Scope, seen: Seen) -> dict[str, Sign]:
    """Return the signs of the sources of a search's candidates; none where there is nothing to compare.

    Raises ProjectionUnavailable when there is no index of words.
    """
    drawers = seen.drawers
    sources = list(dict.fromkeys(drawers[candidate.id].source for candidate in seen.ranked))[:MOST]
    if len(sources) < 2:
        return {}
    by_words = bm25(_spreads(palace, question.query, scope, sources))
    by_meaning = cosines(sources, seen.nearest, drawers)
    narrow = narrowness(question.times)
    fits: dict[str, float] = {}
    for id_, fit in seen.timely.items():
        fits[drawers[id_].source] = max(narrow * fit, fits.get(drawers[id_].source, 0.0))
    unread = min(seen.together.values(), default=0.0)
    return {
        key: Sign(by_words[key], by_meaning[key], fits.get(key, 0.0), seen.together.get(key, unread))
        for key in sources
    }


def narrowness(times: Sequence[Interval]) -> float:
    """Return how much the shortest sure time of a question narrows down, in [0, 1]; 0 without any."""
    lengths = [(time.end - time.start) / DAY for time in times if time.weight == 1.0]
    return math.sqrt(min(1.0, NARROW_DAYS / max(min(lengths), 1.0))) if lengths else 0.0


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
    """Return the best cosine of each source; that of a drawer counts by its substance."""
    best: dict[str, float] = {}
    for candidate in nearest:
        drawer = drawers[candidate.id]
        cosine = candidate.score * substance(drawer.text)
        best[drawer.source] = max(cosine, best.get(drawer.source, -1.0))
    beyond = min((candidate.score for candidate in nearest), default=0.0) - UNSEEN
    return {source: best.get(source, beyond) for source in sources}
