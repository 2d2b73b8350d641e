"""The documentation against the program: commands run, links lead somewhere, lists are complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUN = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# One after another the pages take minutes: the first runs always, the others with the slow tests.
PAGES = [
    pytest.param(path, id=path.name, marks=() if path.name == "README.md" else pytest.mark.slow)
    for path in RUN
]
ALL = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*)[^\n`]*$")
_NO_RUN = re.compile(r"^ *<!-- no-run:(?P<reason>.*)-->$")
_LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|(?:src|href)=\"([^\"]+)\"")
_MAKE = re.compile(r"\bmake (?:[A-Z]+=\S+ )*([a-z][a-z-]*)\b")

# Taken before a fixture moves the home: the built-in embedder is prepared once, not for every page.
_CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")

_SAMPLE = {
    "README.md": (
        "# My app\n\nA shop for garden tools.\n\n## Decisions\n\n"
        "We switched to GraphQL because the mobile client needed fewer round trips.\n"
    ),
    "backend/auth.py": (
        '"""Authentication: the auth flow issues a token that lives for one hour."""\n\n\n'
        "def issue_token(user: str) -> str:\n"
        '    """Return a token for the user."""\n'
        '    return f"token-{user}"\n'
    ),
    "docs/deploy.md": "# Deploying\n\nRun the migrations first, then restart the workers one by one.\n",
}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, first line and, where it is not to be run, the reason."""

    language: str
    text: str
    line: int
    reason: str | None


def blocks(path: Path) -> list[Block]:
    """Return the fenced blocks of a file in order."""
    found: list[Block] = []
    opened: tuple[str, str, int] | None = None
    inside: list[str] = []
    reason: str | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if opened is not None:
            fence, language, start = opened
            if line.strip() == fence:
                found.append(Block(language, "\n".join(inside), start, reason))
                opened, reason, inside = None, None, []
            else:
                inside.append(line)
        elif match := _FENCE.match(line):
            opened = (match["fence"], match["language"], number)
        elif match := _NO_RUN.match(line):
            reason = match["reason"].strip()
        elif line.strip():
            reason = None
    assert opened is None, f"{path}: the block in line {opened[2] if opened else 0} is not closed"
    return found


def prose(path: Path) -> str:
    """Return a file without its fenced blocks and inline code."""
    kept: list[str] = []
    fence = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif match:
            fence = match["fence"]
        else:
            kept.append(re.sub(r"`[^`]*`", "", line))
    return "\n".join(kept)


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with the texts that its output must hold."""
    found: list[tuple[str, list[str]]] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = f"{command}\n{next(lines).removeprefix('> ')}"
            found.append((command, []))
        elif line.startswith("# =>"):
            found[-1][1].append(line[4:].strip())
    return found


class Session:
    """A shell in a new home with a small project, kept from one command to the next."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.cwd = self.home / "projects" / "myapp"
        for name, text in _SAMPLE.items():
            file = self.cwd / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "XDG_CACHE_HOME": _CACHE,
            "TERM": "dumb",
            "CASTLE_LLM_ENDPOINT": "http://127.0.0.1:9",
        }

    def run(self, arguments: list[str], where: str) -> str:
        """Run a program; return its output, and fail when its exit code is not 0."""
        done = subprocess.run(
            arguments,
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"{where}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def shell(self, command: str, where: str) -> str:
        """Run one command line; a change of directory stays for the next one."""
        kept = self.home / ".cwd"
        output = self.run(["bash", "-c", f'{command}\ncode=$?; pwd > "{kept}"; exit $code'], where)
        self.cwd = Path(kept.read_text(encoding="utf-8").strip())
        return output


@pytest.mark.parametrize("path", PAGES)
def test_the_commands_of_a_page_run(path: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    for block in blocks(path):
        where = f"{path.name}:{block.line}"
        if block.reason is not None:
            assert block.reason, f"{where}: no-run needs a reason"
        elif block.language == "python":
            session.run([sys.executable, "-c", block.text], where)
        elif block.language == "console":
            for command, expected in commands(block):
                output = session.shell(command, f"{where}: {command}")
                for text in expected:
                    assert text in output, f"{where}: {command}: {text!r} is not in the output\n{output}"


@pytest.mark.parametrize("path", PAGES)
def test_shell_commands_stand_in_blocks_that_run(path: Path) -> None:
    for block in blocks(path):
        assert block.language not in {"sh", "bash", "shell"}, f"{path.name}:{block.line}: write console"
        if block.language == "console":
            assert commands(block), f"{path.name}:{block.line}: no line begins with $"


def anchors(path: Path) -> set[str]:
    """Return the anchors that the headings of a page make."""
    headings = re.findall(r"^#+ +(.+?) *$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for match in _LINK.finditer(prose(path)):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = path if not name else (path.parent / name)
        assert file.exists(), f"{path.name}: {target} does not exist"
        assert file.resolve().is_relative_to(ROOT), f"{path.name}: {target} leads out of the repository"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{path.name}: {target}: no such heading"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_make_targets_exist(path: Path) -> None:
    rules = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    code = re.findall(r"`([^`\n]+)`", path.read_text(encoding="utf-8"))
    code += [line[2:] for block in blocks(path) for line in block.text.splitlines() if line.startswith("$ ")]
    named = {name for text in code for name in _MAKE.findall(text)}
    assert named <= set(rules)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200


def test_the_changelog_knows_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_dependency_is_documented_with_its_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    wanted = {}
    for requirement in [*project["dependencies"], *(item for extra in extras for item in extra)]:
        match = re.match(r"([\w.-]+)(?:\[[^\]]*\])?\s*([^;]*)", requirement)
        assert match
        wanted[match[1]] = match[2].strip() or "any"
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| \[([^\]]+)\]\([^)]*\) \| `?([^|`]+?)`? \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE
    )
    assert {name: bound for name, bound, _, _ in rows} == wanted
    assert all(licence.strip() and purpose.strip() for _, _, licence, purpose in rows)


def test_continuous_integration_runs_what_the_readme_says() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^step \$make (.+)$", script, re.MULTILINE) == ["lint", "test", "test-all"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


def test_blocks_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- no-run: needs a network -->\n\n```console\n$ a\n```\n\n"
        "```console\n$ b \\\n  c\n# => d\ne\n```\n",
        encoding="utf-8",
    )
    first, second = blocks(page)
    assert (first.reason, second.reason) == ("needs a network", None)
    assert commands(second) == [("b \\\n  c", ["d"])]
    assert "$ a" not in prose(page)


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.shell("cd backend", "here")
    assert session.shell("ls", "here") == "auth.py\n"
    with pytest.raises(AssertionError, match="exit code 3"):
        session.shell("exit 3", "here")
    with pytest.raises(AssertionError, match="exit code 1"):
        session.shell("false", "here")
