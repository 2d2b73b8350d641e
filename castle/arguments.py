"""The arguments of ``Castle``: read, checked, and turned down in one line."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import overload

from castle.clock import parse_iso
from castle.errors import UsageError
from castle.records import KINDS, ROLES
from castle.store.projection import legal_text

MAX_LIMIT = 10_000
MAX_QUERY = 100_000


def moment(name: str, text: str | None, *, end_of_day: bool = False) -> int | None:
    """Read an ISO date or time into microseconds; raises UsageError."""
    if text is None:
        return None
    try:
        return parse_iso(text, end_of_day=end_of_day)
    except ValueError as error:
        raise UsageError(
            f"{name} {text!r} is no ISO date or time: write 2026-05-31 or 2026-05-31T09:30:00+02:00"
        ) from error


def check_query(query: str, limit: int) -> None:
    """Raise UsageError for an empty or endless query and for an impossible limit."""
    if not query.strip():
        raise UsageError('the query is empty: castle search "what you look for"')
    if len(query) > MAX_QUERY:
        raise UsageError(f"the query has {len(query)} characters, {MAX_QUERY} are the most")
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"limit {limit} is not between 1 and {MAX_LIMIT}")


def check_kinds(kinds: Sequence[str], role: str | None = None) -> tuple[str, ...]:
    """Return the kinds of drawers that were asked for; raises UsageError for one that there is not."""
    given = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    for kind in given:
        if kind not in KINDS:
            raise UsageError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    if role is not None and role not in ROLES:
        raise UsageError(f"role {role!r} is none of {', '.join(ROLES)}")
    return given


def place(name: str, text: str | None) -> str | None:
    """Return a wing or room as databases take it; raises UsageError for a blank one."""
    if text is not None and not text.strip():
        raise UsageError(f"the {name} is empty: `castle status` shows those there are")
    return legal(text)


def one_of(*given: str | None) -> None:
    """Raise UsageError unless just one way of naming what is meant was given."""
    if sum(value is not None for value in given) != 1:
        raise UsageError("name one of: a drawer id, --source, --wing")


def user() -> str:
    """Return who is at work, for the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


@overload
def legal(text: str) -> str: ...
@overload
def legal(text: None) -> None: ...


def legal(text: str | None) -> str | None:
    """Return a text as every database takes it, without lone surrogates."""
    return None if text is None else legal_text(text)
