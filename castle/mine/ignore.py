"""Which entries of a project are ignored: the rules of ``.gitignore`` and ``.castleignore`` files.

The rules are those of ``git check-ignore``, down to its treatment of odd patterns. They are matched on bytes,
as names are, so that a rule file or a name in any encoding works. Patterns come from the files of projects
that may have been cloned from anywhere: the regular expressions built here only contain atomic groups, so
that no pattern makes matching take more than polynomial time.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from castle.mine.read import open_regular
from castle.records import Skipped

GITIGNORE = b".gitignore"
CASTLEIGNORE = b".castleignore"
MAX_RULE_BYTES = 100 * 1024 * 1024

_SPECIAL = re.compile(rb"[*?\[\\]")
_NAMED_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"!-~",
    b"lower": rb"a-z",
    b"print": rb" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb" \t-\r",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}


class _NeverMatches(ValueError):
    """The pattern is malformed in a way that makes Git match nothing with it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a rule file; ``literal`` or ``suffix`` spare the regular expression where they suffice."""

    line: int
    negated: bool
    directories_only: bool
    name_only: bool
    literal: bytes | None = None
    suffix: bytes | None = None
    regex: re.Pattern[bytes] | None = None

    def matches(self, path: bytes, name: bytes, is_dir: bool) -> bool:
        """Tell whether the rule names this entry; ``path`` is relative to the rule file's directory."""
        if self.directories_only and not is_dir:
            return False
        subject = name if self.name_only else path
        if self.literal is not None:
            return subject == self.literal
        if self.suffix is not None:
            return subject.endswith(self.suffix)
        return self.regex is not None and self.regex.fullmatch(subject) is not None


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file, in its order. ``base`` is its directory from the top, empty or ending in "/"."""

    shown: str
    base: bytes
    rules: tuple[Rule, ...]

    def last_match(self, path: bytes, name: bytes, is_dir: bool) -> Rule | None:
        """Return the last rule that names the entry; ``path`` is relative to the top."""
        local = path[len(self.base) :]
        for rule in reversed(self.rules):
            if rule.matches(local, name, is_dir):
                return rule
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
        path, name = self.top + raw, raw.rpartition(b"/")[2]
        for files, by_castle in ((self.castle, True), (self.git, False)):
            for file in reversed(files):
                rule = file.last_match(path, name, is_dir)
                if rule is not None:
                    return Verdict(not rule.negated, file.shown, rule.line, by_castle)
        return None

    def with_git(self, file: RuleFile) -> Rules:
        """Return these rules with one more Git rule file, stronger than the others."""
        return replace(self, git=(*self.git, file)) if file.rules else self

    def with_castle(self, file: RuleFile) -> Rules:
        """Return these rules with one more ``.castleignore``, stronger than the others."""
        return replace(self, castle=(*self.castle, file)) if file.rules else self


def parse_rules(data: bytes) -> tuple[Rule, ...]:
    """Parse the content of a rule file; a line that can match nothing gives no rule."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    data = data.removeprefix(b"\xef\xbb\xbf")
    rules = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        rule = _parse_line(line, number)
        if rule is not None:
            rules.append(rule)
    return tuple(rules)


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


def _parse_line(line: bytes, number: int) -> Rule | None:
    if line.startswith(b"#"):
        return None
    pattern = _trim_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
    negated = pattern.startswith(b"!")
    pattern = pattern[1:] if negated else pattern
    directories_only = pattern.endswith(b"/")
    pattern = pattern[:-1] if directories_only else pattern
    if not pattern:
        return None
    name_only = b"/" not in pattern
    rule = Rule(number, negated, directories_only, name_only)
    if not name_only:
        pattern = pattern.removeprefix(b"/")
    if not _SPECIAL.search(pattern):
        return replace(rule, literal=pattern)
    if name_only and pattern[:1] == b"*" and not _SPECIAL.search(pattern, 1):
        return replace(rule, suffix=pattern[1:])
    try:
        return replace(rule, regex=re.compile(_translate(pattern, name_only), re.DOTALL))
    except _NeverMatches:
        return None


def _trim_spaces(line: bytes) -> bytes:
    """Cut trailing spaces that no backslash protects."""
    end, at = 0, 0
    while at < len(line):
        if line[at : at + 1] == b"\\":
            at += 1
            if at == len(line):
                return line
            end = at + 1
        elif line[at : at + 1] != b" ":
            end = at + 1
        at += 1
    return line[:end]


def _translate(pattern: bytes, name_only: bool) -> bytes:
    """Return a regular expression for a glob as Git reads it, where "/" is only matched by "/" and "**".

    A star is followed by pieces of fixed length, and the leftmost place for a piece is as good as any other,
    so every star but the last before a "/" or a "**" is an atomic group; the same holds for the runs of whole
    segments between two "**".
    """
    prefix = _SPECIAL.search(pattern)
    literal = pattern[: prefix.start()] if prefix else pattern
    glob = pattern[len(literal) :]
    out, run, gap, at = re.escape(literal), b"", b"", 0
    segment: list[bytes] = [b""]
    while at < len(glob):
        char = glob[at : at + 1]
        if char == b"*":
            stars = len(glob) - at - len(glob[at:].lstrip(b"*"))
            kind = b"" if name_only or stars < 2 else _double_star(glob, at, at + stars)
            if not kind:
                segment.append(b"")
                at += stars
                continue
            out += _atomic(gap, run + _close(segment))
            run, segment, gap = b"", [b""], kind
            at += stars + (glob[at + stars : at + stars + 1] == b"/")
            continue
        piece, at = _piece(glob, at)
        if piece == b"/":
            run, segment = run + _close(segment) + b"/", [b""]
        else:
            segment[-1] += piece
    return out + gap + run + _close(segment)


def _double_star(glob: bytes, start: int, end: int) -> bytes:
    """Return the expression for a run of stars that stands for whole segments, else nothing."""
    if start and glob[start - 1 : start] != b"/":
        return b""
    if glob[end : end + 1] == b"/":
        return rb"(?:.*?/)??"
    if end == len(glob):
        return rb".*"
    return rb".*?" if glob[end : end + 2] == b"\\/" else b""


def _atomic(gap: bytes, run: bytes) -> bytes:
    return b"(?>" + gap + run + b")" if gap else run


def _close(pieces: list[bytes]) -> bytes:
    """Join the pieces between the stars of one segment."""
    first, *others = pieces
    if not others:
        return first
    return first + b"".join(b"(?>[^/]*?" + piece + b")" for piece in others[:-1]) + b"[^/]*" + others[-1]


def _piece(glob: bytes, at: int) -> tuple[bytes, int]:
    """Return the expression for one element of a glob, and where the next one begins."""
    char = glob[at : at + 1]
    if char == b"?":
        return b"[^/]", at + 1
    if char == b"[":
        return _bracket(glob, at + 1)
    if char == b"\\":
        at += 1
        char = glob[at : at + 1]
        if not char:
            raise _NeverMatches
    return (b"/" if char == b"/" else re.escape(char)), at + 1


def _bracket(glob: bytes, at: int) -> tuple[bytes, int]:
    """Return the expression for a bracket, whose inside begins at ``at``."""
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    chosen: set[int] = set()
    previous, first = -1, True
    while first or glob[at : at + 1] != b"]":
        first = False
        char = glob[at : at + 1]
        if char == b"[" and glob[at + 1 : at + 2] == b":":
            name, at = _class_name(glob, at)
            chosen.update(_class_members(name) if name else b"[")
            previous = -1 if name else ord("[")
            continue
        is_range = char == b"-" and previous > 0 and glob[at + 1 : at + 2] not in (b"", b"]")
        at += is_range
        at += glob[at : at + 1] == b"\\"
        if at >= len(glob):
            raise _NeverMatches
        chosen.update(range(previous, glob[at] + 1) if is_range else (glob[at],))
        previous = -1 if is_range else glob[at]
        at += 1
    members = (set(range(256)) - chosen if negated else chosen) - {ord("/")}
    if not members:
        raise _NeverMatches
    return b"[" + b"".join(b"\\x%02x" % member for member in sorted(members)) + b"]", at + 1


def _class_name(glob: bytes, at: int) -> tuple[bytes, int]:
    """Return the name in ``[:name:]`` and where it ends; no name when it is a plain bracket after all."""
    end = glob.find(b"]", at + 2)
    if end < 0:
        raise _NeverMatches
    if end < at + 3 or glob[end - 1 : end] != b":":
        return b"", at + 1
    return glob[at + 2 : end - 1] or b"?", end + 1


def _class_members(name: bytes) -> set[int]:
    if name not in _NAMED_CLASSES:
        raise _NeverMatches
    matcher = re.compile(b"[" + _NAMED_CLASSES[name] + b"]")
    return {code for code in range(256) if matcher.fullmatch(bytes((code,)))}
