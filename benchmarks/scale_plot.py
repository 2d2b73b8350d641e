"""The table and the picture of ``benchmarks.scale``: searching and disk over the number of drawers.

    python -m benchmarks.scale_plot [RESULTS]

The picture needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PICTURE = "scale.svg"
PARTS = (
    ("ledger_mb", "ledger"),
    ("cached_vectors_mb", "cached vectors"),
    ("vectors_mb", "vectors"),
    ("words_mb", "words"),
    ("token_cache_mb", "token cache"),
)
LINES = (
    ("cold", ("search", "cold", "wall"), "tab:red", "-"),
    ("warm", ("search", "warm", "wall"), "tab:blue", "-"),
    ("warm, in one wing", ("search", "one wing", "wall"), "tab:green", "-"),
    ("warm, without the model", ("search", "warm", "without_model"), "tab:purple", "-"),
    ("limit: NumPy scan", ("limits", "numpy_scan"), "tab:gray", "--"),
    ("limit: model alone", ("limits", "model"), "black", ":"),
)


def table(results: dict[str, Any]) -> str:
    """Return the results as a page."""
    by_size = {int(size): step for size, step in results["sizes"].items()}
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "filed, drawers a second": lambda s: f"{s['build']['drawers_per_second']:,.0f}",
        "peak memory while filing, MB": lambda s: f"{s['build']['peak_memory_mb']:,.0f}",
        "peak memory while searching, MB": lambda s: f"{s['search']['peak_memory_mb']:,.0f}",
        "first search of a process, ms": lambda s: f"{1000 * s['search']['first_seconds']:,.0f}",
        **{f"{label}, ms": _cell(path) for label, path, *_ in LINES},
        "warm, of that the model, ms": lambda s: _both(s["search"]["warm"]["model"]),
        "warm, processor, all threads, ms": lambda s: _both(s["search"]["warm"]["processor"]),
        "vectors alone, as searched, ms": lambda s: _both(s["limits"]["vectors"]),
        "of the 50 nearest vectors found": lambda s: f"{s['limits']['recall_at_50']['everywhere']:.3f}",
        "`castle status`, ms": lambda s: _both(s["search"]["calls"]["status"]),
        "disk, bytes a drawer": lambda s: f"{s['disk']['bytes_per_drawer']:,.0f}",
        "disk beside text + 32-bit vectors": lambda s: f"{s['disk']['ratio']:.2f}",
        "load of the machine before a step": lambda s: _range([s[name]["load"][0] for name in s]),
    }
    about, real = results["about"], results["real_text"]
    lines = [
        "# How a palace grows",
        f"`{about['command']}`, {about['cpus']} processors, {about['questions']} questions, p50 / p95.",
        "Texts and vectors are synthetic, questions take the time of the built-in model; cold is a new "
        "process with files out of the cache of the operating system. The limits are a scan of the same "
        "vectors in NumPy, in memory, and the embedding of the question alone.",
        "\n".join(
            f"| {name} | {' | '.join(cells)} |"
            for name, cells in (
                ("drawers", [f"{size:,}" for size in by_size]),
                ("---", ["---:"] * len(by_size)),
                *((name, map(show, by_size.values())) for name, show in rows.items()),
            )
        ),
        "Real text through `Castle.mine`: "
        + ", ".join(f"{rate['drawers_per_second']:,.0f} drawers a second with the {name} embedder"
                    for name, rate in real.items() if name != "load")
        + ".",
        f"![searching and disk over the number of drawers]({PICTURE})",
    ]  # fmt: skip
    return "\n\n".join(lines) + "\n"


def _cell(path: Sequence[str]) -> Callable[[dict[str, Any]], str]:
    return lambda step: _both(_at(step, path))


def _both(found: dict[str, float]) -> str:
    return f"{found['p50_ms']:,.1f} / {found['p95_ms']:,.1f}"


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


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


def write(results: dict[str, Any], out: Path) -> None:
    """Write the table and the picture beside the results."""
    out.with_suffix(".md").write_text(
        table(results).replace(PICTURE, out.with_suffix(".svg").name), encoding="utf-8"
    )
    draw(results, out)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table and the picture of results that were measured before."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="?", default=Path("benchmarks/results/scale.json"))
    options = parser.parse_args(argv)
    write(json.loads(options.results.read_text(encoding="utf-8")), options.results)


if __name__ == "__main__":
    main()
