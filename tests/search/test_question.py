from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.clock import parse_iso
from castle.search.names import Named
from castle.search.question import Question, ask, ask_palace
from castle.store.entities import Entities
from castle.store.palace import Palace

NOW = parse_iso("2026-05-20T12:00:00")


def test_a_question_is_understood(palace: Palace) -> None:
    Entities(palace.ledger, actor="test").add("Jolene", "person")
    question = ask_palace(palace, 'What did Jolene call\n "the long pier"  yesterday?', NOW)
    assert question.text == 'What did Jolene call "the long pier" yesterday?'
    assert question.phrases == ("the long pier",)
    assert question.names == (Named("jolene", ("Jolene",), "Jolene"),)
    assert [time.phrase for time in question.times] == ["yesterday"]
    assert question.now == NOW


@pytest.mark.parametrize(
    ("query", "subject", "vague"),
    [
        ("what did we talk about last Tuesday", "what did we talk about", True),
        ("the bakery in October 2024", "the bakery in", False),
        ("yesterday", "", True),
        ("what did we talk about on Christmas Eve", "what did we talk about on Christmas Eve", True),
        ("the goose on Christmas Eve", "the goose on Christmas Eve", False),
        ("which ferry sails", "which ferry sails", False),
    ],
)
def test_the_subject_is_what_is_left_without_times_but_holidays(
    query: str, subject: str, vague: bool
) -> None:
    question = ask(query, NOW)
    assert (question.subject, question.vague) == (subject, vague)


def test_how_a_question_was_read_is_told() -> None:
    assert ask("before 2 May 2023", NOW).read_as == ("before 2 May 2023: … to 2023-05-02T00:00",)
    assert ask("nothing of the kind", NOW).read_as == ()
    assert ask("what did you suggest yesterday", NOW).read_as == (
        "yesterday: 2026-05-19T00:00 to 2026-05-20T00:00",
        "what an assistant said",
    )
    assert ask("what should I read", NOW).read_as == ("what you said", "advice is asked for")


def test_without_names_phrases_and_times(palace: Palace) -> None:
    assert ask_palace(palace, "how does it work", NOW) == Question(
        "how does it work", NOW, "how does it work", "how does it work"
    )


def test_what_is_embedded_has_no_control_characters() -> None:
    assert ask("a\x00b\x1b[31m\u202ec", NOW).text == "a b [31m c"
    assert ask("\x00", NOW).text == "\x00"
    assert ask('"..." "x x" "x x"', NOW).phrases == ("x x",)


@given(st.text(max_size=200), st.integers(-(2**62), 2**62))
def test_any_text_is_a_question(query: str, now: int) -> None:
    question = ask(query, now)
    assert question.query == query
    assert question.names == ()
