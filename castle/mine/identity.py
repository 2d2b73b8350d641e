"""Which project a directory is, so that its worktrees, its clones and a moved copy are recognised as one."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from castle.mine.read import display
from castle.mine.rooms import normalize_wing

TIMEOUT_SECONDS = 10.0

# What a repository's own configuration could make Git do is turned off: no watcher, no hook, no transport.
_OPTIONS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "--no-pager")
_KEPT_VARIABLES = frozenset(
    ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES")
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a directory is part of.

    ``git_common_dir`` is the directory that all worktrees of a repository share, ``git_root_commit`` its
    first commit (the smallest of several), which clones share too; both are None outside Git. ``subdir`` is
    the path from the top of the work tree, with "/", empty at the top. ``name`` is the directory name of the
    main work tree. ``note`` says why something could not be told.
    """

    root: Path
    git_common_dir: Path | None
    git_root_commit: str | None
    subdir: str
    name: str
    note: str = ""

    @property
    def wing(self) -> str:
        """The wing that the project's drawers are filed in unless another is named."""
        return normalize_wing(self.name)


def identify(root: Path, *, timeout: float = TIMEOUT_SECONDS) -> Identity:
    """Return the identity of a directory; whatever keeps Git from answering is told in ``note``.

    ``timeout`` is in seconds, for each call of Git.
    """
    root = root.resolve()
    plain = Identity(root, None, None, "", root.name or "root")
    git = Git(root, timeout)
    common = git.path("rev-parse", "--git-common-dir")
    if common is None:
        return Identity(root, None, None, "", plain.name, git.note)
    own = git.path("rev-parse", "--git-dir") or common
    top = git.path("rev-parse", "--show-toplevel")
    name = top.name if top is not None and own == common else _name_from(common)
    commit = _root_commit(git)
    return Identity(root, common, commit, _subdir(root, top), name or plain.name, git.note)


class Git:
    """Calls of Git in one directory; the first thing that goes wrong stays in ``note``."""

    def __init__(self, root: Path, timeout: float) -> None:
        self.root = root
        self.timeout = timeout
        self.note = ""

    def path(self, *arguments: str) -> Path | None:
        """Return a path that Git prints; a relative one starts from the directory."""
        output = self.output(*arguments)
        if output is None or not output.removesuffix(b"\n"):
            return None
        return (self.root / os.fsdecode(output.removesuffix(b"\n"))).resolve()

    def output(self, *arguments: str) -> bytes | None:
        """Return what a call prints, None when it fails."""
        command = ["git", *_OPTIONS, "-C", str(self.root), *arguments]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.timeout,
                env=_environment(),
                check=False,
            )
        except FileNotFoundError:
            self._remember("git is not installed")
            return None
        except subprocess.TimeoutExpired:
            self._remember(f"git {arguments[0]} took longer than {self.timeout:g} s")
            return None
        except OSError as error:
            self._remember(f"git cannot be run: {error.strerror or error}")
            return None
        if done.returncode == 0:
            return done.stdout
        if b"dubious ownership" in done.stderr:
            self._remember("git refuses the repository, which another user owns (safe.directory)")
        return None

    def _remember(self, note: str) -> None:
        self.note = self.note or note


def _root_commit(git: Git) -> str | None:
    if git.output("rev-parse", "--is-shallow-repository") == b"true\n":
        git.note = git.note or "a shallow clone: its first commit is not known"
        return None
    output = git.output("--no-replace-objects", "rev-list", "--max-parents=0", "HEAD", "--")
    return min(output.decode("ascii", "replace").split(), default=None) if output else None


def _name_from(common: Path) -> str:
    """Return the main work tree's name as a worktree or bare repository can tell it."""
    if common.name.startswith("."):
        return common.parent.name
    return common.name.removesuffix(".git")


def _subdir(root: Path, top: Path | None) -> str:
    if top is None or not root.is_relative_to(top):
        return ""
    relative = root.relative_to(top).as_posix()
    return "" if relative == "." else display(os.fsencode(relative))


def _environment() -> dict[str, str]:
    """Return the environment without what redirects Git, and with every prompt and transport turned off."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT_VARIABLES
    }
    kept.update(
        LC_ALL="C",
        GIT_TERMINAL_PROMPT="0",
        GIT_OPTIONAL_LOCKS="0",
        GIT_ASKPASS="",
        SSH_ASKPASS="",
        GIT_ALLOW_PROTOCOL="none",
        GIT_NO_LAZY_FETCH="1",
    )
    return kept
