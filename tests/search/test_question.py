from __future__ import annotations

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


def test_without_names_phrases_and_times(palace: Palace) -> None:
    assert ask_palace(palace, "how does it work", NOW) == Question(
        "how does it work", NOW, "how does it work"
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
