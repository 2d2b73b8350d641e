"""Arithmetic of days: units around a day, weekdays near it, thirds and parts of a period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from castle.clock import to_micros


@dataclass(frozen=True, slots=True)
class Period:
    """The days ``[start, end)``; ``weight`` in (0, 1] says how surely they are meant."""

    start: date
    end: date
    weight: float = 1.0

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.end - self.start).days


def micros(day: date) -> int:
    """Return the first instant of a day, UTC."""
    return to_micros(datetime(day.year, day.month, day.day, tzinfo=UTC))


def one_day(day: date) -> Period:
    """Return a day as a period."""
    return Period(day, day + timedelta(days=1))


def months(year: int, month: int, count: int = 1) -> Period:
    """Return ``count`` months from one on; ``month`` may lie outside 1 to 12 and then counts on."""
    return Period(_first(year, month), _first(year, month + count))


def unit_of(name: str, day: date, step: int = 0) -> Period:
    """Return the calendar unit that holds a day, or one ``step`` units later; raises OverflowError.

    Of a weekend, that of the day's week.
    """
    if name in ("minute", "hour", "part", "day"):
        return one_day(day + timedelta(days=step if name in ("part", "day") else 0))
    if name in ("week", "weekend"):
        monday = day - timedelta(days=day.weekday()) + timedelta(weeks=step)
        first = monday + timedelta(days=5 if name == "weekend" else 0)
        return Period(first, monday + timedelta(days=7))
    if name == "month":
        return months(day.year, day.month + step)
    if name == "year":
        return months(day.year + step, 1, 12)
    return months((day.year // 10 + step) * 10, 1, 120)


def some_units_away(name: str, day: date, count: int) -> Period:
    """Return what "``count`` units later" may mean (negative: ago): a day, about a week, a month, a year."""
    if name in ("week", "weekend"):
        there = day + timedelta(weeks=count)
        return Period(there - timedelta(days=3), there + timedelta(days=4))
    if name == "day" and abs(count) > 2:
        there = day + timedelta(days=count)
        return Period(there - timedelta(days=1), there + timedelta(days=2))
    return unit_of(name, day, count)


def shifted(name: str, day: date, count: int) -> date:
    """Return the day ``count`` units later; months and years keep the day of the month as far as it goes."""
    if name in ("month", "year", "decade"):
        factor = {"month": 1, "year": 12, "decade": 120}[name]
        first = _first(day.year, day.month + factor * count)
        last = _first(first.year, first.month + 1) - timedelta(days=1)
        return min(first + timedelta(days=day.day - 1), last)
    return day + timedelta(days=count * (7 if name in ("week", "weekend") else 1))


def third(period: Period, part: int) -> Period:
    """Return the first (0), middle (1) or last (2) third of a period."""
    size = max(1, round(period.days / 3))
    start = (period.start, period.start + timedelta(days=size), period.end - timedelta(days=size))[part]
    return Period(start, start + timedelta(days=size), period.weight)


def numbered(name: str, period: Period, number: int) -> Period | None:
    """Return the ``number``-th unit (from 1; -1 is the last) that begins in a period."""
    first = unit_of(name, period.start)
    if first.start < period.start:
        first = unit_of(name, period.start, 1)
    if number < 0:
        found = unit_of(name, period.end - timedelta(days=1))
        return found if found.start >= period.start else None
    found = unit_of(name, first.start, number - 1)
    return found if found.start < period.end else None


def season(year: int, number: int) -> Period:
    """Return spring (0) to winter (3, which ends in the next year), three whole months."""
    return months(year, 3 + 3 * number, 3)


def latest(made: list[Period], today: date) -> list[Period]:
    """Return those that have begun, the latest first; the older ones are less likely meant."""
    begun = sorted((p for p in made if p.start <= today), key=lambda p: p.start, reverse=True)
    return [Period(p.start, p.end, p.weight if at == 0 else p.weight / 2) for at, p in enumerate(begun)]


def _first(year: int, month: int) -> date:
    return date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
