"""The points in time that a question names: a day, week, month, season or year."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from castle.text import periods
from castle.text.holidays import holiday, holidays, named
from castle.text.names.scripts import fold
from castle.text.periods import Period
from castle.text.when_words import LARGEST, UNITS, Token

_YEARS = range(1900, 2101)
_OPEN_YEARS = 4
_OPEN_MONTHS = 3
_LONGEST_NAME = 4
_BEFORE_YEAR = tuple("in of since until by before after between and to from early mid late".split())
_BEFORE_MONTH = tuple("in since until before after between early mid late last next".split())
_BEFORE_SEASON = ("last", "next", "this")
_THIRDS = {"early": 0, "mid": 1, "late": 2}
_BEFORE_DAY = ("on", "since", "until", "before", "after", "by", "from", "to", "of")
_BEFORE_HOLIDAY = tuple("on over in since until before after by last this next".split())
_UNLED = 0.5


@dataclass(frozen=True, slots=True)
class Part:
    """What the tokens up to ``after`` mean: these periods, or an interval that is not made of days.

    ``named`` is a holiday.
    """

    after: int
    periods: tuple[Period, ...] = ()
    span: tuple[int, int] | None = None
    named: bool = False


class Points:
    """Reads the points in one run of tokens; each rule says what begins at a token, or None."""

    def __init__(self, tokens: Sequence[Token], now: int, today: date) -> None:
        self.tokens = tokens
        self.now = now
        self._today = today
        self._points: dict[int, Part | None] = {}
        self._trusted: set[int] = set()

    # Tokens

    def _value(self, at: int, kind: str) -> int | None:
        """Return the value that a token has in a class, None when it is not in it."""
        return self.tokens[at].means.get(kind) if 0 <= at < len(self.tokens) else None

    def is_(self, at: int, *kinds: str) -> bool:
        """Whether a token is in one of the classes."""
        return 0 <= at < len(self.tokens) and any(kind in self.tokens[at].means for kind in kinds)

    def past(self, at: int, *kinds: str) -> int:
        """Return the first token from ``at`` on that is in none of the classes."""
        while self.is_(at, *kinds):
            at += 1
        return at

    def _says(self, at: int, *written: str) -> bool:
        """Whether a token is one of these words."""
        return 0 <= at < len(self.tokens) and self.tokens[at].text.casefold() in written

    def _number(self, at: int) -> int | None:
        if not 0 <= at < len(self.tokens):
            return None
        number = self.tokens[at].number
        return self._value(at, "number") if number is None else number

    def _year_at(self, at: int) -> int | None:
        token = self.tokens[at] if at < len(self.tokens) else None
        if token is None or token.number is None or token.ordinal or len(token.text) != 4:
            return None
        return token.number if token.number in _YEARS else None

    def led_by(self, at: int, *kinds: str) -> bool:
        """Whether the last word before a token, articles apart, is in one of the classes."""
        at -= 1
        while self.is_(at, "articles") and not self.is_(at, *kinds):
            at -= 1
        return self.is_(at, *kinds)

    # Points: a day, week, month, season or year

    def point(self, at: int) -> Part | None:
        """Return the point that begins at a token."""
        if not 0 <= at < len(self.tokens):
            return None
        if at not in self._points:
            self._points[at] = None
            self._points[at] = next((part for rule in _RULES if (part := rule(self, at))), None)
        return self._points[at]

    def trusting(self, at: int) -> Part | None:
        """Return the point that begins at a token, where a doubtful word can be nothing but a month."""
        self._trusted.add(at)
        self._points.pop(at, None)
        return self.point(at)

    def _numeric(self, at: int) -> Part | None:
        if at >= len(self.tokens) or not (written := self.tokens[at].date):
            return None
        made = _numeric_periods(written)
        return Part(at + 1, tuple(made)) if made else None

    def _month_day(self, at: int) -> Part | None:
        """``2 May 2023``, ``the 2nd of May``, ``May 2``, ``May 2nd, 2023``."""
        month, day, after = self._value(at, "month") or self._value(at, "short_month"), 0, at
        if month is not None:
            day, after = self._day_number(self.past(at + 1, "articles")), self.past(at + 1, "articles") + 1
            name = at
        else:
            day, name = self._day_number(at), self.past(at + 1, "of", "articles")
            month, after = self._value(name, "month") or self._value(name, "short_month"), name + 1
        if not day or month is None:
            return None
        year = self._year_at(self.past(after, "of"))
        if year is not None:
            made = [periods.one_day(date(year, month, day))]
            return Part(self.past(after, "of") + 1, tuple(made))
        if self.is_(after, "unit") or not (self._sure_month(name) or self._sure_day(at, name)):
            return None
        made = self._years_open(lambda open_year: periods.one_day(date(open_year, month, day)))
        return Part(after, tuple(made))

    def _day_number(self, at: int) -> int:
        number = self.tokens[at].number if at < len(self.tokens) else None
        return number if number is not None and 1 <= number <= 31 else 0

    def _sure_month(self, name: int) -> bool:
        """Whether a month's name can be nothing else here."""
        if name in self._trusted or not self.is_(name, "doubtful"):
            return True
        before = (*_BEFORE_MONTH, "this") if self.tokens[name].capital else _BEFORE_MONTH
        return self.led_by(name, *before)

    def _sure_day(self, at: int, name: int) -> bool:
        """Whether a doubtful month with a number beside it is a date."""
        number = self.tokens[at if at != name else self.past(at + 1, "articles")]
        return (
            number.ordinal
            or self.is_(at - 1, "articles")
            or self.led_by(at, "on", "since", "until", "before", "after", "by", "from", "to")
            or (self.tokens[name].capital and name > 0)
        )

    def _month(self, at: int) -> Part | None:
        """``March 2023``, ``March of 2023``, ``in March``, ``last March``."""
        month = self._value(at, "month")
        after = self.past(at + 1, "of")
        year = self._year_at(after)
        if year is not None:
            month = month or self._value(at, "short_month")
            return None if month is None else Part(after + 1, (periods.months(year, month),))
        if month is None or not self._sure_month(at):
            return None
        return self._recurring(at, at, at + 1, lambda open_year: periods.months(open_year, month))

    def _season(self, at: int) -> Part | None:
        """``summer 2022``, ``last summer``, ``in the summer``."""
        number = self._value(at, "season")
        if number is None:
            return None
        after = self.past(at + 1, "of")
        year = self._year_at(after)
        if year is not None:
            return Part(after + 1, (periods.season(year, number),))
        doubtful = self.is_(at, "doubtful_seasons")
        before = _BEFORE_SEASON if doubtful else (*_BEFORE_SEASON, *_BEFORE_YEAR)
        if not (self.led_by(at, *before) or self.is_(at + 1, "last_after", "next_after")):
            return None
        return self._recurring(at, at, at + 1, lambda open_year: periods.season(open_year, number))

    def _recurring(self, at: int, first: int, after: int, make: Callable[[int], Period]) -> Part:
        """Choose the year of a month or season by ``last``, ``this`` and ``next`` around it."""
        made = [make(self._today.year + step) for step in range(-_OPEN_YEARS, 2)]
        if self.is_(after, "last_after") or self.led_by(first, "last"):
            made = [max((p for p in made if p.end <= self._today), key=lambda p: p.start)]
            return Part(after + self.is_(after, "last_after"), tuple(made))
        if self.is_(after, "next_after") or self.led_by(first, "next"):
            made = [min((p for p in made if p.start > self._today), key=lambda p: p.start)]
            return Part(after + self.is_(after, "next_after"), tuple(made))
        if self.led_by(first, "this"):
            return Part(after, (make(self._today.year),))
        return Part(after, tuple(periods.latest(made, self._today)[:_OPEN_YEARS]))

    def _years_open(self, make: Callable[[int], Period]) -> list[Period]:
        made = []
        for step in range(-2 * _OPEN_YEARS, 1):
            try:
                made.append(make(self._today.year + step))
            except ValueError:
                continue  # 29 February
        return periods.latest(made, self._today)[:_OPEN_YEARS]

    def _year(self, at: int) -> Part | None:
        year = self._year_at(at)
        if year is None or not self.led_by(at, *_BEFORE_YEAR, "early", "mid"):
            return None
        return Part(at + 1, (periods.months(year, 1, 12),))

    def _weekday(self, at: int) -> Part | None:
        """``Tuesday``, ``last Tuesday``, ``next Tuesday``, ``Tuesday, 2 May``, ``Tuesday the 2nd``."""
        lead = at if self.is_(at, "last", "next", "this") else at - 1
        name = lead + 1
        number = self._value(name, "weekday")
        if number is None:
            return None
        bare = lead != at
        dated = self._month_day(self.past(name + 1, "articles")) or self._numeric(name + 1)
        if dated is not None:
            return dated
        if bare and self.led_by(at, "every", "ordinal"):
            return None
        ordinal = self.past(name + 1, "articles")
        if (
            ordinal < len(self.tokens)
            and self.tokens[ordinal].ordinal
            and (written := self._day_number(ordinal))
        ):
            fitting = self._weekday_of_month(number, written)
            if fitting is not None:
                return Part(ordinal + 1, (periods.one_day(fitting),))
        week = self._relative(self.past(name + 1, "of", "articles"))
        if week is not None and [period.days for period in week.periods] == [7]:
            return Part(week.after, (periods.one_day(week.periods[0].start + timedelta(days=number)),))
        back = (self._today.weekday() - number) % 7
        after = name + 1
        if not bare and self.is_(lead, "last") or self.is_(after, "last_after"):
            back = back or 7
        elif not bare and self.is_(lead, "next") or self.is_(after, "next_after"):
            back = (back or 7) - 7 or -7
        elif not bare:
            back = self._today.weekday() - number
        after += self.is_(after, "last_after", "next_after")
        day = periods.one_day(self._today - timedelta(days=back))
        # "Sunday mass" is on any Sunday.
        if bare and after == name + 1 < len(self.tokens) and not self.led_by(at, *_BEFORE_DAY):
            day = replace(day, weight=_UNLED)
        return Part(after, (day,))

    def _weekday_of_month(self, weekday: int, day: int) -> date | None:
        """Return the last day with this number in its month that is such a weekday, or else the next."""
        days = (self._today + timedelta(days=away) for away in (*range(0, -366, -1), *range(1, 366)))
        return next((d for d in days if d.day == day and d.weekday() == weekday), None)

    def _day_of_month(self, at: int) -> Part | None:
        """``on the 14th``, with nothing behind it that it could be the 14th of."""
        alone = at + 1 == len(self.tokens) and self.tokens[at].ordinal
        day = self._day_number(at)
        if not (alone and day and self.is_(at - 1, "articles") and self.led_by(at, "on")):
            return None
        made = []
        for back in range(_OPEN_MONTHS):
            month = periods.months(self._today.year, self._today.month - back)
            if day <= month.days:
                made.append(periods.one_day(month.start + timedelta(days=day - 1)))
        return Part(at + 1, tuple(periods.latest(made, self._today)))

    def _holiday(self, at: int) -> Part | None:
        """``on Christmas Eve``, ``last Easter``, ``Halloween 2022``; over one, the days beside it as well."""
        if not self.is_(at, "holiday_begins"):
            return None
        name = named([fold(token.text) for token in self.tokens[at : at + _LONGEST_NAME]])
        if name is None:
            return None
        rule = holidays()[name]
        around = timedelta(days=1 if self.led_by(at, "over", "in") else 0)

        def made(year: int) -> Period:
            day = holiday(rule, year)
            return Period(day - around, day + around + timedelta(days=1))

        after = at + len(name)
        year = self._year_at(self.past(after, "of"))
        if year is not None:
            return Part(self.past(after, "of") + 1, (made(year),), named=True)
        told = self.led_by(at, *_BEFORE_HOLIDAY) or self.is_(after, "last_after", "next_after")
        if not told and at not in self._trusted:
            return None
        return replace(self._recurring(at, at, after, made), named=True)

    def _named_day(self, at: int) -> Part | None:
        offset = self._value(at, "day")
        if offset is None:
            return None
        return Part(at + 1, (periods.one_day(self._today + timedelta(days=offset)),))

    def _relative(self, at: int) -> Part | None:
        """``last week``, ``the past three months``, ``this year``, ``la semana pasada``."""
        if self.is_(at, "last", "past", "next", "this"):
            count = self._number(at + 1)
            name = at + 1 if count is None else at + 2
            unit = self._unit(name)
            if unit is None or (count is None and self.is_(name + 1, "of")):
                return None
            if count is not None or self.is_(at, "past"):
                return self._stretch(at, name + 1, unit, count or 1)
            step = -1 if self.is_(at, "last") else 1 if self.is_(at, "next") else 0
            return Part(name + 1, (periods.unit_of(unit, self._today, step),))
        unit = self._unit(at)
        if unit is None or not self.is_(at + 1, "last_after", "next_after"):
            return None
        step = -1 if self.is_(at + 1, "last_after") else 1
        return Part(at + 2, (periods.unit_of(unit, self._today, step),))

    def _stretch(self, at: int, after: int, unit: str, count: int) -> Part | None:
        """Return the last or next ``count`` units up to or from today; "these three weeks" are none."""
        if count > LARGEST or self.is_(at, "this"):
            return None
        if self.is_(at, "next"):
            return Part(after, (Period(self._today, periods.shifted(unit, self._today, count)),))
        start = min(periods.shifted(unit, self._today, -count), self._today)
        return Part(after, (Period(start, self._today + timedelta(days=1)),))

    def ago(self, at: int) -> Part | None:
        """``two weeks ago``, ``two weeks ago today``, ``vor zwei Wochen``, ``hace dos días``."""
        lead = self.is_(at, "ago_before")
        name = at + lead
        count = self._number(name)
        if count is not None and count == 1 and self._number(name + 1) is not None:
            name, count = name + 1, self._number(name + 1)
        unit_at = self.past(name + 1, "of")
        unit_at += self._says(unit_at, "halben", "halbes")
        unit = self._unit(unit_at)
        if unit == "year" and count == 1 and self._says(at - 1, "half") | self._says(unit_at - 1, "halben"):
            unit, count = "month", 6
        if count is not None and self._says(unit_at, "fortnight", "fortnights"):
            unit, count = "week", 2 * count
        if count is None or count > LARGEST or unit is None or not (lead or self.is_(unit_at + 1, "ago")):
            return None
        after = unit_at + (1 if lead else 2)
        if unit in ("hour", "minute"):
            size = 3_600_000_000 if unit == "hour" else 60_000_000
            there = self.now - count * size
            return Part(after, span=(there - size // 2, there + size // 2))
        if self._value(after, "day") == 0:
            return Part(after + 1, (periods.one_day(periods.shifted(unit, self._today, -count)),))
        return Part(after, (periods.some_units_away(unit, self._today, -count),))

    def _unit(self, at: int) -> str | None:
        number = self._value(at, "unit")
        return None if number is None or self._says(at, "fortnight", "fortnights") else UNITS[number]

    def _within(self, at: int) -> Part | None:
        """``the first weekend of August``, ``end of summer 2023``, ``mid-August``."""
        edge = next((third for kind, third in _THIRDS.items() if self.is_(at, kind)), None)
        if edge is not None:
            whole = self.trusting(self.past(at + 1, "of", "articles"))
            if whole is None or not whole.periods or whole.periods[0].days < 7:
                return None
            return Part(whole.after, tuple(periods.third(p, edge) for p in whole.periods))
        if self._unit(at) == "week" and self.is_(at + 1, "of"):
            day = self.trusting(self.past(at + 1, "of", "articles"))
            if day is not None and [period.days for period in day.periods[:1]] == [1]:
                return Part(day.after, (periods.unit_of("week", day.periods[0].start),))
        number = -1 if self.is_(at, "last") else self._value(at, "ordinal")
        if number is None and self.tokens[at].ordinal:
            number = self.tokens[at].number
        unit = self._unit(at + 1)
        if number is None or unit is None or not self.is_(at + 2, "of"):
            return None
        whole = self.trusting(self.past(at + 2, "of", "articles"))
        if whole is None or number > LARGEST:
            return None
        made = [p for whole_period in whole.periods if (p := periods.numbered(unit, whole_period, number))]
        return Part(whole.after, tuple(made)) if made else None

    def _beside(self, at: int) -> Part | None:
        """``the week before 3 August``, ``two days after 2 May``, ``the Monday before 24 July``."""
        count = self._number(at)
        name = at + (count is not None or self.is_(at, "last", "next"))
        unit, weekday = self._unit(name), self._value(name, "weekday")
        if (unit is None and weekday is None) or not self.is_(name + 1, "before", "after"):
            return None
        if (
            unit is not None
            and count is None
            and self._says(name + 1, "before")
            and self._says(name + 2, "last")
        ):
            if not self.is_(name + 3, "unit", "month", "weekday", "season"):
                return Part(name + 3, (periods.unit_of(unit, self._today, -2),))
        there = self.point(self.past(name + 2, "articles", "on", "of"))
        if there is None or len(there.periods) == 0 or (count or 0) > LARGEST:
            return None
        sign = -1 if self.is_(name + 1, "before") else 1
        whole = there.periods[0]
        if weekday is not None:
            return Part(there.after, (_weekday_beside(weekday, whole, sign),))
        if unit is None:
            return None
        return Part(there.after, (_unit_beside(unit, count, whole, sign),))


_RULES: tuple[Callable[[Points, int], Part | None], ...] = (
    Points._beside,
    Points._within,
    Points._numeric,
    Points._month_day,
    Points._month,
    Points._holiday,
    Points._day_of_month,
    Points._weekday,
    Points.ago,
    Points._relative,
    Points._season,
    Points._named_day,
    Points._year,
)


def _weekday_beside(weekday: int, whole: Period, sign: int) -> Period:
    """Return the nearest such weekday before or after a period."""
    if sign < 0:
        day = whole.start - timedelta(days=1)
        return periods.one_day(day - timedelta(days=(day.weekday() - weekday) % 7))
    return periods.one_day(whole.end + timedelta(days=(weekday - whole.end.weekday()) % 7))


def _unit_beside(unit: str, count: int | None, whole: Period, sign: int) -> Period:
    """Return the unit next to a period, or the days about ``count`` units from it."""
    day = whole.start if sign < 0 else whole.end - timedelta(days=1)
    if count is not None and count > 1:
        return periods.some_units_away(unit, day, sign * count)
    if unit == "weekend":
        held = periods.unit_of(unit, day, 0)
        step = 0 if (held.end <= whole.start if sign < 0 else held.start >= whole.end) else sign
        return periods.unit_of(unit, day, step)
    if sign < 0:
        return Period(periods.shifted(unit, whole.start, -1), whole.start)
    return Period(whole.end, periods.shifted(unit, whole.end, 1))


def _numeric_periods(written: str) -> list[Period]:
    """Read a date in digits; where day and month could be exchanged, both readings, half as sure."""
    numbers = [int(part) for part in written.translate(_MARKS).split()]
    try:
        if len(numbers) == 1:
            return [periods.months(numbers[0], 1, 12)]
        if len(numbers) == 2:
            return [periods.months(numbers[0], numbers[1])] if 1 <= numbers[1] <= 12 else []
        if numbers[0] > 31:
            return [periods.one_day(date(*numbers))]
        first, second, year = numbers
        if "." in written or first > 12:
            return [periods.one_day(date(year, second, first))]
        if second > 12 or first == second:
            return [periods.one_day(date(year, first, second))]
        both = (date(year, first, second), date(year, second, first))
        return [Period(day, day + timedelta(days=1), 0.5) for day in both]
    except (ValueError, OverflowError):
        return []


_MARKS = {ord(mark): " " for mark in "-/.年月日"}
