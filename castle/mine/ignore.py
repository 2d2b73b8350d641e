"""Which entries of a project are ignored: the rules of ``.gitignore`` and ``.castleignore`` files.

Patterns are pathspec's, matched by RE2: they come from the files of projects that may have been cloned from
anywhere, and RE2 takes linear time whatever the pattern. Names and patterns are decoded as Latin-1, so that
they match byte by byte in any encoding.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import re2
from pathspec import PathSpec
from pathspec.pattern import RegexPattern
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from castle.mine.read import open_regular
from castle.records import Skipped

GITIGNORE = b".gitignore"
CASTLEIGNORE = b".castleignore"
MAX_RULE_BYTES = 100 * 1024 * 1024
LONGEST_LINE = 4096

# The time of a match grows with what a set of expressions holds, and a set that needs too much memory fails.
_BLOCK_LINES = 64
_BLOCK_CHARACTERS = 16_384

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_NEGATED = re.compile(r"\[\^(?!/)([-\]]?)")


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rules of a file, compiled together; ``lines`` are the numbers of their lines."""

    spec: PathSpec[RegexPattern]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file, in its order. ``base`` is its directory from the top, empty or ending in "/"."""

    shown: str
    base: bytes
    rules: tuple[Block, ...]

    def last_match(self, path: bytes, is_dir: bool) -> tuple[bool, str, int] | None:
        """Return what the last rule that names the entry does: whether it ignores it, its file and its line."""
        local = path[len(self.base) :].decode("latin-1") + "/" * is_dir
        for block in reversed(self.rules):
            result = block.spec.check_file(local)
            if result.index is not None:
                return bool(result.include), self.shown, block.lines[result.index]
        return None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules say of an entry: ``by_castle`` when it was a ``.castleignore`` that decided."""

    ignored: bool
    source: str
    line: int
    by_castle: bool

    @property
    def reason(self) -> str:
        """The reason for the report."""
        return f"ignored: {self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rule files in force in one directory, weakest first.

    ``top`` is the root's path from the repository's top level, empty or ending in "/".
    """

    top: bytes = b""
    git: tuple[RuleFile, ...] = ()
    castle: tuple[RuleFile, ...] = ()

    def verdict(self, raw: bytes, is_dir: bool) -> Verdict | None:
        """Return what decides about an entry, None when no rule names it. ``raw`` is relative to the root."""
        path = self.top + raw
        for files, by_castle in ((self.castle, True), (self.git, False)):
            for file in reversed(files):
                decided = file.last_match(path, is_dir)
                if decided is not None:
                    return Verdict(*decided, by_castle)
        return None

    def with_git(self, file: RuleFile) -> Rules:
        """Return these rules with one more Git rule file, stronger than the others."""
        return replace(self, git=(*self.git, file)) if file.rules else self

    def with_castle(self, file: RuleFile) -> Rules:
        """Return these rules with one more ``.castleignore``, stronger than the others."""
        return replace(self, castle=(*self.castle, file)) if file.rules else self


def parse_rules(data: bytes) -> tuple[Block, ...]:
    """Parse the content of a rule file; a line that can match nothing gives no rule."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    return tuple(_blocks(data.removeprefix(b"\xef\xbb\xbf").split(b"\n")))


def load_rules(opened: io.FileIO | Skipped, shown: str, base: bytes) -> RuleFile | Skipped:
    """Read and close an opened rule file; one that cannot be read comes back as what was skipped."""
    if isinstance(opened, Skipped):
        return replace(opened, reason=f"rules not read: {opened.reason}")
    with opened as file:
        try:
            data = _read_all(file, MAX_RULE_BYTES + 1)
        except OSError as error:
            return Skipped(shown, "rules not read: unreadable", error.strerror or str(error))
    if len(data) > MAX_RULE_BYTES:
        return Skipped(shown, "rules not read: larger than 100 MB")
    return RuleFile(shown, base, parse_rules(data))


def rules_above(root: Path) -> Iterator[RuleFile | Skipped | bytes]:
    """Yield the root's path from its repository's top, then the rule files that stand above the root.

    Those are ``info/exclude`` and the ``.gitignore`` of every directory from the top level of the repository
    down to the root's parent, weakest first. Outside a repository there are none.
    """
    chain = [root, *root.parents]
    repository = next((directory for directory in chain if os.path.lexists(directory / ".git")), None)
    if repository is None:
        yield b""
        return
    top = os.fsencode(root.relative_to(repository).as_posix())
    top = b"" if top == b"." else top + b"/"
    yield top
    exclude = _common_directory(repository) / "info" / "exclude"
    levels = len(root.relative_to(repository).parts)
    if os.path.lexists(exclude):
        shown = "../" * levels + ".git/info/exclude"
        yield load_rules(open_regular(exclude, shown=shown), shown, b"")
    for level in range(levels, 0, -1):
        directory = chain[level]
        if os.path.lexists(directory / ".gitignore"):
            base = b"".join(name + b"/" for name in top.split(b"/")[: levels - level])
            shown = "../" * level + ".gitignore"
            yield load_rules(open_regular(directory / ".gitignore", shown=shown), shown, base)


def _common_directory(repository: Path) -> Path:
    """Return the directory with ``info/exclude``; a linked worktree's ``.git`` is a file that leads there."""
    own = _pointer(repository / ".git", b"gitdir: ") or repository / ".git"
    return _pointer(own / "commondir", b"") or own


def _pointer(path: Path, prefix: bytes) -> Path | None:
    """Return the path that a file of Git's holds, None when there is no such file."""
    opened = open_regular(path)
    if isinstance(opened, Skipped):
        return None
    with opened as file:
        content = _read_all(file, 64 * 1024)
    if not content.startswith(prefix) or b"\0" in content:
        return None
    return path.parent / os.fsdecode(content.removeprefix(prefix).rstrip(b"\r\n"))


def _read_all(file: io.FileIO, most: int) -> bytes:
    parts = []
    while most > 0 and (part := file.read(most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _blocks(lines: Iterable[bytes]) -> Iterator[Block]:
    patterns: list[RegexPattern] = []
    numbers: list[int] = []
    size = 0
    for number, line in enumerate(lines, start=1):
        pattern = _pattern(line)
        if pattern is None:
            continue
        length = len(pattern.regex.pattern)
        if patterns and (len(patterns) == _BLOCK_LINES or size + length > _BLOCK_CHARACTERS):
            yield Block(PathSpec(patterns, backend="re2"), tuple(numbers))
            patterns, numbers, size = [], [], 0
        patterns.append(pattern)
        numbers.append(number)
        size += length
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
