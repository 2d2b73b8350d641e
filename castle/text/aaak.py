"""AAAK: a shorthand for summaries that language models read as it is. It is lossy, and never replaces a text.

``Dialect.encode`` writes any text as one line; the same text always gives the same line. ``Document`` is the
form with several linked notes, which ``write`` and ``parse`` carry over without loss.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from castle.errors import ConfigError
from castle.text.aaak_words import DECISION_WORDS, EMOTION_SIGNS, EMOTIONS, FLAG_SIGNS, STOPWORDS

NOBODY = "???"
NO_TOPIC = "misc"
TOKENS_A_WORD = 1.3

_MOST = 3
_SENTENCE_MOST = 55
_SENTENCE_CUT = 52
_SENTENCE_LEAST = 10
_LONGEST_TOKEN = 40
_SCANNED_SENTENCE = 400

_WORD = re.compile(r"[^\W\d_][\w'-]{2,}")
_NAME = re.compile(r"\b[^\W\d_]\w*")
_CAMEL = re.compile(r"[a-z][A-Z]")
_PIECE = re.compile(r"[^.!?\n\r。！？]+")
_SPACES = re.compile(r"\s+")
_EMOTION = re.compile(
    r"\b(?:" + "|".join(r"sad\b" if sign == "sad" else sign for sign in EMOTION_SIGNS) + ")", re.IGNORECASE
)
_FLAGS = {
    flag: re.compile(r"\b(?:" + "|".join(signs) + ")", re.IGNORECASE) for flag, signs in FLAG_SIGNS.items()
}
_DECISION = re.compile(r"\b(?:" + "|".join(DECISION_WORDS) + r")\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Head:
    """Where a text comes from; an empty field is not known and written as ``?``."""

    wing: str = ""
    room: str = ""
    date: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """What one line says of a text."""

    entities: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    sentence: str = ""
    emotions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dialect:
    """How names become codes: ``entities`` maps names to theirs, ``skip_names`` are never named."""

    entities: Mapping[str, str] = field(default_factory=dict)
    skip_names: frozenset[str] = frozenset()

    def encode(self, text: str, head: Head | None = None) -> str:
        """Write a text as one line, under a line with its head where one is given."""
        line = write_line(self.line(text))
        if head is None:
            return line
        parts = (head.wing, head.room, head.date, head.source)
        return "|".join(_plain(part) or "?" for part in parts) + "\n" + line

    def line(self, text: str) -> Line:
        """Say what the line of a text holds."""
        emotions = (EMOTION_SIGNS[found.group().casefold()] for found in _EMOTION.finditer(text))
        flags = [flag for flag, pattern in _FLAGS.items() if pattern.search(text)]
        return Line(
            self._entities(text) or (NOBODY,),
            _topics(text) or (NO_TOPIC,),
            _key_sentence(text),
            _first(emotions),
            tuple(flags[:_MOST]),
        )

    def code(self, name: str) -> str:
        """Return the code of a name: the one it was given, else its first three letters."""
        return self._codes.get(name.casefold()) or _short_code(name)

    @cached_property
    def _codes(self) -> Mapping[str, str]:
        return {name.casefold(): code for name, code in self.entities.items()}

    @cached_property
    def _skipped(self) -> frozenset[str]:
        return frozenset(name.casefold() for name in self.skip_names)

    @cached_property
    def _known(self) -> re.Pattern[str] | None:
        names = [name for name in self._codes if name and name not in self._skipped]
        if not names:
            return None
        ordered = sorted(names, key=lambda name: (-len(name), name))
        return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, ordered)) + r")(?!\w)")

    def _entities(self, text: str) -> tuple[str, ...]:
        if self._known is not None:
            found = _first(self._codes[match.group()] for match in self._known.finditer(text.casefold()))
            if found:
                return found
        return _first(_short_code(name) for name in self._capitalised(text))

    def _capitalised(self, text: str) -> Iterator[str]:
        for number, match in enumerate(_NAME.finditer(text)):
            name = match.group()
            low = name.casefold()
            if number and name[0].isupper() and low not in STOPWORDS and low not in self._skipped:
                yield name


def load_dialect(path: Path) -> Dialect:
    """Read a dialect from a JSON file: ``{"entities": {"name": "CODE"}, "skip_names": ["name"]}``.

    Raises ConfigError for a file that cannot be read or says anything else.
    """
    from castle.config.yamlfile import read_text

    text = read_text(path)
    if text is None:
        raise ConfigError(f"{path}: no such file")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is not JSON: {error}") from error
    known = isinstance(data, dict) and set(data) <= {"entities", "skip_names"}
    entities = data.get("entities", {}) if known else None
    skipped = data.get("skip_names", []) if known else None
    if not (isinstance(entities, dict) and isinstance(skipped, list)):
        raise ConfigError(f'{path}: it must be {{"entities": {{"name": "CODE"}}, "skip_names": ["name"]}}')
    if not all(isinstance(text, str) and text.strip() for text in (*entities, *entities.values(), *skipped)):
        raise ConfigError(f"{path}: names and codes are texts that are not empty")
    return Dialect(entities, frozenset(skipped))


def code_map(names: Iterable[str]) -> dict[str, str]:
    """Give every name a code of its own: three letters where they are free, else with a number."""
    codes: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names)):
        base = _short_code(name)
        code, number = base, 2
        while code in taken:
            code, number = f"{base}{number}", number + 1
        taken.add(code)
        codes[name] = code
    return codes


def emotion_code(name: str) -> str:
    """Return the code of an emotion: the first four letters of one that has none."""
    low = name.strip().casefold()
    return EMOTIONS.get(low) or (low if low in EMOTIONS.values() else _plain(low)[:4])


def write_line(line: Line) -> str:
    """Write a line; what would end a field is replaced."""
    fields = (
        "+".join(map(_plain, line.entities)),
        "_".join(_plain(topic).replace("_", "-") for topic in line.topics),
        f'"{_plain(line.sentence)}"',
        "+".join(map(_plain, line.emotions)),
        "+".join(map(_plain, line.flags)),
    )
    return "0:" + "|".join(fields)


def read_line(text: str) -> tuple[Head | None, Line]:
    """Read what ``Dialect.encode`` wrote; raises ValueError for anything else."""
    *head, line = text.split("\n")
    fields = line.removeprefix("0:").split("|")
    if not line.startswith("0:") or len(fields) != 5 or len(head) > 1:
        raise ValueError(f"no AAAK line: {text[:60]!r}")
    entities, topics, sentence, emotions, flags = fields
    parts = head[0].split("|") if head else []
    if parts and len(parts) != 4:
        raise ValueError(f"no AAAK head: {head[0][:60]!r}")
    known = Head(*("" if part == "?" else part for part in parts)) if parts else None
    return known, Line(
        _split(entities, "+"), _split(topics, "_"), sentence[1:-1], _split(emotions, "+"), _split(flags, "+")
    )


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text from its words; far too low for AAAK itself, which has few spaces."""
    return round(len(text.split()) * TOKENS_A_WORD)


def exact_tokens(text: str) -> int:
    """Count the word pieces of a text."""
    from castle.text.wordpiece import count_tokens

    return count_tokens(text)


def aaak_spec() -> str:
    """Return what an agent must know to read and write AAAK."""
    return files("castle.text").joinpath("data/aaak.txt").read_text(encoding="utf-8")


def _first(items: Iterable[str]) -> tuple[str, ...]:
    """Return the first three different ones."""
    found: dict[str, None] = {}
    for item in items:
        found.setdefault(item)
        if len(found) == _MOST:
            break
    return tuple(found)


def _short_code(name: str) -> str:
    letters = "".join(char for char in name if char.isalpha())[:3].upper()
    return letters or NOBODY


def _topics(text: str) -> tuple[str, ...]:
    scores: Counter[str] = Counter()
    for match in _WORD.finditer(text):
        word = match.group()[:_LONGEST_TOKEN].rstrip("'-")
        low = word.lower().replace("'", "")
        if low.replace("_", "-") in STOPWORDS or len(low) < _MOST:
            continue
        joined = "_" in word or "-" in word or _CAMEL.search(word) is not None
        scores[low.replace("_", "-")] += 1 + 2 * word[0].isupper() + 2 * joined
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    return tuple(topic for topic, _ in ranked[:_MOST])


def _key_sentence(text: str) -> str:
    """Return the piece of a text that most looks like its point; the first of equals."""
    best, most = "", None
    for match in _PIECE.finditer(text):
        piece = _plain(match.group()[:_SCANNED_SENTENCE])
        if len(piece) <= _SENTENCE_LEAST:
            continue
        score = 2 * len(_DECISION.findall(piece))
        score += (len(piece) < 80) + (len(piece) < 40) - 2 * (len(piece) > 150)
        if most is None or score > most:
            best, most = piece, score
    best = best or _plain(text[:_SCANNED_SENTENCE])
    return best if len(best) <= _SENTENCE_MOST else best[:_SENTENCE_CUT].rstrip() + "…"


def _plain(text: str) -> str:
    """Bring a text into one line without the signs that end a field."""
    return _SPACES.sub(" ", text.replace("|", "/").replace('"', "'").replace("+", "&")).strip()


def _split(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(separator) if part)
