"""A query understood: what is embedded, and the phrases, names and times that are signals of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from castle.clock import to_iso
from castle.search.names import Named, named_in
from castle.search.voice import Voice, asks_advice, voice_of
from castle.store.palace import Palace
from castle.text.when import BEGINNING, ENDLESS, Interval, intervals
from castle.text.words import phrases, words

MOST_READ = 4000
"""Characters of a question that models are given; all of its words are looked for."""

_PARTS = re.compile(r"\w+")
_SAYING = frozenset(
    (
        "a about an and any anything are ask asked at did discuss discussed do does done for from go had "
        "happen happened has have i in is it me mention mentioned my new of on our recommend recommended "
        "said say spoke suggest suggested talk talked tell that the there to told us was we went were "
        "what when which who work worked write wrote you your "
        "am an besprochen das der die du es gemacht geredet gesagt geschah gesprochen getan hab habe "
        "haben hast ich im in mir passiert passierte uber was wir war über "
        "de dije dijimos dijiste el en hablamos hice hicimos hiciste la lo paso pasó que qué "
        "ai as avons dit est fait je l la le nous parlé parle passé passe qu quoi s tu"
    ).split()
)

_VOICES: Mapping[Voice, str] = {"assistant": "what an assistant said", "own": "what you said"}

Entities = Callable[[str], Sequence[Named]]
"""Finds the entities that a text names; ``functools.partial(named_in, cx)`` asks a ledger."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query and what it asks for beside its words; ``now`` in microseconds is what its times refer to.

    ``text`` is what an embedder is given, ``subject`` what a cross-encoder is: the text without its times,
    which no word of an answer need hold, but with holidays; it may be empty. ``phrases`` stood in quotation
    marks. ``voice`` says whose words are asked for, ``advice`` that it is asked what to do.
    """

    query: str
    now: int
    text: str
    subject: str
    phrases: tuple[str, ...] = ()
    names: tuple[Named, ...] = ()
    times: tuple[Interval, ...] = ()
    voice: Voice | None = None
    advice: bool = False

    @property
    def read_as(self) -> tuple[str, ...]:
        """Return what was understood of names, times and voice, in words."""
        surest = {time.phrase: time for time in reversed(self.times) if time.weight == 1.0}
        return (
            *(f"{name.phrase}: a name" for name in self.names),
            *(f"{time.phrase}: {_bound(time.start)} to {_bound(time.end)}" for time in surest.values()),
            *([_VOICES[self.voice]] if self.voice else ()),
            *(["advice is asked for"] if self.advice else ()),
        )

    @property
    def vague(self) -> bool:
        """Whether the subject says hardly more than that something was said or done."""
        rest = _without(self.subject, [time.phrase for time in self.times if time.named])
        return not (set(_PARTS.findall(rest.casefold())) - _SAYING)


def ask(query: str, now: int, entities: Entities = lambda text: ()) -> Question:
    """Understand a query; any text will do, and one without names, phrases or times has none."""
    text = " ".join("".join(char if char.isprintable() else " " for char in query[:MOST_READ]).split())
    advice = asks_advice(query)
    # "What should I wear on Saturday?" speaks of a day to come.
    times = () if advice else tuple(intervals(query, now))
    return Question(
        query,
        now,
        text or query,
        _without(text or query, [time.phrase for time in times if not time.named]),
        tuple(dict.fromkeys(phrase for phrase in phrases(query) if words(phrase))),
        tuple(entities(query)),
        times,
        voice_of(query),
        advice,
    )


def _bound(moment: int) -> str:
    return "…" if moment in (BEGINNING, ENDLESS) else to_iso(moment)[:16]


def _without(text: str, phrases: Sequence[str]) -> str:
    for phrase in phrases:
        text = text.replace(" ".join(phrase.split()), " ", 1)
    return " ".join(text.split())


def ask_palace(palace: Palace, query: str, now: int) -> Question:
    """Understand a query with the names that a palace knows."""
    with palace.ledger.read() as cx:
        return ask(query, now, lambda text: named_in(cx, text))
