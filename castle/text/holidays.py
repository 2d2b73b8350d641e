"""Days of the year that have a name: Christmas Eve, Easter Monday, Thanksgiving, San Valentín.

Those of the Christian calendar and a few others, in English, German, Spanish and French; where countries keep
them on other days, those of the United States.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from importlib.resources import files

from castle.text.names.scripts import fold

Name = tuple[str, ...]

_WORD = re.compile(r"[^\W\d_]+")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@cache
def holidays() -> Mapping[Name, str]:
    """Return what each name, as folded words, stands for: what ``holiday`` takes."""
    text = (files("castle.text") / "data" / "holidays.json").read_text(encoding="utf-8")
    return {
        tuple(_WORD.findall(fold(name))): rule for rule, names in json.loads(text).items() for name in names
    }


@cache
def first_words() -> frozenset[str]:
    """Return the words that a name may begin with."""
    return frozenset(name[0] for name in holidays())


@cache
def telling_words() -> frozenset[str]:
    """Return the longest word of each name, without which it is not there."""
    return frozenset(max(name, key=len) for name in holidays())


def named(words: Sequence[str]) -> Name | None:
    """Return the longest name that folded words begin with."""
    found = [name for name in holidays() if tuple(words[: len(name)]) == name]
    return max(found, key=len, default=None)


def holiday(rule: str, year: int) -> date:
    """Return the day of a year that a rule names; raises ValueError outside the years that a date may have.

    ``12-24`` is a day of every year, ``easter 1`` so many days after Easter Sunday, ``11 thu 4 +1`` the day
    after the fourth Thursday of November.
    """
    kind, *numbers = rule.split()
    if kind == "easter":
        return _easter(year) + timedelta(days=int(numbers[0]))
    if not numbers:
        month, day = map(int, kind.split("-"))
        return date(year, month, day)
    weekday, number, *away = numbers
    first = date(year, int(kind), 1)
    ahead = (_WEEKDAYS.index(weekday) - first.weekday()) % 7
    return first + timedelta(days=ahead + 7 * (int(number) - 1) + sum(map(int, away)))


def _easter(year: int) -> date:
    """Return the Gregorian Easter Sunday; the algorithm is that of Meeus, Astronomical Algorithms, ch. 8."""
    golden = year % 19
    century, rest = divmod(year, 100)
    leaps, left = divmod(century, 4)
    moon = (19 * golden + century - leaps - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    quarter, days = divmod(rest, 4)
    sunday = (32 + 2 * left + 2 * quarter - moon - days) % 7
    late = (golden + 11 * moon + 22 * sunday) // 451
    month, day = divmod(moon + sunday - 7 * late + 114, 31)
    return date(year, month, day + 1)
