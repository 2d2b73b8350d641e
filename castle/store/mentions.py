"""Mentions: which drawers name which entities, written in the transaction that makes a drawer current.

A drawer is linked with the names known then. A name that is registered later is looked for in the drawers
before it by ``relink``, in short transactions, as far as its caller allows; the rest waits in the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from castle.store.entity_tables import mentions, name_backlog, registry
from castle.store.graph_tables import entities, entity_aliases
from castle.store.ledger import Ledger, get_value, set_value
from castle.store.schema import drawers
from castle.store.sealing import COLUMNS, shown

if TYPE_CHECKING:
    from castle.text.names.matcher import Matcher

NAMES_KEY = "names"
"""Row of ``meta`` that changes with the names; missing while there are none."""

LANGUAGES_KEY = "name_languages"
BATCH = 1000
_AT_ONCE = 500

_matchers: dict[str, Matcher] = {}


@dataclass(frozen=True, slots=True)
class Relinked:
    """What ``relink`` did: drawers read, mentions found, and drawers that are left to read."""

    read: int
    found: int
    left: int


def link_mentions(cx: Connection, rids: Sequence[int]) -> int:
    """Link drawers, within the caller's write transaction, to the entities they name; return how many links.

    ``rids`` are drawers that were not linked before. Forgotten entities are not looked for.
    """
    matcher = matcher_of(cx) if rids else None
    if matcher is None:
        return 0
    found: list[dict[str, object]] = []
    for start in range(0, len(rids), _AT_ONCE):
        query = _texts().where(drawers.c.rid.in_(rids[start : start + _AT_ONCE]))
        found += _links(cx, matcher, cx.execute(query))
    _write(cx, found)
    return len(found)


def matcher_of(cx: Connection) -> Matcher | None:
    """Return the matcher of the names that are registered, None when there are none."""
    token = get_value(cx, NAMES_KEY)
    if token is None:
        return None
    known = _matchers.get(token)
    if known is None:
        from castle.text.names.matcher import Matcher

        known = Matcher(_names(cx), languages_of(cx))
        _matchers.clear()
        _matchers[token] = known
    return known


def languages_of(cx: Connection) -> tuple[str, ...]:
    """Return the languages in whose words the names are read."""
    stored = get_value(cx, LANGUAGES_KEY)
    return tuple(json.loads(stored)) if stored else ("en",)


def names_changed(cx: Connection) -> None:
    """Make every process read the names again. The mark is random: one that was rolled back never returns."""
    import secrets

    set_value(cx, NAMES_KEY, secrets.token_hex(8))


def look_back(cx: Connection, entity: str) -> None:
    """Have an entity looked for in everything that is filed already."""
    upto = cx.execute(select(func.max(drawers.c.rid))).scalar() or 0
    cx.execute(delete(name_backlog).where(name_backlog.c.entity == entity))
    if upto:
        cx.execute(insert(name_backlog).values(entity=entity, done=0, upto=upto))


def left_to_link(cx: Connection) -> int:
    """Return how many drawers, about, are still to be read for names that came later."""
    query = select(func.max(name_backlog.c.upto - name_backlog.c.done))
    return cx.execute(query).scalar() or 0


def relink(ledger: Ledger, limit: int | None = None, *, batch: int = BATCH) -> Relinked:
    """Look for names in the drawers that were filed before them, in up to about ``limit`` drawers.

    ``batch`` drawers are read and linked in one transaction.
    """
    read = found = 0
    while limit is None or read < limit:
        step = _step(ledger, batch)
        if step is None:
            break
        read, found = read + step.read, found + step.found
    with ledger.read() as cx:
        return Relinked(read, found, left_to_link(cx))


def _step(ledger: Ledger, batch: int) -> Relinked | None:
    """Read one batch of drawers; None when nothing is left."""
    with ledger.read() as cx:
        waiting = list(cx.execute(select(name_backlog)))
        matcher = matcher_of(cx)
        if not waiting or matcher is None:
            return None
        token = get_value(cx, NAMES_KEY)
        start = min(row.done for row in waiting)
        wanted = {row.entity for row in waiting if row.done == start}
        ends = [row.upto if row.done == start else row.done for row in waiting]
        query = _texts().where(drawers.c.rid > start, drawers.c.rid <= min(ends), drawers.c.seq.is_not(None))
        rows = list(cx.execute(query.order_by(drawers.c.rid).limit(batch)))
        found = list(_links(cx, matcher, rows))
    done = rows[-1].rid if len(rows) == batch else min(ends)
    links = [link for link in found if link["entity"] in wanted]
    with ledger.write() as cx:
        if get_value(cx, NAMES_KEY) != token:
            return Relinked(0, 0, 0)
        _write(cx, links)
        cohort = name_backlog.c.entity.in_(bindparam("entities", expanding=True))
        chosen = {"entities": sorted(wanted)}
        cx.execute(update(name_backlog).where(cohort, name_backlog.c.done < done).values(done=done), chosen)
        cx.execute(delete(name_backlog).where(name_backlog.c.done >= name_backlog.c.upto))
    return Relinked(len(rows), len(links), 0)


def _texts() -> Any:
    return select(*COLUMNS, drawers.c.speaker)


def _links(cx: Connection, matcher: Matcher, rows: Iterable[Any]) -> Iterator[dict[str, object]]:
    for row in rows:
        named = {match.entity for match in matcher.find(shown(cx, row))}
        if row.speaker:
            named.update(speaker_entities(matcher, row.speaker))
        for entity in sorted(named):
            yield {"entity": entity, "drawer": row.rid}


def speaker_entities(matcher: Matcher, speaker: str) -> set[str]:
    """Return the entities that a speaker's name stands for, which needs no evidence but itself."""
    line = f"{speaker}: x"
    return {m.entity for m in matcher.find(line, any_case=True) if (m.start, m.end) == (0, len(speaker))}


def _write(cx: Connection, links: Sequence[dict[str, object]]) -> None:
    if links:
        cx.execute(insert(mentions).prefix_with("OR IGNORE"), links)


def _names(cx: Connection) -> Iterator[Any]:
    """Yield every name of every entity of the registry that is not forgotten."""
    from castle.text.names.locales import ambiguous_words
    from castle.text.names.matcher import Name
    from castle.text.names.scripts import fold

    doubtful = ambiguous_words(languages_of(cx))
    listed = select(registry).where(registry.c.forgotten_at.is_(None)).subquery()
    own = select(listed.c.entity, entities.c.name, listed.c.kind, listed.c.ambiguous).join(
        entities, entities.c.id == listed.c.entity
    )
    other = select(listed.c.entity, entity_aliases.c.name, listed.c.kind).join(
        entity_aliases, entity_aliases.c.entity == listed.c.entity
    )
    for entity, name, kind, ambiguous in cx.execute(own.order_by(listed.c.entity)):
        yield Name(entity, name, kind == "person", ambiguous)
    for entity, name, kind in cx.execute(other.order_by(entity_aliases.c.alias)):
        yield Name(entity, name, kind == "person", fold(name) in doubtful)
