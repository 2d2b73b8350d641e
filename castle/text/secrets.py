"""Secrets in running text: where they stand, of what kind they are.

Every detector looks for a literal first and tries a bounded expression only where the literal stands, so that
the time is linear in the text whatever it holds. Named formats come first; assignments (``password = …``) are
judged by their value, which has to look like a secret and not like a placeholder or an expression.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from castle.records import SealedSpan
from castle.text import secret_rules as rules

DETECTOR_VERSION = 1
LONGEST_BLOCK = 65_536
"""Characters of a private key block that are sealed at most."""

_Span = tuple[int, int, int, str]  # start, end, rank (less is more specific), kind


def find_secrets(text: str, salt: bytes) -> list[SealedSpan]:
    """Find the secrets in a text, sorted and without overlaps.

    The tag of a span is the first byte, in hex, of HMAC-SHA256 of the secret under ``salt``.
    """
    found = list(_all(text))
    if not found:
        return []
    return [
        SealedSpan(start, end, kind, secret_tag(text[start:end], salt)) for start, end, kind in _merged(found)
    ]


def secret_tag(secret: str, salt: bytes) -> str:
    """Two hexadecimal digits that tell one secret from another without giving it away."""
    return hmac.new(salt, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:2]


def _merged(found: Iterable[_Span]) -> Iterator[tuple[int, int, str]]:
    """Join spans that overlap; the most specific kind names the whole."""
    ordered = sorted(found)
    start, end, rank, kind = ordered[0]
    for other_start, other_end, other_rank, other_kind in ordered[1:]:
        if other_start >= end:
            yield start, end, kind
            start, end, rank, kind = other_start, other_end, other_rank, other_kind
            continue
        end = max(end, other_end)
        if other_rank < rank:
            rank, kind = other_rank, other_kind
    yield start, end, kind


def _all(text: str) -> Iterator[_Span]:
    for start, end in _key_blocks(text):
        yield start, end, 0, "private_key"
    for token in rules.TOKENS:
        for literal in token.literals:
            if literal in text:
                for start, end in _tokens(text, literal, token):
                    yield start, end, 1, token.kind
    if "://" in text:
        for start, end in _url_passwords(text):
            yield start, end, 2, "url_password"
    lower = rules.lowered(text)
    if "bearer" in lower or "authorization" in lower:
        for start, end in _headers(text, lower):
            yield start, end, 3, "authorization"
    yield from _assignments(text, lower)


def _places(text: str, literal: str) -> Iterator[int]:
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + len(literal))


def _tokens(text: str, literal: str, token: rules.Token) -> Iterator[tuple[int, int]]:
    done = 0
    for at in _places(text, literal):
        begin = at - token.before
        if begin < done or not rules.starts_token(text, begin, token.strict):
            continue
        match = token.pattern.match(text, begin)
        if match is None:
            continue
        start, end = match.span(token.group)
        if not rules.is_dull(text[start:end], token.mixed):
            done = end
            yield start, end


@dataclass(slots=True)
class _NextEnd:
    """The first end line at or after a position; positions only grow, so the text is read once."""

    text: str
    at: int = -1

    def after(self, position: int) -> int:
        """Return where the next end line begins, or the length of the text."""
        if self.at < position:
            found = self.text.find("-----END ", position)
            self.at = len(self.text) if found < 0 else found
        return self.at


def _key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Find private key blocks; one without its end is sealed as far as its lines look like one."""
    if "PRIVATE KEY" not in text:
        return
    ends = _NextEnd(text)
    heads = [match.span() for match in rules.KEY_HEAD.finditer(text)]
    for number, (start, body) in enumerate(heads):
        limit = min(len(text), start + LONGEST_BLOCK)
        if number + 1 < len(heads):
            limit = min(limit, heads[number + 1][0])
        end = ends.after(body)
        foot = rules.KEY_FOOT.match(text, end) if end < limit else None
        if foot is not None and rules.is_key_body(text[body:end]):
            yield start, min(foot.end(), limit)
        elif foot is None:
            run = rules.KEY_LINES.match(text, body, limit)
            if run is not None and rules.is_key_body(run[0]):
                yield start, run.end()


def _url_passwords(text: str) -> Iterator[tuple[int, int]]:
    for at in _places(text, "://"):
        match = rules.URL_PASSWORD.match(text, at)
        if match is not None and not rules.is_placeholder(match[1]):
            yield match.span(1)


def _headers(text: str, lower: str) -> Iterator[tuple[int, int]]:
    for literal, pattern in (("authorization", rules.AUTHORIZATION), ("bearer", rules.BEARER)):
        for at in _places(lower, literal):
            match = pattern.match(text, at)
            if match is None or rules.is_placeholder(match[2]):
                continue
            basic = match[1].lower() == "basic"
            if rules.is_random(match[2], 16) or (basic and rules.classes(match[2]) > 1):
                yield match.span(2)


def _assignments(text: str, lower: str) -> Iterator[_Span]:
    for literal in rules.KEY_WORDS:
        if literal not in lower:
            continue
        password = literal in rules.PASSWORD_WORDS
        for at in _places(lower, literal):
            span = _assigned(text, at, at + len(literal), password)
            if span is not None:
                yield span


def _assigned(text: str, at: int, end: int, password: bool) -> _Span | None:
    """Judge what is assigned to the name around ``[at, end)``."""
    place = rules.ASSIGNMENT.match(text, end)
    if place is None:
        return _option(text, at, end, password)
    if rules.names_other_thing(place["suffix"]) or text[at - 6 : at].lower() == "public":
        return None
    after = place.end()
    aws = rules.AWS_SECRET.match(text, after) if "key" in text[at:after].lower() else None
    if aws is not None and rules.is_random(aws[1], 40):
        return *aws.span(1), 2, "aws_secret"
    value = rules.QUOTED.match(text, after) or rules.BARE.match(text, after)
    if value is None or rules.is_placeholder(value["value"]):
        return None
    env = text[after - 1] == "=" and text[at:end].isupper()
    if password and (env or value.re is rules.QUOTED):
        good = rules.is_password(value["value"])
    else:
        good = rules.is_random(value["value"], 8 if password and value.re is rules.BARE else 16)
    return (*value.span("value"), 4, "password" if password else "secret") if good else None


def _option(text: str, at: int, end: int, password: bool) -> _Span | None:
    """Judge the value of a command line option, as in ``--db-password …``."""
    begin = text.rfind("--", max(0, at - 24), at)
    place = rules.OPTION.match(text, begin) if begin >= 0 else None
    if place is None or place.end() <= end or rules.names_other_thing(text[end : place.end()]):
        return None
    value = rules.QUOTED.match(text, place.end()) or rules.BARE_OPTION.match(text, place.end())
    if value is None or rules.is_placeholder(value["value"]):
        return None
    good = rules.is_random(value["value"], 8 if password else 16)
    return (*value.span("value"), 4, "password" if password else "secret") if good else None
