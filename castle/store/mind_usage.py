"""Counts of calls to language models by UTC day and purpose; always inside the caller's transaction."""

from __future__ import annotations

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from castle.clock import to_iso
from castle.store.mind_tables import mem_llm_usage


def day_of(now: int) -> str:
    """Return the UTC day of a time, such as 2026-01-31."""
    return to_iso(now)[:10]


def calls_of(cx: Connection, day: str) -> dict[str, int]:
    """Return how many calls each purpose has taken on a day."""
    query = select(mem_llm_usage.c.purpose, mem_llm_usage.c.calls).where(mem_llm_usage.c.day == day)
    return {purpose: calls for purpose, calls in cx.execute(query)}


def add_usage(
    cx: Connection, day: str, purpose: str, *, calls: int = 0, failures: int = 0, tokens: int = 0
) -> None:
    """Add to the counts of a day and purpose."""
    new = insert(mem_llm_usage).values(
        day=day, purpose=purpose, calls=calls, failures=failures, tokens=tokens
    )
    more = {
        name: getattr(mem_llm_usage.c, name) + getattr(new.excluded, name)
        for name in ("calls", "failures", "tokens")
    }
    cx.execute(new.on_conflict_do_update(index_elements=["day", "purpose"], set_=more))
