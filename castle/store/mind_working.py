"""Working memory: what is in mind at the moment, and the sessions it belongs to.

Items are shared by all sessions of a palace. An item is not filed; its exact words stand here until the end
of its session decides what becomes of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from castle.errors import NotFoundError, UsageError
from castle.store.ledger import to_json
from castle.store.mind_index import index, unindex
from castle.store.mind_rows import new_id
from castle.store.mind_tables import mem_sessions, mem_working
from castle.store.mind_values import Working
from castle.text.served import mask_secrets


def add_item(
    cx: Connection,
    content: str,
    *,
    session: str,
    salt: bytes,
    now: int,
    agent: str = "",
    wing: str = "",
    base_priority: float = 1.0,
    hypothesis: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, object] | None = None,
) -> Working:
    """Keep something in mind, for a session."""
    if not content.strip():
        raise UsageError("the text is empty: give what is to be kept in mind")
    id_ = new_id("working")
    cx.execute(
        insert(mem_working).values(
            id=id_,
            session=session,
            agent=agent,
            wing=wing,
            content=content,
            base_priority=base_priority,
            relevance=1.0,
            last_accessed_at=now,
            was_referenced=False,
            task_completed=False,
            hypothesis=hypothesis,
            tags_json=to_json(list(tags)),
            metadata_json=to_json(dict(metadata or {})),
            created_at=now,
        )
    )
    index(cx, "working", id_, mask_secrets(content, salt))
    return get_item(cx, id_)


def get_item(cx: Connection, id_: str) -> Working:
    """Return an item; raises NotFoundError for one that is in mind no more."""
    row = cx.execute(select(mem_working).where(mem_working.c.id == id_)).first()
    if row is None:
        raise NotFoundError(f"nothing called {id_} is in working memory: it was let go of or filed")
    return _item(row)


def items(cx: Connection, session: str | None = None) -> list[Working]:
    """Return everything in mind, the oldest access first."""
    query = select(mem_working).order_by(mem_working.c.last_accessed_at, mem_working.c.id)
    if session is not None:
        query = query.where(mem_working.c.session == session)
    return [_item(row) for row in cx.execute(query)]


def count_items(cx: Connection) -> int:
    """Return how much is in mind."""
    return int(cx.execute(select(func.count()).select_from(mem_working)).scalar_one())


def change_item(cx: Connection, id_: str, **values: Any) -> bool:
    """Change columns of an item; false where there is none."""
    return cx.execute(update(mem_working).where(mem_working.c.id == id_).values(**values)).rowcount > 0


def remove_item(cx: Connection, id_: str) -> None:
    """Let go of an item."""
    unindex(cx, "working", id_)
    cx.execute(delete(mem_working).where(mem_working.c.id == id_))


def begin_session(
    cx: Connection, id_: str, now: int, *, platform: str = "", wing: str = "", cwd: str = ""
) -> None:
    """Note that a session is going on; one that was ended goes on again."""
    if cx.execute(update(mem_sessions).where(mem_sessions.c.id == id_).values(ended_at=None)).rowcount:
        return
    cx.execute(
        insert(mem_sessions).values(
            id=id_, platform=platform, wing=wing, cwd=cwd, transcript="", offsets_json="{}", started_at=now
        )
    )


def end_session(cx: Connection, id_: str, now: int) -> None:
    """Note that a session is over."""
    begin_session(cx, id_, now)
    cx.execute(update(mem_sessions).where(mem_sessions.c.id == id_).values(ended_at=now))


def count_sessions(cx: Connection) -> tuple[int, int]:
    """Return how many sessions are known and how many of them go on."""
    query = select(func.count(), func.count().filter(mem_sessions.c.ended_at.is_(None)))
    total, going = cx.execute(query.select_from(mem_sessions)).one()
    return int(total), int(going)


def _item(row: Any) -> Working:
    return Working(
        row.id,
        row.session,
        row.agent,
        row.wing,
        row.content,
        row.base_priority,
        row.relevance,
        row.last_accessed_at,
        row.was_referenced,
        row.task_completed,
        row.hypothesis,
        tuple(json.loads(row.tags_json)),
        json.loads(row.metadata_json),
        row.created_at,
    )
