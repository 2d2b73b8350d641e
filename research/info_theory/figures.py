"""The figures, drawn from the results alone; needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from research.info_theory.decay import MODELS, predicted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = Mapping[str, Any]
SIZE = (7.0, 4.2)


def draw(results: Results, plots: Results, directory: Path) -> list[Path]:
    """Draw every figure as PNG and SVG and return the files."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {"svg.hashsalt": "castle", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}
    )
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name in results["datasets"]:
        for kind, make in _PER_DATA.items():
            written += _save(make(results, plots, name), directory / f"{kind}-{name}")
        if plots[name].get("surprisal", [[]])[0]:
            written += _save(_surprisal(results, plots, name), directory / f"surprisal-{name}")
        if results["datasets"][name].get("downstream-eval"):
            written += _save(
                _downstream(results["datasets"][name]["downstream-eval"]), directory / "downstream"
            )
    return written


def _save(figure: Figure, path: Path) -> list[Path]:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    files = [path.with_suffix(".png"), path.with_suffix(".svg")]
    figure.savefig(files[0], dpi=110, metadata={"Software": None})
    figure.savefig(files[1], dpi=110, metadata={"Date": None})
    plt.close(figure)
    return files


def _decay(results: Results, plots: Results, name: str) -> Figure:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=SIZE)
    entries = results["datasets"][name]["fit-decay"]["B"]
    for number, (stratum, curve) in enumerate(plots[name]["curves"].items()):
        x = np.array(curve["x"])
        colour = f"C{number}"
        axes.plot(x, curve["y"], ".", ms=3, alpha=0.4, color=colour)
        entry = entries.get(stratum)
        label = stratum
        if entry is not None:
            model = next((one for one in MODELS if one.name == entry["winner"]), None)
            if model is not None:
                fitted = predicted(model, entry["fits"][model.name]["parameters"], x)
                axes.plot(x, fitted, color=colour, lw=1.6)
                label = f"{stratum}: {model.name}"
        axes.plot([], [], color=colour, label=label)
    axes.set(
        xlabel="earlier drawers in the wing (N)",
        ylabel="B, mean of a bin",
        title=f"{name}: B and the best curve",
    )
    axes.legend(fontsize=8)
    return figure


def _agreement(results: Results, plots: Results, name: str) -> Figure:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=SIZE)
    a, b = plots[name]["points"]
    axes.plot(a, b, ".", ms=2, alpha=0.35, rasterized=True)
    entry = results["datasets"][name]["correlations"]["A,B"]
    axes.set(
        xlabel="A, 1 - greatest cosine",
        ylabel="B, residual",
        title=f"{name}: rho {entry['rho']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}], {len(a)} shown",
    )
    return figure


def _surprisal(results: Results, plots: Results, name: str) -> Figure:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=SIZE)
    a, s = plots[name]["surprisal"]
    axes.plot(a, s, "o", ms=4, alpha=0.5)
    entry = results["datasets"][name]["correlations"].get("A,S")
    told = f"rho {entry['rho']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}], " if entry else ""
    axes.set(
        xlabel="A, 1 - greatest cosine",
        ylabel="S, bits for each character",
        title=f"{name}: {told}{len(a)} judged by {results['datasets'][name]['llm-surprise']['model']}",
    )
    return figure


def _spread(results: Results, plots: Results, name: str) -> Figure:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=SIZE)
    shown = plots[name]["histogram"]
    axes.stairs(shown["heights"], shown["edges"], fill=True, alpha=0.6)
    axes.axvline(0.10, color="k", lw=1, ls=":")
    low = results["datasets"][name]["describe"]["A"]["low"]
    axes.set(xlabel="A", ylabel="density", title=f"{name}: {100 * low:.1f} % of the drawers lie below .10")
    return figure


def _downstream(found: Mapping[str, Any]) -> Figure:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True)
    for axes, measure in zip(panels, ("recall_all@5", "NDCG@10"), strict=True):
        for number, way in enumerate(("lowest B", "lowest A", "lowest B of the user", "at random")):
            rows = [row for row in found["rows"] if row["way"] == way]
            x = [100 * row["share"] + number - 1 for row in rows]
            y = np.array([100 * row["change"][measure]["mean"] for row in rows])
            low = np.array([100 * row["change"][measure]["low"] for row in rows])
            high = np.array([100 * row["change"][measure]["high"] for row in rows])
            axes.errorbar(x, y, [y - low, high - y], fmt="o-", ms=4, capsize=3, label=way)
        axes.axhline(0, color="k", lw=0.8)
        axes.set(xlabel="sessions left out, %", ylabel=f"change of {measure}, points")
    panels[0].legend(fontsize=8)
    return figure


_PER_DATA: Mapping[str, Callable[[Results, Results, str], Figure]] = {
    "decay": _decay,
    "agreement": _agreement,
    "spread": _spread,
}
