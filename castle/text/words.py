"""The lexical tokens of a text, the same for what is indexed and for what is asked.

``words`` gives them in the order of the text:

- Text is NFKC-normalised and case-folded. Diacritics are folded for the Latin script only (``é`` is ``e``,
  ``ø`` is ``o``); other scripts keep theirs.
- What is joined by ``_ - . / : @ + '`` or by a change of case is one identifier: the whole comes first, then
  its parts, outer joints before inner ones (``os.path_join`` gives ``os.path_join os path_join path join``).
  So a phrase is a run of tokens. Two words joined by a hyphen are also given as one (``e-mail``: ``e-mail
  email e mail``), a version also without its ``v``.
- A contraction is one word without its apostrophe (``don't`` is ``dont``); ``'s 're 've 'll 'd 'm`` are
  dropped; other apostrophes join like a hyphen.
- Han, Kana and Hangul give every character and every pair of neighbours (``検索`` is ``検 検索 索``); Thai,
  Lao, Khmer and Burmese give pairs of clusters. An emoji is a token, without its skin tone.
- A token of more than 64 characters becomes its first 40 characters, ``~`` and 16 hexadecimal digits of its
  hash: it is found again by the same text.

Stemming is left to the index.
"""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from typing import TypeVar

T = TypeVar("T", str, bytes)

LONGEST = 64
_CACHED = 200_000

_ASCII_RUN = re.compile(r"[A-Za-z0-9_]++(?:[-./:@+'][A-Za-z0-9_]++){0,32}+")
_SIGNED_RUN = re.compile(rf"[A-Za-z]\+\+|[CFcf]#|{_ASCII_RUN.pattern}")
_SIGNS = ("++", "c#", "C#", "f#", "F#")
_SPACED = bytes(
    code if chr(code) in f"{string.ascii_letters}{string.digits}_-./:@+'" else ord(" ") for code in range(256)
)
_PLAIN_RUN = re.compile(r"[A-Za-z]\+\+|[CFcf]#|\w+(?:[-./:@+']\w+){0,32}")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_EMOJI_FORM = re.compile("(?<=.)[\ufe0f\U0001f3fb-\U0001f3ff]")
_DROPPED_ENDING = re.compile(r"'(?:s|S|re|RE|ve|VE|ll|LL|d|D|m|M)\Z")
_JOINTS = ("/", ":", "@", "+", ".", "'", "-", "_")
_QUOTED = re.compile(r'"([^"]+)"|“([^”"]+)”|„([^“”"]+)[“”]|「([^」]+)」|『([^』]+)』|«([^»]+)»')


def words(text: str) -> list[str]:
    """Split a text into its lexical tokens, in order; any string will do."""
    if not text.isascii():
        return list(chain.from_iterable(map(_tokens.__getitem__, _runs(text))))
    if any([sign in text for sign in _SIGNS]):
        return list(chain.from_iterable(map(_tokens.__getitem__, _SIGNED_RUN.findall(text))))
    pieces = text.encode("ascii").translate(_SPACED).split()
    return list(chain.from_iterable(map(_ascii_tokens.__getitem__, pieces)))


def phrases(query: str) -> list[str]:
    """List what stands in quotation marks in a query: ``"…"``, ``“…”``, ``„…“``, ``「…」``, ``«…»``."""
    found = ("".join(groups).strip() for groups in _QUOTED.findall(query))
    return [phrase for phrase in found if phrase]


class _Tokens(dict[T, tuple[str, ...]]):
    """Tokens by what they are made of, filled on demand and emptied when it holds too many."""

    def __init__(self, expand: Callable[[T], Iterable[str]]) -> None:
        super().__init__()
        self._expand: Callable[[T], Iterable[str]] = expand

    def __missing__(self, run: T) -> tuple[str, ...]:
        tokens = tuple(self._expand(run))
        if len(run) <= LONGEST:
            if len(self) >= _CACHED:
                self.clear()
            self[run] = tokens
        return tokens


def _expand(run: str) -> list[str]:
    if run.isascii():
        if run.isalpha() and (run.islower() or run.istitle()):
            return [_bounded(run)]
        return [] if not run.strip("_") else _joined(run)
    script = _scripts().match(run)
    kind = script.lastgroup if script else None
    if kind == "cjk":
        return _pairs(run, singles=True)
    if kind == "unspaced":
        return _pairs(_clusters(run), singles=False)
    if kind == "emoji":
        return [_bounded(_EMOJI_FORM.sub("", run))]
    return _joined(run)


def _expand_ascii(piece: bytes) -> Iterable[str]:
    """Give the tokens of letters, digits and joints without signs or spaces among them."""
    if piece.isalpha() and piece.islower():
        return (_bounded(piece.decode("ascii")),)
    return chain.from_iterable(map(_expand, _ASCII_RUN.findall(piece.decode("ascii"))))


_tokens = _Tokens(_expand)
_ascii_tokens = _Tokens(_expand_ascii)


def _joined(run: str) -> list[str]:
    """Give an identifier whole, then its parts."""
    if "'" in run:
        if ending := _DROPPED_ENDING.search(run):
            run = run[: ending.start()]
        elif run.endswith(("n't", "N'T")):
            run = run.replace("'", "")
    tokens: list[str] = []
    _take(run, 0, tokens)
    return tokens


def _take(run: str, level: int, tokens: list[str]) -> None:
    """Append a run and then what its joints from ``level`` inwards separate."""
    if run.isalpha() and run.isascii() and (run.islower() or run.istitle()):
        tokens.append(_bounded(run))
        return
    while level < len(_JOINTS) and _JOINTS[level] not in run:
        level += 1
    whole = _bounded(run)
    tokens.append(whole)
    if level == len(_JOINTS):
        parts = _CAMEL.findall(run) if run.isascii() else _humps(run)
        if len(parts) > 1:
            tokens.extend(_bounded(part) for part in parts if len(part) > 1 or part.isdigit())
        return
    joint = _JOINTS[level]
    parts = [part for part in run.split(joint) if part]
    if joint in "-'" and len(parts) == 2 and parts[0].isalpha() and parts[1].isalpha():
        tokens.append(_bounded("".join(parts)))
    if joint == "." and run[0] in "vV" and parts[0][1:].isdigit():
        tokens.append(_bounded(run[1:]))
        parts[0] = parts[0][1:]
    for part in parts:
        _take(part, level + 1, tokens)


def _humps(run: str) -> list[str]:
    """Split an identifier with letters beyond ASCII where the case rises or digits begin or end."""
    parts: list[str] = []
    start = 0
    for at in range(1, len(run)):
        before, after = run[at - 1], run[at]
        if (before.islower() and after.isupper()) or (
            before.isdigit() != after.isdigit() and not unicodedata.category(after).startswith("M")
        ):
            parts.append(run[start:at])
            start = at
    parts.append(run[start:])
    return parts


def _bounded(token: str) -> str:
    """Fold the case; cut what is longer than an index takes, with a hash that keeps it apart."""
    if token.isascii():
        token = token.lower()
    else:
        token = unicodedata.normalize("NFKC", token.casefold())
    if len(token) <= LONGEST:
        return token
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{token[:40]}~{digest}"


def _pairs(units: str | list[str], *, singles: bool) -> list[str]:
    """Give the pairs of neighbours, with ``singles`` each unit before the pair that it opens."""
    if len(units) == 1:
        return [_bounded(units[0])]
    tokens: list[str] = []
    for at, unit in enumerate(units):
        if singles:
            tokens.append(_bounded(unit))
        if at + 1 < len(units):
            tokens.append(_bounded(unit + units[at + 1]))
    return tokens


def _clusters(run: str) -> list[str]:
    """Split a run into base characters with the marks that follow them."""
    clusters: list[str] = []
    for char in run:
        if clusters and unicodedata.category(char).startswith("M") and len(clusters[-1]) < 16:
            clusters[-1] += char
        else:
            clusters.append(char)
    return clusters


def _runs(text: str) -> list[str]:
    """Split a text that is not all ASCII."""
    text = unicodedata.normalize("NFKC", text).translate(_latin())
    text = _latin_marks().sub("", text)
    if _special().search(text) is None:
        return _PLAIN_RUN.findall(text)
    return [match[0] for match in _scripts().finditer(text)]


_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3040-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_UNSPACED = (
    "\u0e00-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf\u0edc-\u0eff\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17dc-\u17dd"
    "\ua9e0-\ua9ef\uaa60-\uaa7f"
)
_EMOJI = (
    "\u231a\u231b\u23e9-\u23ff\u2600-\u27bf\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa"
    "\U0001f400-\U0001faff"
)
_FLAG = "\U0001f1e6-\U0001f1ff"


@cache
def _special() -> re.Pattern[str]:
    """Match a character that plain runs of letters and digits do not do justice."""
    return re.compile(f"[{_CJK}{_UNSPACED}{_EMOJI}{_FLAG}{''.join(_ranges('M'))}]")


@cache
def _scripts() -> re.Pattern[str]:
    marks = "".join(_ranges("M"))
    letter = rf"[^\W{_CJK}{_UNSPACED}{_EMOJI}]"
    word = f"{letter}+(?:[{marks}]+{letter}*)*"
    emoji = rf"[{_EMOJI}][\ufe0f\U0001f3fb-\U0001f3ff]*"
    return re.compile(
        rf"(?P<cjk>[{_CJK}][{_CJK}{marks}]*)"
        rf"|(?P<unspaced>[{_UNSPACED}]+)"
        rf"|(?P<emoji>[{_FLAG}]{{2}}|{emoji}(?:\u200d{emoji}){{0,8}})"
        r"|[A-Za-z]\+\+|[CFcf]#"
        rf"|(?P<word>{word}(?:[-./:@+']{word}){{0,32}})"
    )


@cache
def _ranges(category: str) -> tuple[str, ...]:
    """List the characters of a category as ranges of an expression's class."""
    found: list[str] = []
    start = -1
    for code in [*range(0x300, 0x20000), *range(0xE0100, 0xE01F1)]:
        inside = code != 0xFE0F and unicodedata.category(chr(code))[0] == category
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            found.append(f"{chr(start)}-{chr(code - 1)}")
            start = -1
    return tuple(found)


@cache
def _latin() -> dict[int, str]:
    """Map accented Latin letters to plain ones, typographic apostrophes and hyphens to theirs."""
    table = {0x2019: "'", 0x02BC: "'", 0x2010: "-", 0x2011: "-"}
    for code in [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]:
        plain = unicodedata.normalize("NFD", chr(code))
        if plain[0].isascii() and plain[0].isalpha():
            table[code] = plain[0]
    table.update(zip(map(ord, "øØđĐłŁħĦŧŦıðÐ"), "oOdDlLhHtTidD", strict=True))
    table.update({ord("æ"): "ae", ord("Æ"): "Ae", ord("œ"): "oe", ord("Œ"): "Oe"})
    table.update({ord("þ"): "th", ord("Þ"): "Th", ord("ß"): "ss", ord("ẞ"): "SS"})
    return table


@cache
def _latin_marks() -> re.Pattern[str]:
    return re.compile(r"(?<=[A-Za-z\u0300-\u036f])[\u0300-\u036f]+")
