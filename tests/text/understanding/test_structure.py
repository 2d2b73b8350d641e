from __future__ import annotations

import pytest

from castle.text.understanding.requirements import listed, stated
from tests.text.understanding.measured import check

# 1: single, complete (user, open, report).  2: "and"; passive; "it"; nobody acts.
# 3: single, complete (clock, show, numbers); "these".  4: single; "was given"; nobody acts.
TEXT = (
    "FR-1: The user shall open the report. FR-2: It must be opened by the gate and closed. "
    "FR-3: The clock may show these numbers. FR-4: Nothing here was given."
)


@pytest.mark.parametrize(
    ("name", "raw", "score"),
    [
        ("atomicity_score", 3 / 4, 3 / 4),
        ("completeness_score", 2 / 4, 2 / 4),
        ("passive_voice_ratio", 2 / 4, 1 - 2 / 4),
        ("ambiguous_pronoun_ratio", 2 / 4, 1 - 2 / 4),
        ("modal_strength", (1.0 * (1 + 1) + 0.3 * 1) / 3, 2.3 / 3),
    ],
)
def test_values_worked_out_by_hand(name: str, raw: float, score: float) -> None:
    check(TEXT, name, raw, score)


@pytest.mark.parametrize(
    ("sentence", "complete"),
    [
        ("The user must open the report", 1),
        ("The users must reopen the gate", 0),  # no verb begins with a known stem
        ("The time must show results", 0),  # "time" does not act
        ("The clock must show results", 1),
        ("The ox must show results", 0),  # two letters name nobody
        ("The user must log in to it", 0),  # nothing it is done to
        ("The user must send to with from", 0),
    ],
)
def test_completeness_wants_actor_action_and_object(sentence: str, complete: float) -> None:
    check(sentence, "completeness_score", complete, complete)


@pytest.mark.parametrize(
    ("sentence", "passive"),
    [
        ("A page must be printed now", 1),
        ("A page must be seen today", 1),
        ("It must be fast by design", 1),
        ("It must be fast and stay opened", 0),  # the participle does not follow
        ("It must stay opened by design", 0),  # no form of "be"
    ],
)
def test_passive_is_be_with_by_or_before_a_participle(sentence: str, passive: float) -> None:
    check(sentence, "passive_voice_ratio", passive, 1 - passive)


def test_modal_strength() -> None:
    check("We must and should and could do this", "modal_strength", 1.9 / 3, (1.0 + 0.6 + 0.3) / 3)
    check("A sentence that binds nobody at all.", "modal_strength", 0.5, 0.5)


def test_stated_requirements() -> None:
    assert [r.text for r in stated("Intro. ABC-REQ-3: One thing. NFR-1 - Another")] == [
        "One thing",
        "Another",
    ]
    # 10 characters are too few, 11 are enough; sentences without "shall" or "must" are left out.
    assert [r.text for r in stated("I must run. I must stay. This is only a remark.")] == ["I must stay"]
    # 20 characters are too few, 21 are enough.
    assert [r.text for r in stated(f"{'a' * 20}. {'b' * 21}! c")] == ["b" * 21]


def test_listed_requirements() -> None:
    markdown = (
        "A remark on this.\n* bullet number one\n- FR-7: a numbered line\n  Given a gherkin step\n+ tiny\n"
    )
    assert [r.text for r in listed(markdown)] == [
        "FR-7: a numbered line",
        "bullet number one",
        "Given a gherkin step",
    ]
    assert [r.text for r in listed("- the same entry\n- the  same entry\n")] == ["the same entry"]
    # A stop after a digit or inside a word ends no sentence; 10 characters are too few.
    assert [r.text for r in listed("Version 2. is at example.org now! Ten chars. x")] == [
        "Version 2. is at example.org now"
    ]
    assert [r.text for r in listed(f"{'a' * 10}. {'b' * 11}.")] == ["b" * 11]
