from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.text.sanitize import MAX, MIN, SAFE, sanitize, served_query

PROMPT = "You are a careful assistant. Always answer in JSON. "
LONG = PROMPT * 6


@pytest.mark.parametrize("query", ["", " ", "x" * 200, "a\nb?\nc", "What?" + " " * 300])
def test_up_to_200_characters_are_left_as_they_are(query: str) -> None:
    clean = sanitize(query)
    assert (clean.clean_query, clean.was_sanitized, clean.method) == (query, False, "passthrough")
    assert clean.original_length == clean.clean_length == len(query)


@pytest.mark.parametrize(
    ("query", "clean", "method"),
    [
        (f"{LONG}\nWhat did we decide?", "What did we decide?", "question_extraction"),
        (f"{LONG}\nWhat did we decide?\nAnswer in one line.", "What did we decide?", "question_extraction"),
        (
            f"{LONG}\n港の会議で何を決めましたか？\nNotes follow.",
            "港の会議で何を決めましたか？",
            "question_extraction",
        ),
        (f'{LONG}\n"Who wrote the plan?"', '"Who wrote the plan?"', "question_extraction"),
        (
            f"{LONG}\nIs it ok? yes\nWho wrote the plan? The end.",
            "Who wrote the plan?",
            "question_extraction",
        ),
        (
            f"{LONG}Is os.path.join used in v1.2.3? Thanks.",
            "Is os.path.join used in v1.2.3?",
            "question_extraction",
        ),
        (f"{LONG}\nabcdefghi?", "abcdefghi?", "question_extraction"),
        (f"{LONG}\nabcdefgh?", "Always answer in JSON.", "tail_sentence"),
        (f"{LONG}\nharbour decisions\nok", "harbour decisions", "tail_sentence"),
        ("x" * 201, "x" * 201, "tail_sentence"),
        ("x" * 251, "x" * 250, "tail_sentence"),
        ("ab\n" * 100, ("ab\n" * 100).strip()[-250:].strip(), "tail_truncation"),
        ("x" * 300 + "?", "x" * 249 + "?", "question_extraction"),
    ],
)
def test_longer_ones_are_cut_to_what_is_asked(query: str, clean: str, method: str) -> None:
    found = sanitize(query)
    assert (found.clean_query, found.method, found.was_sanitized) == (clean, method, True)
    assert (found.original_length, found.clean_length) == (len(query), len(clean))


def test_a_long_line_is_cut_to_its_last_sentence() -> None:
    question = "and what did the harbour master say about it?"
    found = sanitize("so " * 60 + ". " + "well " * 40 + ". " + question)
    assert found.clean_query == question


def test_a_quoted_question_that_is_too_long_loses_its_quotes() -> None:
    found = sanitize('"' + "x" * 249 + '?"' + "\n" + "ok")
    assert found.clean_query == "x" * 249 + "?"


@given(st.one_of(st.text(max_size=600), st.text(alphabet='a.?？!"\n ', min_size=190, max_size=700)))
def test_what_comes_out_is_part_of_what_went_in_and_short(query: str) -> None:
    clean = sanitize(query)
    assert clean.clean_query in query
    assert clean.clean_length == len(clean.clean_query)
    assert clean.was_sanitized == (len(query.strip()) > SAFE)
    if clean.was_sanitized:
        assert len(clean.clean_query) <= MAX
        assert clean.method == "tail_truncation" or len(clean.clean_query) >= MIN


def test_secrets_and_control_characters_do_not_leave() -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    served = served_query(f"why does\x00 {key} fail\x1b[31m?\nand \t then")
    assert key not in served
    assert "«secret:github_token#" in served
    assert "\x00" not in served and "\x1b" not in served
    assert served.endswith("fail [31m?\nand \t then")
    assert served_query(key, b"a") != served_query(key, b"b")
