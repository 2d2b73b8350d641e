"""BERT's uncased WordPiece tokens: the unit in which chunks are bounded and MiniLM reads.

The table is ``data/bert-vocab.txt`` (30,522 entries, one a line, the line number is the id). Counting goes
through a cache of words, because text repeats its words; the tokenizer itself is asked only for new ones.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY = Path(__file__).parent / "data" / "bert-vocab.txt"
CLS, SEP = 101, 102

T = TypeVar("T", str, bytes)

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LONGEST_WORD = 100
_CACHED_WORDS = 100_000
_CACHED_LENGTH = 64
# str.split() breaks at these, BERT's normaliser deletes them and joins what stands on both sides.
_JOINERS = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_SIGNS = string.punctuation.encode("ascii")
_NO_SIGNS = f"{string.ascii_letters}{string.digits} \t\n\r".encode("ascii")
_LOWERED = bytes.maketrans(
    string.ascii_uppercase.encode("ascii") + _SIGNS,
    string.ascii_lowercase.encode("ascii") + b" " * len(_SIGNS),
)


@cache
def tokenizer() -> Tokenizer:
    """Return the tokenizer of all-MiniLM-L6-v2 without truncation and padding.

    One object for the whole process: do not enable truncation or padding on it.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    entries = VOCABULARY.read_text(encoding="utf-8").split("\n")
    table = {entry: number for number, entry in enumerate(entries) if entry}
    built = Tokenizer(WordPiece(table, unk_token="[UNK]", max_input_chars_per_word=_LONGEST_WORD))
    built.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
    )
    built.pre_tokenizer = BertPreTokenizer()
    built.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    built.add_special_tokens(list(_SPECIAL))
    return built


def piece_ids(text: str) -> list[int]:
    """Return the ids of a text's word pieces without [CLS] and [SEP]; lone surrogates count as U+FFFD.

    Texts go in one by one: batch calls start a thread pool that does not survive a fork.
    """
    if _SURROGATES.search(text):
        text = _SURROGATES.sub("\ufffd", text)
    ids: list[int] = tokenizer().encode(text, add_special_tokens=False).ids
    return ids


def _holds_special(word: str) -> bool:
    return "[" in word and any(special in word for special in _SPECIAL)


class _Counts(dict[T, int]):
    """Word pieces by word, filled on demand and emptied when it holds too many."""

    def __init__(self, count: Callable[[T], int]) -> None:
        super().__init__()
        self._count: Callable[[T], int] = count

    def __missing__(self, word: T) -> int:
        count = self._count(word)
        if len(word) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = count
        return count


def _pieces_of_plain(word: bytes) -> int:
    """Count the pieces of a word of small ASCII letters and digits, which nothing changes or parts."""
    pieces: list[object] = tokenizer().model.tokenize(word.decode("ascii"))
    return len(pieces)


def _pieces_of(word: str) -> int:
    counts = _count_plain([word]) if word.isascii() else None
    return len(piece_ids(word)) if counts is None else counts[0]


_plain_counts = _Counts(_pieces_of_plain)
_counts = _Counts(_pieces_of)


def _count_plain(texts: Sequence[str]) -> list[int] | None:
    """Count the pieces of ASCII texts: one for each sign, and those of the words between them.

    None where one has other control characters than white space, or the name of a special token.
    """
    text = "\0".join(texts)
    data = text.encode("ascii")
    signs = data.translate(None, _NO_SIGNS)
    if len(signs.translate(None, _SIGNS)) >= len(texts) or _holds_special(text):
        return None
    pieces = _plain_counts.__getitem__
    parts = zip(signs.split(b"\0"), data.translate(_LOWERED).split(b"\0"), strict=True)
    return [len(own) + sum(map(pieces, words.split())) for own, words in parts]


def count_tokens(text: str) -> int:
    """Count a text's word pieces without [CLS] and [SEP]; equal to ``len(piece_ids(text))``."""
    counts = _count_plain([text]) if text.isascii() else None
    if counts is not None:
        return counts[0]
    if _JOINERS.search(text):
        return len(piece_ids(text))
    return sum(map(_counts.__getitem__, text.split()))


def count_many(texts: Sequence[str]) -> list[int]:
    """Count the word pieces of each text, as ``count_tokens`` does."""
    plain = [text for text in texts if text.isascii()]
    counts = _count_plain(plain) if plain else []
    if counts is None:
        return [count_tokens(text) for text in texts]
    counted = iter(counts)
    return [next(counted) if text.isascii() else count_tokens(text) for text in texts]
