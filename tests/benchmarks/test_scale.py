"""What the benchmark of growth tells is what it measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.scale_plot import PARTS, table

RESULTS = Path("benchmarks/results")


def test_the_page_is_made_from_the_results() -> None:
    results = json.loads((RESULTS / "scale.json").read_text(encoding="utf-8"))
    assert (RESULTS / "scale.md").read_text(encoding="utf-8") == table(results)


def test_the_disk_is_less_than_twice_text_and_vectors() -> None:
    results = json.loads((RESULTS / "scale.json").read_text(encoding="utf-8"))
    assert results["sizes"].keys() == {"10000", "100000", "1000000"}
    for size in results["sizes"].values():
        disk = size["disk"]
        assert sum(disk[name] for name, _ in PARTS) == pytest.approx(disk["total_mb"], rel=0.01)
        assert disk["ratio"] == pytest.approx(disk["total_mb"] / disk["text_and_vectors_mb"])
        assert disk["ratio"] < 2
