"""A query understood: what is embedded, and the phrases, names and times that are signals of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from castle.search.names import Named, named_in
from castle.store.palace import Palace
from castle.text.when import Interval, intervals
from castle.text.words import phrases, words

Entities = Callable[[str], Sequence[Named]]
"""Finds the entities that a text names; ``functools.partial(named_in, cx)`` asks a ledger."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query and what it asks for beside its words; ``now`` in microseconds is what its times refer to.

    ``text`` is what an embedder and a cross-encoder are given. ``phrases`` stood in quotation marks.
    """

    query: str
    now: int
    text: str
    phrases: tuple[str, ...] = ()
    names: tuple[Named, ...] = ()
    times: tuple[Interval, ...] = ()


def ask(query: str, now: int, entities: Entities = lambda text: ()) -> Question:
    """Understand a query; any text will do, and one without names, phrases or times has none."""
    text = " ".join("".join(char if char.isprintable() else " " for char in query).split())
    return Question(
        query,
        now,
        text or query,
        tuple(dict.fromkeys(phrase for phrase in phrases(query) if words(phrase))),
        tuple(entities(query)),
        tuple(intervals(query, now)),
    )


def ask_palace(palace: Palace, query: str, now: int) -> Question:
    """Understand a query with the names that a palace knows."""
    with palace.ledger.read() as cx:
        return ask(query, now, lambda text: named_in(cx, text))
