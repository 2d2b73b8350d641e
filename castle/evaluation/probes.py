"""Probes: questions made of a palace's own drawers, whose answers are known for that reason.

Nobody wrote these questions, so a rate over them says how well words lead back to what they came from. It
does not say how well questions are answered that a person would ask: it compares a palace with itself.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select

from castle.evaluation.topics import TOPICS
from castle.records import Drawer, Scope
from castle.store.ledger import batches
from castle.store.palace import Palace
from castle.store.reading import drawers_by_id, scope_clause, served
from castle.store.schema import drawers

Kind = Literal["sentence", "words", "absent"]

READ = 4000
"""So many drawers are read, at random, to tell rare words from common ones."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_SENTENCE = re.compile(r"(?<=[.!?。！？।])\s+|\n+|(?<=[。！？])")
_MASK = re.compile(r"«[^»]*»")
_LEAST_LETTERS = 40
_LEAST_SPACELESS = 16
_LEAST_WORDS = 6
_KEYWORDS = 4


@dataclass(frozen=True, slots=True)
class Probe:
    """One question. ``drawer`` is the one it was made of, "" where the palace holds no answer.

    ``kind`` sentence is a sentence without its rarest words, words are some less common words of a drawer,
    absent is a topic; ``topic`` holds its words: where a hit has them, it was not absent after all.
    """

    kind: Kind
    question: str
    drawer: str = ""
    topic: tuple[str, ...] = ()


def draw(
    palace: Palace, count: int, seed: int, wing: str | None = None
) -> tuple[list[Probe], Iterator[Probe]]:
    """Return up to ``count`` probes with an answer, half of each kind, and a supply of those without.

    The same palace and seed give the same probes. Drawers too short for a question are passed over.
    """
    chance = random.Random(seed)
    with palace.ledger.read() as cx:
        known = select(drawers.c.rid).where(scope_clause(Scope(wing=wing))).order_by(drawers.c.rid)
        rids = [rid for (rid,) in cx.execute(known)]
        chosen = chance.sample(rids, min(READ, len(rids)))
        named = select(drawers.c.rid, drawers.c.id)
        ids: dict[int, str] = {}
        for part in batches(chosen):
            ids |= {rid: id_ for rid, id_ in cx.execute(named.where(drawers.c.rid.in_(part)))}
        found = drawers_by_id(cx, list(ids.values()))
    listed = [found[ids[rid]] for rid in chosen if ids.get(rid, "") in found]
    probes, spare = _answerable(listed, count, chance)
    return probes, _absent(chance, spare)


def _answerable(listed: Sequence[Drawer], count: int, chance: random.Random) -> tuple[list[Probe], list[str]]:
    """Return probes, and a rare word of each of their drawers."""
    texts = {drawer.id: _MASK.sub(" ", served(drawer)) for drawer in listed}
    common = Counter(word for text in texts.values() for word in _distinct(text))
    probes: list[Probe] = []
    spare: list[str] = []
    for drawer in listed:
        if len(probes) == count:
            break
        text = texts[drawer.id]
        wanted: Kind = "words" if len(probes) % 2 else "sentence"
        make = _of_words if wanted == "words" else _of_sentence
        question = make(text, common, chance)
        if question:
            probes.append(Probe(wanted, question, drawer.id))
            spare += _by_rarity(_distinct(text), common)[:1]
    return probes, spare


def _distinct(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text) if len(word) > 2}


def _by_rarity(words: Iterable[str], common: Counter[str]) -> list[str]:
    return sorted(words, key=lambda word: (common[word], -len(word), word))


def _of_sentence(text: str, common: Counter[str], chance: random.Random) -> str:
    """Return a sentence without its rarest third of words; without spaces between words, its beginning."""
    usable = [s for s in (" ".join(part.split()) for part in _SENTENCE.split(text)) if _is_usable(s)]
    if not usable:
        return ""
    sentence = chance.choice(usable)
    words = _distinct(sentence)
    if len(words) < _LEAST_WORDS:
        return sentence[: 2 * len(sentence) // 3]
    left_out = set(_by_rarity(words, common)[: len(words) // 3])
    kept = _WORD.sub(lambda match: "" if match[0].casefold() in left_out else match[0], sentence)
    return " ".join(kept.split())


def _is_usable(sentence: str) -> bool:
    if len(_distinct(sentence)) >= _LEAST_WORDS:
        return len(sentence) >= _LEAST_LETTERS
    return len(sentence) >= _LEAST_SPACELESS and not sentence.isascii() and " " not in sentence


def _of_words(text: str, common: Counter[str], chance: random.Random) -> str:
    """Return words of a text that are neither its rarest nor common, in no order; "" when it has too few."""
    words = _by_rarity(_distinct(text), common)
    if len(words) < 3 * _KEYWORDS:
        return ""
    return " ".join(chance.sample(words[_KEYWORDS : 3 * _KEYWORDS], _KEYWORDS))


def _absent(chance: random.Random, spare: Sequence[str]) -> Iterator[Probe]:
    """Yield questions about topics that hardly any palace holds; every second one names what it does hold."""
    for number, topic in enumerate(chance.sample(TOPICS, len(TOPICS))):
        question = chance.choice(_FRAMES).format(topic)
        if number % 2 and spare:
            question += f" with {chance.choice(spare)}"
        yield Probe("absent", question, topic=tuple(_WORD.findall(topic.casefold())))


_FRAMES = (
    "what did we decide about {}",
    "when did I last talk about {}",
    "who recommended {} to me",
    "where are my notes on {}",
    "how much did {} cost",
)
