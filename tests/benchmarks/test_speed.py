"""What the benchmark of speed makes of its measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed import ratios, sample, table


def found(peer: bool) -> dict[str, Any]:
    spread = {"p50_ms": 10.0, "p95_ms": 20.0}
    took = {"wall": 2.0, "cpu": 1.0}
    filed = {
        "texts_embedded": 90,
        "wall": 1.0,
        "cpu": 1.8,
        "drawers_per_second_without_model": 1000.0,
        "drawers_per_cpu_second_without_model": 2000.0,
    }
    measured: dict[str, Any] = {
        "about": {"command": "python -m benchmarks.speed"},
        "filing": {"builtin": filed, "fake": filed},
        "raw_model": {"texts_per_second": 100.0, "texts_per_cpu_second": 50.0},
        "asking": {
            "warm": {"without_model": {"p50_ms": 5.0}},
            "limits": {"numpy_scan": {"p50_ms": 2.5}, "sqlite_read": {"p50_ms": 0.5}, "model": spread},
        },
        "starting": {
            "python": {"wall": 0.1, "cpu": 0.05},
            "help": {"wall": 0.4, "cpu": 0.2},
            "search_alone": took,
            "search_with_server": {"wall": 0.4, "cpu": 0.125},
            "server_memory_mb": 300.0,
        },
        "disk": {"ratio": 1.9},
    }
    if peer:
        measured["peer"] = {"mine": {"wall": 5.0, "cpu": 3.6}, "search": {"wall": 3.0, "cpu": 1.5}}
    return measured


def test_everything_is_told_in_terms_of_what_it_is_measured_beside() -> None:
    alone, beside = ratios(found(False)), ratios(found(True))
    assert alone["filing / raw model, texts a second"] == pytest.approx(0.9)
    assert alone["filing / raw model, texts a second of the processor"] == pytest.approx(1.0)
    assert alone["castle search, alone / with a server"] == 8
    assert alone.items() <= beside.items()
    assert beside["mempalace / castle, filing"] == pytest.approx(2.0)
    assert beside["mempalace / castle, search with a server"] == pytest.approx(12.0)
    shown = table({**found(True), "ratios": beside})
    assert "| mempalace search | 3.00 | 1.50 |" in shown
    assert "| disk / text and vectors | 1.90 |" in shown


def test_a_sample_is_text_and_ends_at_its_size(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    for name in ("a.py", "b.bin", "inner/c.md", "inner/d.md"):
        (tree / name).write_text("x" * 100, encoding="utf-8")
    assert sample(tree, tmp_path / "copy", 150) == 200
    copied = sorted(path.name for path in (tmp_path / "copy").rglob("*.*"))
    assert copied == ["a.py", "c.md"]


def test_the_page_is_made_from_the_results() -> None:
    results = Path("benchmarks/results/speed.json")
    found = json.loads(results.read_text(encoding="utf-8"))
    assert results.with_suffix(".md").read_text(encoding="utf-8") == table(found)
