"""The environment of a project: what its manifests and lock files say, which versions its tools have.

Nothing of a project is run, and no link is followed out of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from castle.errors import UsageError
from castle.mind.conditions.rules import Environment, FileState
from castle.mind.conditions.values import read_version
from castle.mind.environment.files import UnlookedError, file_state, read_inside
from castle.mind.environment.manifests import ABOUT, HASHED, LOCKS, MANIFESTS, Reader
from castle.mind.environment.tools import TOOLS, tool_versions
from castle.mind.environment.values import MAX_ENTRIES

MAX_FILES = 200
"""Files that are looked at beside manifests and lock files."""

OWN_FIELDS = frozenset(
    (*LOCKS, *MANIFESTS, "packages", "lock_hashes", *(f"{name}_version" for name in TOOLS))
)
"""Fields that are collected here; every other one is somebody's report."""

Asker = Callable[[Path, list[str]], dict[str, str]]


def collect_environment(
    project: Path, *, files: Iterable[str] = (), tools: Asker | None = None
) -> Environment:
    """Return what a project's directory says about what it runs on, and the state of the ``files`` named.

    Fields are ``python_version`` and the like for tools, the name of a manifest or lock file for the names
    and versions in it, ``packages`` for the one version of each package (as locked, else as pinned), and
    ``lock_hashes``. What cannot be read is left out, so that it is unknown, and told in ``notes``. Raises
    UsageError for what is not a directory.
    """
    if not project.is_dir():
        raise UsageError(f"{project} is not a directory: name the project's")
    values: dict[str, Any] = {}
    notes: list[str] = []
    hashes: dict[str, str] = {}
    for name in (*LOCKS, *MANIFESTS, *HASHED):
        content = _content(project, name, notes)
        if content is None:
            continue
        if name not in MANIFESTS:
            hashes[name] = hashlib.sha256(content).hexdigest()
        reader = LOCKS.get(name) or MANIFESTS.get(name)
        named = _read(name, reader, content, notes) if reader is not None else None
        if named is not None:
            values[name] = named
    packages = _packages(values)
    tools_found = (tools or tool_versions)(project, list(values))
    venv = _python_of_venv(project, notes)
    if venv:
        tools_found["python_version"] = venv
    values |= tools_found
    if packages:
        values["packages"] = packages
    if hashes:
        values["lock_hashes"] = hashes
    return Environment(values, _states(project, files, notes), tuple(notes))


def _content(project: Path, name: str, notes: list[str]) -> bytes | None:
    try:
        return read_inside(project, name)
    except (UnlookedError, OSError) as error:
        notes.append(f"{name}: {getattr(error, 'strerror', None) or error}")
        return None


def _read(name: str, reader: Reader, content: bytes, notes: list[str]) -> dict[str, Any] | None:
    try:
        found = reader(content.decode("utf-8-sig"))
    # tomllib, json and int() say what they cannot read as a ValueError; both parsers recurse.
    except (ValueError, RecursionError) as error:
        notes.append(f"{name} cannot be read: {' '.join(str(error).split())[:100]}")
        return None
    if len(found) > MAX_ENTRIES:
        notes.append(
            f"{name} names {len(found):,} packages, more than {MAX_ENTRIES:,}: only its hash is kept"
        )
        return None
    return {key[:200]: value for key, value in found.items()}


def _packages(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the version of each package of which exactly one is known.

    What lock files disagree about, such as a name that two ecosystems have, is left out.
    """
    found: dict[str, str] = {}
    doubtful: set[str] = set()
    for group in (LOCKS, MANIFESTS):
        locked = dict(found)
        for file in group:
            for name, version in values.get(file, {}).items():
                if name in ABOUT or name in locked or file.startswith("."):
                    continue
                if not isinstance(version, str) or read_version(version) is None:
                    if group is LOCKS:
                        doubtful.add(name)
                elif found.setdefault(name, version) != version:
                    doubtful.add(name)
    return {name: version for name, version in found.items() if name not in doubtful}


def _python_of_venv(project: Path, notes: list[str]) -> str | None:
    """Return the version of the project's own virtual environment, as its file tells it."""
    content = _content(project, ".venv/pyvenv.cfg", notes)
    for line in (content or b"").decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() in ("version", "version_info") and read_version(
            value.strip().removesuffix(".final.0")
        ):
            return value.strip().removesuffix(".final.0")
    return None


def _states(project: Path, files: Iterable[str], notes: list[str]) -> dict[str, FileState]:
    wanted = sorted(set(files))
    if len(wanted) > MAX_FILES:
        notes.append(f"conditions name {len(wanted):,} files; the first {MAX_FILES} were looked at")
    return {name: file_state(project, name) for name in wanted[:MAX_FILES]}
