"""The times that a question speaks of, as intervals: "last Tuesday", "in March 2023", "before 2 May".

English, German, Spanish and French are read, all at once. What may as well be something else needs company:
``may`` and ``march`` a number or a preposition, a year a preposition, ``fall`` a word like ``last``. Days are
those of UTC, weeks begin on Monday, seasons are the northern ones and begin with a month. What leaves the
year open means the last time it was so and, less likely, the years before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from castle.text import periods
from castle.text.periods import Period
from castle.text.when_points import Part, Points
from castle.text.when_words import clauses

BEGINNING = -(2**62)
"""The start of an interval that reaches back without end."""
ENDLESS = 2**62
"""The end of an interval that goes on without end."""

_FILLERS = 4


@dataclass(frozen=True, slots=True)
class Interval:
    """Microseconds ``[start, end)`` that ``phrase`` of a question means.

    ``weight`` in (0, 1] says how surely. One phrase may have several intervals. ``named`` is a holiday: who
    writes of it uses its name, as nobody does of another day.
    """

    start: int
    end: int
    phrase: str
    weight: float = 1.0
    named: bool = False


def intervals(text: str, now: int) -> list[Interval]:
    """Return the times that a text speaks of, in its order; ``now`` is in microseconds since the epoch.

    Never raises: what cannot be read, or lies outside the years 1 to 9999, is left out.
    """
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=now)
    except OverflowError:
        return []
    found: list[Interval] = []
    for tokens in clauses(text):
        reader = _Reader(tokens, now, moment.date())
        at = 0
        while at < len(tokens):
            part = None if tokens[at].plain else reader.times_at(at)
            if part is None:
                at += 1
                continue
            phrase = text[tokens[reader.first_of(at)].start : tokens[part.after - 1].end]
            found += (interval for interval in _intervals(part, phrase) if interval not in found)
            at = part.after
    return found


def _intervals(part: Part, phrase: str) -> list[Interval]:
    if part.span is not None:
        return [Interval(*part.span, phrase)]
    return [
        Interval(periods.micros(p.start), periods.micros(p.end), phrase, p.weight, part.named)
        for p in part.periods
    ]


class _Reader(Points):
    """Reads points with the words before and between them that make a stretch of time of them."""

    def times_at(self, at: int) -> Part | None:
        """Return what begins at a token, with the words that bound it; None when nothing does."""
        try:
            return self._range(at) or self._bounded(at) or self.point(at)
        except (ValueError, OverflowError):
            return None

    def first_of(self, at: int) -> int:
        """Return where a phrase begins that was read at a token: ``last`` may stand before it."""
        return at - 1 if self.is_(at - 1, "last", "next", "this") else at

    def _bounded(self, at: int) -> Part | None:
        """``before 2 May``, ``since Monday``, ``until March``, ``before the migration on 2 May``."""
        if not self.is_(at, "before", "after", "since", "until", "by") or self.ago(at):
            return None
        start = self.past(at + 1, "articles", "on", "of", "in")
        direct = self.point(start)
        if direct is not None and direct.periods:
            return self._bound(at, direct, inside=False)
        if not self.is_(at, "before", "after", "since") or not self.is_(at + 1, "articles", "possessives"):
            return None
        for there in range(at + 3, min(at + 4 + _FILLERS, len(self.tokens))):
            indirect = self.point(there)
            if indirect is not None and indirect.periods and self.led_by(there, "on", "in", "of"):
                return self._bound(at, indirect, inside=True)
        return None

    def _bound(self, at: int, part: Part, *, inside: bool) -> Part | None:
        """Return what lies on one side of a point; ``inside``: of something that happened within it."""
        start, end = periods.micros(part.periods[0].start), periods.micros(part.periods[0].end)
        if self.is_(at, "since"):
            return Part(part.after, span=(start, self.now + 1)) if start <= self.now else None
        if self.is_(at, "after"):
            return Part(part.after, span=(start if inside else end, ENDLESS))
        return Part(part.after, span=(BEGINNING, start if self.is_(at, "before") and not inside else end))

    def _range(self, at: int) -> Part | None:
        """``between May and July 2023``, ``from Monday to Wednesday``."""
        if not self.is_(at, "between", "from"):
            return None
        joint = "and" if self.is_(at, "between") else "to"
        start = self.past(at + 1, "articles", "on")
        first = self.trusting(start)
        if first is None:
            return self._days(start, joint)
        if not first.periods or not self.is_(first.after, joint):
            return None
        second = self.trusting(self.past(first.after, joint, "articles", "on"))
        if second is None or not second.periods:
            return None
        ends = [(a, b) for a in _possible(first, second) for b in second.periods if a.start <= b.start]
        if not ends:
            return None
        a, b = max(ends, key=lambda pair: (pair[1].start, pair[0].start))
        return Part(second.after, (Period(a.start, b.end),))

    def _days(self, at: int, joint: str) -> Part | None:
        """``between 1 and 14 March``: the first day is of the month of the second."""
        number = self.tokens[at].number if at < len(self.tokens) else None
        last = self.point(self.past(at + 1, joint, "articles", "on")) if self.is_(at + 1, joint) else None
        if number is None or last is None or [period.days for period in last.periods[:1]] != [1]:
            return None
        made = [
            Period(day.start.replace(day=number), day.end, day.weight)
            for day in last.periods
            if 1 <= number <= day.start.day
        ]
        return Part(last.after, tuple(made)) if made else None


def _possible(first: Part, second: Part) -> Iterable[Period]:
    """Return what the first end of a range may be: its year may be said by the second end only."""
    yield from first.periods
    if len(first.periods) > 1 and len(second.periods) == 1:
        period, year = first.periods[0], second.periods[0].start.year
        for step in (0, -1):
            years = year + step - period.start.year
            yield Period(
                periods.shifted("year", period.start, years), periods.shifted("year", period.end, years)
            )
