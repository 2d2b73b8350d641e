"""Walking a project: every regular file below a directory, and all that is passed over, with the reason.

No link is followed below the root: directories are opened one name after the other from the root's own
descriptor, so that a name that becomes a link on the way is not followed either, and a path may be longer
than the system takes in one piece.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from castle.config import FILE_NAME
from castle.errors import UsageError
from castle.mine.ignore import CASTLEIGNORE, GITIGNORE, RuleFile, Rules, load_rules, rules_above
from castle.mine.patterns import parse_rules
from castle.mine.read import display, irregular, open_regular, unreadable
from castle.records import Skipped

SKIPPED_DIRECTORIES = frozenset(
    b".git node_modules __pycache__ .venv venv env dist build .next coverage .castle .ruff_cache .mypy_cache"
    b" .pytest_cache .cache .tox .nox .idea .vscode .ipynb_checkpoints .eggs htmlcov target".split()
)
SKIPPED_FILES = frozenset(
    b".git castle.yaml mempalace.yml mempalace.yaml mempal.yml mempal.yaml .gitignore .castleignore"
    b" package-lock.json".split()
)
EXCLUDE = b".git/info/exclude"
BUILT_IN = "ignored: built-in list"
PALACE = "a palace"

_HAS_DIR_FD = {os.open, os.stat} <= os.supports_dir_fd and os.scandir in os.supports_fd
_DIRECTORY = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)


@dataclass(frozen=True, slots=True)
class Found:
    r"""A regular file of a project.

    ``raw`` is its path below ``root`` in bytes, ``relative`` the same as text to show: "/" between names,
    bytes that are not UTF-8 shown as ``\xNN``. Sizes are bytes, times nanoseconds.
    """

    root: Path
    raw: bytes
    relative: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @property
    def path(self) -> Path:
        """The absolute path."""
        return self.root / os.fsdecode(self.raw)

    @property
    def signature(self) -> str:
        """A value that changes when the file is written, replaced or given other permissions."""
        return f"{self.size}:{self.mtime_ns}:{self.ctime_ns}:{self.inode}"

    def open(self) -> io.FileIO | Skipped:
        """Open the file without following a link anywhere below the root, or return why it is not read."""
        return _open_below(self.root, self.raw, self.relative)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a directory, as the walk sees it: its status, or what the system said instead."""

    name: bytes
    status: os.stat_result | OSError
    readable: bool


@dataclass(slots=True)
class _Frame:
    """A directory being walked. ``blocked`` is why everything in it is ignored that is not asked for."""

    prefix: bytes
    rules: Rules
    blocked: str
    identity: tuple[int, int]
    entries: Iterator[_Entry]
    is_project: bool


def walk(
    root: Path,
    *,
    ignore: bool = True,
    include_ignored: Sequence[str] = (),
    patterns: Sequence[str] = (),
    only: Path | None = None,
) -> Iterator[Found | Skipped]:
    """Yield what lies below ``root`` in the order of the names' bytes, directory by directory.

    ``ignore`` false turns ``.gitignore`` files off; ``.castleignore`` files, which have the same syntax and
    overrule both ``.gitignore`` and the built-in list, stay in force. ``include_ignored`` names paths below
    the root that are taken with all they contain although the built-in list or a ``.gitignore`` passes over
    them. ``patterns`` are the project's own rules from its ``castle.yaml``, with the syntax and the strength
    of a ``.castleignore`` beside it. ``only`` limits the walk to one file or directory below the root.

    A directory that is passed over is reported once, with "/" at the end. UsageError is raised when the root
    is no directory, or a path given is not below it.
    """
    try:
        top = root.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = (isinstance(error, OSError) and error.strerror) or "a loop of links"
        raise UsageError(f"cannot mine {_shown(root)}: {why}") from error
    if not top.is_dir():
        raise UsageError(f"cannot mine {_shown(root)}: not a directory; name the directory it is in")
    forced = tuple(_below(Path(path), root, top, "include") for path in include_ignored)
    limit = _below(only, root, top, "look at") if only is not None else b""
    own = RuleFile(FILE_NAME, b"", parse_rules("\n".join(patterns).encode("utf-8", "surrogateescape")))
    return _Walk(top, ignore, forced, limit, own).run()


class _Walk:
    """The state of one walk."""

    def __init__(
        self, root: Path, use_git: bool, forced: tuple[bytes, ...], limit: bytes, own: RuleFile
    ) -> None:
        self.root = root
        self.use_git = use_git
        self.forced = forced
        self.limit = limit
        self.own = own
        self.stack: list[_Frame] = []

    def run(self) -> Iterator[Found | Skipped]:
        """Walk without recursion, however deep the tree is."""
        rules = Rules()
        for above in rules_above(self.root, git=self.use_git):
            if isinstance(above, bytes):
                rules = Rules(top=above)
            elif isinstance(above, Skipped):
                yield above
            else:
                rules = rules.with_file(above)
        rules = rules.with_castle(replace(self.own, base=rules.top))
        yield from self._enter(b"", rules, "", self.root.stat())
        while self.stack:
            frame = self.stack[-1]
            entry = next(frame.entries, None)
            if entry is None:
                self.stack.pop()
            else:
                yield from self._visit(frame, entry)

    def _enter(
        self, directory: bytes, rules: Rules, blocked: str, status: os.stat_result
    ) -> Iterator[Skipped]:
        """Push a directory's frame, or report why it is not entered."""
        shown = display(directory) + "/" if directory else "./"
        identity = (status.st_dev, status.st_ino)
        if status.st_ino and any(frame.identity == identity for frame in self.stack):
            yield Skipped(shown, "a directory that contains itself")
            return
        entries = _list(self.root, directory)
        if isinstance(entries, OSError):
            yield unreadable(shown, entries)
            return
        names = {entry.name for entry in entries}
        if b"castle.db" in names:
            yield Skipped(shown, PALACE)
            return
        prefix = directory + b"/" if directory else b""
        for loaded in self._own_rules(prefix, names, rules.top):
            if isinstance(loaded, Skipped):
                yield loaded
            else:
                rules = rules.with_file(loaded)
        wanted = self._wanted(prefix)
        if wanted is not None:
            entries = [entry for entry in entries if entry.name == wanted]
            if not entries:
                yield Skipped(display(prefix + wanted), "unreadable", "No such file or directory")
        is_project = not directory or b"castle.yaml" in names
        self.stack.append(_Frame(prefix, rules, blocked, identity, iter(entries), is_project))

    def _own_rules(self, prefix: bytes, names: set[bytes], top: bytes) -> Iterator[RuleFile | Skipped]:
        """Read the rule files of one directory, weakest first."""
        sources = [CASTLEIGNORE] if CASTLEIGNORE in names else []
        if self.use_git and GITIGNORE in names:
            sources.insert(0, GITIGNORE)
        if self.use_git and prefix and b".git" in names:
            sources.insert(0, EXCLUDE)
        for name in sources:
            shown = display(prefix + name)
            opened = _open_below(self.root, prefix + name, shown)
            if name != EXCLUDE or not isinstance(opened, Skipped):
                yield load_rules(opened, shown, top + prefix)

    def _wanted(self, prefix: bytes) -> bytes | None:
        """Return the only name that matters in a directory on the way to ``limit``."""
        if len(prefix) < len(self.limit) and (self.limit + b"/").startswith(prefix):
            return self.limit[len(prefix) :].split(b"/", 1)[0]
        return None

    def _visit(self, frame: _Frame, entry: _Entry) -> Iterator[Found | Skipped]:
        raw = frame.prefix + entry.name
        if isinstance(entry.status, OSError):
            yield unreadable(display(raw), entry.status)
            return
        is_dir = stat.S_ISDIR(entry.status.st_mode)
        shown = display(raw) + ("/" if is_dir else "")
        refusal = "" if is_dir else irregular(entry.status.st_mode)
        if refusal:
            yield Skipped(shown, refusal)
            return
        reason, leads_on = self._passed_over(frame, raw, entry.name, is_dir)
        if reason and not (leads_on and is_dir):
            yield Skipped(shown, reason)
        elif is_dir:
            yield from self._enter(raw, frame.rules, reason, entry.status)
        elif not entry.readable:
            yield Skipped(shown, "unreadable", "Permission denied")
        else:
            yield _found(self.root, raw, entry.status)

    def _passed_over(self, frame: _Frame, raw: bytes, name: bytes, is_dir: bool) -> tuple[str, bool]:
        """Return why an entry is ignored, empty if it is not, and whether something asked for lies in it."""
        named = raw in self.forced
        within = named or any(raw.startswith(path + b"/") for path in self.forced)
        leads_on = any(path.startswith(raw + b"/") for path in self.forced)
        if named:
            return "", leads_on
        verdict = frame.rules.verdict(raw, is_dir)
        if verdict is not None and verdict.by_castle and verdict.ignored:
            return verdict.reason, leads_on
        if within:
            return "", leads_on
        if frame.blocked:
            return frame.blocked, leads_on
        if verdict is not None and verdict.by_castle:
            return "", leads_on
        if _built_in(name, is_dir, frame.is_project):
            return BUILT_IN, leads_on
        return verdict.reason if verdict is not None and verdict.ignored else "", leads_on


def _built_in(name: bytes, is_dir: bool, in_project: bool) -> bool:
    """Tell whether the built-in list passes over a name; ``entities.json`` is Castle's beside castle.yaml."""
    if is_dir:
        return name in SKIPPED_DIRECTORIES or name.endswith(b".egg-info")
    return name in SKIPPED_FILES or (in_project and name == b"entities.json")


def _found(root: Path, raw: bytes, status: os.stat_result) -> Found:
    return Found(
        root=root,
        raw=raw,
        relative=display(raw),
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        inode=status.st_ino,
        device=status.st_dev,
    )


def _open_directory(root: Path, raw: bytes) -> int:
    """Return a descriptor of a directory below the root, reached without following a link."""
    descriptor = os.open(root, _DIRECTORY)
    for name in raw.split(b"/") if raw else ():
        try:
            inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _open_below(root: Path, raw: bytes, shown: str) -> io.FileIO | Skipped:
    """Open a file below the root without following a link, or return why it is not read."""
    if not _HAS_DIR_FD:
        return open_regular(root / os.fsdecode(raw), shown=shown)
    directory, _, name = raw.rpartition(b"/")
    try:
        descriptor = _open_directory(root, directory)
    except OSError as error:
        return unreadable(shown, error)
    try:
        return open_regular(name, dir_fd=descriptor, shown=shown)
    finally:
        os.close(descriptor)


def _list(root: Path, directory: bytes) -> list[_Entry] | OSError:
    """Return the entries of a directory, sorted by the bytes of their names."""
    try:
        if not _HAS_DIR_FD:
            return _scan(root / os.fsdecode(directory), None)
        descriptor = _open_directory(root, directory)
        try:
            return _scan(descriptor, descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        return error


def _scan(place: Path | int, descriptor: int | None) -> list[_Entry]:
    found = []
    with os.scandir(place) as entries:
        for entry in entries:
            try:
                status: os.stat_result | OSError = entry.stat(follow_symlinks=False)
            except OSError as error:
                status = error
            readable = isinstance(status, OSError) or not stat.S_ISREG(status.st_mode)
            target = entry.name if descriptor is not None else entry.path
            found.append(_Entry(os.fsencode(entry.name), status, readable or _may_read(target, descriptor)))
    return sorted(found, key=lambda entry: entry.name)


def _may_read(target: str, descriptor: int | None) -> bool:
    effective = os.access in os.supports_effective_ids
    return os.access(target, os.R_OK, dir_fd=descriptor, effective_ids=effective)


def _below(path: Path, root: Path, top: Path, verb: str) -> bytes:
    """Return a path given by the user as bytes relative to the root; an empty one means the root itself."""
    whole = path if path.is_absolute() else top / path
    for base in (top, root if root.is_absolute() else Path.cwd() / root):
        # normpath: a link in the path must stay one, so that the walk reports it.
        normal = Path(os.path.normpath(whole))
        if normal.is_relative_to(os.path.normpath(base)):
            relative = normal.relative_to(os.path.normpath(base)).as_posix()
            return b"" if relative == "." else os.fsencode(relative)
    raise UsageError(f"cannot {verb} {_shown(path)}: not below {_shown(root)}; give a path inside it")


def _shown(path: Path) -> str:
    return display(os.fsencode(path))
