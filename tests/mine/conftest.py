"""A small project, and a Castle with the fake embedder to mine it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from castle import Castle

FILES = {
    "README.md": "# Shop\n\nA shop for garden tools.\n\n## Decisions\n\nWe chose GraphQL in May.\n",
    "backend/auth.py": 'def issue_token(user: str) -> str:\n    """Return a token."""\n    return user\n',
    "docs/deploy.md": "# Deploying\n\nRun the migrations first, then restart the workers.\n",
    "notes.txt": "The harbour is closed on Sundays.\n",
}


def write(root: Path, files: dict[str, str], *, age: float = 3600) -> None:
    """Write files, as old as ``age`` seconds so that their times can be trusted."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        stamp = path.stat().st_mtime - age
        os.utime(path, (stamp, stamp))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "garden-shop"
    root.mkdir()
    write(root, FILES)
    return root


@pytest.fixture
def castle(tmp_path: Path) -> Iterator[Castle]:
    with Castle(tmp_path / "palace", embedder="fake") as opened:
        yield opened
