"""Which entries of a project are ignored: the rules of ``.gitignore`` and ``.castleignore`` files.

A ``.castleignore`` is stronger than a ``.gitignore``, a file further down than one further up, a later line
than an earlier one.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from castle.mine.patterns import Block, parse_rules
from castle.mine.read import open_regular
from castle.records import Skipped

GITIGNORE = b".gitignore"
CASTLEIGNORE = b".castleignore"
MAX_RULE_BYTES = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file, in its order. ``base`` is its directory from the top, empty or ending in "/"."""

    shown: str
    base: bytes
    rules: tuple[Block, ...]

    def last_match(self, path: bytes, is_dir: bool) -> tuple[bool, int] | None:
        """Return whether the last rule that names the entry ignores it, and its line."""
        local = path[len(self.base) :].decode("latin-1") + "/" * is_dir
        decided = (block.last_match(local) for block in reversed(self.rules))
        return next((match for match in decided if match is not None), None)


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
                    return Verdict(decided[0], file.shown, decided[1], by_castle)
        return None

    def with_file(self, file: RuleFile) -> Rules:
        """Return these rules with one more file, stronger than the others of its sort."""
        return self.with_castle(file) if file.shown.endswith(".castleignore") else self.with_git(file)

    def with_git(self, file: RuleFile) -> Rules:
        """Return these rules with one more Git rule file, stronger than the others."""
        return replace(self, git=(*self.git, file)) if file.rules else self

    def with_castle(self, file: RuleFile) -> Rules:
        """Return these rules with one more ``.castleignore``, stronger than the others."""
        return replace(self, castle=(*self.castle, file)) if file.rules else self


def load_rules(opened: io.FileIO | Skipped, shown: str, base: bytes) -> RuleFile | Skipped:
    """Read and close an opened rule file; one that cannot be read comes back as what was skipped."""
    if isinstance(opened, Skipped):
        return replace(opened, reason=f"rules not read: {opened.reason}")
    with io.BufferedReader(opened) as file:
        try:
            data = file.read(MAX_RULE_BYTES + 1)
        except OSError as error:
            return Skipped(shown, "rules not read: unreadable", error.strerror or str(error))
    if len(data) > MAX_RULE_BYTES:
        return Skipped(shown, "rules not read: larger than 100 MB")
    return RuleFile(shown, base, parse_rules(data))


def rules_above(root: Path, *, git: bool = True) -> Iterator[RuleFile | Skipped | bytes]:
    """Yield the root's path from its repository's top, then the rule files that stand above the root.

    Those are ``info/exclude``, and the ``.gitignore`` and ``.castleignore`` of every directory from the top
    level of the repository down to the root's parent, weakest first. Outside a repository there are none.
    ``git`` false leaves Git's own rule files out.
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
    if git and os.path.lexists(exclude):
        shown = "../" * levels + ".git/info/exclude"
        yield load_rules(open_regular(exclude, shown=shown), shown, b"")
    for level in range(levels, 0, -1):
        base = b"".join(name + b"/" for name in top.split(b"/")[: levels - level])
        for name in ([".gitignore"] if git else []) + [".castleignore"]:
            file, shown = chain[level] / name, "../" * level + name
            if os.path.lexists(file):
                yield load_rules(open_regular(file, shown=shown), shown, base)


def _common_directory(repository: Path) -> Path:
    """Return the directory with ``info/exclude``; a linked worktree's ``.git`` is a file that leads there."""
    own = _pointer(repository / ".git", b"gitdir: ") or repository / ".git"
    return _pointer(own / "commondir", b"") or own


def _pointer(path: Path, prefix: bytes) -> Path | None:
    """Return the path that a file of Git's holds, None when there is no such file."""
    opened = open_regular(path)
    if isinstance(opened, Skipped):
        return None
    with io.BufferedReader(opened) as file:
        try:
            content = file.read(64 * 1024)
        except OSError:
            return None
    if not content.startswith(prefix) or b"\0" in content:
        return None
    return path.parent / os.fsdecode(content.removeprefix(prefix).rstrip(b"\r\n"))
