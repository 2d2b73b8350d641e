"""Secrets in running text: where they stand, of what kind they are.

Every detector looks for a literal first and tries a bounded expression only where the literal stands, so that
the time is linear in the text whatever it holds. Named formats come first, then the places where secrets are
known to stand (URLs, headers, cookies, logins, the neighbourhood of a key's id); ``secret_names`` has those
that only their name gives away.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from castle.records import SealedSpan
from castle.text import secret_rules as rules
from castle.text import secret_values as values
from castle.text.secret_names import Found, named_secrets, places

DETECTOR_VERSION = 4
"""The rules a drawer was read with, filed with it. Raise it with every change that finds more: drawers of
older rules are read again, see ``castle.store.redetect``."""
LONGEST_BLOCK = 65_536
"""Characters of a private key block that are sealed at most."""
_LONGEST_HEADER = 8_192
_COMMAND = 500  # characters of a command line that are looked at
_LITERALS = tuple((literal, token) for token in rules.TOKENS for literal in token.literals)
_NEAR = 240  # characters around the id of an AWS key within which its secret is looked for


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


def _merged(found: Iterable[Found]) -> Iterator[tuple[int, int, str]]:
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


def _all(text: str) -> Iterator[Found]:
    for start, end in _key_blocks(text):
        yield start, end, 0, "private_key"
    for literal, token in _LITERALS if rules.may_hold_token(text) else ():
        for start, end in _tokens(text, literal, token):
            yield start, end, 1, token.kind
    lower = rules.lowered(text)
    for kind, rank, spans in (
        ("aws_secret", 2, _aws_neighbours(text)),
        ("url_password", 2, _url_passwords(text)),
        ("authorization", 3, _headers(text, lower)),
        ("cookie", 3, _cookies(text, lower)),
        ("password", 4, _logins(text)),
    ):
        for start, end in spans:
            yield start, end, rank, kind
    yield from named_secrets(text, lower)


def _tokens(text: str, literal: str, token: rules.Token) -> Iterator[tuple[int, int]]:
    done = 0
    for at in places(text, literal):
        begin = at - token.before
        if begin < done or not rules.starts_token(text, begin, token.strict):
            continue
        match = token.pattern.match(text, begin)
        if match is None:
            run = token.run.match(text, begin) if token.run is not None else None
            done = run.end() if run is not None else done
            continue
        start, end = match.span(token.group)
        done = end
        if not values.is_dull(text[start:end], token.mixed):
            yield start, end


@dataclass(slots=True)
class _NextEnd:
    """The first end line at or after a position; positions only grow, so the text is read once."""

    text: str
    at: int = -1

    def after(self, position: int) -> int:
        """Return where the next end line begins, or the length of the text."""
        if self.at < position:
            match = rules.KEY_END.search(self.text, position)
            self.at = len(self.text) if match is None else match.start()
        return self.at


def _key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Find private key blocks; one without its end is sealed as far as its lines look like one."""
    if "PRIVATE KEY" not in text and "Private-Lines" not in text:
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


def _aws_neighbours(text: str) -> Iterator[tuple[int, int]]:
    """Find the secrets that stand, without a name, close to the id of their key."""
    for literal in ("AKIA", "ASIA"):
        done = 0
        for at in places(text, literal):
            if rules.AWS_ID.match(text, at) is None:
                continue
            limit = at + _NEAR
            for match in rules.AWS_NEIGHBOUR.finditer(text, max(done, at - _NEAR), limit):
                if values.is_mixed(match[0]) and values.is_random(match[0], 40):
                    yield match.span()
            done = limit - 40  # one that is cut off here is seen whole from the next id


def _url_passwords(text: str) -> Iterator[tuple[int, int]]:
    for literal in ("://", ":\\/\\/"):
        for at in places(text, literal):
            match = rules.URL_USER.match(text, at)
            if match is None:
                continue
            if match["password"] and not values.is_generic(match["password"]):
                yield match.span("password")
            user = match["user"]
            if len(user) >= 16 and not values.is_placeholder(user) and values.is_random(user, 16):
                yield match.span("user")


def _headers(text: str, lower: str) -> Iterator[tuple[int, int]]:
    done = 0
    for at in places(lower, "authorization"):
        match = rules.AUTHORIZATION.match(text, at) if at >= done else None
        if match is None:
            continue
        done = match.end()
        value = match["value"]
        if match["scheme"] is None:
            good = (
                match["sign"] is not None and not values.is_placeholder(value) and values.is_random(value, 20)
            )
        elif match["scheme"].lower() == "basic":
            good = not values.is_placeholder(value) and (
                values.classes(value) > 1 or values.is_random(value, 16)
            )
        else:
            good = values.is_credential(value)
        if good:
            yield match.span("value")
    done = 0
    for at in places(lower, "bearer"):
        match = rules.BEARER.match(text, at) if at >= done else None
        if match is not None:
            done = match.end()
            if not values.is_placeholder(match["value"]) and values.is_random(match["value"], 16):
                yield match.span("value")


def _cookies(text: str, lower: str) -> Iterator[tuple[int, int]]:
    """Find the cookies of a header: all that are sent, or the one that is set."""
    done = 0
    for at in places(lower, "cookie"):
        match = rules.COOKIE.match(text, at, at + _LONGEST_HEADER) if at >= done else None
        if match is None:
            continue
        done = match.end()
        start, end = match.span("value")
        pairs = match["value"].split(";")
        if lower.endswith(("set-", "set_"), 0, at):
            pairs = pairs[:1]
            start, end = start + pairs[0].index("=") + 1, start + len(pairs[0])
        if any(_is_session(*pair.strip().split("=", 1)) for pair in pairs):
            yield start, end


def _is_session(name: str, value: str) -> bool:
    if len(value) < 6 or values.is_placeholder(value):
        return False
    return values.is_random(value, 16) or (
        rules.COOKIE_NAME.search(name) is not None and not values.is_expression(value)
    )


def _logins(text: str) -> Iterator[tuple[int, int]]:
    """Find the passwords that a command line gives with the user's name."""
    done = 0
    for at in places(text, "curl"):
        if at < done:
            continue
        done = min(_end_of_command(text, at), at + _COMMAND)
        for match in rules.CURL_LOGIN.finditer(text, at, done):
            group = "quoted" if match["quoted"] else "bare"
            if not values.is_generic(match[group]):
                yield match.span(group)
    for at in places(text, "--user"):
        option = rules.USER_OPTION.match(text, at)
        if option is not None and not values.is_generic(option["password"]):
            if values.is_spoken(option["password"]):
                yield option.span("password")


def _end_of_command(text: str, at: int) -> int:
    """Return where the line ends, lines that it is continued on included."""
    end = text.find("\n", at, at + _COMMAND)
    while end > 0 and text[end - 1] in "\\\r":
        if text[end - 1] == "\r" and text[end - 2] != "\\":
            break
        end = text.find("\n", end + 1, at + _COMMAND)
    return end if end >= 0 else at + _COMMAND
