"""Secrets that only their name gives away: what is assigned to ``password``, ``token`` and the like.

How sure a value must look depends on the place: in a shell's ``DB_PASSWORD=…`` any word is a password, in
running code only what no expression looks like.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from castle.text import secret_rules as rules
from castle.text import secret_values as values

Found = tuple[int, int, int, str]
"""Start, end, rank (less is more specific) and kind of a secret."""

LONGEST_VALUE = 4_096
_LONGEST_CONTINUED = 8_192
_TRIES = 8
_LINE = 120
_CLEAR = ("PASSWORD", "PASSWD", "PASSPHRASE", "_PWD", "_PASS")
_NAME_SIGNS = string.ascii_letters + string.digits + "_"


def named_secrets(text: str, lower: str) -> Iterator[Found]:
    """Find the values of names that speak of a secret; ``lower`` is the text in small letters."""
    for word in rules.PASSWORD_WORDS:
        if word in lower:
            reader = _Reader(text, lower, password=True)
            for at in places(lower, word):
                yield from reader.named(at, at + len(word))
    for word in rules.SECRET_WORDS:
        if word in lower:
            reader = _Reader(text, lower, password=False)
            for at in places(lower, word):
                yield from reader.named(at, at + len(word))
    reader = _Reader(text, lower, password=False)
    for at in places(lower, "key"):
        if lower.endswith(rules.KEYS, max(0, at - 11), at):
            yield from reader.named(at, at + 3)


def places(text: str, literal: str) -> Iterator[int]:
    """Say where a literal stands in a text, from left to right."""
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + len(literal))


class _Reader:
    """Judges the values of one word's places, which only grow.

    However many names run into the same value, it is judged a few times only, so that the time stays linear.
    """

    def __init__(self, text: str, lower: str, *, password: bool) -> None:
        self._text = text
        self._lower = lower
        self._password = password
        self._kind = "password" if password else "secret"
        self._run = (0, 0)
        self._end = -1
        self._tries = 0

    def named(self, at: int, end: int) -> Iterator[Found]:
        """Judge what stands with the name around ``[at, end)``."""
        place = rules.ASSIGNMENT.match(self._text, end)
        if place is not None:
            span = self._assigned(at, end, place)
        else:
            span = self._option(at, end)
            if span is None and self._password and self._text[end : end + 1] in " \t\n":
                span = self._login(at, end) or self._said(end)
        if span is not None:
            yield span

    def _assigned(self, at: int, end: int, place: re.Match[str]) -> Found | None:
        text, after = self._text, place.end()
        if rules.names_other_thing(place["suffix"]) or self._lower.endswith(("public", "public_"), 0, at):
            return None
        if not self._password and "key" in self._lower[at:after]:
            aws = rules.AWS_SECRET.match(text, after)
            if aws is not None and values.is_random(aws[1], 40):
                return *aws.span(1), 2, "aws_secret"
        shell = self._shell_name(at, after) if self._password else ""
        quoted = self._quoted(after)
        if quoted is not None:
            return self._judge_quoted(quoted, place, shell)
        return self._judge_bare(at, place, shell)

    def _judge_quoted(self, span: tuple[int, int], place: re.Match[str], shell: str) -> Found | None:
        value = self._text[slice(*span)]
        plain = re.sub(r"\\\r?\n[ \t]*", "", value) if "\n" in value else value
        if not self._password:
            good = not re.search(r"\s", plain) and not values.is_placeholder(plain)
            return self._found(span) if good and values.is_random(plain, 16) else None
        if "\n" in plain:
            return None
        if " " in plain or "\t" in plain:
            return self._found(span) if values.is_phrase(plain) else None
        if shell:
            good = values.is_shell_password(plain, shell, self._least(shell))
        else:
            good = (values.is_password(plain) and not values.is_placeholder(plain)) or (
                _is_key(place) and values.is_word(plain)
            )
        return self._found(span) if good else None

    def _judge_bare(self, at: int, place: re.Match[str], shell: str) -> Found | None:
        text, after = self._text, place.end()
        run = self._bare(after)
        if run is None:
            return None
        value = text[after:run]
        if shell and self._ends(run) and values.is_shell_password(value, shell, self._least(shell)):
            return self._found((after, run))
        if self._password and self._is_line(at, place, run) and values.is_config_password(value):
            return self._found((after, run))
        if len(value) < 6 or values.is_placeholder(value):
            return None
        if not self._password:
            return self._long(at, after, run) if self._is_secret(value, run) else None
        sign = place[0].rstrip()[-1:]
        told = sign == ">" or (
            sign in ":*" and text[after - 1] in " \t" and text[run : run + 1] not in (",", ";")
        )
        if self._ends(run) and (values.is_random(value, 8) or (told and values.is_spoken(value))):
            return self._found((after, run))
        return None

    def _is_secret(self, value: str, end: int) -> bool:
        if self._ends(end):
            return values.is_random(value, 16)
        return rules.LOOSE_END.match(self._text, end) is not None and values.is_random(value, 24)

    def _long(self, at: int, start: int, end: int) -> Found:
        """Follow a long token over the lines it is continued on."""
        text = self._text
        if end - start >= 16 and text[end : end + 2] in ("\\\n", "\\\r"):
            more = rules.CONTINUED.match(text, end, end + _LONGEST_CONTINUED)
            return self._found((start, more.end() if more is not None else end))
        if end - start >= 60 and self._lower.endswith(("session_", "session", "session-"), 0, at):
            more = rules.WRAPPED.match(text, end, end + _LONGEST_CONTINUED)
            if more is not None and values.is_random(more[0].strip(), 16):
                return self._found((start, more.end()))
        return self._found((start, end))

    def _option(self, at: int, end: int) -> Found | None:
        """Judge the value of a command line option, as in ``--db-password …``."""
        text = self._text
        begin = text.rfind("--", max(0, at - 24), at)
        place = rules.OPTION.match(text, begin) if begin >= 0 else None
        if place is None or place.end() <= end or rules.names_other_thing(text[end : place.end()]):
            return None
        after = place.end()
        quoted = self._quoted(after)
        run = self._bare(after) if quoted is None else None
        if quoted is None and (run is None or not self._ends(run)):
            return None
        span = quoted or (after, run or after)
        value = text[slice(*span)]
        if values.is_placeholder(value) or (quoted is not None and re.search(r"\s", value)):
            return None
        if self._password:
            good = values.is_random(value, 8) or (quoted is not None and values.is_password(value))
            good = good or values.is_spoken(value)
        else:
            good = values.is_random(value, 16)
        return self._found(span) if good else None

    def _login(self, at: int, end: int) -> Found | None:
        """Judge the password of a ``.netrc``, ``sshpass -p …``, and SQL's ``PASSWORD '…'``."""
        text = self._text
        before = text[max(0, at - 300) : at]
        if "machine" in before or "default" in before:
            after = end + 1
            run = self._bare(after)
            if run is not None and (
                rules.LOGIN_BEFORE.search(before)
                or (rules.MACHINE_BEFORE.search(before) and rules.LOGIN_AFTER.match(text, run))
            ):
                return self._found((after, run)) if not values.is_generic(text[after:run]) else None
        if self._lower.startswith("sshpass -p", at):
            after = at + 10 + (text[at + 10 : at + 11] == " ")
            span = self._quoted(after) or (after, self._bare(after) or after)
            value = text[slice(*span)]
            return self._found(span) if value and not values.is_blank(value) else None
        quoted = self._quoted(end + 1)
        if quoted is None:
            return None
        value = text[slice(*quoted)]
        good = not (re.search(r"\s", value) or values.is_placeholder(value)) and values.is_password(value)
        return self._found(quoted) if good else None

    def _said(self, end: int) -> Found | None:
        """Judge what prose says a password is: ``the password for the wiki is …``."""
        text = self._text
        place = rules.SAID.match(text, end)
        if place is None:
            return None
        after = place.end()
        quoted = self._quoted(after)
        if quoted is not None:
            value = text[slice(*quoted)]
            if " " in value:
                good = values.is_phrase(value)
            else:
                good = values.is_word(value) or values.is_spoken(value) or values.is_password(value)
            return self._found(quoted) if good and not values.is_placeholder(value) else None
        run = self._bare(after)
        if run is None or not self._ends(run):
            return None
        value = text[after:run]
        return (
            self._found((after, run))
            if not values.is_placeholder(value) and values.is_spoken(value)
            else None
        )

    def _shell_name(self, at: int, after: int) -> str:
        """Return the name of the shell variable set here, empty where it is none or no password."""
        text = self._text
        if not (text[at].isupper() or text[at] == "_"):
            return ""
        equals = text.find("=", at, after)
        before = text[max(0, at - 48) : max(0, equals)].rstrip(" ")
        name = before[len(before.rstrip(_NAME_SIGNS)) :]
        if not name.isupper() or name in ("PWD", "OLDPWD") or rules.SWITCH.search(name):
            return ""
        begin = text.rfind(name, 0, equals)
        powershell = self._lower.endswith("$env:", 0, begin)
        if not powershell and (equals != after - 1 or text[equals - 1] == " "):
            return ""
        before = text[begin - 1 : begin]
        return (
            name if not before or before in " \t\n\r\"'`;(&|:-," or text[begin - 2 : begin] == "\\n" else ""
        )

    @staticmethod
    def _least(shell: str) -> int:
        return 1 if shell in rules.CLIENT_VARIABLES or shell.endswith(_CLEAR) else 3

    def _is_line(self, at: int, place: re.Match[str], end: int) -> bool:
        """Whether the name and its value are a line of settings, and not one of a structure in code."""
        text = self._text
        attached = place[0].endswith("=") and not place[0][:-1].endswith((" ", "\t"))
        colon = ":" in place[0] and "=" not in place[0] and "\n" not in place[0] and place[0][-1] in " \t"
        if not (attached or colon) or place["suffix"]:
            return False
        after = rules.LINE_AFTER.match(text, end)
        before = text[max(0, at - _LINE) : at]
        begin = rules.LINE_BEFORE.search(before) if after is not None else None
        if after is None or begin is None or rules.SWITCH.search(begin[0]):
            return False
        last = before[: begin.start()].rstrip()[-1:]
        following = text[after.end() : after.end() + _LINE].lstrip()[:1]
        return last not in ("{", "(", "[", ",") and following not in ("}", ")", "]")

    def _ends(self, end: int) -> bool:
        return rules.RUN_END.match(self._text, end) is not None

    def _found(self, span: tuple[int, int]) -> Found:
        return *span, 4, self._kind

    def _bare(self, after: int) -> int | None:
        """Return where the value without quotes that begins here ends, None where there is none to judge."""
        start, end = self._run
        if not start <= after < end:
            match = (rules.PASSWORD_RUN if self._password else rules.RUN).match(self._text, after)
            end = match.end() if match is not None else after
            self._run = after, end
        if not self._is_fresh(end):
            return None
        while end > after and self._text[end - 1] in ".*" and end - after > 1:
            end -= 1
        return end if after < end <= after + LONGEST_VALUE else None

    def _quoted(self, after: int) -> tuple[int, int] | None:
        """Return the span between the quotes that open here, None where none do or they do not close."""
        text = self._text
        opening = rules.OPENING.match(text, after)
        if opening is None:
            return None
        start, close = opening.end(), opening["escape"] + opening["quote"]
        if not opening["escape"] and text.startswith(2 * close, start):
            close *= 3
            start += 2
        end = text.find(close, start, start + LONGEST_VALUE)
        for _ in range(_TRIES):  # quotes that are escaped inside do not close
            if opening["escape"] or len(close) > 1 or end < 0 or text[end - 1] != "\\":
                break
            end = text.find(close, end + 1, start + LONGEST_VALUE)
        if end < 0 or not self._is_fresh(end):
            return None
        if len(close) == 3:
            while start < end and text[start].isspace():
                start += 1
            while start < end and text[end - 1].isspace():
                end -= 1
        return (start, end) if start < end else None

    def _is_fresh(self, end: int) -> bool:
        if end != self._end:
            self._end, self._tries = end, 0
        self._tries += 1
        return self._tries <= _TRIES


def _is_key(place: re.Match[str]) -> bool:
    """Whether the name stands in quotes before a colon, as in JSON."""
    return place[0].lstrip("\\")[:1] in "\"'" and ":" in place[0] and not place["suffix"]
