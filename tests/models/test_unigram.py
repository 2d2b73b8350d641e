from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.models.unigram import UnigramTokenizer

_PIECES = {"<unk>": 0.0, "▁": -6.0, "▁the": -2.0, "▁th": -4.0, "e": -4.0, "re": -3.0, "t": -5.0, "é": -5.0}


def _tokenizer(pieces: dict[str, float] = _PIECES, normal: dict[int, str] | None = None) -> UnigramTokenizer:
    return UnigramTokenizer(
        list(pieces), list(pieces.values()), unknown=0, reserved=frozenset((0,)), normal=normal or {}
    )


def _cut(text: str, tokenizer: UnigramTokenizer | None = None) -> list[str]:
    names = list(_PIECES)
    return [names[number] for number in (tokenizer or _tokenizer()).ids(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" \n ", []),
        ("the", ["▁the"]),
        ("there", ["▁the", "re"]),
        (" the\n\tthe ", ["▁the", "▁the"]),
        ("e\u0301t", ["▁", "é", "t"]),
        ("theZZe", ["▁the", "<unk>", "e"]),
        ("<unk>e", ["▁", "<unk>", "e"]),
        ("\ud83c", ["▁", "<unk>"]),
    ],
)
def test_cuts(text: str, pieces: list[str]) -> None:
    assert _cut(text) == pieces


def test_characters_become_what_stands_for_them() -> None:
    tokenizer = _tokenizer(normal={ord("Ⓔ"): "e", 0x200B: " ", 0x01: ""})
    assert _cut("th\u200bⒺ\x01", tokenizer) == ["▁th", "▁", "e"]


def test_a_long_word_is_cut_like_a_short_one() -> None:
    tokenizer = _tokenizer()
    assert _cut("re" * 30_000, tokenizer) == ["▁", *["re"] * 30_000]


_WORDS = st.text("ab", min_size=1, max_size=9)
_TABLES = st.dictionaries(st.text("▁ab", min_size=1, max_size=4), st.floats(-9, -1), min_size=1, max_size=12)


@given(_TABLES, _WORDS)
def test_no_other_cut_has_a_higher_score(table: dict[str, float], word: str) -> None:
    pieces = {"<unk>": 0.0, **table}
    unknown = min(pieces.values()) - 10
    whole = f"▁{word}"

    @cache
    def best(rest: str) -> float:
        if not rest:
            return 0.0
        found = [unknown + best(rest[1:])]
        found += [
            score + best(rest[len(piece) :]) for piece, score in table.items() if rest.startswith(piece)
        ]
        return max(found)

    names, scores = list(pieces), list(pieces.values())
    ids = _tokenizer(pieces).ids(word)
    rebuilt = "".join(names[number] for number in ids if number)
    missing = len(whole) - len(rebuilt)
    assert sum(scores[number] for number in ids) + unknown * missing == pytest.approx(best(whole))
    if 0 not in ids:
        assert rebuilt == whole


@given(_TABLES, _WORDS)
def test_scores_are_those_of_the_library(table: dict[str, float], word: str) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram

    pieces = {"<unk>": 0.0, **table}
    library = Tokenizer(Unigram(list(pieces.items()), 0))
    scores = list(pieces.values())

    def total(ids: list[int]) -> float:
        return sum(scores[number] for number in ids)

    ours, theirs = _tokenizer(pieces).ids(word), library.encode(f"▁{word}", add_special_tokens=False).ids
    assert total(ours) == pytest.approx(total(theirs))
    assert ours.count(0) == theirs.count(0)
