"""``castle reveal`` at a terminal of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import select as choose

from castle import Castle
from castle.store.reveal import list_reveals
from castle.store.reveal_tables import reveals
from tests.cli.conftest import Run

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def sealed(own_home: Path, run: Run) -> str:
    """The id of a drawer with a secret."""
    notes = own_home / "notes"
    notes.mkdir()
    (notes / "a.md").write_text(f"The token of the harbour is {TOKEN} for now.\n", encoding="utf-8")
    (notes / "b.md").write_text("Nothing to hide.\n", encoding="utf-8")
    run("mine", str(notes))
    (found,) = [d for d in json.loads(run("list", "--json").out)["drawers"] if d["sealed"]]
    return str(found["id"])


def at_a_terminal(*arguments: str, typed: str, redirected: bool = False) -> tuple[int, str]:
    """Run a command with a terminal of its own and type a line; return its exit code and what was shown."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "castle", *arguments],
        stdin=slave,
        stdout=subprocess.DEVNULL if redirected else slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    os.write(master, f"{typed}\n".encode())
    shown = b""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ready, _, _ = select.select([master], [], [], 0.1)
        try:
            part = os.read(master, 65536) if ready else b""
        except OSError:  # the other side has closed it
            break
        shown += part
        if not ready and process.poll() is not None:
            break
    code = process.wait(timeout=60)
    os.close(master)
    return code, shown.decode()


def noted(own_home: Path) -> list[tuple[str, str]]:
    with Castle(own_home / ".castle" / "palace") as castle:
        ledger = castle._palace().ledger
        with ledger.read() as cx:
            for row in cx.execute(choose(reveals)):
                assert TOKEN not in str(tuple(row))
        return [(one.drawer, ",".join(one.kinds)) for one in list_reveals(ledger, 10, 0)[1]]


def test_it_needs_a_terminal(run: Run, sealed: str, own_home: Path) -> None:
    done = run("reveal", sealed)
    assert done.code == 2
    assert "terminal" in done.err
    assert TOKEN not in done.out + done.err
    code, shown = at_a_terminal("reveal", sealed, typed=sealed[:6], redirected=True)
    assert code == 2
    assert TOKEN not in shown
    assert noted(own_home) == []


def test_it_shows_the_text_to_who_types_the_id(sealed: str, own_home: Path) -> None:
    for typed in (sealed[:6], sealed[:8], f" {sealed.upper()} "):
        code, shown = at_a_terminal("reveal", sealed[:8], typed=typed)
        assert code == 0, typed
        assert f"The token of the harbour is {TOKEN} for now." in shown
    assert noted(own_home) == [(sealed, "github_token")] * 3


def test_it_shows_nothing_to_who_types_something_else(sealed: str, own_home: Path) -> None:
    for typed in ("", "000000", sealed[:5], "yes"):
        code, shown = at_a_terminal("reveal", sealed, typed=typed)
        assert code == 1
        assert "nothing was revealed" in shown
        assert TOKEN not in shown
    assert noted(own_home) == []


def test_it_has_no_json_and_no_drawer_without_secrets(run: Run, sealed: str) -> None:
    assert run("reveal", sealed, "--json").code == 2
    (plain,) = [d for d in json.loads(run("list", "--json").out)["drawers"] if not d["sealed"]]
    code, shown = at_a_terminal("reveal", plain["id"], typed=plain["id"][:6])
    assert code == 1
    assert "nothing that is sealed" in shown


def test_no_tool_reveals() -> None:
    from castle.mcp.tools import Tools

    names = [method.__name__ for method, _ in Tools().all()]
    assert names
    assert not any("reveal" in name or "sealed" in name for name in names)
