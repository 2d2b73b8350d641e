"""The third stage of replay: what is far apart is put side by side, and a sentence may come of it.

A language model is shown all pairs of a cycle at once. Without one, a pair that shares a telling word or a
place on both walks gives a plain sentence which names that; it is worth little, and says how it came about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castle.llm.base import Provider
from castle.mind.nearby import telling
from castle.mind.replay.constraints import LEAST_CONFIDENCE, MOST_CONFIDENCE
from castle.mind.replay.walk import Key, Walk

NODES = 3
"""Places of each walk that are paired."""
MOST_PAIRS = 10
SHOWN_CHARS = 300
BY_MODEL = MOST_CONFIDENCE * 0.8
BY_LINK = LEAST_CONFIDENCE

INSTRUCTIONS = """\
Each text is a pair of statements from different fields, with a number in brackets. Where the two of a pair \
together suggest something that neither says and that could be checked, state it in one sentence of at most \
forty words as "hypothesis", and why in "rationale". Leave out pairs that suggest nothing; an empty list \
is a good answer. Invent no facts.\
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two places on the walks of two seeds: ids, texts, how alike they are, and what the walks share."""

    seeds: tuple[str, str]
    nodes: tuple[Key, Key]
    texts: tuple[str, str]
    similarity: float
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Raw:
    """A hypothesis that no check has looked at yet."""

    pair: Pair
    text: str
    rationale: str
    confidence: float
    method: str


def pairs(
    walks: Sequence[Walk], texts: Mapping[Key, str], alike: Mapping[tuple[Key, Key], float], limit: float
) -> list[Pair]:
    """Return pairs across domains, less alike than ``limit``, the two ends of the seeds' own first."""
    found: list[Pair] = []
    taken: set[frozenset[Key]] = set()
    for place, one in enumerate(walks):
        for other in walks[place + 1 :]:
            common = tuple(id_ for _, id_ in sorted(set(one.keys) & set(other.keys)))
            for here in one.keys[:NODES]:
                for there in other.keys[:NODES]:
                    both = frozenset((here, there))
                    close = alike.get((here, there), 1.0)
                    if here == there or both in taken or close >= limit or {here, there} - set(texts):
                        continue
                    taken.add(both)
                    seeds = (one.keys[0][1], other.keys[0][1])
                    shown = (_line(texts[here]), _line(texts[there]))
                    found.append(Pair(seeds, (here, there), shown, close, common))
    # Pairs of the seeds themselves first: what lies farther on the walks says less.
    order = {walk.keys[0]: place for place, walk in enumerate(walks)}
    found.sort(key=lambda pair: sum(node not in order for node in pair.nodes))
    return found[:MOST_PAIRS]


def by_model(found: Sequence[Pair], provider: Provider) -> list[Raw]:
    """Ask a model about all pairs at once; raises LlmError."""
    from pydantic import BaseModel, Field

    from castle.llm.asking import ask

    class Suggested(BaseModel):
        pair: int
        hypothesis: str = Field(min_length=10, max_length=400)
        rationale: str = Field(max_length=400)

    class Answer(BaseModel):
        hypotheses: list[Suggested] = Field(max_length=MOST_PAIRS)

    shown = [" | ".join(pair.texts) for pair in found]
    answer = ask(provider, INSTRUCTIONS, Answer, {"pair": shown})
    return [
        Raw(
            found[one.pair],
            " ".join(one.hypothesis.split()),
            " ".join(one.rationale.split()),
            BY_MODEL,
            "model",
        )
        for one in answer.hypotheses
        if 0 <= one.pair < len(found)
    ]


def by_link(found: Sequence[Pair]) -> list[Raw]:
    """Return a plain sentence for each pair that shares a word or a place."""
    made = []
    for pair in found:
        common = [word for word in telling(pair.texts[0]) if word in set(telling(pair.texts[1]))]
        if not common and not pair.shared:
            continue
        link = f"both speak of {', '.join(common[:3])}" if common else f"both lead to {pair.shared[0]}"
        text = f"“{pair.texts[0]}” may have to do with “{pair.texts[1]}”: {link}"
        made.append(Raw(pair, text, link, BY_LINK, "link"))
    return made


def _line(text: str) -> str:
    line = " ".join(text.replace("\x00", "").replace("\ufffd", "").split())
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"
