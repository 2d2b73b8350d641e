from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.clock import parse_iso, to_iso
from castle.text.holidays import holiday, holidays
from castle.text.when import BEGINNING, ENDLESS, Interval, intervals
from castle.text.when_words import vocabulary

NOW = parse_iso("2026-05-20T12:00:00")
"""A Wednesday."""


def shown(moment: int) -> str:
    if moment in (BEGINNING, ENDLESS):
        return "..."
    return to_iso(moment)[:16].removesuffix("T00:00")


def read(text: str, now: int = NOW) -> list[str]:
    """Return the intervals that are sure, as text."""
    return [f"{shown(i.start)} {shown(i.end)}" for i in intervals(text, now) if i.weight == 1.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # days
        ("what did we say yesterday", "2026-05-19 2026-05-20"),
        ("today's plan", "2026-05-20 2026-05-21"),
        ("the day before yesterday", "2026-05-18 2026-05-19"),
        ("last night", "2026-05-19 2026-05-20"),
        ("last Tuesday", "2026-05-19 2026-05-20"),
        ("last Wednesday", "2026-05-13 2026-05-14"),
        ("on Monday", "2026-05-18 2026-05-19"),
        ("on Monday of last week", "2026-05-11 2026-05-12"),
        ("Friday of this week", "2026-05-22 2026-05-23"),
        ("on Friday the 8th", "2026-05-08 2026-05-09"),
        ("Friday the 31st of July", "2025-07-31 2025-08-01"),
        ("Thursday, the 31st", "2025-07-31 2025-08-01"),
        ("next Friday", "2026-05-22 2026-05-23"),
        ("this Friday", "2026-05-22 2026-05-23"),
        ("on 2 May", "2026-05-02 2026-05-03"),
        ("on May 2nd", "2026-05-02 2026-05-03"),
        ("on the 2nd of May", "2026-05-02 2026-05-03"),
        ("on 2 June", "2025-06-02 2025-06-03"),
        ("on 3 June, 2023?", "2023-06-03 2023-06-04"),
        ("January 5, 2024", "2024-01-05 2024-01-06"),
        ("Monday, 2 May 2022", "2022-05-02 2022-05-03"),
        ("29 February", "2024-02-29 2024-03-01"),
        ("2023-05-02", "2023-05-02 2023-05-03"),
        ("at 2023-05-02T10:30", "2023-05-02 2023-05-03"),
        ("2.5.2023", "2023-05-02 2023-05-03"),
        ("13/02/2023", "2023-02-13 2023-02-14"),
        ("2023年5月2日", "2023-05-02 2023-05-03"),
        ("2023年5月", "2023-05-01 2023-06-01"),
        ("what did we agree on the 14th?", "2026-05-14 2026-05-15"),
        ("on the 31st", "2026-03-31 2026-04-01"),
        # days with a name
        ("on Christmas Eve", "2025-12-24 2025-12-25"),
        ("what I cooked over Christmas", "2025-12-24 2025-12-27"),
        ("the airline that I flew with on Valentine's Day", "2026-02-14 2026-02-15"),
        ("on New Year's Eve 2023", "2023-12-31 2024-01-01"),
        ("last Thanksgiving", "2025-11-27 2025-11-28"),
        ("on Black Friday", "2025-11-28 2025-11-29"),
        ("on Good Friday", "2026-04-03 2026-04-04"),
        ("on Easter Monday", "2026-04-06 2026-04-07"),
        ("on Mother's Day", "2026-05-10 2026-05-11"),
        ("before Halloween 2024", "... 2024-10-31"),
        ("the day after Christmas", "2025-12-26 2025-12-27"),
        ("in the week of Thanksgiving 2024", "2024-11-25 2024-12-02"),
        ("between Thanksgiving and Christmas", "2025-11-27 2025-12-26"),
        ("an Heiligabend", "2025-12-23 2025-12-26"),
        ("am Ostermontag", "2026-04-06 2026-04-07"),
        ("en Nochebuena", "2025-12-23 2025-12-26"),
        ("à Noël", "2025-12-24 2025-12-27"),
        # weeks, months, seasons, years
        ("this week", "2026-05-18 2026-05-25"),
        ("last week", "2026-05-11 2026-05-18"),
        ("last weekend", "2026-05-16 2026-05-18"),
        ("last month", "2026-04-01 2026-05-01"),
        ("next month", "2026-06-01 2026-07-01"),
        ("last year", "2025-01-01 2026-01-01"),
        ("in March", "2026-03-01 2026-04-01"),
        ("in may", "2026-05-01 2026-06-01"),
        ("in October", "2025-10-01 2025-11-01"),
        ("in March 2023", "2023-03-01 2023-04-01"),
        ("March of 2023", "2023-03-01 2023-04-01"),
        ("last March", "2026-03-01 2026-04-01"),
        ("last may", "2025-05-01 2025-06-01"),
        ("2023-05", "2023-05-01 2023-06-01"),
        ("last summer", "2025-06-01 2025-09-01"),
        ("summer 2022", "2022-06-01 2022-09-01"),
        ("last fall", "2025-09-01 2025-12-01"),
        ("winter 2022", "2022-12-01 2023-03-01"),
        ("in 2022", "2022-01-01 2023-01-01"),
        # so long ago
        ("two weeks ago", "2026-05-03 2026-05-10"),
        ("half a year ago", "2025-11-01 2025-12-01"),
        ("vor einem halben Jahr", "2025-11-01 2025-12-01"),
        ("a fortnight ago", "2026-05-03 2026-05-10"),
        ("the week before last", "2026-05-04 2026-05-11"),
        ("in the week of 6 May", "2026-05-04 2026-05-11"),
        ("between 1 and 14 March", "2026-03-01 2026-03-15"),
        ("qu'ai-je dit le 14 mars", "2026-03-14 2026-03-15"),
        ("am Montag letzter Woche", "2026-05-11 2026-05-12"),
        ("el lunes de la semana pasada", "2026-05-11 2026-05-12"),
        ("qu'ai-je fait avant-hier", "2026-05-18 2026-05-19"),
        ("le lundi de la semaine dernière", "2026-05-11 2026-05-12"),
        ("two weeks ago today", "2026-05-06 2026-05-07"),
        ("a month ago today", "2026-04-20 2026-04-21"),
        ("2 days ago", "2026-05-18 2026-05-19"),
        ("a couple of weeks ago", "2026-05-03 2026-05-10"),
        ("three months ago", "2026-02-01 2026-03-01"),
        ("two years ago", "2024-01-01 2025-01-01"),
        ("3 hours ago", "2026-05-20T08:30 2026-05-20T09:30"),
        ("in the last two weeks", "2026-05-06 2026-05-21"),
        ("over the past month", "2026-04-20 2026-05-21"),
        # parts of a whole
        ("the first weekend of August 2023", "2023-08-05 2023-08-07"),
        ("the last week of August 2023", "2023-08-28 2023-09-04"),
        ("the beginning of January 2023", "2023-01-01 2023-01-11"),
        ("mid-August 2023", "2023-08-11 2023-08-21"),
        ("end of summer 2023", "2023-08-01 2023-09-01"),
        # beside a date
        ("the week before August 3, 2023", "2023-07-27 2023-08-03"),
        ("two weeks before August 11, 2023", "2023-07-25 2023-08-01"),
        ("on the Monday before July 24, 2023", "2023-07-17 2023-07-18"),
        ("on the Saturday after October 28, 2023", "2023-11-04 2023-11-05"),
        ("last weekend before April 10, 2023", "2023-04-08 2023-04-10"),
        # bounds
        ("before 2 May", "... 2026-05-02"),
        ("before the migration on 2 May", "... 2026-05-03"),
        ("after 2 May 2023", "2023-05-03 ..."),
        ("after the move in March", "2026-03-01 ..."),
        ("until yesterday", "... 2026-05-20"),
        ("by Monday", "... 2026-05-19"),
        ("since Monday", "2026-05-18 2026-05-20T12:00"),
        ("between May and July", "2025-05-01 2025-08-01"),
        ("from March to May 2024", "2024-03-01 2024-06-01"),
        ("from November to February 2024", "2023-11-01 2024-03-01"),
        ("between 2020 and 2022", "2020-01-01 2023-01-01"),
        ("from Monday to Wednesday", "2026-05-18 2026-05-21"),
        # German
        ("letzten Dienstag", "2026-05-19 2026-05-20"),
        ("vor zwei Wochen", "2026-05-03 2026-05-10"),
        ("im März 2023", "2023-03-01 2023-04-01"),
        ("am 2. Mai", "2026-05-02 2026-05-03"),
        ("gestern", "2026-05-19 2026-05-20"),
        ("letzte Woche", "2026-05-11 2026-05-18"),
        ("vor der Migration am 2. Mai 2023", "... 2023-05-03"),
        ("vor dem 2. Mai 2023", "... 2023-05-02"),
        ("seit Montag", "2026-05-18 2026-05-20T12:00"),
        ("zwischen Mai und Juli", "2025-05-01 2025-08-01"),
        ("letzten Sommer", "2025-06-01 2025-09-01"),
        # Spanish
        ("el martes pasado", "2026-05-19 2026-05-20"),
        ("hace dos semanas", "2026-05-03 2026-05-10"),
        ("en marzo de 2023", "2023-03-01 2023-04-01"),
        ("el 2 de mayo de 2023", "2023-05-02 2023-05-03"),
        ("antes del 2 de mayo", "... 2026-05-02"),
        ("la semana pasada", "2026-05-11 2026-05-18"),
        # French
        ("mardi dernier", "2026-05-19 2026-05-20"),
        ("il y a deux semaines", "2026-05-03 2026-05-10"),
        ("en mars 2023", "2023-03-01 2023-04-01"),
        ("le 2 mai 2023", "2023-05-02 2023-05-03"),
        ("qu'avons-nous décidé hier ?", "2026-05-19 2026-05-20"),
        ("l'été dernier", "2025-06-01 2025-09-01"),
        ("depuis lundi", "2026-05-18 2026-05-20T12:00"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert read(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "", "may I march on a second sun", "this may be wrong", "March 10 miles", "march on Rome",
        "May 2 people join?", "a photo of April", "April said June would come", "by April",
        "error 2003 on port 2022", "version 2.0.2023-rc in v2023", "E0425", "1.2.3", "spring boot in spring",
        "fall in love", "every Monday", "every second Monday", "on Sundays", "every day", "the second one",
        "was wir hier haben", "when did I visit Paris last", "99999 years ago", "2023-13-45", "31.31.2023",
        "one week", "a 5 day plan", "mars and sol", "I have been there since", "before and after", "10:30",
        "a list of Christmas presents", "the history of Halloween", "the new year", "on the 14th floor",
        "the 14th", "the 2nd of them", "my New Year's resolution", "easter eggs", "noel",
        "2023-05-02-draft", "the week", "50% of 12", "in 12 hours",
    ],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    assert intervals(text, NOW) == []


@pytest.mark.parametrize(
    ("year", "expected"),
    [(1961, "04-02"), (2000, "04-23"), (2024, "03-31"), (2025, "04-20"), (2038, "04-25")],
)
def test_easter(year: int, expected: str) -> None:
    assert holiday("easter 0", year).isoformat() == f"{year}-{expected}"


def test_every_holiday_has_a_day_in_every_year() -> None:
    for rule in set(holidays().values()):
        assert {holiday(rule, year).year for year in range(1900, 2101)} == set(range(1900, 2101))


def test_an_open_year_means_the_last_one_and_less_surely_those_before() -> None:
    found = intervals("what happened in March?", NOW)
    assert [(shown(i.start), i.weight) for i in found] == [
        ("2026-03-01", 1.0),
        ("2025-03-01", 0.5),
        ("2024-03-01", 0.5),
        ("2023-03-01", 0.5),
    ]
    assert {i.phrase for i in found} == {"March"}


def test_day_and_month_that_may_be_exchanged_are_read_both_ways() -> None:
    found = intervals("05/02/2023", NOW)
    assert [(shown(i.start), i.weight) for i in found] == [("2023-05-02", 0.5), ("2023-02-05", 0.5)]


def test_several_times_come_in_the_order_of_the_text_with_their_words() -> None:
    found = intervals("Compare what we said last Tuesday with the plan of 2 March 2023.", NOW)
    assert [i.phrase for i in found] == ["last Tuesday", "2 March 2023"]


def test_the_last_day_of_the_calendar() -> None:
    assert read("yesterday", parse_iso("9999-12-31T00:00:00")) == ["9999-12-30 9999-12-31"]
    assert intervals("today, next year", parse_iso("9999-12-31T00:00:00")) == []
    assert intervals("yesterday", parse_iso("0001-01-01T00:00:00+00:00")) == []


WORDS = sorted(vocabulary()) + [
    "2", "2nd", "31", "2023", "1900", "999999", "2023-05-02", "2.5.2023", "2023年5月", ",", ".", "x", "May",
]  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(
    st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)),
    st.one_of(st.just(NOW), st.integers(-(2**62), 2**62)),
)
def test_it_never_raises_and_every_interval_has_an_inside(text: str, now: int) -> None:
    found = intervals(text, now)
    for interval in found:
        assert isinstance(interval, Interval)
        assert interval.start < interval.end
        assert 0 < interval.weight <= 1
        assert interval.phrase and interval.phrase in text
    assert len(set(found)) == len(found)
