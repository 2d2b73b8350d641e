"""What manifests and lock files say: names and versions, read from the text alone.

Manifests give what a project asks for (ranges as they are written), lock files what it got. For a name that a
lock file has in several versions, that is a list. Nothing of a project is run.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from castle.mind.conditions.values import package_name

Named = dict[str, Any]
Reader = Callable[[str], Named]

_GROUPS = ("peerDependencies", "optionalDependencies", "devDependencies", "dependencies")
_PNPM_DIRECT = re.compile(
    r"^ +'?(@?[\w./-]+)'?:\n +specifier: [^\n]*\n +version: '?([^\s('\"]+)", re.MULTILINE
)
_PNPM_PACKAGE = re.compile(r"^  '?/?(@?[^@\s'(]+)@(\d[^\s:('\"]*)", re.MULTILINE)
_YARN = re.compile(r'^"?(@?[^@\s"]+)@[^\n]*:\n  version:? "?([^\s"]+)', re.MULTILINE)
_REQUIREMENT = re.compile(
    r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*([<>=!~][^;#]*|\([^)]*\)|)\s*(?:;.*|#.*)?$"
)
_LONGEST_LINE = 1000
_GO_REQUIRE = re.compile(r"^(?:require\s+)?([\w./~-]+\.[\w./~-]+)\s+(v\S+)")


def requirement(line: str) -> tuple[str, str] | None:
    """Return name and wanted versions of a line such as ``Foo_Bar[x]>=1,<2 ; python_version<"3"``.

    The versions are "" where any will do, the exact one for ``==``; None for options, paths and URLs.
    """
    found = _REQUIREMENT.fullmatch(line[:_LONGEST_LINE].split(" --hash", 1)[0].rstrip("\\ \t"))
    if found is None:
        return None
    wanted = found[2].strip().strip("()").replace(" ", "")
    exact = wanted.removeprefix("===").removeprefix("==") if "," not in wanted else wanted
    return package_name(found[1]), wanted if "*" in exact else exact


def _requirements(lines: object) -> Named:
    read = (requirement(line) for line in lines if isinstance(line, str)) if isinstance(lines, list) else ()
    return {item[0]: item[1] for item in read if item is not None}


def _requirements_txt(text: str) -> Named:
    return _requirements(text.splitlines())


def _pyproject(text: str) -> Named:
    data = tomllib.loads(text)
    project, tool = _table(data, "project"), _table(data, "tool")
    found: Named = {}
    for group in _table(data, "dependency-groups").values():
        found |= _requirements(group)
    for extra in _table(project, "optional-dependencies").values():
        found |= _requirements(extra)
    poetry = _table(tool, "poetry")
    for group in _table(poetry, "group").values():
        found |= _poetry(_table(group, "dependencies"))
    found |= _poetry(_table(poetry, "dependencies"))
    found |= _requirements(project.get("dependencies"))
    if isinstance(project.get("requires-python"), str):
        found["requires-python"] = project["requires-python"]
    return found | _about(poetry) | _about(project)


def _poetry(wanted: Mapping[str, Any]) -> Named:
    found = _versions(wanted)
    python = found.pop("python", None)
    named: Named = {package_name(name): version for name, version in found.items()}
    return named if python is None else named | {"requires-python": python}


def _package_json(text: str) -> Named:
    data = _object(text)
    found: Named = {f"engines.{name}": wanted for name, wanted in _versions(_table(data, "engines")).items()}
    if isinstance(data.get("packageManager"), str):
        found["packageManager"] = data["packageManager"]
    found |= _about(data)
    for group in _GROUPS:
        found |= _versions(_table(data, group))
    return found


def _package_lock(text: str) -> Named:
    data = _object(text)
    packages = _table(data, "packages")
    if not packages:
        return _versions(_table(data, "dependencies"))
    # The top of node_modules is what the project itself gets; what lies deeper belongs to other packages.
    prefix = "node_modules/"
    top = {path: entry for path, entry in packages.items() if path.startswith(prefix)}
    return _versions(
        {path.removeprefix(prefix): e for path, e in top.items() if path.count("node_modules/") == 1}
    )


def _pnpm_lock(text: str) -> Named:
    found = _gathered(_PNPM_PACKAGE.findall(text))
    return found | {name: version for name, version in _PNPM_DIRECT.findall(text) if version[:1].isdigit()}


def _yarn_lock(text: str) -> Named:
    return _gathered(_YARN.findall(text))


def _toml_lock(text: str) -> Named:
    packages = tomllib.loads(text).get("package")
    return _gathered(_pairs(packages, package_name))


def _cargo_lock(text: str) -> Named:
    return _gathered(_pairs(tomllib.loads(text).get("package"), str))


def _pairs(packages: object, written: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    for package in packages if isinstance(packages, list) else ():
        name, version = _strings(package, "name", "version")
        if name and version:
            yield written(name), version


def _pipfile_lock(text: str) -> Named:
    data = _object(text)
    found = {**_table(data, "develop"), **_table(data, "default")}
    return {package_name(n): v.removeprefix("==") for n, v in _versions(found).items()}


def _cargo_toml(text: str) -> Named:
    data = tomllib.loads(text)
    found: Named = {}
    workspace = _table(_table(data, "workspace"), "dependencies")
    for wanted in (workspace, *(_table(data, f"{kind}dependencies") for kind in ("build-", "dev-", ""))):
        found |= _versions(wanted)
    package = _table(data, "package")
    for name in ("edition", "rust-version"):
        if isinstance(package.get(name), str):
            found[name] = package[name]
    return found | _about(package)


def _go_mod(text: str) -> Named:
    found: Named = {}
    for line in text.splitlines():
        words = line.split("//", 1)[0].split()
        if len(words) == 2 and words[0] in ("go", "toolchain", "module"):
            found[words[0]] = words[1]
            continue
        required = _GO_REQUIRE.match(" ".join(words))
        if required:
            found[required[1]] = required[2]
    return found


def _first_line(text: str) -> Named:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {"version": lines[0][:100]} if lines else {}


def _tool_versions(text: str) -> Named:
    rows = [line.split("#", 1)[0].split() for line in text.splitlines()]
    return {row[0]: row[1] for row in rows if len(row) >= 2}


def _object(text: str) -> Mapping[str, Any]:
    found = json.loads(text)
    return found if isinstance(found, dict) else {}


def _table(data: object, name: str) -> Mapping[str, Any]:
    found = data.get(name) if isinstance(data, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _strings(data: object, *names: str) -> tuple[str, ...]:
    found = [data.get(name) if isinstance(data, Mapping) else None for name in names]
    return tuple(value if isinstance(value, str) else "" for value in found)


def _versions(entries: Mapping[str, Any]) -> dict[str, str]:
    """Return the version of each entry, which is a text or has one under ``version``."""
    found: dict[str, str] = {}
    for name, entry in entries.items():
        version = entry if isinstance(entry, str) else _strings(entry, "version")[0]
        if version:
            found[name] = version
    return found


def _about(data: Mapping[str, Any]) -> Named:
    return {name: data[name] for name in ("name", "version") if isinstance(data.get(name), str)}


def _gathered(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> Named:
    found: dict[str, list[str]] = {}
    for name, version in pairs:
        versions = found.setdefault(name, [])
        if version not in versions:
            versions.append(version)
    return {name: v[0] if len(v) == 1 else sorted(v) for name, v in found.items()}


LOCKS: Mapping[str, Reader] = {
    "uv.lock": _toml_lock,
    "poetry.lock": _toml_lock,
    "pdm.lock": _toml_lock,
    "Pipfile.lock": _pipfile_lock,
    "package-lock.json": _package_lock,
    "npm-shrinkwrap.json": _package_lock,
    "pnpm-lock.yaml": _pnpm_lock,
    "yarn.lock": _yarn_lock,
    "Cargo.lock": _cargo_lock,
}
"""Files that say what a project got; the first of several that speak of a package counts."""

MANIFESTS: Mapping[str, Reader] = {
    "pyproject.toml": _pyproject,
    "requirements.txt": _requirements_txt,
    "requirements-dev.txt": _requirements_txt,
    "package.json": _package_json,
    "Cargo.toml": _cargo_toml,
    "go.mod": _go_mod,
    ".python-version": _first_line,
    ".nvmrc": _first_line,
    ".node-version": _first_line,
    ".tool-versions": _tool_versions,
}
"""Files that say what a project asks for."""

HASHED = ("go.sum", "bun.lock", "bun.lockb", "Gemfile.lock", "composer.lock", "flake.lock")
"""Lock files that are known by their hash alone."""

ABOUT = frozenset(("name", "version", "requires-python", "packageManager", "edition", "rust-version"))
"""Names in what is read of a manifest that are no packages."""
