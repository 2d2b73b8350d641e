"""Ranking what may be shown at wake-up, and choosing so that no topic comes twice before others came once.

A drawer's rank is the product of what kind of record it is, of how much it says, and of a weighted mean of
its recency, its novelty and its use, each in [0, 1]. Every further drawer of a room or of a source counts for
less (after Carbonell and Goldstein, "The Use of MMR", SIGIR 1998), and one that says what a chosen one says
not at all.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from castle.text.words import words
from castle.wakeup.candidates import Candidate
from castle.wakeup.nearness import Nearness
from castle.wakeup.snippets import one_line

RECENCY, NOVELTY, USE = 0.45, 0.3, 0.25
"""The weights of the mean."""
UNSCORED = 0.5
"""The novelty of a drawer that has no score yet."""
OFTEN = 5
"""Uses that count as often where no drawer was used more."""
ENOUGH = 120
"""Characters from which a text is long enough to say something."""
SAME_ROOM, SAME_SOURCE = 0.5, 0.75
MOST_RANKED = 150
"""The best of the candidates, among which is chosen."""

LEAST_WORDS, LEAST_BYTES = 6, 30
"""What a message has at least that says something on its own: "Thanks." does not."""

_DAY = 86_400_000_000
_PROSE = frozenset((".md", ".markdown", ".rst", ".txt", ".adoc", ".org", ""))
_KINDS = {"diary": 1.0, "note": 1.0}
_SPOKEN = {"user": 1.0, "assistant": 0.8}
_OTHER, _WRITTEN, _CODE = 0.7, 0.75, 0.3
_DECIDED = 1.2
"""The factor of a room that is called after decisions."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate and its rank, higher is better."""

    candidate: Candidate
    score: float


def ranked(found: Sequence[Candidate], now: int, tau_days: float) -> list[Ranked]:
    """Rank candidates, best first; equal ones in the order of their ids.

    Recency falls to 1/e in ``tau_days`` and is counted from the newest of them, so that a wing that has
    rested for a year is ranked as it was left.
    """
    latest = min(now, max((one.authored_at for one in found), default=now))
    often = math.log1p(max((OFTEN, *(one.uses for one in found))))

    def score(one: Candidate) -> float:
        recency = math.exp(-max(0, latest - one.authored_at) / _DAY / tau_days)
        novelty = UNSCORED if one.novelty is None else one.novelty
        use = math.log1p(one.uses) / often
        mean = RECENCY * recency + NOVELTY * novelty + USE * use
        return mean * place_weight(one) * min(1.0, math.sqrt(one.size / ENOUGH))

    return sorted((Ranked(one, score(one)) for one in found), key=lambda r: (-r.score, r.candidate.id))


def tells(one: Candidate, text: str) -> bool:
    """Whether a drawer says something to who was not there when it was said."""
    line = one_line(text)
    if one.kind != "message":
        return bool(line)
    # Bytes, because a character of Chinese says as much as a short word.
    return len(line.encode("utf-8")) >= LEAST_BYTES and len(words(line)) >= LEAST_WORDS


def place_weight(one: Candidate) -> float:
    """Return how much a kind of record tells by itself: what people wrote down before code."""
    if one.kind == "file":
        name = os.path.basename(one.path)  # noqa: PTH119  (paths of any system, never opened)
        weight = _WRITTEN if PurePosixPath(name).suffix.lower() in _PROSE else _CODE
    elif one.kind == "message":
        weight = _SPOKEN.get(one.role, _OTHER)
    else:
        weight = _KINDS.get(one.kind, _OTHER)
    return weight * (_DECIDED if "decision" in one.room.lower() else 1.0)


def chosen(ranking: Sequence[Ranked], nearness: Nearness, shown: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield candidates in the order in which they deserve room; ``shown`` have it already.

    What is near something yielded before is left out.
    """
    rooms = Counter(one.place for one in shown)
    sources = Counter(one.source for one in shown)
    given = list(shown)
    left = list(ranking[:MOST_RANKED])
    while left:
        best = max(
            left,
            key=lambda r: (
                r.score * SAME_ROOM ** rooms[r.candidate.place] * SAME_SOURCE ** sources[r.candidate.source]
            ),
        )
        left.remove(best)
        one = best.candidate
        if any(nearness.near(one, other) for other in given):
            continue
        given.append(one)
        rooms[one.place] += 1
        sources[one.source] += 1
        yield one
