"""The entities that a question names: those of the registry, with a slip of the pen, and those of the graph.

A registered name is found as in a drawer, in any case. One letter may be wrong in what has six letters, five
where it is written with a capital, unless it is the first letter, a digit, or makes an ordinary word: ``cat``
is not Pat, ``Marie`` may be Maria. An entity that only the graph knows must be written exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from castle.store.entity_tables import registry
from castle.store.graph_tables import entities, entity_aliases
from castle.store.graph_values import entity_id
from castle.store.ledger import batches, get_value, marks, run
from castle.store.mentions import NAMES_KEY, languages_of, matcher_of
from castle.text.names.locales import merged
from castle.text.names.scripts import capital, fold

LONGEST_WINDOW = 3
"""Words that a name has at most where it is looked for word by word."""
MOST_WORDS = 400
"""Words of a question, from its beginning, among which names are looked for word by word."""
NEAR_FROM = 6
"""Letters from which a name is known although one of them is wrong; one less with a capital."""

_WORD = re.compile(r"[^\s,.;:!?()\[\]{}\"'“”„«»‘’]+")
_PIECE = re.compile(r"[^\s,;!?()\[\]{}\"“”„«»]+")


@dataclass(frozen=True, slots=True)
class Named:
    """An entity that a question names by ``phrase``; ``forms`` are all the names it is known by.

    ``distance`` is the number of wrong letters, 0 or 1.
    """

    entity: str
    forms: tuple[str, ...]
    phrase: str
    distance: int = 0


@dataclass(frozen=True, slots=True)
class _Window:
    start: int
    end: int
    text: str
    folded: str


def named_in(cx: Connection, text: str) -> list[Named]:
    """Return the entities that a question names, each once by its best match, in the order of the text."""
    found: dict[str, tuple[int, int, str]] = {}
    taken: list[tuple[int, int]] = []
    matcher = matcher_of(cx)
    for match in matcher.find(text, any_case=True) if matcher is not None else ():
        _keep(found, match.entity, (int(not match.exact), match.start, match.text))
        taken.append((match.start, match.end))
    windows = list(_windows(text, _WORD))
    if matcher is not None:
        dull = merged(languages_of(cx)).stopwords
        free = [w for w in windows if not any(w.start < end and start < w.end for start, end in taken)]
        near = _near_names(cx)
        for window in free:
            if window.folded not in dull:
                for entity in near.find(window):
                    _keep(found, entity, (1, window.start, window.text))
    for entity, window in _of_graph(cx, [*windows, *_windows(text, _PIECE)]):
        _keep(found, entity, (0, window.start, window.text))
    forms = _forms(cx, list(found))
    ordered = sorted(found.items(), key=lambda item: (item[1][1], item[0]))
    return [Named(entity, forms[entity], phrase, off) for entity, (off, _, phrase) in ordered]


def _keep(found: dict[str, tuple[int, int, str]], entity: str, match: tuple[int, int, str]) -> None:
    if entity not in found or match < found[entity]:
        found[entity] = match


def _windows(text: str, pattern: re.Pattern[str]) -> Iterator[_Window]:
    """Yield every run of one to three neighbouring words."""
    spans = [match.span() for match, _ in zip(pattern.finditer(text), range(MOST_WORDS), strict=False)]
    for at in range(len(spans)):
        for last in range(at, min(at + LONGEST_WINDOW, len(spans))):
            start, end = spans[at][0], spans[last][1]
            part = text[start:end]
            if len(part) <= 128:
                yield _Window(start, end, part, " ".join(fold(text[a:b]) for a, b in spans[at : last + 1]))


class _NearNames:
    """Names by their halves: with one wrong letter, one half of a name is still right."""

    def __init__(self, names: Sequence[tuple[str, str]]) -> None:
        self._halves: dict[tuple[int, str], list[tuple[str, str]]] = {}
        for entity, name in names:
            folded = " ".join(map(fold, _WORD.findall(name)))
            if len(folded) >= NEAR_FROM - 1:
                for key in _halves(folded, len(folded)):
                    self._halves.setdefault(key, []).append((entity, folded))

    def find(self, window: _Window) -> Iterator[str]:
        """Yield the entities of which a window may be a name with one letter wrong, or the exact name."""
        written = window.folded
        least = NEAR_FROM - capital(window.text)
        if len(written) < least:
            return
        for size in (len(written) - 1, len(written), len(written) + 1):
            for key in _halves(written, size):
                for entity, name in self._halves.get(key, ()):
                    if len(name) >= least and one_off(name, written):
                        yield entity


def _halves(word: str, size: int) -> Iterator[tuple[int, str]]:
    """Yield the halves that a name of ``size`` letters has in common with a word, if they are right."""
    half = size // 2
    yield size, word[:half]
    yield -size, word[len(word) - (size - half) :]


def one_off(name: str, written: str) -> bool:
    """Whether just one letter was left out, added or exchanged; not the first letter and no digit."""
    longer, shorter = (name, written) if len(name) >= len(written) else (written, name)
    if len(longer) - len(shorter) > 1 or name == written or longer[:1] != shorter[:1]:
        return False
    at = next((i for i, letter in enumerate(shorter) if letter != longer[i]), len(shorter))
    same = len(longer) == len(shorter)
    if longer[at + 1 :] != shorter[at + same :]:
        return False
    return not (longer[at] + shorter[at : at + same]).strip().isdigit()


_near: dict[str, _NearNames] = {}


def _near_names(cx: Connection) -> _NearNames:
    """Return the registered names that may be misspelt, read again when they change."""
    token = get_value(cx, NAMES_KEY) or ""
    known = _near.get(token)
    if known is None:
        listed = select(registry.c.entity).where(
            registry.c.forgotten_at.is_(None), registry.c.ambiguous.is_(False)
        )
        own = select(entities.c.id, entities.c.name).where(entities.c.id.in_(listed))
        other = select(entity_aliases.c.entity, entity_aliases.c.name).where(
            entity_aliases.c.entity.in_(listed)
        )
        known = _NearNames([(id_, name) for query in (own, other) for id_, name in cx.execute(query)])
        _near.clear()
        _near[token] = known
    return known


def _of_graph(cx: Connection, windows: Sequence[_Window]) -> Iterator[tuple[str, _Window]]:
    """Yield the entities that only the graph knows and whose name or alias stands in a window."""
    dull = merged(languages_of(cx)).stopwords
    by_id: dict[str, _Window] = {}
    for window in windows:
        if window.folded not in dull and any(map(str.isalpha, window.folded)) and len(window.folded) > 1:
            by_id.setdefault(entity_id(window.text.strip(".:'’-/")), window)
    listed = "(SELECT entity FROM registry)"
    for part in batches(list(by_id)):
        own = f"SELECT id FROM entities WHERE id IN ({marks(part)}) AND id NOT IN {listed}"  # noqa: S608
        yield from ((id_, by_id[id_]) for (id_,) in run(cx, own, part))
        other = (
            f"SELECT entity, alias FROM entity_aliases WHERE alias IN ({marks(part)}) "  # noqa: S608
            f"AND entity NOT IN {listed}"
        )
        yield from ((entity, by_id[alias]) for entity, alias in run(cx, other, part))


def _forms(cx: Connection, ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the names of entities, their own first."""
    found: dict[str, list[str]] = {id_: [] for id_ in ids}
    for part in batches(ids):
        own = select(entities.c.id, entities.c.name).where(entities.c.id.in_(part))
        other = select(entity_aliases.c.entity, entity_aliases.c.name).where(
            entity_aliases.c.entity.in_(part)
        )
        for query in (own, other.order_by(entity_aliases.c.alias)):
            for entity, name in cx.execute(query):
                found[entity].append(name)
    return {id_: tuple(names) for id_, names in found.items()}
