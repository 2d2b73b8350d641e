from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.clock import parse_iso, to_iso, to_micros

LAST = to_micros(datetime.max.replace(tzinfo=UTC))


def test_the_last_instant_of_the_year_9999_is_a_date_and_the_next_a_number() -> None:
    assert to_iso(LAST) == "9999-12-31T23:59:59.999999+00:00"
    assert to_iso(LAST + 1) == f"{LAST + 1} microseconds after 1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize("micros", [-(2**63), -(10**17), 2**63 - 1, 10**30])
def test_times_that_no_calendar_holds_are_numbers(micros: int) -> None:
    assert to_iso(micros).startswith(f"{micros} microseconds")


@given(st.integers(min_value=to_micros(datetime(1, 1, 2, tzinfo=UTC)), max_value=LAST))
def test_what_a_calendar_holds_is_read_back(micros: int) -> None:
    assert parse_iso(to_iso(micros)) == micros
