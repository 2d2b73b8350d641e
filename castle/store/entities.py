"""The registry: people, projects and topics that are looked for in everything that is filed.

Who registered one counts: what a user says goes before a manifest or a repository, that before a transcript,
that before what was noticed in prose. A forgotten entity is registered again by nobody but a user.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from castle.errors import NotFoundError, RefusedError, UsageError
from castle.records import Scope
from castle.store.entity_tables import mentions, name_backlog, registry
from castle.store.graph_reading import resolve
from castle.store.graph_tables import entities, entity_aliases, triples
from castle.store.graph_values import clean_name, entity_id, without_secret
from castle.store.graph_writing import ensure_entity
from castle.store.ledger import Ledger, set_value, to_json
from castle.store.mentions import (
    LANGUAGES_KEY,
    Relinked,
    languages_of,
    left_to_link,
    look_back,
    matcher_of,
    names_changed,
    relink,
)
from castle.store.reading import AnyRow, scope_clause
from castle.store.schema import drawers, sources
from castle.text.names.locales import ambiguous_words, canonical
from castle.text.names.scripts import WORD, fold

Kind = Literal["person", "project", "topic"]
Origin = Literal["user", "manifest", "git", "transcript", "learned"]
Outcome = Literal["added", "changed", "known", "forgotten"]

KINDS: tuple[Kind, ...] = get_args(Kind)
RELINK_AT_ONCE = 50_000
"""Drawers that are read again at once for a new name; the rest waits for the next mine."""

_RANKS: dict[str, int] = {"learned": 0, "transcript": 1, "git": 2, "manifest": 2, "user": 3}
_SHORTEST = 2


@dataclass(frozen=True, slots=True)
class Entity:
    """A registered entity. ``mentions`` counts drawers, the forgotten ones left out.

    ``ambiguous``: its name is also an ordinary word, so that only the words around it can tell.
    ``first_seen_at`` and ``last_seen_at`` are when the first and the last of these drawers were written.
    """

    id: str
    name: str
    kind: Kind
    source: Origin
    confidence: float
    ambiguous: bool
    aliases: tuple[str, ...]
    mentions: int
    first_seen_at: int | None
    last_seen_at: int | None
    added_at: int
    added_by: str
    forgotten_at: int | None = None


@dataclass(frozen=True, slots=True)
class EntityPage:
    """One page of the registry; ``left`` drawers are still to be read for names that came after them."""

    total: int
    offset: int
    left: int
    entities: tuple[Entity, ...]


@dataclass(frozen=True, slots=True)
class Registration:
    """An entity as it is to be registered."""

    name: str
    kind: Kind
    source: Origin
    confidence: float
    aliases: tuple[str, ...] = ()


class Entities:
    """The registry of a ledger; ``actor`` is recorded, ``languages`` decide which names are ambiguous."""

    def __init__(self, ledger: Ledger, *, actor: str = "unknown", languages: Sequence[str] = ("en",)) -> None:
        self._ledger = ledger
        self._actor = actor
        self._languages = languages

    def list(
        self, *, kind: Kind | None = None, forgotten: bool = False, limit: int | None = None, offset: int = 0
    ) -> EntityPage:
        """Return the registered entities, the most often named first; ``forgotten`` asks for the others."""
        state = registry.c.forgotten_at
        condition = and_(
            state.is_not(None) if forgotten else state.is_(None),
            *(() if kind is None else (registry.c.kind == kind,)),
        )
        with self._ledger.read() as cx:
            total = cx.execute(select(func.count()).select_from(registry).where(condition)).scalar_one()
            counted = func.count(mentions.c.drawer)
            query = (
                select(registry.c.entity)
                .outerjoin(mentions, mentions.c.entity == registry.c.entity)
                .where(condition)
                .group_by(registry.c.entity)
                .order_by(counted.desc(), registry.c.entity)
                .limit(limit)
                .offset(offset)
            )
            found = tuple(_entity(cx, id_) for (id_,) in cx.execute(query))
            return EntityPage(total, offset, left_to_link(cx), found)

    def get(self, name: str) -> Entity:
        """Return an entity by its name or an alias, a forgotten one too; raises NotFoundError."""
        with self._ledger.read() as cx:
            return _entity(cx, _registered(cx, name))

    def add(self, name: str, kind: Kind, *, aliases: Sequence[str] = ()) -> Entity:
        """Register an entity, bring back a forgotten one, or change the kind of a known one.

        Drawers that are filed already are looked through for it, a bounded number at once. Raises UsageError
        for a name that cannot be looked for, RefusedError for an alias that another entity has.
        """
        if kind not in KINDS:
            raise UsageError(f"kind {kind!r} is none of {', '.join(KINDS)}")
        with self._ledger.write() as cx:
            use_languages(cx, self._languages)
            now = self._ledger.clock()
            register(cx, Registration(_nameable("name", name), kind, "user", 1.0), now, self._actor)
            id_ = _registered(cx, name)
            for alias in aliases:
                _give_alias(cx, id_, _nameable("alias", alias))
        self.relink(RELINK_AT_ONCE)
        return self.get(name)

    def alias(self, name: str, alias: str) -> Entity:
        """Let another name stand for an entity.

        An entity that bears that name is joined with it, when only Castle noticed it or it is forgotten, and
        no fact is about it. Raises NotFoundError, or RefusedError when the name stands for another one.
        """
        with self._ledger.write() as cx:
            use_languages(cx, self._languages)
            id_ = _registered(cx, name)
            if _row(cx, id_).forgotten_at is not None:
                raise RefusedError(f"{name} is forgotten: `castle entities add` brings it back")
            _give_alias(cx, id_, _nameable("alias", alias))
        self.relink(RELINK_AT_ONCE)
        return self.get(name)

    def forget(self, name: str) -> Entity:
        """Look for an entity no more, and let nothing but ``add`` register it again; raises NotFoundError."""
        with self._ledger.write() as cx:
            id_ = _registered(cx, name)
            if _row(cx, id_).forgotten_at is None:
                changed = update(registry).where(registry.c.entity == id_)
                cx.execute(changed.values(forgotten_at=self._ledger.clock()))
                names_changed(cx)
            return _entity(cx, id_)

    def relink(self, limit: int | None = None) -> Relinked:
        """Look for names in the drawers that were filed before them; ``limit`` drawers at most, about."""
        return relink(self._ledger, limit)

    def in_text(self, text: str) -> Sequence[tuple[str, str]]:
        """Return the entities that a query names, each once, with the words that do."""
        with self._ledger.read() as cx:
            return entities_in(cx, text)


def entities_in(cx: Connection, text: str) -> list[tuple[str, str]]:
    """Return the ids of the entities that a query names, each once, with the words that do."""
    matcher = matcher_of(cx)
    if matcher is None:
        return []
    found: dict[str, str] = {}
    for match in matcher.find(text, any_case=True):
        found.setdefault(match.entity, match.text)
    return list(found.items())


def drawers_mentioning(
    cx: Connection, entity_ids: Sequence[str], limit: int, offset: int = 0, *, scope: Scope | None = None
) -> list[str]:
    """Return ids of drawers that name any of the entities: those that name most first, then the newest.

    ``scope`` is applied before the limit (None: everything not forgotten). Forgotten entities have none.
    """
    inside = and_(drawers.c.seq.is_not(None), drawers.c.state != "forgotten")
    query = (
        select(drawers.c.id)
        .select_from(
            mentions.join(registry, registry.c.entity == mentions.c.entity)
            .join(drawers, drawers.c.rid == mentions.c.drawer)
            .join(sources, sources.c.id == drawers.c.source)
        )
        .where(
            mentions.c.entity.in_(list(entity_ids)),
            registry.c.forgotten_at.is_(None),
            inside if scope is None else scope_clause(scope),
        )
        .group_by(drawers.c.rid)
        .order_by(func.count().desc(), drawers.c.authored_at.desc(), drawers.c.id)
        .limit(limit)
        .offset(offset)
    )
    return [id_ for (id_,) in cx.execute(query)]


def use_languages(cx: Connection, languages: Iterable[str]) -> None:
    """Record in which languages names are read; raises ConfigError for one there is no data for."""
    codes = tuple(dict.fromkeys(canonical(code) for code in languages)) or ("en",)
    if codes == languages_of(cx):
        return
    set_value(cx, LANGUAGES_KEY, to_json(list(codes)))
    doubtful = ambiguous_words(codes)
    for id_, name in cx.execute(select(registry.c.entity, entities.c.name).join(entities)).all():
        changed = update(registry).where(registry.c.entity == id_)
        cx.execute(changed.values(ambiguous=fold(name) in doubtful))
    names_changed(cx)


def register(cx: Connection, given: Registration, now: int, actor: str) -> Outcome:
    """Register an entity within a write transaction; a known one takes what is better founded.

    What a user forgot stays forgotten unless a user adds it. Aliases that stand for others are left out.
    """
    id_ = ensure_entity(cx, given.name, now, actor, given.kind)
    row = cx.execute(select(registry).where(registry.c.entity == id_)).first()
    if row is None:
        ambiguous = fold(given.name) in ambiguous_words(languages_of(cx))
        values = {"kind": given.kind, "source": given.source, "confidence": given.confidence}
        cx.execute(
            insert(registry).values(
                entity=id_, **values, ambiguous=ambiguous, added_at=now, added_by=actor, forgotten_at=None
            )
        )
        outcome: Outcome = "added"
    elif row.forgotten_at is not None and given.source != "user":
        return "forgotten"
    else:
        outcome = _improve(cx, row, given)
    cx.execute(
        update(entities).where(entities.c.id == id_, entities.c.type == "unknown").values(type=given.kind)
    )
    if outcome in ("added", "changed"):
        names_changed(cx)
        look_back(cx, id_)
    for alias in given.aliases:
        if resolve(cx, alias) is None:
            _give_alias(cx, id_, alias)
            outcome = "changed" if outcome == "known" else outcome
    return outcome


def _improve(cx: Connection, row: AnyRow, given: Registration) -> Outcome:
    """Take over what is better founded than what is recorded."""
    better = _RANKS[given.source] > _RANKS[row.source]
    surer = _RANKS[given.source] == _RANKS[row.source] and given.confidence > row.confidence
    if (
        not (better or surer)
        and row.forgotten_at is None
        and (given.source != "user" or row.kind == given.kind)
    ):
        return "known"
    cx.execute(
        update(registry)
        .where(registry.c.entity == row.entity)
        .values(
            kind=given.kind if better or given.source == "user" else row.kind,
            source=given.source if better else row.source,
            confidence=max(given.confidence, row.confidence),
            forgotten_at=None,
        )
    )
    changed = row.forgotten_at is not None or (better and given.kind != row.kind) or given.source == "user"
    return "changed" if changed else "known"


def _give_alias(cx: Connection, id_: str, alias: str) -> None:
    taken = resolve(cx, alias)
    if taken == id_:
        return
    if taken is not None:
        _join(cx, taken, id_, alias)
    cx.execute(insert(entity_aliases).values(alias=entity_id(alias), name=alias, entity=id_))
    names_changed(cx)
    look_back(cx, id_)


def _join(cx: Connection, other: str, id_: str, alias: str) -> None:
    """Let one entity take the names of another; raises RefusedError when more than its name is known."""
    row = cx.execute(select(registry).where(registry.c.entity == other)).first()
    about = or_(triples.c.subject == other, triples.c.object == other)
    stated = cx.execute(select(triples.c.rid).where(about).limit(1)).first()
    doubtful = row is not None and (row.source != "user" or row.forgotten_at is not None)
    if entity_id(alias) != other or stated is not None or not doubtful:
        raise RefusedError(f"{alias} already stands for another entity, {_name(cx, other)}")
    cx.execute(update(entity_aliases).where(entity_aliases.c.entity == other).values(entity=id_))
    for table in (mentions, name_backlog, registry):
        cx.execute(delete(table).where(table.c.entity == other))
    cx.execute(delete(entities).where(entities.c.id == other))


def _nameable(what: str, name: str) -> str:
    clean = without_secret(what, clean_name(what, name))
    if sum(map(len, WORD.findall(clean))) < _SHORTEST:
        raise UsageError(f"the {what} {clean!r} is too short to be looked for: two letters at least")
    return clean


def _registered(cx: Connection, name: str) -> str:
    id_ = resolve(cx, clean_name("name", name))
    known = None if id_ is None else cx.execute(select(registry.c.entity).where(registry.c.entity == id_))
    if id_ is None or known is None or known.first() is None:
        raise NotFoundError(f"no entity {name}: `castle entities list` shows them")
    return id_


def _row(cx: Connection, id_: str) -> AnyRow:
    return cx.execute(select(registry).where(registry.c.entity == id_)).one()


def _name(cx: Connection, id_: str) -> str:
    return str(cx.execute(select(entities.c.name).where(entities.c.id == id_)).scalar_one())


def _entity(cx: Connection, id_: str) -> Entity:
    row = _row(cx, id_)
    aliases = select(entity_aliases.c.name).where(entity_aliases.c.entity == id_)
    seen = cx.execute(
        select(func.count(), func.min(drawers.c.authored_at), func.max(drawers.c.authored_at))
        .select_from(mentions.join(drawers, drawers.c.rid == mentions.c.drawer))
        .where(mentions.c.entity == id_, drawers.c.state != "forgotten", drawers.c.seq.is_not(None))
    ).one()
    return Entity(
        id=id_,
        name=_name(cx, id_),
        kind=row.kind,
        source=row.source,
        confidence=row.confidence,
        ambiguous=bool(row.ambiguous),
        aliases=tuple(name for (name,) in cx.execute(aliases.order_by(entity_aliases.c.alias))),
        mentions=seen[0],
        first_seen_at=seen[1],
        last_seen_at=seen[2],
        added_at=row.added_at,
        added_by=row.added_by,
        forgotten_at=row.forgotten_at,
    )
