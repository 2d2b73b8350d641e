"""Reading sessions back: the list of them, and every message of one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, and_, func, or_, select, true

from castle.errors import NotFoundError, UsageError
from castle.records import Drawer
from castle.store.reading import drawers_of_messages, members, named_source, served
from castle.store.schema import sources
from castle.store.session_tables import messages, sessions
from castle.store.sessions import KIND, drawer_key
from castle.text.served import mask_secrets


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as it is listed; ``messages`` counts whole messages."""

    session: str
    format: str
    title: str
    wing: str
    cwd: str
    messages: int
    started_at: int | None
    ended_at: int | None
    source: str
    path: str


@dataclass(frozen=True, slots=True)
class SessionPage:
    """One page of sessions, and how many there are in all."""

    total: int
    offset: int
    sessions: tuple[SessionRow, ...]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of a session as it may be shown; ``withheld`` is the size of one that was not stored."""

    id: str
    parent: str
    role: str
    kind: str
    speaker: str
    tool: str
    thread: str
    said_at: int | None
    shown: bool
    text: str
    drawers: tuple[str, ...]
    withheld: int


def list_sessions(cx: Connection, wing: str | None, limit: int, offset: int) -> tuple[int, list[SessionRow]]:
    """Return how many sessions there are and one page of them, the latest first."""
    in_wing = sources.c.wing == wing if wing is not None else true()
    condition = and_(sources.c.forgotten_at.is_(None), in_wing)
    joined = sessions.join(sources, sources.c.id == sessions.c.source)
    total = cx.execute(select(func.count()).select_from(joined).where(condition)).scalar() or 0
    said = (
        select(func.count())
        .where(messages.c.source == sessions.c.source, messages.c.current, messages.c.id == messages.c.whole)
        .scalar_subquery()
    )
    query = (
        select(sessions, sources.c.key, sources.c.wing, sources.c.path, said.label("said"))
        .select_from(joined)
        .where(condition)
        .order_by(sessions.c.ended_at.desc(), sessions.c.source.desc())
        .limit(limit)
        .offset(offset)
    )
    return total, [
        SessionRow(
            row.session,
            row.format,
            mask_secrets(row.title, b""),
            row.wing,
            row.cwd,
            row.said,
            row.started_at,
            row.ended_at,
            row.key,
            row.path,
        )
        for row in cx.execute(query)
    ]


def session_source(cx: Connection, name: str) -> str:
    """Return the source key of a session named by its id, a unique beginning of it, or a drawer's id.

    Raises NotFoundError, or UsageError when several sessions begin with the name.
    """
    query = select(sources.c.key, sessions.c.session).join(sources, sources.c.id == sessions.c.source)
    exact = list(cx.execute(query.where(sessions.c.session == name)))
    begins = exact or list(cx.execute(query.where(func.substr(sessions.c.session, 1, len(name)) == name)))
    if len(begins) > 1:
        raise UsageError(f"{len(begins)} sessions are called {name}...: give more of the id")
    if begins:
        return str(begins[0].key)
    named = named_source(cx, name)
    if named.kind != KIND:
        raise NotFoundError(f"{name} is no session: `castle sessions` shows them")
    return named.key


def message_drawers(cx: Connection, id_: str, key: str | None) -> list[Drawer]:
    """Return the drawers of a message, whole or one slice of it, in the session with this source key.

    Without ``key`` it is looked for everywhere. Raises NotFoundError, or UsageError when several sessions
    have a message with that id.
    """
    named = select(messages, sources.c.key.label("key"), sessions.c.session).select_from(
        messages.join(sources, sources.c.id == messages.c.source).join(
            sessions, sessions.c.source == messages.c.source
        )
    )
    wanted = and_(
        or_(messages.c.whole == id_, messages.c.id == id_),
        messages.c.current,
        sources.c.key == key if key is not None else sources.c.forgotten_at.is_(None),
    )
    rows = list(cx.execute(named.where(wanted).order_by(messages.c.position)))
    if not rows:
        raise NotFoundError(
            f"no message {id_}: `castle get SESSION --session --json` lists the ids there are"
        )
    holding = list(dict.fromkeys(row.session for row in rows))
    if len({row.key for row in rows}) > 1:
        raise UsageError(
            f"{len(holding)} sessions have a message {id_} ({', '.join(holding[:5])}): name one with --in"
        )
    keys = [drawer_key(row.id, row.version) for row in rows]
    found = drawers_of_messages(cx, rows[0].source, keys)
    if not found:
        raise NotFoundError(f"message {id_} has no text in the palace: it was forgotten, or only counted")
    return found


def spoken(cx: Connection, key: str) -> list[Spoken]:
    """Return every message of a session in the order it was filed, each with its drawers joined."""
    source = cx.execute(select(sources.c.id).where(sources.c.key == key)).scalar_one()
    texts: dict[str, list[Drawer]] = {}
    for drawer, _ in members(cx, key):
        texts.setdefault(drawer.message_id, []).append(drawer)
    query = (
        select(messages).where(messages.c.source == source, messages.c.current).order_by(messages.c.position)
    )
    found = []
    for row in cx.execute(query):
        parts = texts.get(drawer_key(row.id, row.version), [])
        visible = [part for part in parts if part.state != "forgotten"]
        found.append(
            Spoken(
                row.id,
                row.parent,
                row.role,
                row.kind,
                row.speaker,
                row.tool,
                row.thread,
                row.said_at,
                row.shown,
                "".join(served(part) for part in visible),
                tuple(part.id for part in visible),
                row.size if not parts else 0,
            )
        )
    return found
