"""The picture of ``benchmarks.scale``: searching and disk over the number of drawers. Needs matplotlib."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PARTS = (
    ("ledger_mb", "ledger"),
    ("cached_vectors_mb", "cached vectors"),
    ("vectors_mb", "vectors"),
    ("words_mb", "words"),
)
LINES = (
    ("cold", ("search", "cold", "wall"), "tab:red", "-"),
    ("warm", ("search", "warm", "wall"), "tab:blue", "-"),
    ("warm, in one wing", ("search", "one wing", "wall"), "tab:green", "-"),
    ("limit: NumPy scan", ("limits", "numpy_scan"), "tab:gray", "--"),
    ("limit: model alone", ("limits", "model"), "black", ":"),
)


def draw(results: dict[str, Any], out: Path) -> None:
    """Write the picture beside the results, as SVG and PNG; says so where matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: pip install matplotlib, then python -m benchmarks.scale_plot", file=sys.stderr)
        return
    matplotlib.use("agg")
    from matplotlib import pyplot

    sizes = sorted(int(size) for size in results["sizes"])
    by_size = [results["sizes"][str(size)] for size in sizes]
    figure, (times, disk) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for label, path, colour, style in LINES:
        found = [_at(step, path) for step in by_size]
        times.plot(sizes, [f["p50_ms"] for f in found], style, color=colour, marker="o", label=label)
        if style == "-":
            p95 = [f["p95_ms"] for f in found]
            times.plot(sizes, p95, style, color=colour, marker="_", linewidth=0.6, alpha=0.6)
    times.set(xscale="log", yscale="log", xlabel="drawers", ylabel="ms a search (p50; thin: p95)")
    times.legend(fontsize=8)
    bottom = [0.0] * len(sizes)
    labels = [f"{size:,}" for size in sizes]
    for name, label in PARTS:
        heights = [1e6 * step["disk"][name] / size for step, size in zip(by_size, sizes, strict=True)]
        disk.bar(labels, heights, bottom=bottom, label=label)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    limit = [
        2e6 * step["disk"]["text_and_vectors_mb"] / size for step, size in zip(by_size, sizes, strict=True)
    ]
    disk.plot(labels, limit, "k--", label="2 × (text + vectors)")
    disk.set(xlabel="drawers", ylabel="bytes a drawer")
    disk.legend(fontsize=8, loc="lower right")
    for suffix in (".svg", ".png"):
        figure.savefig(out.with_suffix(suffix), metadata={"Date": None} if suffix == ".svg" else None)


def _at(step: dict[str, Any], path: Sequence[str]) -> dict[str, float]:
    found: Any = step
    for name in path:
        found = found[name]
    assert isinstance(found, dict)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Draw results that were measured before."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="?", default=Path("benchmarks/results/scale.json"))
    options = parser.parse_args(argv)
    draw(json.loads(options.results.read_text(encoding="utf-8")), options.results)


if __name__ == "__main__":
    main()
