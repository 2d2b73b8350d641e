"""The lines of ``.gitignore`` files as pathspec reads them, matched by RE2.

They come from the files of projects that may have been cloned from anywhere; RE2 takes linear time whatever
the pattern. Names and patterns are decoded as Latin-1, so that they match byte by byte in any encoding.

pathspec does not know the named classes of Git (``[[:alpha:]]``), a backslash or a slash inside brackets, and
three or more stars that stand for directories (``***/a``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import re2
from pathspec import PathSpec
from pathspec.pattern import RegexPattern
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

LONGEST_LINE = 4096

# The time of a match grows with what a set of expressions holds, and a set that needs too much memory fails.
_BLOCK_LINES = 64
_BLOCK_BYTES = LONGEST_LINE

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_NEGATED = re.compile(r"\[\^(?!/)([-\]]?)")


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rules of a file, compiled together; ``lines`` are the numbers of their lines."""

    spec: PathSpec[RegexPattern]
    lines: tuple[int, ...]

    def last_match(self, path: str) -> tuple[bool, int] | None:
        """Return whether the last rule that names a path ignores it, and its line; directories end in "/"."""
        result = self.spec.check_file(path)
        return None if result.index is None else (bool(result.include), self.lines[result.index])


def parse_rules(data: bytes) -> tuple[Block, ...]:
    """Parse the content of a rule file; a line that can match nothing gives no rule."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    return tuple(_blocks(data.removeprefix(b"\xef\xbb\xbf").split(b"\n")))


def _blocks(lines: Iterable[bytes]) -> Iterator[Block]:
    patterns: list[RegexPattern] = []
    numbers: list[int] = []
    size = 0
    for number, line in enumerate(lines, start=1):
        pattern = _pattern(line)
        if pattern is None:
            continue
        if len(patterns) == _BLOCK_LINES or (patterns and size + len(line) > _BLOCK_BYTES):
            yield Block(PathSpec(patterns, backend="re2"), tuple(numbers))
            patterns, numbers, size = [], [], 0
        patterns.append(pattern)
        numbers.append(number)
        size += len(line)
    if patterns:
        yield Block(PathSpec(patterns, backend="re2"), tuple(numbers))


def _pattern(line: bytes) -> RegexPattern | None:
    """Compile one line; None for a comment and for what cannot be compiled, which matches nothing."""
    text = _trimmed(line.removesuffix(b"\r")).decode("latin-1")
    if len(text) > LONGEST_LINE or not text.removeprefix("!").strip("/"):
        return None
    try:
        regex, include = GitIgnoreSpecPattern.pattern_to_regex(text)
        return None if regex is None else RegexPattern(re2.compile(_entry_only(regex), _OPTIONS), include)
    except (ValueError, re2.error):
        return None


def _trimmed(line: bytes) -> bytes:
    """Cut trailing spaces as Git does, and keep the other white space, which pathspec would cut as well."""
    cut = line.rstrip(b" ")
    if (len(cut) - len(cut.rstrip(b"\\"))) % 2 and cut != line:
        return cut + b" "
    if cut[-1:].decode("latin-1").isspace():  # which may be the last byte of a letter: "à" ends in 0xA0
        cut = b"%b[%b]" % (cut[:-1], cut[-1:])
    # What pathspec makes of a "/**/" at the end is all that is below; Git, the directories below.
    return cut + b"*/" if cut.endswith(b"/**/") else cut


def _entry_only(regex: str) -> str:
    """Make pathspec's expression match an entry alone, and no "/" with ``[!a]``.

    By itself it also matches what is in a directory that the pattern names. The walk decides entry by entry,
    and a rule that names a directory must not outweigh those that name what is in it.
    """
    regex = _NEGATED.sub(lambda match: "[^/" + ("\\" + match[1] if match[1] else ""), regex)
    return "(?s)" + regex.replace("(?P<ps_d>/)", "/$") + ("." if regex.endswith("/") else "")
