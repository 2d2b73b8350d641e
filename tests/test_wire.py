"""Values on their way between a server and a command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from castle import wire
from castle.records import Address, Hit, JudgeStatus, SearchResult, StageReport, StageScore

HIT = Hit(
    id="ab",
    text="a lone \ud800 and ü",
    score=0.1 + 0.2,
    wing="w",
    room="r",
    kind="file",
    role="",
    speaker="",
    message_id="",
    source="s",
    address=Address("p", 0, 1, 1, 2),
    authored_at=1,
    filed_at=2,
    state="current",
    copies=("cd",),
    stages={"dense": StageScore(1, 0.5)},
    boosts={"x": 1.5},
    quality_score=0.25,
)
RESULT = SearchResult(
    query="q",
    hits=(HIT,),
    stages=(StageReport("dense", "ran", 0.1, 3),),
    behind=0,
    degraded=("words only",),
    judge_status=JudgeStatus(True, 3, "m", 1.0),
)


def sent(value: Any) -> Any:
    return json.loads(json.dumps(wire.packed(value)))


def test_a_value_arrives_as_it_was() -> None:
    assert wire.unpacked(SearchResult, sent(RESULT)) == RESULT
    assert wire.unpacked(list[Address], sent([HIT.address])) == [HIT.address]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [],
        None,
        {**sent(RESULT), "more": 1},
        {**sent(RESULT), "behind": "0"},
        {**sent(RESULT), "hits": {}},
        {**sent(RESULT), "confident": 1},
        {**sent(RESULT), "hits": [{**sent(HIT), "state": "elsewhere"}]},
        {**sent(RESULT), "hits": [{**sent(HIT), "boosts": []}]},
    ],
)
def test_what_does_not_fit_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="not an answer"):
        wire.unpacked(SearchResult, wrong)


def test_only_what_is_listed_can_be_asked() -> None:
    good: dict[str, object] = {"read": "search", "given": ["q"], "arguments": {"limit": 3}}
    assert wire.asked(good) == ("search", ["q"], {"limit": 3})
    bad: list[dict[str, object]] = [{"read": "purge"}, {"read": None}, {"given": "q"}, {"arguments": []}]
    for wrong in bad:
        with pytest.raises(ValueError, match=r"read|given"):
            wire.asked({**good, **wrong})
