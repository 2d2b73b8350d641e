"""A palace with something of everything, and what it holds in a form that two palaces can be compared by."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from castle import Castle
from castle.keep.jsonl import _rows_of
from castle.keep.layout import FIRST, LAST, OF_SOURCE
from castle.store.ledger import Ledger, get_value
from castle.store.session_tables import messages
from castle.store.tunnel_values import Spot
from tests.mine.conftest import FILES, write
from tests.mine.test_convos import line
from tests.planted import Planted

SECRET = Planted("the harbour")
TOKEN = SECRET.values["github_token"]
SPOKEN = Planted("spoken").values["github_token"]


def transcript(turns: int) -> str:
    said = [
        line(n, f"turn {n}: the ferry of berth{n}", role="user" if n % 2 == 0 else "assistant")
        for n in range(turns)
    ]
    return "".join([*said, line(turns, f"my token is {SPOKEN} of the quay")])


def fill(castle: Castle, home: Path) -> None:
    """File a project in two revisions, a session that grew, notes, a diary, facts, names, tunnels, uses."""
    project = home / "garden-shop"
    write(project, {**FILES, "keys.md": f"# Keys\n\nThe token is {TOKEN} for the lighthouse.\n"})
    (project / "latin.txt").write_bytes("Caf\xe9 at the h\xe4fen.\n".encode("latin-1"))
    castle.mine(project)
    write(project, {"notes.txt": "The harbour is open on Sundays.\n"}, age=100)
    (project / "docs" / "deploy.md").unlink()
    castle.mine(project)
    castle.sync(project, apply=True)
    chat = home / "chats" / "s1.jsonl"
    chat.parent.mkdir()
    for turns in (4, 9):
        chat.write_text(transcript(turns), encoding="utf-8")
        os.utime(chat, (1000 + turns, 1000 + turns))
        castle.mine(chat, mode="convos")
    note = castle.add("The crane was painted green by Mara.", wing="harbour", room="cranes")
    castle.update(note.id, "The crane was painted red by Mara Quill.")
    gone = castle.add("An errand nobody needs.", wing="harbour", room="errands")
    castle.forget(gone.id)
    castle.diary_write("claude", "Today the lighthouse was lit.")
    castle.entities.add("Mara Quill", "person", aliases=("Mara",))
    kept = castle.search("crane").hits[0].id
    castle.kg.add("Mara Quill", "painted", "the crane", valid_from="2026-05-01", drawer=kept)
    castle.kg.add("Mara Quill", "lives in", "Port Vell", valid_from="2025-01-01")
    castle.kg.invalidate("Mara Quill", "lives in", "Port Vell", ended="2026-01-01")
    castle.tunnels.create(Spot("harbour", "cranes"), Spot("garden_shop", "general"), label="paint")
    castle.pin(kept)
    castle.get(kept)
    castle.rename_wing("harbour", "port")
    castle.verify()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with such a palace and the home that it was filed from, which nobody changes."""
    top = tmp_path_factory.mktemp("filled")
    (top / "home").mkdir()
    with pytest.MonkeyPatch.context() as patch, Castle(top / "rich", embedder="fake") as castle:
        patch.setenv("HOME", str(top / "home"))
        fill(castle, top / "home")
    shutil.copytree(top / "home", top / "untouched")
    return top


@pytest.fixture
def rich(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Castle]:
    """A copy of that palace; the home is at its place, as it was."""
    shutil.rmtree(filled / "home")
    shutil.copytree(filled / "untouched", filled / "home")
    monkeypatch.setenv("HOME", str(filled / "home"))
    with Castle(shutil.copytree(filled / "rich", tmp_path / "rich"), embedder="fake") as castle:
        yield castle


def content(ledger: Ledger) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row that an export has, without the numbers that only one database knows."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with ledger.read() as cx:
        for name in (*FIRST, *OF_SOURCE, *LAST):
            rows = []
            for row in cx.execute(_rows_of(name)):
                known = {
                    k: v for k, v in row._mapping.items() if k not in ("n_source", "n_rid", "is_stub", "seq")
                }
                rows.append(tuple(sorted(known.items(), key=lambda item: item[0])))
            found[name] = sorted(rows, key=repr)
        found["meta"] = [(key, get_value(cx, key)) for key in ("salt", "embedder", "name_languages")]
        assert cx.execute(select(messages.c.id)).first() is not None
    return found


def states(castle: Castle) -> dict[str, str]:
    return {f.check: f.status for f in castle.verify() if f.status != "ok"}


def top(castle: Castle, query: str) -> list[tuple[str, str]]:
    return [(hit.id, hit.text) for hit in castle.search(query, limit=10, mode="fast").hits]
