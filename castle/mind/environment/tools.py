"""The versions of the tools that a project finds on PATH; nothing that lies in the project is asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TIMEOUT_S = 2.0
"""For one tool; all are asked at once."""

TOOLS: Mapping[str, tuple[str, ...]] = {
    "python": ("python3", "--version"),
    "node": ("node", "--version"),
    "npm": ("npm", "--version"),
    "git": ("git", "--version"),
    "rust": ("rustc", "--version"),
    "go": ("go", "version"),
}
_NEEDED_BY = {"npm": ("package.json",), "rust": ("Cargo.toml",), "go": ("go.mod",)}
"""Tools that only a project with one of these files is asked about."""

_VERSION = re.compile(r"(?:^|[\sv]|go)(\d+\.\d+(?:\.\d+)?(?:[-+.]?[A-Za-z][0-9A-Za-z.-]*)?)")
# Everything else could make a tool load code: NODE_OPTIONS, PYTHONSTARTUP, RUSTC_WRAPPER.
_KEPT = ("PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "PATHEXT", "RUSTUP_HOME", "CARGO_HOME", "PYENV_ROOT")


def tool_versions(project: Path, present: Sequence[str], timeout: float = TIMEOUT_S) -> dict[str, str]:
    """Return ``NAME_version`` of each tool that answers in time; ``present`` are files of the project."""
    asked = [name for name in TOOLS if not _NEEDED_BY.get(name) or set(_NEEDED_BY[name]) & set(present)]
    with ThreadPoolExecutor(len(asked)) as pool:
        found = pool.map(lambda name: _ask(project, TOOLS[name], timeout), asked)
        return {f"{name}_version": version for name, version in zip(asked, found, strict=True) if version}


def _ask(project: Path, command: tuple[str, ...], timeout: float) -> str | None:
    program = shutil.which(command[0])
    if program is None:
        return None
    try:
        if Path(program).absolute().is_relative_to(project.resolve()):
            return None
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            # Not in the project, whose files would tell some tools what to run.
            cwd=tempfile.gettempdir(),
            env={name: os.environ[name] for name in _KEPT if name in os.environ} | {"LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode != 0:
        return None
    return version_in(done.stdout[:1000].decode("utf-8", "replace"))


def version_in(text: str) -> str | None:
    """Return the version that a tool prints: "git version 2.39.2 (Apple Git-143)" is 2.39.2."""
    found = _VERSION.search(text)
    return found[1] if found else None
