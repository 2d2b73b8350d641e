"""Who and what a project or a transcript names by itself: manifests, authors, directories, speakers."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from castle.mine.identity import TIMEOUT_SECONDS, Git, identify
from castle.store.entities import Registration
from castle.text.names.locales import shared
from castle.text.names.scripts import WORD, capital, fold, script_of

COMMITS = 1000
MAX_DEPTH = 6
MAX_PEOPLE = 15
MAX_PROJECTS = 15
MANIFESTS = ("pyproject.toml", "package.json", "Cargo.toml", "go.mod")
"""Files that name a project, those that go first in one directory first."""

_LARGEST = 1_000_000
_BOT = re.compile(
    r"\[bot\]|\bbots?\b|bot@|(?:^|[-_. ])bot$|dependabot|renovate|github[-_ ]?actions|greenkeeper|snyk"
    r"|codecov|semantic-release|pre-commit-ci|jenkins|travis|circleci|gitlab-ci|buildkite|weblate|crowdin"
    r"|allcontributors|^noreply@github\.com$|web-flow|noreply@anthropic\.com|^claude$|^copilot$|cursoragent"
    r"|devin-ai|^codex$",
    re.IGNORECASE,
)
_GENERIC = frozenset(
    "app application api backend client code common core demo desktop docs documents downloads example "
    "examples frontend home lib main monorepo my_app my_project package playground project repo root sample "
    "sandbox scripts server site src starter template test tests tmp temp tools ui untitled utils vendor web "
    "website workspace".split()
)
_MODULE = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_NAME = re.compile(r"[^\W_][\w.\- ]{1,63}")


@dataclass(frozen=True, slots=True)
class Author:
    """One person who wrote commits, under all names and addresses; ``me`` is whom Git is set up for here."""

    name: str
    others: tuple[str, ...]
    commits: int
    me: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """The authors of a repository's last commits, the most active first; ``note`` says what went wrong."""

    authors: tuple[Author, ...] = ()
    commits: int = 0
    note: str = ""

    @property
    def mine(self) -> bool:
        """Whether the user is among the first five authors, or wrote a tenth of the commits, or twenty."""
        for rank, author in enumerate(self.authors):
            if author.me and (rank < 5 or author.commits >= 20 or author.commits * 10 >= self.commits):
                return True
        return False


def manifest_names(root: Path, relatives: Iterable[str]) -> list[str]:
    """Return the names that manifests give, the shallowest first; broken ones are passed over.

    ``relatives`` are the files of the project with ``/``; those that are no manifests or lie deeper than six
    directories are not read.
    """
    found: list[tuple[int, int, str]] = []
    for relative in relatives:
        place = PurePosixPath(relative)
        if place.name in MANIFESTS and len(place.parts) - 1 <= MAX_DEPTH:
            found.append((len(place.parts), MANIFESTS.index(place.name), relative))
    names: dict[str, str] = {}
    for _, _, relative in sorted(found):
        name = _clean(_name_in(root / relative))
        if name and fold(name) not in names:
            names[fold(name)] = name
    return list(names.values())[:MAX_PROJECTS]


def git_history(root: Path, *, timeout: float = TIMEOUT_SECONDS) -> History:
    """Return who wrote the last 1,000 commits of the repository that ``root`` is in, bots left out."""
    git = Git(root, timeout)
    output = git.output("log", "-n", str(COMMITS), "--no-show-signature", "--format=%aN%x00%aE", "HEAD", "--")
    if output is None:
        return History(note=git.note)
    counts: Counter[tuple[str, str]] = Counter()
    for line in output.decode("utf-8", "replace").splitlines():
        name, _, mail = line.partition("\0")
        if name.strip() and not (_BOT.search(name.strip()) or _BOT.search(mail.strip())):
            counts[name.strip(), mail.strip().lower()] += 1
    own_mail = _line(git.output("config", "--get", "user.email")).lower()
    own_name = _line(git.output("config", "--get", "user.name"))
    authors = [_author(group, counts, own_name, own_mail) for group in _one_person_each(list(counts))]
    authors.sort(key=lambda author: (-author.commits, author.name))
    return History(tuple(authors), counts.total(), git.note)


def people_of(history: History) -> list[Registration]:
    """Return the authors with real names; who wrote next to nothing is not sure enough to be registered."""
    found = []
    for author in history.authors:
        if not _real(author.name):
            continue
        share = author.commits >= 3 and author.commits * 10 >= history.commits
        confidence = 0.99 if author.commits >= 100 or author.me else 0.65
        if confidence < 0.85 and (author.commits >= 20 or share):
            confidence = 0.85
        aliases = tuple(other for other in author.others if _is_name(other) and len(other) > 2)
        found.append(Registration(author.name, "person", "git", confidence, aliases))
    return found[:MAX_PEOPLE]


def projects_of(root: Path, relatives: Iterable[str], history: History) -> list[Registration]:
    """Return the projects that manifests name, or else the repository itself."""
    names = manifest_names(root, relatives)
    if names:
        confidence = 0.85 if not history.commits else 0.99 if history.mine else 0.7
        return [Registration(name, "project", "manifest", confidence) for name in names]
    name = _clean(identify(root).name) if history.commits else ""
    return [Registration(name, "project", "git", 0.99 if history.mine else 0.7)] if name else []


def session_projects(directories: Mapping[str, int]) -> list[Registration]:
    """Return the projects that sessions were held in: working directories and how many sessions each had."""
    sessions: Counter[str] = Counter()
    here: set[str] = set()
    ranked = sorted(directories.items(), key=lambda item: (-item[1], item[0]))[:MAX_PROJECTS]
    for directory, count in ranked:
        path = Path(directory)
        if path.is_absolute() and path.is_dir():
            if path == Path.home():
                continue
            identity = identify(path)
            name = _clean(identity.name)
            if identity.git_common_dir is not None:
                here.add(name)
        else:
            name = _clean(re.split(r"[\\/]", directory.rstrip("\\/"))[-1])
        if name:
            sessions[name] += count
    return [
        Registration(name, "project", "transcript", _by_sessions(count, name in here))
        for name, count in sessions.items()
    ]


def speakers_of(speakers: Iterable[tuple[str, int, int]]) -> list[Registration]:
    """Return the people who speak in transcripts: their names, messages and sessions are given."""
    found = []
    for name, messages, sessions in speakers:
        if _is_name(name) and (_real(name) or (capital(name) or script_of(name) != "cased")):
            confidence = 0.99 if messages >= 100 or sessions >= 3 else 0.85
            found.append(Registration(name.strip(), "person", "transcript", confidence))
    return found


def _by_sessions(count: int, repository: bool) -> float:
    if count >= 20:
        return 0.99
    return 0.85 if count >= 3 else 0.7 if repository else 0.65


def _author(
    group: Sequence[tuple[str, str]], counts: Counter[tuple[str, str]], own_name: str, own_mail: str
) -> Author:
    names: Counter[str] = Counter()
    for name, mail in group:
        names[name] += counts[name, mail]
    ranked = sorted(names, key=lambda name: (not _real(name), -names[name], name))
    me = any((mail and mail == own_mail) or name == own_name for name, mail in group)
    return Author(ranked[0], tuple(ranked[1:]), names.total(), me)


def _one_person_each(signatures: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Group signatures that share a name or an address, directly or through others."""
    parents = list(range(len(signatures)))

    def root_of(at: int) -> int:
        while parents[at] != at:
            parents[at] = parents[parents[at]]
            at = parents[at]
        return at

    seen: dict[str, int] = {}
    for at, (name, mail) in enumerate(signatures):
        marks = [f"name {fold(name)}"] if _is_name(name) else []
        marks += [f"mail {mail}"] if "@" in mail and not mail.endswith(("@localhost", "@example.com")) else []
        for mark in marks:
            parents[root_of(at)] = root_of(seen.setdefault(mark, at))
    groups: dict[int, list[tuple[str, str]]] = {}
    for at, signature in enumerate(signatures):
        groups.setdefault(root_of(at), []).append(signature)
    yield from groups.values()


def _real(name: str) -> bool:
    """Whether people may be called so: two capitalised words, or a script without capitals."""
    words = WORD.findall(name)
    if not words or not _is_name(name):
        return False
    if script_of(name) != "cased":
        return len(name) >= 2
    capitals = [word for word in words if capital(word)]
    return len(capitals) >= 2 and any(len(word) > 1 for word in capitals)


def _is_name(name: str) -> bool:
    """Whether a name is neither a bot's nor a role's nor a number."""
    folded = fold(name.strip())
    words = WORD.findall(folded)
    if not words or len(folded) > 60 or _BOT.search(name):
        return False
    return not shared().roles.issuperset(words) and not any(c.isdigit() for c in folded)


def _clean(name: str) -> str:
    """Return what a project is called without its scope; "" for names that say nothing."""
    short = name.strip().rsplit("/", 1)[-1].strip()
    generic = fold(short).replace("-", "_") in _GENERIC
    return "" if generic or not _NAME.fullmatch(short) or short.isdigit() else short


def _name_in(path: Path) -> str:
    """Return the name that a manifest gives, "" when it cannot be read or gives none."""
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            return ""
        text = path.read_text(encoding="utf-8-sig")
        if path.name == "go.mod":
            found = _MODULE.search(text)
            return re.sub(r"/v\d+$", "", found[1]) if found else ""
        if path.name == "package.json":
            return _text(_table(json.loads(text)).get("name"))
        read = tomllib.loads(text)
    except (OSError, ValueError, RecursionError):
        return ""
    if path.name == "Cargo.toml":
        return _text(_table(read.get("package")).get("name"))
    poetry = _table(_table(read.get("tool")).get("poetry"))
    return _text(_table(read.get("project")).get("name")) or _text(poetry.get("name"))


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _line(output: bytes | None) -> str:
    return output.decode("utf-8", "replace").strip() if output else ""
