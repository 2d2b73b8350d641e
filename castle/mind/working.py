"""Working memory: about fifty things that are in mind now, whose attention decays by the minute.

Attention is base priority x relevance x exp(-t / 300 s), where t is the time since the last access. Below
0.15 an item is endangered: it is in the preheated zone, with hypotheses that were pushed there, until it is
looked at again or falls below 0.05. What becomes of it is decided at the end of its session, by one of four
ways: kept, filed because its task is done, filed because it was used, or let go of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from castle.store.mind_index import vectors_of
from castle.store.mind_rows import get_meta, note_change, set_meta
from castle.store.mind_values import Working
from castle.store.mind_working import change_item, count_items, get_item, items, remove_item

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

TAU_SECONDS = 300.0
ENDANGERED = 0.15
FAINT = 0.05
"""Attention below which an item is not even preheated."""
CAPACITY = 50
REFRESH_SECONDS = 60.0
REFRESHING_COSINE = 0.5
SESSION_END = 0.3
HYPOTHESIS_PRIORITY = 0.3
HYPOTHESIS_SESSION = "creative_pool"
HYPOTHESIS_PREFIX = "[Hypothesis] "
_REFRESHED = "working_refreshed_at"


@dataclass(frozen=True, slots=True)
class Routing:
    """What becomes of the items of a session that ends: what is kept, filed, and let go of."""

    keep: tuple[Working, ...]
    completed: tuple[Working, ...]
    referenced: tuple[Working, ...]
    discard: tuple[Working, ...]


def attention(item: Working, now: int) -> float:
    """Return how much attention an item has."""
    seconds = max(0, now - item.last_accessed_at) / 1e6
    return item.base_priority * item.relevance * math.exp(-seconds / TAU_SECONDS)


def zone(item: Working, now: int) -> str:
    """Return active, preheated or faint."""
    value = attention(item, now)
    if value < FAINT:
        return "faint"
    return "preheated" if item.hypothesis or value < ENDANGERED else "active"


def to_evict(cx: Connection, now: int) -> list[Working]:
    """Return those items that have to make room for one more: the least attended, then the longest unseen."""
    over = count_items(cx) - CAPACITY + 1
    if over <= 0:
        return []
    return sorted(items(cx), key=lambda item: (attention(item, now), item.last_accessed_at, item.id))[:over]


def access(cx: Connection, id_: str, now: int) -> bool:
    """Look at an item: its time begins anew. False where it is in mind no more."""
    return change_item(cx, id_, last_accessed_at=now, was_referenced=True)


def preactivate(cx: Connection, id_: str, now: int) -> bool:
    """Halve the time that has passed for an item, without counting it as used."""
    item = get_item(cx, id_)
    return change_item(cx, id_, last_accessed_at=item.last_accessed_at + (now - item.last_accessed_at) // 2)


def complete(cx: Connection, ids: Iterable[str]) -> int:
    """Note that the task of items is done; returns of how many."""
    return sum(change_item(cx, id_, task_completed=True) for id_ in ids)


def refresh(palace: Palace, cx: Connection, query: NDArray[np.float32], now: int) -> list[str]:
    """Call endangered items back that are near to what is asked, at most once a minute; returns their ids."""
    last = get_meta(cx, _REFRESHED)
    if last is not None and now - int(last) < REFRESH_SECONDS * 1e6:
        return []
    set_meta(cx, _REFRESHED, str(now))
    faint = [item for item in items(cx) if attention(item, now) < ENDANGERED]
    vectors = vectors_of(palace, cx, "working", [item.id for item in faint])
    called = []
    for item in faint:
        near = float(vectors[item.id] @ query) if item.id in vectors else 0.0
        if near > REFRESHING_COSINE and change_item(cx, item.id, last_accessed_at=now, relevance=near):
            called.append(item.id)
    return called


def route(found: Sequence[Working], now: int) -> Routing:
    """Say what becomes of items at the end of their session."""
    attended = [item for item in found if attention(item, now) > SESSION_END]
    rest = [item for item in found if attention(item, now) <= SESSION_END]
    return Routing(
        keep=tuple(item for item in attended if not item.task_completed),
        completed=tuple(item for item in attended if item.task_completed),
        referenced=tuple(item for item in rest if item.was_referenced),
        discard=tuple(item for item in rest if not item.was_referenced),
    )


def let_go(cx: Connection, found: Sequence[Working], *, reason: str, actor: str, now: int) -> None:
    """Take items out of mind; each leaves a row of history."""
    for item in found:
        remove_item(cx, item.id)
        note_change(cx, "working", item.id, "removed", "", "", reason=reason, actor=actor, now=now)
