"""How what was asked went, as far as the calls of tools after it tell; somebody's own word stays."""

from __future__ import annotations

from sqlalchemy import Connection

from castle.store.mind_episodes import get_episode, set_outcome
from castle.store.mind_ingest import Queued, asked_before, calls_after, change_queued
from castle.store.mind_rows import history

ACTOR = "ingest"
"""Who notes it: what somebody else has said is left alone."""


def tell_outcome(cx: Connection, one: Queued, drawer: str, now: int) -> None:
    """Note how what was asked went, as far as the calls of tools after it tell; nobody's word is changed."""
    good, bad = (int(one.payload.get(name, 0)) for name in ("succeeded", "failed"))
    if not good + bad or get_episode(cx, drawer).outcome_valence is not None:
        return
    _note_calls(cx, drawer, good, bad, now)


def tell_calls(cx: Connection, one: Queued, call: str, now: int) -> None:
    """Let a call of a tool count for how it went with what was asked before it, unless somebody has said."""
    if one.kind != "tool" or "success" not in one.payload or (asked := asked_before(cx, call)) is None:
        return
    change_queued(cx, one.event, payload={**one.payload, "asked": asked})
    said = [change for change in history(cx, "drawer", asked) if change.what == "outcome_valence"]
    if get_episode(cx, asked).outcome_valence is None or (said and said[-1].actor == ACTOR):
        _note_calls(cx, asked, *calls_after(cx, one.session, asked), now)


def _note_calls(cx: Connection, drawer: str, good: int, bad: int, now: int) -> None:
    reason = f"{good} of {good + bad} calls of tools went well"
    set_outcome(cx, drawer, (good - bad) / (good + bad), reason=reason, actor=ACTOR, now=now)
