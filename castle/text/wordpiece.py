"""BERT's uncased WordPiece tokens: the unit in which chunks are bounded and MiniLM reads.

The table is ``data/bert-vocab.txt`` (30,522 entries, one a line, the line number is the id). Counting goes
through a cache of words, because text repeats its words; the tokenizer itself is asked only for new ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY = Path(__file__).parent / "data" / "bert-vocab.txt"
CLS, SEP = 101, 102

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LONGEST_WORD = 100
_CACHED_WORDS = 100_000
_CACHED_LENGTH = 64
# str.split() breaks at these, BERT's normaliser deletes them and joins what stands on both sides.
_JOINERS = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile("[\t\n\r -~]*")
_MIXED = re.compile("[!-~]+")
_PARTS = re.compile("[A-Za-z0-9]+|[!-~]")


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


class _Counts(dict[str, int]):
    """Word pieces by word, filled on demand and emptied when it holds too many."""

    def __missing__(self, word: str) -> int:
        # BERT splits at ASCII punctuation, so parts of a mixed word can be counted, and cached, one by one.
        parts = _PARTS.findall(word) if _MIXED.fullmatch(word) and not _holds_special(word) else ()
        if len(parts) > 1:
            count = sum(map(self.__getitem__, parts))
        else:
            count = len(piece_ids(word))
        if len(word) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = count
        return count


_counts = _Counts()


def count_tokens(text: str) -> int:
    """Count a text's word pieces without [CLS] and [SEP]; equal to ``len(piece_ids(text))``."""
    if text.isascii() and _PLAIN.fullmatch(text) and not _holds_special(text):
        return sum(map(_counts.__getitem__, _PARTS.findall(text)))
    if _JOINERS.search(text):
        return len(piece_ids(text))
    return sum(map(_counts.__getitem__, text.split()))


def count_many(texts: Iterable[str]) -> list[int]:
    """Count the word pieces of each text, as ``count_tokens`` does."""
    return [count_tokens(text) for text in texts]
