"""What hosts tell of sessions that go on: events, held until the transcript that tells the same is filed.

An event is known by its id, so the same one twice is one. Its text is found by its words at once, as
something ``pending``; it leaves its row as soon as a drawer holds the same words, or the text itself has
become one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, insert, or_, select, update

from castle.store.ledger import batches, to_json
from castle.store.mind_index import index, unindex
from castle.store.mind_tables import mem_ingest_queue, mem_sessions
from castle.store.mind_working import begin_session
from castle.store.receipt_tables import receipts
from castle.store.schema import drawers
from castle.store.session_tables import messages, sessions

PENDING = "pending"
"""The kind under which the words of a waiting event are found, and the state of one that waits."""
HELD = "held"
"""The state of an event of which nobody can tell yet whether it may be kept."""
_QUEUE = mem_ingest_queue.c


@dataclass(frozen=True, slots=True)
class Queued:
    """An event of a session. ``kind`` is start, prompt, tool, said or end; ``at`` is in microseconds.

    ``state`` is pending or held while it waits, afterwards linked, covered, filed, dropped or ended;
    ``drawer`` is then the one that holds its words, if one does.
    """

    event: str
    session: str
    kind: str
    payload: Mapping[str, Any]
    text: str
    at: int
    state: str = PENDING
    attempts: int = 0
    error: str = ""
    drawer: str | None = None


def queue(cx: Connection, one: Queued, shown: str = "") -> bool:
    """Keep an event; false where it is known already. ``shown`` is the text by whose words it is found."""
    values = {
        "event": one.event,
        "session": one.session,
        "kind": one.kind,
        "payload": to_json(dict(one.payload)),
        "text": one.text,
        "state": one.state,
        "attempts": one.attempts,
        "error": one.error,
        "drawer": one.drawer,
        "at": one.at,
    }
    added = cx.execute(insert(mem_ingest_queue).prefix_with("OR IGNORE").values(**values)).rowcount > 0
    if added and shown:
        index(cx, PENDING, one.event, shown)
    return added


def queued(
    cx: Connection, states: Sequence[str] = (PENDING,), *, session: str | None = None, limit: int = 1_000
) -> list[Queued]:
    """Return events in the order in which they came."""
    query = select(mem_ingest_queue).where(_QUEUE.state.in_(states))
    if session is not None:
        query = query.where(_QUEUE.session == session)
    return [_queued(row) for row in cx.execute(query.order_by(_QUEUE.at, _QUEUE.event).limit(limit))]


def queued_by_id(cx: Connection, ids: Sequence[str]) -> dict[str, Queued]:
    """Return events by their ids; unknown ones are left out."""
    found: dict[str, Queued] = {}
    for part in batches(ids):
        rows = cx.execute(select(mem_ingest_queue).where(_QUEUE.event.in_(part)))
        found.update((row.event, _queued(row)) for row in rows)
    return found


def settle(cx: Connection, event: str, state: str, *, drawer: str | None = None, error: str = "") -> None:
    """Note what became of an event; its text goes out of the queue."""
    unindex(cx, PENDING, event)
    values = {"state": state, "drawer": drawer, "error": error, "text": ""}
    cx.execute(update(mem_ingest_queue).where(_QUEUE.event == event).values(**values))


def change_queued(cx: Connection, event: str, **values: Any) -> None:
    """Change columns of an event that waits; ``payload`` is an object."""
    if "payload" in values:
        values["payload"] = to_json(dict(values["payload"]))
    cx.execute(update(mem_ingest_queue).where(_QUEUE.event == event).values(**values))


def last_prompt(cx: Connection, session: str) -> Queued | None:
    """Return what was asked last in a session, None where nothing was that still waits."""
    query = select(mem_ingest_queue).where(
        _QUEUE.session == session, _QUEUE.kind == "prompt", _QUEUE.state == PENDING
    )
    row = cx.execute(query.order_by(_QUEUE.at.desc(), _QUEUE.event).limit(1)).first()
    return None if row is None else _queued(row)


def count_queued(cx: Connection) -> dict[str, int]:
    """Return how many events there are in each state."""
    query = select(_QUEUE.state, func.count()).group_by(_QUEUE.state)
    return {state: int(count) for state, count in cx.execute(query)}


def refused(cx: Connection) -> tuple[int, str]:
    """Return how many waiting events could not be filed when that was tried, and why the last could not."""
    tried = and_(_QUEUE.state == PENDING, _QUEUE.attempts > 0)
    last = select(_QUEUE.error).where(tried).order_by(_QUEUE.at.desc()).limit(1)
    count = cx.execute(select(func.count()).select_from(mem_ingest_queue).where(tried)).scalar_one()
    return count, cx.execute(last).scalar() or ""


def forget_settled(cx: Connection, before: int) -> int:
    """Forget events that were settled and came before a time; returns how many."""
    done = and_(_QUEUE.at < before, _QUEUE.state.not_in((PENDING, HELD)))
    return cx.execute(delete(mem_ingest_queue).where(done)).rowcount


def holding(cx: Connection, session: str, digests: Sequence[bytes], call: str = "") -> list[str]:
    """Return the drawers of a session's transcript that hold texts or a call of a tool; none unless all do.

    ``digests`` are the SHA-256 of exact texts, ``call`` is the id that the host gave the call.
    """
    ours = (
        select(messages.c.source, messages.c.id, messages.c.sha256)
        .join(sessions, sessions.c.source == messages.c.source)
        .where(sessions.c.session == session, messages.c.current)
    )
    wanted: list[ColumnElement[bool]] = [messages.c.sha256.in_(digests)] if digests else []
    if call:
        wanted.append(messages.c.metadata.contains(json.dumps(call), autoescape=True))
    if not session or not wanted:
        return []
    found = list(cx.execute(ours.where(or_(*wanted))))
    if digests and not set(digests) <= {bytes(row.sha256) for row in found}:
        return []
    ids: list[str] = []
    for row in found:
        query = select(drawers.c.id).where(
            drawers.c.source == row.source, drawers.c.message_id == row.id, drawers.c.state == "current"
        )
        ids += cx.execute(query.order_by(drawers.c.rid)).scalars()
    return list(dict.fromkeys(ids))


def asked_before(cx: Connection, drawer: str) -> str | None:
    """Return the first drawer of what the user said last before a drawer of the same transcript."""
    here = (
        select(messages.c.source, messages.c.position)
        .join(drawers, and_(drawers.c.source == messages.c.source, drawers.c.message_id == messages.c.id))
        .where(drawers.c.id == drawer, messages.c.current)
        .subquery()
    )
    before = and_(messages.c.source == here.c.source, messages.c.position < here.c.position)
    return _first_drawer(cx, select(messages.c.source, messages.c.id).join(here, before))


def asked_last(cx: Connection, session: str) -> str | None:
    """Return the first drawer of what the user said last in a session whose transcript is filed."""
    ours = sessions.c.source == messages.c.source
    query = select(messages.c.source, messages.c.id).join(sessions, ours)
    return _first_drawer(cx, query.where(sessions.c.session == session))


def _first_drawer(cx: Connection, query: Select[Any]) -> str | None:
    spoken = query.where(messages.c.role == "user", messages.c.kind == "message", messages.c.current)
    row = cx.execute(spoken.order_by(messages.c.position.desc()).limit(1)).first()
    if row is None:
        return None
    ids = select(drawers.c.id).where(
        drawers.c.source == row.source, drawers.c.message_id == row.id, drawers.c.state == "current"
    )
    found: str | None = cx.execute(ids.order_by(drawers.c.rid).limit(1)).scalar()
    return found


def of_turn(cx: Connection, session: str, turn: str) -> str | None:
    """Return the first drawer of a turn of a recorded session that was filed, None where it was not."""
    ids = [f"{turn}:{role}" for role in ("user", "assistant")]
    query = (
        select(drawers.c.id)
        .join(sessions, sessions.c.source == drawers.c.source)
        .where(sessions.c.session == session, drawers.c.message_id.in_(ids), drawers.c.state == "current")
    )
    found: str | None = cx.execute(query.order_by(drawers.c.rid).limit(1)).scalar()
    return found


def calls_after(cx: Connection, session: str, asked: str) -> tuple[int, int]:
    """Return how many calls of tools after something asked went well, and how many did not."""
    query = select(_QUEUE.payload).where(
        _QUEUE.session == session, _QUEUE.kind == "tool", _QUEUE.payload.contains(asked, autoescape=True)
    )
    told = [json.loads(payload) for payload in cx.execute(query).scalars()]
    went = [one.get("success") for one in told if one.get("asked") == asked]
    return went.count(True), went.count(False)


def saved_after(cx: Connection, session: str, at: int) -> bool:
    """Whether a transcript of a session was saved whole after a time."""
    query = select(receipts.c.id).where(
        receipts.c.session == session, receipts.c.state == "ok", receipts.c.at >= at
    )
    return bool(session) and cx.execute(query.limit(1)).first() is not None


def has_transcript(cx: Connection, session: str) -> bool:
    """Whether a transcript of a session is known, by what the host said or because it was filed."""
    told = select(mem_sessions.c.id).where(mem_sessions.c.id == session, mem_sessions.c.transcript != "")
    filed = select(sessions.c.source).where(sessions.c.session == session)
    return any(cx.execute(query.limit(1)).first() is not None for query in (told, filed))


def see_session(
    cx: Connection,
    id_: str,
    now: int,
    *,
    platform: str = "",
    wing: str = "",
    cwd: str = "",
    transcript: str = "",
    succeeded: int = 0,
    failed: int = 0,
) -> None:
    """Note that a session is going on, where, and how many calls of tools went well and did not."""
    begin_session(cx, id_, now, platform=platform, wing=wing, cwd=cwd)
    row = cx.execute(select(mem_sessions).where(mem_sessions.c.id == id_)).one()
    told = _seen(row.offsets_json)
    told["seen_at"] = max(now, told.get("seen_at", 0))
    told["succeeded"] = told.get("succeeded", 0) + succeeded
    told["failed"] = told.get("failed", 0) + failed
    given = {"platform": platform, "wing": wing, "cwd": cwd, "transcript": transcript}
    values: dict[str, Any] = {name: value for name, value in given.items() if value}
    values["offsets_json"] = to_json(told)
    cx.execute(update(mem_sessions).where(mem_sessions.c.id == id_).values(**values))


def idle_sessions(cx: Connection, before: int) -> list[str]:
    """Return the sessions that a host told of, that have not ended, and were last seen before a time."""
    query = select(mem_sessions.c.id, mem_sessions.c.offsets_json).where(mem_sessions.c.ended_at.is_(None))
    seen = ((row.id, _seen(row.offsets_json).get("seen_at")) for row in cx.execute(query))
    return sorted(id_ for id_, at in seen if at is not None and at < before)


def session_row(cx: Connection, id_: str) -> Mapping[str, Any] | None:
    """Return what is known of a session: wing, cwd, transcript, ended_at, seen_at, succeeded, failed."""
    row = cx.execute(select(mem_sessions).where(mem_sessions.c.id == id_)).first()
    return None if row is None else {**row._mapping, **_seen(row.offsets_json)}


def _seen(text: str) -> dict[str, int]:
    loaded = json.loads(text)
    return loaded if isinstance(loaded, dict) else {}


def _queued(row: Any) -> Queued:
    return Queued(
        row.event,
        row.session,
        row.kind,
        json.loads(row.payload),
        row.text,
        row.at,
        row.state,
        row.attempts,
        row.error,
        row.drawer,
    )
