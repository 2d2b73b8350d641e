"""Learning names after a mine: what the newly filed drawers and their project say of people and projects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, and_, func, or_, select

from castle.config import Settings
from castle.errors import CastleError
from castle.mine.discovery import (
    MANIFESTS,
    git_history,
    people_of,
    projects_of,
    session_projects,
    speakers_of,
)
from castle.records import HIDDEN_KINDS
from castle.store.entities import Registration, register, use_languages
from castle.store.entity_tables import registry
from castle.store.graph_tables import entities
from castle.store.ledger import get_value, set_value
from castle.store.mentions import matcher_of, relink
from castle.store.palace import Palace
from castle.store.projects import path_text
from castle.store.schema import drawers, sources
from castle.store.sealing import COLUMNS, shown
from castle.store.session_tables import sessions
from castle.text.names.detect import detect
from castle.text.names.scripts import folded_words

LEARNED_KEY = "names_learned"
"""Row of ``meta``: the change up to which drawers were read for new names."""

READ_AT_ONCE = 4000
READ_AGAIN = 500
RELINK_AT_ONCE = 20_000
_SHOWN = 8
_PROSE = (".md", ".txt", ".rst", ".csv", ".org", ".adoc", ".tex")
_NO_PEOPLE = ("assistant", "system", "tool", "developer")


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned: new names, mentions found in earlier drawers, and how many of those are left."""

    names: tuple[str, ...] = ()
    linked: int = 0
    left: int = 0
    notes: tuple[str, ...] = ()


def learn(palace: Palace, settings: Settings, root: Path | None, actor: str) -> Learned:
    """Register the names that what was filed since the last time brings, and link earlier drawers to them.

    ``root`` is the directory of a project that was mined, None after transcripts. Nothing is read or written
    when nothing was filed. Trouble is told in ``notes`` and never raised.
    """
    try:
        names, notes = _register_new(palace, settings, root, actor)
        step = relink(palace.ledger, RELINK_AT_ONCE, batch=settings.entity_fetch_batch_size)
    except CastleError as error:
        return Learned(notes=(f"names were not learned: {error}",))
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        notes.append(f"new names: {', '.join(names[:_SHOWN])}{more}; `castle entities list` shows all")
    if step.left:
        notes.append(f"earlier drawers to be read for new names: {step.left:,}; `castle entities relink`")
    return Learned(tuple(names), step.found, step.left, tuple(notes))


def _register_new(
    palace: Palace, settings: Settings, root: Path | None, actor: str
) -> tuple[list[str], list[str]]:
    ledger = palace.ledger
    with ledger.read() as cx:
        mark = int(get_value(cx, LEARNED_KEY) or 0)
        head = int(get_value(cx, "seq") or 0)
        if head <= mark:
            return [], []
        manifests = _manifests(cx, root)
        speakers = _speakers(cx, mark)
        directories = _directories(cx, mark)
        texts = list(_prose(cx, mark))
    notes: list[str] = []
    given = [*speakers_of(speakers), *session_projects(directories)]
    if root is not None:
        history = git_history(root)
        given += [*people_of(history), *projects_of(root, manifests, history)]
        notes += [f"authors are not known: {history.note}"] if history.note else []
    least = settings.entity_promote_threshold
    sure = [item for item in given if item.confidence >= least]
    declared = any(item.kind == "project" and item.source != "transcript" for item in sure)
    noticed = [
        Registration(candidate.name, candidate.kind, "learned", candidate.confidence)
        for candidate in detect(texts, settings.entity_languages, sample=settings.entity_score_sample_drawers)
        if candidate.confidence >= least
        and (candidate.kind == "person" or (candidate.kind == "project" and not declared))
    ]
    names = []
    with ledger.write() as cx:
        use_languages(cx, settings.entity_languages)
        now = ledger.clock()
        for item in _canonical(sure, settings.people_map):
            if register(cx, item, now, actor) == "added":
                names.append(item.name)
        for item in _canonical(noticed, settings.people_map):
            names += _notice(cx, item, now, actor)
        set_value(cx, LEARNED_KEY, str(max(head, int(get_value(cx, LEARNED_KEY) or 0))))
    return names, notes


def _notice(cx: Connection, item: Registration, now: int, actor: str) -> list[str]:
    """Register a name from prose, unless it is a known one in another form or somebody's first name."""
    matcher = matcher_of(cx)
    if matcher is not None:
        whole = (0, len(item.name))
        if any((m.start, m.end) == whole for m in matcher.find(item.name, any_case=True)):
            return []
    if item.kind == "person":
        meant = _by_first_name(cx, item.name)
        if len(meant) > 1:
            return []
        if meant:
            register(cx, replace(item, name=meant[0], aliases=(item.name,)), now, actor)
            return []
    return [item.name] if register(cx, item, now, actor) == "added" else []


def _by_first_name(cx: Connection, name: str) -> list[str]:
    """Return the registered people whose first name this is."""
    words = folded_words(name)
    if len(words) != 1:
        return []
    query = select(entities.c.name).join(registry, registry.c.entity == entities.c.id)
    people = query.where(registry.c.kind == "person", registry.c.forgotten_at.is_(None))
    split = ((known, folded_words(known)) for (known,) in cx.execute(people.order_by(entities.c.id)))
    return [known for known, parts in split if len(parts) > 1 and parts[0] == words[0]]


def _canonical(items: Iterable[Registration], people_map: Mapping[str, str]) -> Iterator[Registration]:
    """Give people the names that the user's settings say their variants stand for."""
    known = {" ".join(folded_words(variant)): name for variant, name in people_map.items()}
    for item in items:
        name = known.get(" ".join(folded_words(item.name))) if item.kind == "person" else None
        if name is None or name == item.name:
            yield item
        else:
            yield replace(item, name=name, aliases=(*item.aliases, item.name))


def _manifests(cx: Connection, root: Path | None) -> list[str]:
    """Return the manifests that are filed from below a directory, relative to it."""
    if root is None:
        return []
    named = or_(*(sources.c.path.endswith(f"/{name}", autoescape=True) for name in MANIFESTS))
    inside = f"{path_text(root)}/"
    below = sources.c.path.startswith(inside, autoescape=True)
    query = select(sources.c.path).where(below, named, sources.c.gone_at.is_(None))
    return [path.removeprefix(inside) for (path,) in cx.execute(query)]


def _speakers(cx: Connection, mark: int) -> list[tuple[str, int, int]]:
    counted = (drawers.c.speaker, func.count(), func.count(drawers.c.source.distinct()))
    query = select(*counted).where(
        drawers.c.seq > mark, drawers.c.speaker != "", drawers.c.role.not_in(_NO_PEOPLE)
    )
    return [(name, count, held) for name, count, held in cx.execute(query.group_by(drawers.c.speaker))]


def _directories(cx: Connection, mark: int) -> dict[str, int]:
    """Return the working directories of sessions with something new, and how many sessions each had."""
    fresh = (
        select(sessions.c.cwd)
        .join(drawers, drawers.c.source == sessions.c.source)
        .where(drawers.c.seq > mark, sessions.c.cwd != "")
    )
    query = select(sessions.c.cwd, func.count()).where(sessions.c.cwd.in_(fresh)).group_by(sessions.c.cwd)
    return {cwd: count for cwd, count in cx.execute(query)}


def _prose(cx: Connection, mark: int) -> Iterator[str]:
    """Yield new prose, of very much an even sample, and some that came before it, for names that add up."""
    suffixes = or_(*(sources.c.path.endswith(suffix, autoescape=True) for suffix in _PROSE))
    prose = and_(
        drawers.c.kind.not_in(HIDDEN_KINDS),
        drawers.c.state == "current",
        or_(sources.c.kind != "file", suffixes),
    )
    of_sources = drawers.join(sources, sources.c.id == drawers.c.source)
    count = select(func.count()).select_from(of_sources).where(prose, drawers.c.seq > mark)
    stride = max(1, -(-cx.execute(count).scalar_one() // READ_AT_ONCE))
    query = select(*COLUMNS).select_from(of_sources).where(prose)
    before = query.where(drawers.c.seq <= mark).order_by(drawers.c.seq.desc()).limit(READ_AGAIN)
    new = query.where(drawers.c.seq > mark, drawers.c.seq % stride == 0).order_by(drawers.c.seq)
    for statement in (before, new):
        for row in cx.execute(statement):
            yield shown(cx, row)
