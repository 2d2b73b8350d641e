"""What hosts tell of a session while it goes on, and what becomes of it.

The transcript is the only source of the words of a session. Until it is filed, what was asked can be found
all the same: as something pending, and in working memory. What a transcript holds by now is let go of here;
what no transcript will ever tell is filed as it came. Calls of tools that went well or badly are counted for
what was asked before them. At the end of a session, working memory goes its four ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castle.errors import CastleError, ConfigError
from castle.mind.environment.starting import check_at_start
from castle.mind.events import Event, read
from castle.mind.given import shown
from castle.mind.outcomes import ACTOR, tell_calls, tell_outcome
from castle.mine.optout import opted_out
from castle.mine.whereabouts import Whereabouts
from castle.store.mind_episodes import describe, get_episode
from castle.store.mind_ingest import (
    HELD,
    PENDING,
    Queued,
    asked_last,
    change_queued,
    count_queued,
    forget_settled,
    has_transcript,
    holding,
    idle_sessions,
    last_prompt,
    queue,
    queued,
    saved_after,
    see_session,
    session_row,
    settle,
)
from castle.store.mind_working import change_item, items
from castle.store.projection import legal_text
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from castle.mind.mind import Mind

IDLE_SECONDS = 1_800
"""After this long without a word a session is taken for ended."""
GRACE_SECONDS = 30
"""How much later than an event its transcript must have been saved, to hold what no piece of it repeats."""
MISSING_SECONDS = 86_400
"""How long a transcript that was named may stay away before what was told is filed in its place."""
KEPT_SECONDS = 30 * 86_400
"""How long an event that was settled is known again."""
AT_ONCE = 200
PRIORITY = 0.6
"""What something asked is worth in working memory beside what an agent puts there itself."""
ROOM = "sessions"
MASKED = "«secret:"
_OF_HOOKS = {"session-start": "start", "session-end": "end", "post-tool-use": "tool"}


@dataclass(frozen=True, slots=True)
class Received:
    """What was received: the id, whether it was new, and how many events wait; ``reason`` it is not kept."""

    event_id: str
    new: bool
    waiting: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Absorbed:
    """What became of events: in a drawer of their transcript, filed as they came, let go; sessions ended."""

    linked: int = 0
    filed: int = 0
    dropped: int = 0
    ended: tuple[str, ...] = ()
    waiting: int = 0

    def __bool__(self) -> bool:
        """Whether anything was done."""
        return bool(self.linked or self.filed or self.dropped or self.ended)


def receive(mind: Mind, body: object, home: Path) -> Received:
    """Keep what a host tells, once; what it says can be found when this returns.

    ``home`` is Castle's own directory. Raises UsageError for what is no event.
    """
    events = read(body)
    new = [event for event in events if _kept(mind, event, home)]
    for event in new:
        if event.kind == "prompt":
            _bear_in_mind(mind, event)
    with mind.palace.ledger.read() as cx:
        waiting = count_queued(cx).get(PENDING, 0)
    known = events[0].id if len(events) == 1 else events[0].id.rpartition(":")[0]
    return Received(known, bool(new), waiting, _opted_out(events[0], home)[0])


def absorb(mind: Mind, home: Path, told: Iterable[Event] = ()) -> Absorbed:
    """Settle what can be settled by now, and end the sessions that are over.

    For whoever has filed transcripts: ``told`` are starts and ends of sessions, and calls of tools, that it
    has heard of. Safe to call from several processes and to kill: what was filed twice is one drawer.
    """
    palace = mind.palace
    for event in told:
        _kept(mind, event, home, event.at)
    now = palace.ledger.clock()
    with palace.ledger.read() as cx:
        waiting = queued(cx, (HELD, PENDING), limit=AT_ONCE)
        idle = idle_sessions(cx, now - IDLE_SECONDS * 1_000_000)
    counts = {"linked": 0, "filed": 0, "dropped": 0}
    for one in waiting:
        if one.state == HELD:
            one = _looked_at_again(mind, one, home)
        if one.kind == "start" and one.state == PENDING:
            _started(mind, one)
        elif one.kind != "end" and one.state == PENDING and (state := _settled(mind, one, now)):
            counts["linked" if state == "linked" else "filed" if state == "filed" else "dropped"] += 1
    ended = _ended(mind, [one for one in waiting if one.kind == "end"], idle, now)
    with palace.ledger.write() as cx:
        forget_settled(cx, now - KEPT_SECONDS * 1_000_000)
        left = count_queued(cx).get(PENDING, 0)
    return Absorbed(**counts, ended=tuple(ended), waiting=left)


def bear_in_mind(mind: Mind, session: str) -> None:
    """Have what was asked last in a session, as far as its transcript is filed, in working memory."""
    palace = mind.palace
    with palace.ledger.read() as cx:
        asked = asked_last(cx, session)
        episode = None if asked is None else get_episode(cx, asked)
        over = (session_row(cx, session) or {}).get("ended_at") is not None
    # What is masked would be another text than that of its drawer, and be filed beside it in the end.
    if episode is not None and not over and MASKED not in episode.text:
        _remember(mind, session, episode.text, {"drawer": episode.id})


def anything_to_absorb(mind: Mind) -> bool:
    """Whether ``absorb`` could have anything to do; cheap."""
    with mind.palace.ledger.read() as cx:
        counts = count_queued(cx)
        before = mind.palace.ledger.clock() - IDLE_SECONDS * 1_000_000
        return bool(counts.get(PENDING) or counts.get(HELD) or idle_sessions(cx, before))


def _kept(mind: Mind, event: Event, home: Path, at: int | None = None) -> bool:
    """Queue an event, with what it says of its session; false where it is known or is not to be kept.

    ``at`` is when it happened, where that is known from this machine; otherwise it is now.
    """
    palace = mind.palace
    reason, state = _opted_out(event, home)
    at = at or palace.ledger.clock()
    text = legal_text(event.visible) if event.role == "user" else legal_text(event.text)
    if not state and event.kind == "note" or not text.strip() and event.kind in ("prompt", "said"):
        state = "noted"
    kept = state in ("", HELD)
    one = Queued(
        event.id,
        event.session,
        event.kind,
        _payload(event, palace.salt) if kept else {},
        text if kept else "",
        at,
        state=state or PENDING,
        error=reason,
    )
    found_by = mask_secrets(text, palace.salt) if event.kind in ("prompt", "said") and not state else ""
    with palace.ledger.write() as cx:
        if not queue(cx, one, found_by):
            return False
        if state not in ("dropped", HELD):
            _tell_session(cx, mind, event, at)
    return not reason


def _opted_out(event: Event, home: Path) -> tuple[str, str]:
    """Return why an event is not kept, and the state it gets; ("", "") where it is."""
    try:
        reason = opted_out([event.cwd] if event.cwd else [], home)
    except ConfigError as error:
        return str(error), HELD
    return (f"opted out: {reason}", "dropped") if reason else ("", "")


def _looked_at_again(mind: Mind, one: Queued, home: Path) -> Queued:
    """Try again to tell whether an event may be kept."""
    reason, state = _opted_out(Event(one.event, one.kind, cwd=str(one.payload.get("cwd") or "")), home)
    with mind.palace.ledger.write() as cx:
        if state == "dropped":
            settle(cx, one.event, state, error=reason)
        elif not state:
            change_queued(cx, one.event, state=PENDING, error="")
    return replace(one, state=state or PENDING)


def _payload(event: Event, salt: bytes) -> dict[str, Any]:
    told = {
        "platform": event.platform,
        "cwd": event.cwd,
        "transcript": event.transcript,
        "role": event.role,
        "tool": event.tool,
        "call": event.call,
        "success": event.success,
        "parts": [part.hex() for part in event.parts] if event.kind == "prompt" else [],
        "tags": list(event.tags),
        "metadata": dict(event.metadata),
        "memory_type": event.memory_type,
    }
    return {name: shown(value, salt) for name, value in told.items() if value not in (None, "", [], {})}


def _tell_session(cx: Connection, mind: Mind, event: Event, at: int) -> None:
    if not event.session:
        return
    asked = last_prompt(cx, event.session) if event.kind == "tool" and event.success is not None else None
    if asked is not None:
        name = "succeeded" if event.success else "failed"
        payload = {**asked.payload, name: int(asked.payload.get(name, 0)) + 1}
        change_queued(cx, asked.event, payload=payload)
    see_session(
        cx,
        event.session,
        at,
        platform=event.platform,
        wing=_wing(cx, mind, event.cwd),
        cwd=legal_text(event.cwd),
        transcript=event.transcript,
        succeeded=event.success is True,
        failed=event.success is False,
    )


def _wing(cx: Connection, mind: Mind, cwd: str) -> str:
    return Whereabouts(None, mind.wing).wing_of(cx, "", cwd, "") if cwd else ""


def _bear_in_mind(mind: Mind, event: Event) -> None:
    """Put what was asked into working memory, or look at it again."""
    text = legal_text(event.visible)
    if text.strip():
        _remember(mind, event.session, text, {"event": event.id})


def _remember(mind: Mind, session: str, text: str, metadata: Mapping[str, str]) -> None:
    """Have something in working memory; that there is no room loses nothing."""
    palace = mind.palace
    now = palace.ledger.clock()
    with palace.ledger.write() as cx:
        wing = (session_row(cx, session) or {}).get("wing") or None
        known = [item for item in items(cx, session) if item.content == text] if session else []
        for item in known:
            change_item(cx, item.id, last_accessed_at=now)
    if not known:
        options = {"session_id": session or None, "base_priority": PRIORITY, "wing": wing}
        with suppress(CastleError):
            mind.save(text, "working", {**options, "metadata": dict(metadata)})


def _settled(mind: Mind, one: Queued, now: int) -> str:
    """Settle an event whose words stand elsewhere or never will; return its state, "" while it waits."""
    palace = mind.palace
    parts = [bytes.fromhex(part) for part in one.payload.get("parts", ())]
    with palace.ledger.write() as cx:
        held = holding(cx, one.session, parts, str(one.payload.get("call", "")))
        if held:
            tell_outcome(cx, one, held[0], now)
            tell_calls(cx, one, held[0], now)
            settle(cx, one.event, "linked", drawer=held[0])
            return "linked"
        end = max((end.at for end in queued(cx, session=one.session) if end.kind == "end"), default=0)
        if saved_after(cx, one.session, end or one.at + GRACE_SECONDS * 1_000_000):
            settle(cx, one.event, "covered")
            return "covered"
        if not _is_source(cx, one, now):
            return ""
        if not one.text.strip():
            settle(cx, one.event, "dropped")
            return "dropped"
    return _filed(mind, one)


def _is_source(cx: Connection, one: Queued, now: int) -> bool:
    """Whether no transcript tells what an event does: there is none, or it has stayed away for a day."""
    if one.kind == "said":
        return True
    waited = (now - one.at) / 1e6
    if one.payload.get("transcript") or has_transcript(cx, one.session):
        return waited > MISSING_SECONDS
    row = session_row(cx, one.session) if one.session else None
    over = any(end.kind == "end" for end in queued(cx, session=one.session)) if one.session else False
    return over or waited > IDLE_SECONDS or (row is not None and row["ended_at"] is not None)


def _filed(mind: Mind, one: Queued) -> str:
    """File an event as it came."""
    palace, role = mind.palace, str(one.payload.get("role") or "user")
    with palace.ledger.read() as cx:
        wing = (session_row(cx, one.session) or {}).get("wing") or None
    memory_type = str(one.payload.get("memory_type") or "episodic")
    options: dict[str, Any] = {
        "session_id": one.session or None,
        "tags": one.payload.get("tags") or None,
        "metadata": {**one.payload.get("metadata", {}), **_about(one)},
        "wing": wing,
    }
    if memory_type == "episodic":
        options |= {"role": role, "room": ROOM}
    try:
        memory = mind.save(one.text, memory_type, options).memory
    except CastleError as error:
        with palace.ledger.write() as cx:
            change_queued(cx, one.event, attempts=one.attempts + 1, error=str(error)[:500])
        return ""
    now = palace.ledger.clock()
    with palace.ledger.write() as cx:
        if memory.layer == "episodic":
            for id_ in memory.drawer_ids:
                describe(cx, id_, now, origin=role)
            tell_outcome(cx, one, memory.id, now)
        settle(cx, one.event, "filed", drawer=memory.drawer_ids[0] if memory.drawer_ids else None)
    return "filed"


def _about(one: Queued) -> dict[str, object]:
    return {name: one.payload[name] for name in ("platform", "tool", "call") if one.payload.get(name)}


def _started(mind: Mind, one: Queued) -> None:
    """Look whether what is believed of the project of a session that begins is still so."""
    with mind.palace.ledger.read() as cx:
        wing = (session_row(cx, one.session) or {}).get("wing") or ""
    error = ""
    try:
        check_at_start(mind.palace, str(one.payload.get("cwd") or ""), wing, actor=ACTOR)
    except (CastleError, OSError) as failure:
        error = str(failure)[:500]
    with mind.palace.ledger.write() as cx:
        settle(cx, one.event, "noted", error=error)


def _ended(mind: Mind, ends: list[Queued], idle: list[str], now: int) -> list[str]:
    """Route the working memory of sessions that are over and of which nothing waits for a transcript."""
    ended: list[str] = []
    for session in dict.fromkeys([*(one.session for one in ends), *idle]):
        since = max((one.at for one in ends if one.session == session), default=0)
        with mind.palace.ledger.read() as cx:
            open_ = [one for one in queued(cx, session=session) if one.kind != "end"]
        if open_ and now - since < MISSING_SECONDS * 1_000_000:
            continue
        if session:
            mind.session_end(session)
            ended.append(session)
        with mind.palace.ledger.write() as cx:
            for one in ends:
                if one.session == session:
                    settle(cx, one.event, "ended")
    return ended


def told_by_hooks(lines: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Return the starts and ends of sessions and the calls of tools among the events of a spool."""
    found = []
    for line in lines:
        kind = _OF_HOOKS.get(str(line.get("hook")), "")
        session, at = str(line.get("session") or ""), line.get("at")
        call, success = str(line.get("call") or ""), line.get("success")
        if kind and session and isinstance(at, int):
            found.append(
                Event(
                    # The id that the same call has where a host tells of it by itself.
                    f"{session}:{kind}:{call or at}",
                    kind,
                    tool=str(line.get("tool") or ""),
                    call=call,
                    success=success if isinstance(success, bool) else None,
                    session=session,
                    platform=str(line.get("harness") or ""),
                    cwd=legal_text(str(line.get("cwd") or "")),
                    transcript=legal_text(str(line.get("transcript") or "")),
                    at=at,
                )
            )
    return found
