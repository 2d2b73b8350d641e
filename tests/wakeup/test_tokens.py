from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from castle.mine.formats import RECALL_CLOSE
from castle.text.wordpiece import count_tokens
from castle.wakeup.page import longest, within, wrapped_tokens
from castle.wakeup.tokens import count, cut


def test_known_words_count_as_their_pieces() -> None:
    said = "The harbour is closed on Sundays, says the notice at berth 7."
    assert count(said) == count_tokens(said)
    assert count("") == 0


def test_what_the_vocabulary_does_not_know_counts_by_its_bytes() -> None:
    assert count_tokens("สวัสดีชาวโลก") == 1
    assert count("สวัสดีชาวโลก") == 12
    assert count("x" * 300) == 100


def test_what_is_not_seen_counts_as_well() -> None:
    assert count(" " * 800) == count("\u200b" * 267) - 1 == 100


@given(st.text(max_size=300), st.integers(0, 60))
def test_a_cut_text_is_a_beginning_that_has_room(text: str, most: int) -> None:
    kept = cut(text, most)
    assert text.startswith(kept)
    assert count(kept) <= most
    assert kept == text or count(text) > most


def test_a_cut_ends_with_a_word_where_one_ends() -> None:
    assert cut("one two three four five six seven eight nine ten", 8) == "one two three four five six seven"
    assert cut("漢" * 50, 8) == "漢" * 8


_pieces = st.text(max_size=60) | st.sampled_from(
    [RECALL_CLOSE, "</castle-recall", ">", "<", "/castle-recall>"]
)


@given(st.lists(_pieces, max_size=20), st.integers(30, 200))
def test_as_many_entries_as_have_room_and_never_more_tokens(pieces: list[str], budget: int) -> None:
    text, shown = longest(lambda number: "\n".join(pieces[:number]), len(pieces), budget)
    assert wrapped_tokens(text) <= budget
    assert text == "\n".join(pieces[:shown])
    if shown < len(pieces):
        assert wrapped_tokens("\n".join(pieces[: shown + 1])) > budget or shown == 0


@given(st.text(max_size=200), st.integers(16, 40))
def test_a_text_alone_is_cut_to_the_budget(text: str, budget: int) -> None:
    assert wrapped_tokens(within(text, budget)) <= budget


def test_counting_loads_no_model() -> None:
    import subprocess

    code = (
        "import sys; from castle.wakeup.tokens import count; count('a b'); "
        "print([m for m in ('onnxruntime', 'lancedb', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
