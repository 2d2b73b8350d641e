"""Time as Castle keeps it: whole microseconds since the epoch, always UTC."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from castle.errors import UsageError

Clock = Callable[[], int]
"""A function that returns the current time in microseconds since 1970-01-01T00:00:00Z."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def system_clock() -> int:
    """Return the time of the machine in microseconds since the epoch."""
    return time.time_ns() // 1000


def to_iso(micros: int) -> str:
    """Write microseconds since the epoch as ISO 8601 with offset; beyond the year 9999 as a number."""
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
    except OverflowError:
        return f"{micros} microseconds after 1970-01-01T00:00:00+00:00"


def to_micros(moment: datetime) -> int:
    """Turn an aware datetime into microseconds since the epoch; a naive one raises ValueError."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without offset: {moment.isoformat()}")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def parse_iso(text: str, *, end_of_day: bool = False) -> int:
    """Read an ISO date or date-time; without an offset it is UTC, a bare date is its first (or last) instant.

    Raises ValueError when the text is neither, or names no time in the years 1 to 9999 of UTC.
    """
    text = text.strip()
    moment = datetime.fromisoformat(text)
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"a time outside the years 1 to 9999: {text}") from error
    last = timedelta(days=1) - timedelta(microseconds=1)
    return to_micros(moment) + (last // timedelta(microseconds=1) if end_of_day and len(text) == 10 else 0)


def check_span(since: int | None, until: int | None) -> None:
    """Raise UsageError where nothing can lie between two times."""
    if since is not None and until is not None and since >= until:
        raise UsageError("since is not before until: nothing lies between them")
