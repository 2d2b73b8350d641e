"""The example of docs/mind.md, as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = (block for block in blocks(ROOT / "docs" / "mind.md") if block.language == "python")
    exec(compile(block.text, "docs/mind.md", "exec"), {})
    assert (tmp_path / "agent.palace").is_dir()
