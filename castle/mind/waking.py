"""What an agent is woken up with of the mind: preferences, what is in mind, and what holds no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy import Connection, select

from castle.clock import to_iso
from castle.mind.preferences.learning import for_wake_up
from castle.mind.working import attention
from castle.store.mind_suggestions import suggestions
from castle.store.mind_tables import mem_facts
from castle.store.mind_working import items
from castle.text.served import mask_secrets

PREFERENCES, IN_MIND, ENDED, CONTRADICTED = 150, 100, 50, 50
"""Tokens of each part at most, where there is room for all of them."""
SHARE = 1 / 3
"""Of a small budget, what the mind may take."""
RECENT_DAYS = 14
"""Days for which it is told that a fact has expired."""
MOST_LINES = 8
LINE = 160
_DAY = 86_400_000_000


def section(
    cx: Connection, wing: str | None, budget: int, salt: bytes, now: int, count: Callable[[str], int]
) -> str:
    """Return the lines of the mind for a wing or for all, "" where there is nothing to say.

    ``budget`` is that of the whole page, in the tokens that ``count`` counts.
    """
    part = min(1.0, SHARE * budget / (PREFERENCES + IN_MIND + ENDED))
    preferred = [str(one.get("text") or one.get("preference_text") or "") for one in for_wake_up(cx, wing)]
    held = [item for item in items(cx) if wing is None or item.wing in ("", wing)]
    held.sort(key=lambda item: (-attention(item, now), item.id))
    minded = [mask_secrets(item.content, salt) for item in held if not item.hypothesis]
    parts = (
        ("Preferences of the user", preferred, PREFERENCES),
        ("In mind from before", minded, IN_MIND),
        ("No longer so", _ended(cx, wing, now), ENDED),
        ("Contradicted by what is believed; to end it", _contradicted(cx, wing, now), CONTRADICTED),
    )
    written = (_lines(title, lines, int(most * part), count) for title, lines, most in parts)
    return "\n".join(text for text in written if text)


def _ended(cx: Connection, wing: str | None, now: int) -> list[str]:
    query = select(mem_facts.c.statement, mem_facts.c.invalidated_at).where(
        mem_facts.c.invalidated_at > now - RECENT_DAYS * _DAY
    )
    if wing is not None:
        query = query.where((mem_facts.c.wing == wing) | mem_facts.c.wing.is_(None))
    rows = cx.execute(query.order_by(mem_facts.c.invalidated_at.desc(), mem_facts.c.id).limit(MOST_LINES))
    return [f"{statement} (until {to_iso(at)[:10]})" for statement, at in rows]


def _contradicted(cx: Connection, wing: str | None, now: int) -> list[str]:
    found = suggestions(cx, now, wing=wing, limit=MOST_LINES)
    return [one.command for one in found if len(one.command) <= LINE]


def _lines(title: str, lines: Iterable[str], most: int, count: Callable[[str], int]) -> str:
    """Return a title and as many lines as have room, each shortened to one line; "" for none."""
    written = title
    shown = 0
    for line in lines:
        text = " ".join(line.split())
        text = text if len(text) <= LINE else f"{text[: LINE - 1]}…"
        longer = f"{written}\n- {text}"
        if shown == MOST_LINES or count(longer) > most:
            break
        written, shown = longer, shown + 1
    return written if shown else ""
