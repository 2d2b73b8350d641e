"""Stems of the languages other than English, each marked with its language (``de#haus``).

The index stems every word as English; here are the stems that a word has in the languages that a text seems
to be written in. A language is recognised by its script or by at least two of its function words. Of a
question, which may be too short to tell, the stems in all languages are taken: the mark keeps each to its own
texts. Words of scripts without spaces, and of Hangul, are found by their characters and need no stem.

The rules are those of the Snowball project (https://snowballstem.org), for words whose accents are folded.
Hindi loses the longest of its usual endings, after Ramanathan and Rao, "A Lightweight Stemmer for Hindi"
(EACL 2003).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tantivy

_SNOWBALL = {
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "pt": "portuguese",
    "ru": "russian",
}
_LATIN = ("de", "es", "fr", "it", "pt")
_LEAST_WORDS = 2
_LEAST_LETTERS = 3

# As they are when accents are folded; a word that several languages have counts for each.
_FUNCTION_WORDS = {
    "de": "aber auch auf aus bei bin bist dann das dass dem den der die durch ein eine einem einen einer "
    "eines es fur haben hat hatte ich ihr ihre im ist jetzt kann mein mit nach nicht noch nur oder sich "
    "sie sind uber und uns unsere vom von wann war waren warum welche wenn wer werden wie wir wird wo "
    "wurde zu zum zur",
    "es": "al como con cual cuando de del donde el ella ellos en era es esta estaba estan este esto estos "
    "fue ha han hay la las lo los mas mi muy nos nuestro nuestra para pero por porque que quien se ser sin "
    "sobre son su sus tambien tiene un una uno y ya yo",
    "fr": "au aux avec avons ce ces cette dans de des du elle elles en est et etait etre il ils je la le les "
    "leur mais mes mon nous on ont ou par pas plus pour pourquoi quand que quel quelle qui quoi sa sans "
    "se ses son sont sur tes tres un une vous",
    "it": "abbiamo al alla che chi come con cosa da dal dalla dei del della delle di dove e era gli ha hanno "
    "ho i il in io la le lo loro ma mi nel nella noi non o per perche piu quale quando quello questa "
    "questo sei si sono su suo sul sulla un una uno",
    "pt": "ao aos as com como da das de do dos e ela ele em era essa esse esta este eu foi isso ja mais mas "
    "meu minha na nao nas no nos nossa nosso o onde os ou para pela pelo por porque qual quando que "
    "quem se sem ser seu sua sao tambem um uma voce",
    "en": "a about after and are as at be been but by can did do does for from had has have he her his how i "
    "if in into is it its me my no not of on or our she so that the their them then there they this to "
    "was we were what when where which who why will with would you your",
}
_HINDI_ENDINGS = tuple(
    ending
    for size in (
        "ाएंगी ाएंगे ाऊंगी ाऊंगा ाइयाँ ाइयों ाइयां",
        "ाएगी ाएगा ाओगी ाओगे एंगी ेंगी एंगे ेंगे ूंगी ूंगा ातीं नाओं नाएं ताओं ताएं ियाँ ियों ियां",
        "ाकर ाइए ाईं ाया ेगी ेगा ोगी ोगे ाने ाना ाते ाती ाता तीं ाओं ाएं ुओं ुएं ुआं",
        "कर ाओ िए ाई ाए ने नी ना ते ीं ती ता ाँ ां ों ें",
        "ो े ू ु ी ि ा",
    )
    for ending in size.split()
)


def languages_of(words: Iterable[str]) -> list[str]:
    """Return the Latin-written languages other than English that words seem to be of; mostly none or one.

    A language has at least two of its function words, more than English has, and at least two thirds of what
    the best one has.
    """
    there = _all_function_words().intersection(words)
    if len(there) < _LEAST_WORDS or there <= _function_words()["en"]:
        return []
    votes = {code: len(there & known) for code, known in _function_words().items()}
    most = max(votes.values())
    if most < _LEAST_WORDS or votes["en"] >= most:
        return []
    return [code for code in _LATIN if votes[code] >= _LEAST_WORDS and 3 * votes[code] >= 2 * most]


def marked_stems(words: Sequence[str]) -> list[str]:
    """Return the marked stems of a text's words, for the index; function words have none."""
    found: list[str] = []
    if not "".join(words).isascii():
        foreign = [word for word in words if not word.isascii()]
        found += _stem("ru", _cyrillic(foreign)) + _stem("hi", _devanagari(foreign))
    for code in languages_of(words):
        dull = _function_words()[code]
        taken = [word for word in words if _plain(word) and word not in dull]
        found += _stem(code, taken)
    return found


def stems_anywhere(word: str) -> list[str]:
    """Return the marked stems that a word has in whatever language a text may be written in."""
    if not word.isascii():
        return [*_stem("ru", _cyrillic([word])), *_stem("hi", _devanagari([word]))]
    if not _plain(word):
        return []
    words_of = _function_words()
    return [stem for code in _LATIN if word not in words_of[code] for stem in _stem(code, [word])]


def _plain(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS and word.isascii() and word.isalpha()


def _cyrillic(words: Iterable[str]) -> list[str]:
    """Return the words that are all Cyrillic letters, ``ё`` written as ``е``."""
    return [
        word.replace("ё", "е")
        for word in words
        if len(word) >= _LEAST_LETTERS and all("\u0400" <= char <= "\u052f" for char in word)
    ]


def _devanagari(words: Iterable[str]) -> list[str]:
    return [word for word in words if len(word) >= 2 and all("\u0900" <= char <= "\u097f" for char in word)]


def _stem(code: str, words: Sequence[str]) -> list[str]:
    if not words:
        return []
    if code == "hi":
        return [f"hi#{_hindi(word)}" for word in words]
    if code == "pt":
        words = [_singular(word) for word in words]
    return [f"{code}#{stem}" for stem in _analyzer(code).analyze(" ".join(words))]


def _hindi(word: str) -> str:
    for ending in _HINDI_ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)]
    return word


def _singular(word: str) -> str:
    """Undo the plural of -ão, whose rule needs the tilde."""
    return word[:-3] + "ao" if len(word) > 4 and word.endswith(("oes", "aes")) else word


@cache
def _function_words() -> dict[str, frozenset[str]]:
    return {code: frozenset(written.split()) for code, written in _FUNCTION_WORDS.items()}


@cache
def _all_function_words() -> frozenset[str]:
    return frozenset().union(*_function_words().values())


@cache
def _analyzer(code: str) -> tantivy.TextAnalyzer:
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    return builder.filter(tantivy.Filter.stemmer(_SNOWBALL[code])).build()
