"""What the command line imports before it does anything."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

import castle.cli
from castle import Castle
from castle.cli.app import COMMANDS, app
from castle.cli.root import new_app

PARTS = {"memory", "memory_plot"}
"""Modules that add to another one's group."""
HEAVY = {
    "httpx",
    "lancedb",
    "mcp",
    "networkx",
    "numpy",
    "onnxruntime",
    "pyarrow",
    "pydantic",
    "rich",
    "sqlalchemy",
    "tantivy",
    "tokenizers",
    "yaml",
}
MOST_OWN = 12
"""Modules of Castle that its help may need: none of those of its commands."""


def test_help_imports_no_more_than_it_needs() -> None:
    code = (
        "import sys\nfrom castle.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "search" in done.stdout
    loaded = done.stderr.split()
    assert not HEAVY & set(loaded)
    own = [name for name in loaded if name.partition(".")[0] == "castle"]
    assert len(own) <= MOST_OWN, own


def test_a_search_of_a_new_process_needs_no_lancedb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLE_EMBEDDER_MODEL", "fake")
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.add("the harbour is closed", wing="w", room="r")
        castle.search("harbour")
    code = (
        "import sys\nfrom castle.cli import main\n"
        f"try:\n    main(['--palace', {str(tmp_path / 'palace')!r}, 'search', 'harbour'])\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "the harbour is closed" in done.stdout
    assert "tantivy" in done.stderr.split()
    assert "lancedb" not in done.stderr.split()


def test_the_table_of_commands_is_what_their_modules_say() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, (_, line) in COMMANDS.items():
        command = group.commands[name]
        assert command.get_short_help_str(1000) == line
        assert not command.hidden


def test_the_table_lacks_no_command() -> None:
    modules = {module for module, _ in COMMANDS.values()}
    for _, name, _ in pkgutil.iter_modules(castle.cli.__path__):
        module = import_module(f"castle.cli.{name}")
        if hasattr(module, "add_to") and name in modules:
            part = new_app()
            module.add_to(part)
            group = typer.main.get_command(part)
            assert isinstance(group, TyperGroup)
            assert set(group.commands) == {word for word, (place, _) in COMMANDS.items() if place == name}
        elif hasattr(module, "add_to"):
            assert name in PARTS, f"{name} is on no command line"
