"""What goes into the knowledge graph and what comes out: names, moments, facts.

A date as a bound of a fact's validity is the first instant of that day (UTC), so a fact from 2026-05-01 to
2026-05-02 held on the first of May, all day, and not on the second. A date as a question ("as of") is the
whole day: every fact that held at any instant of it is an answer.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from castle.clock import parse_iso, to_iso
from castle.config.project import check_name
from castle.errors import UsageError
from castle.text.secrets import find_secrets

FactState = Literal["current", "ended", "future"]
EvidenceState = Literal["current", "stated", "superseded", "forgotten"]
Direction = Literal["outgoing", "incoming", "both"]
Outcome = Literal["added", "known", "widened", "dated"]

MAX_NAME = 128
MAX_SOURCE = 4096

DAY = 86_400_000_000
"""A day in microseconds."""

_BEYOND = 1 << 62
_DATE = re.compile(r"(\d{4}-\d\d-\d\d|\d{8}|\d{4}-W\d\d-\d|\d{4}W\d{3})", re.ASCII)
_TIME = re.compile(r"\d\d(:?\d\d(:?\d\d([.,]\d+)?)?)?(Z|[+-]\d\d(:?\d\d)?)?", re.ASCII)
_APOSTROPHES = str.maketrans("", "", "'\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}")


@dataclass(frozen=True, slots=True)
class Span:
    """Microseconds ``[start, end)``: a whole day for a date, one microsecond for a date with a time."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One statement that a fact rests on; ``drawer`` is an id, None when the fact was only stated."""

    drawer: str | None
    state: EvidenceState
    source: str
    adapter: str
    actor: str
    confidence: float
    valid_from_text: str | None
    valid_to_text: str | None
    recorded_at: int
    confirmed_at: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of a fact, valid in ``[valid_from, valid_to)``; None is a bound nobody stated.

    ``created_at`` is when the fact was first recorded, ``recorded_at`` and ``recorded_by`` tell when this
    version was, and by whom. ``state`` is relative to now. ``confidence`` is the highest of the evidence,
    ``evidence_state`` the best. ``direction`` is seen from the entity that was asked about.
    """

    id: str
    subject: str
    predicate: str
    object: str
    valid_from: int | None
    valid_to: int | None
    valid_from_text: str | None
    valid_to_text: str | None
    state: FactState
    confidence: float
    evidence_state: EvidenceState
    evidence: tuple[Evidence, ...]
    created_at: int
    recorded_at: int
    recorded_by: str
    ended_at: int | None = None
    ended_by: str | None = None
    direction: Direction | None = None
    subject_id: str = ""
    object_id: str = ""

    @property
    def sentence(self) -> str:
        """Subject, predicate and object in one line."""
        return f"{self.subject} {self.predicate} {self.object}"


@dataclass(frozen=True, slots=True)
class Facts:
    """One page of facts. ``total`` counts all of them; ``hidden`` those whose evidence is all forgotten."""

    entity: str | None
    total: int
    offset: int
    hidden: int
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """What ``add`` did: ``added``, ``known`` already, ``widened`` to an earlier start, or ``dated``."""

    outcome: Outcome
    fact: Fact


@dataclass(frozen=True, slots=True)
class Superseded:
    """The fact that ended and the one that holds from then on."""

    ended: Fact
    added: Added


@dataclass(frozen=True, slots=True)
class GraphStats:
    """The graph in numbers: ``hidden`` facts are in none of the other counts of facts."""

    entities: int
    facts: int
    current: int
    ended: int
    future: int
    hidden: int
    evidence: int
    predicates: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """A checked statement, ready to be recorded."""

    subject: str
    predicate: str
    object: str
    start: int | None = None
    end: int | None = None
    start_text: str | None = None
    end_text: str | None = None
    confidence: float = 1.0
    source: str = ""
    adapter: str = ""


def make_claim(
    subject: str,
    predicate: str,
    object: str,
    *,
    valid_from: str | None = None,
    valid_to: str | None = None,
    confidence: float = 1.0,
    source: str = "",
    adapter: str = "",
) -> Claim:
    """Check a statement; raises UsageError naming what cannot be recorded."""
    start = None if valid_from is None else parse_span("valid_from", valid_from).start
    end = None if valid_to is None else parse_span("valid_to", valid_to).start
    if start is not None and end is not None and end <= start:
        hint = "name the day after its last" if end == start else "exchange them"
        raise UsageError(f"valid_to {valid_to} is not after valid_from {valid_from}: {hint}")
    if not (math.isfinite(confidence) and 0 <= confidence <= 1):
        raise UsageError(f"confidence {confidence} is not between 0 and 1")
    return Claim(
        without_secret("subject", clean_name("subject", subject)),
        predicate_id(predicate),
        without_secret("object", clean_name("object", object)),
        start,
        end,
        None if valid_from is None else valid_from.strip(),
        None if valid_to is None else valid_to.strip(),
        confidence,
        without_secret("source", _clean("source", source, MAX_SOURCE)) if source.strip() else "",
        _clean("adapter", adapter, MAX_NAME) if adapter.strip() else "",
    )


def clean_name(what: str, name: str) -> str:
    """Return the name of an entity without the blanks around it; any punctuation is allowed.

    Raises UsageError when it is blank, longer than 128 characters, or holds a control character.
    """
    text = _clean(what, name, MAX_NAME)
    if not _folded(text):
        raise UsageError(f"{what} {text!r} holds nothing but apostrophes: give it a name")
    return text


def without_secret(what: str, text: str) -> str:
    """Return the text; raises UsageError when it holds a secret, which the graph would show to everybody."""
    found = find_secrets(text, b"")
    if found:
        raise UsageError(f"the {what} holds a secret ({found[0].kind}): write what it is for, not what it is")
    return text


def entity_id(name: str) -> str:
    """Return the id of an entity: lower case, blanks to ``_``, apostrophes removed, Unicode composed."""
    return _folded(name)


def predicate_id(predicate: str) -> str:
    """Return the normal form of a predicate, by the rules for names and then those for entity ids."""
    return _folded(check_name("predicate", predicate.strip()))


def fact_id(subject: str, predicate: str, object: str, number: int) -> str:
    """Return the id of the ``number``-th fact (from 0) of a triple."""
    digest = hashlib.sha256()
    for part in (subject, predicate, object, str(number)):
        data = part.encode("utf-8")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:24]


def parse_span(what: str, text: str) -> Span:
    """Read an ISO date (a whole day) or date-time (an instant); without an offset it is UTC.

    Calendar dates and week dates are read, in basic and extended form. Raises UsageError for anything else.
    """
    given = text.strip().upper()
    try:
        found = _DATE.match(given)
        if found is None:
            raise ValueError(given)
        rest = given[found.end() :]
        if rest and not (rest[0] in "T " and _TIME.fullmatch(rest, 1)):
            raise ValueError(given)
        micros = parse_iso(given)
    except ValueError:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise UsageError(
            f"{what} {shown!r} is no ISO date or time: write 2026-05-31 or 2026-05-31T09:30:00+02:00"
        ) from None
    return Span(micros, micros + (1 if rest else DAY))


def show_moment(micros: int | None) -> str:
    """Write a bound for people: a date when it is a midnight, else ISO 8601 with offset."""
    if micros is None:
        return ""
    text = to_iso(micros)
    if micros % DAY == 0:
        return text[:10]
    return text.replace(".000000", "")


def show_validity(start: int | None, end: int | None) -> str:
    """Write a validity in words."""
    if start is None and end is None:
        return "without dates"
    if end is None:
        return f"from {show_moment(start)}"
    if start is None:
        return f"until {show_moment(end)}"
    return f"from {show_moment(start)} to {show_moment(end)}"


def state_at(start: int | None, end: int | None, moment: int) -> FactState:
    """Tell whether a validity lies before, around or after a moment."""
    if end is not None and end <= moment:
        return "ended"
    return "future" if start is not None and start > moment else "current"


def low(start: int | None) -> int:
    """Return a start as a number, one nobody stated lying before all time."""
    return -_BEYOND if start is None else start


def high(end: int | None) -> int:
    """Return an end as a number, one nobody stated lying after all time."""
    return _BEYOND if end is None else end


def _clean(what: str, value: str, limit: int) -> str:
    text = value.strip()
    if not text:
        raise UsageError(f"the {what} is blank")
    if len(text) > limit:
        raise UsageError(f"the {what} has {len(text)} characters, {limit} are the most")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise UsageError(f"the {what} {text[:60]!r} holds a control character or is no valid text")
    return text


def _folded(name: str) -> str:
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower().translate(_APOSTROPHES))
    return "_".join(plain.split())
