from __future__ import annotations

import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from castle.text import wordpiece
from castle.text.wordpiece import count_many, count_tokens, piece_ids, tokenizer


def test_the_table_is_the_published_one() -> None:
    assert tokenizer().get_vocab_size() == 30_522
    found = hashlib.sha256(wordpiece.VOCABULARY.read_bytes()).hexdigest()
    assert found == "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello World", ["hello", "world"]),
        ("Café naïve", ["cafe", "naive"]),
        ("embeddings", ["em", "##bed", "##ding", "##s"]),
        ("don't_stop", ["don", "'", "t", "_", "stop"]),
        ("東京", ["東", "京"]),
        ("a[SEP]b", ["a", "[SEP]", "b"]),
        ("x" * 101, ["[UNK]"]),
        ("\u200b \x00", []),
        ("", []),
    ],
)
def test_pieces(text: str, tokens: list[str]) -> None:
    encoded = tokenizer().encode(text)
    assert encoded.tokens == ["[CLS]", *tokens, "[SEP]"]
    assert encoded.ids == [101, *piece_ids(text), 102]
    assert count_tokens(text) == len(tokens)


def test_ids_are_those_of_bert() -> None:
    assert tokenizer().encode("Hello, my dog is cute").ids == [101, 7592, 1010, 2026, 3899, 2003, 10140, 102]
    assert tokenizer().encode("a", "b").type_ids == [0, 0, 0, 1, 1]


@given(st.text())
@example("form\x0cfeed line\x85break \x1c")
@example("[S\x0cEP] [MASK]s")
@example("\u0301 \u2028x\u3000y\u00a0z")
@example("half \ud800 pair")
@example("ΑΣ ΣΑ İ")
def test_counting_by_words_is_counting(text: str) -> None:
    assert count_tokens(text) == len(piece_ids(text))


@given(st.lists(st.text(alphabet="ab[SEP] \n\x0b\x85\u0301城_.", max_size=30), max_size=4))
def test_many_are_counted_as_one_by_one(texts: list[str]) -> None:
    assert count_many(texts) == [len(piece_ids(text)) for text in texts]


def test_the_cache_of_words_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpiece, "_CACHED_WORDS", 10)
    plain, other = wordpiece._Counts(wordpiece._pieces_of_plain), wordpiece._Counts(wordpiece._pieces_of)
    monkeypatch.setattr(wordpiece, "_plain_counts", plain)
    monkeypatch.setattr(wordpiece, "_counts", other)
    for word in ("word", "wörd"):
        text = " ".join(f"{word}{number}" for number in range(100)) + " " + "long" * 20
        assert count_tokens(text) == count_tokens(text) == len(piece_ids(text))
    for cache in (plain, other):
        assert 0 < len(cache) <= 10
    assert b"long" * 20 not in plain
    assert "long" * 20 not in other
