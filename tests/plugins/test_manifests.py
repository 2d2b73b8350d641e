"""The files of the plugins: what the hosts require of them, and that what they name exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from castle import instructions
from castle.cli.docs import commands
from tests.plugins.hosts import HOSTS, ROOT

PLUGINS = ROOT / "plugins"
TEXTS = sorted(
    [
        *PLUGINS.rglob("*.md"),
        *(ROOT / "castle" / "instructions").glob("*.md"),
        ROOT / "docs" / "agents.md",
    ]
)
READING = {"--version", "instructions", "search", "get", "kg query", "kg timeline", "diary read", "wake-up"}
READING |= {"status", "doctor"}
"""The commands that change nothing."""

READING_ALONE = {"receipts", "receipts --failed"}
"""Those that change nothing with these options."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = re.compile(r"\bcastle_[a-z_]+\b")
_COMMAND = re.compile(r"`castle ([^`\n]*)`|Bash\(castle ([^):]*)(?::\*)?\)")


def loaded(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict), path
    return found


def front_matter(path: Path) -> tuple[dict[str, Any], str]:
    """Return the front matter of a file and its body."""
    empty, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert empty == ""
    found = yaml.safe_load(head)
    assert isinstance(found, dict)
    return found, body


def listed(value: str) -> Iterator[str]:
    """Yield the entries of a comma list of tools."""
    yield from (entry.strip() for entry in value.split(","))


def test_every_json_file_is_one() -> None:
    files = [*PLUGINS.rglob("*.json"), ROOT / ".claude-plugin/marketplace.json"]
    files.append(ROOT / ".agents/plugins/marketplace.json")
    assert len(files) == 8
    for path in files:
        assert loaded(path)


def test_the_marketplace_of_claude_code_leads_to_the_plugin() -> None:
    market = loaded(ROOT / ".claude-plugin" / "marketplace.json")
    assert market["name"] == "cognitive-castle"
    assert market["owner"]["name"]
    assert market["description"], "`claude plugin validate` asks for it"
    (entry,) = market["plugins"]
    assert entry["source"] == "./plugins/claude-code"
    manifest = loaded(ROOT / entry["source"] / ".claude-plugin" / "plugin.json")
    assert entry["name"] == manifest["name"] == "castle"
    assert "version" not in entry, "the manifest alone says it"


def test_the_manifest_of_claude_code() -> None:
    manifest = loaded(PLUGINS / "claude-code/.claude-plugin/plugin.json")
    known = {"name", "displayName", "version", "description", "author", "license", "keywords"}
    assert manifest.keys() == known, "what lies in its usual place is found without being named"
    assert _NAME.fullmatch(manifest["name"])
    assert manifest["author"]["name"]
    for place in (".mcp.json", "hooks/hooks.json", "commands", "skills/castle/SKILL.md"):
        assert (PLUGINS / "claude-code" / place).exists()
    assert [path.name for path in (PLUGINS / "claude-code/.claude-plugin").iterdir()] == ["plugin.json"]


def test_the_marketplace_of_codex_leads_to_the_plugin() -> None:
    market = loaded(ROOT / ".agents" / "plugins" / "marketplace.json")
    assert market["name"] == "cognitive-castle"
    assert market["interface"]["displayName"]
    (entry,) = market["plugins"]
    assert entry["source"] == {"source": "local", "path": "./plugins/codex"}
    assert entry["policy"] == {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    assert entry["category"]
    manifest = loaded(ROOT / entry["source"]["path"] / ".codex-plugin" / "plugin.json")
    assert entry["name"] == manifest["name"]


def test_the_manifest_of_codex() -> None:
    root = PLUGINS / "codex"
    manifest = loaded(root / ".codex-plugin" / "plugin.json")
    assert _NAME.fullmatch(manifest["name"])
    assert manifest["description"]
    for key in ("skills", "mcpServers", "hooks"):
        assert manifest[key].startswith("./")
        assert (root / manifest[key]).resolve().is_relative_to(root)
        assert (root / manifest[key]).exists()
    shown = manifest["interface"]
    for key in ("displayName", "shortDescription", "longDescription", "developerName", "category"):
        assert shown[key]
    prompts = shown["defaultPrompt"]
    assert len(prompts) <= 3
    assert all(0 < len(prompt) <= 128 for prompt in prompts), "longer ones are left out"
    assert [path.name for path in (root / ".codex-plugin").iterdir()] == ["plugin.json"]


@pytest.mark.parametrize("host", HOSTS)
def test_the_server_is_the_installed_program(host: str) -> None:
    assert loaded(PLUGINS / host / ".mcp.json") == {"mcpServers": {"castle": {"command": "castle-mcp"}}}


def test_there_is_a_command_for_every_instruction() -> None:
    files = {path.stem: path for path in (PLUGINS / "claude-code" / "commands").iterdir()}
    assert files.keys() == set(instructions.NAMES)
    for name, path in files.items():
        head, body = front_matter(path)
        assert head.keys() <= {"description", "argument-hint", "allowed-tools"}
        assert 0 < len(head["description"]) < 120
        assert "Bash(castle instructions:*)" in set(listed(head["allowed-tools"]))
        assert f"`castle instructions {name}`" in body
        assert ("$ARGUMENTS" in body) == ("argument-hint" in head or name == "help")


@pytest.mark.parametrize("host", HOSTS)
def test_the_skill(host: str) -> None:
    path = PLUGINS / host / "skills" / "castle" / "SKILL.md"
    head, body = front_matter(path)
    tools = {"allowed-tools"} if host == "claude-code" else set()
    assert head.keys() == {"name", "description"} | tools
    assert head["name"] == path.parent.name
    assert 0 < len(head["description"]) <= 1024
    assert len(body.splitlines()) < 80


def test_only_what_reads_is_allowed_without_asking() -> None:
    for path in PLUGINS.rglob("*.md"):
        if path.name == "README.md":
            continue
        for entry in listed(front_matter(path)[0].get("allowed-tools", "")):
            match = re.fullmatch(r"Bash\(castle ([^:)]+)(?::\*)?\)", entry)
            if match:
                allowed = READING if entry.endswith(":*)") else READING | READING_ALONE
                assert match[1] in allowed, f"{path}: {entry}"
            elif entry:
                assert readable(entry.removeprefix("mcp__plugin_castle_castle__")), f"{path}: {entry}"


def offered() -> dict[str, str]:
    """Return the kind of every tool of the server by its name."""
    from castle.mcp.tools import Tools

    return {f"castle_{method.__name__}": offer.kind for method, offer in Tools().all("all")}


def readable(tool: str) -> bool:
    return offered()[tool] == "reads"


def named_command(text: str, known: set[str]) -> str:
    """Return the command of a line as far as it is words: ``kg add`` of ``kg add ada works_at ACME``."""
    words = text.split()
    two = " ".join(words[:2])
    return two if two in known else words[0]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_every_command_and_tool_that_a_text_names_exists(path: Path) -> None:
    known = {" ".join(command) for command in commands()}
    groups = {name.split()[0] for name in known if " " in name}
    text = path.read_text(encoding="utf-8")
    for in_code, in_rule in _COMMAND.findall(text):
        line = in_code or in_rule
        if line.startswith("COMMAND") or line in ("--version", "--help"):
            continue
        command = named_command(line, known)
        assert command in known, f"`castle {line}`"
        assert command not in groups, f"`castle {line}` is a group of commands"
    for tool in _TOOL.findall(text.replace("castle_castle__", "")):
        assert tool in offered(), tool


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_every_option_that_a_text_names_exists(path: Path) -> None:
    from castle.cli.docs import help_of

    known = {" ".join(command) for command in commands()}
    for line, _ in _COMMAND.findall(path.read_text(encoding="utf-8")):
        options = re.findall(r"(?<=\s)--[a-z-]+", line)
        if options and not line.startswith("COMMAND"):
            help_text = help_of(tuple(named_command(line, known).split()))
            assert all(option in help_text for option in options), f"`castle {line}`"


def test_the_page_about_agents_lists_the_core_tools_and_every_hook() -> None:
    from castle.hooks import HOOKS
    from castle.mcp.tools import Tools

    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `core` \| (.*) \|$", page, re.MULTILINE)
    assert set(_TOOL.findall(row)) == {f"castle_{method.__name__}" for method, _ in Tools().all("core")}
    rows = re.findall(r"^\| ([a-z, -]+) \| yes \| yes \|", page, re.MULTILINE)
    assert {name for row in rows for name in row.split(", ")} == set(HOOKS)
