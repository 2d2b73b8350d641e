"""Pictures of the mind, as PNG and SVG: attention, retention, associations. They need matplotlib."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from castle.errors import CastleError
from castle.mind.consolidation.cycle import JOB
from castle.mind.working import ENDANGERED, FAINT, SESSION_END, TAU_SECONDS, attention
from castle.store.drafts import draft_beside
from castle.store.mind_cycles import STATES, last_cycle, scores_of, strongest_edges, texts
from castle.store.mind_texts import texts_of
from castle.store.mind_working import items
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    from castle.store.palace import Palace

WITHOUT = "pictures need matplotlib: `pip install 'cognitive-castle[research]'`"
FORMATS = ("png", "svg")
PRIORITIES = (1.0, 0.6, 0.3)
MINUTES = 20
BINS = 40
MOST_EDGES, MOST_NODES = 300, 60
LABEL_CHARS = 28
SEED = 42

_STATE_COLOURS = {"active": "#2a6f97", "dim": "#e9c46a", "cold": "#adb5bd"}
_KIND_COLOURS = {
    "drawer": "#2a6f97",
    "fact": "#d1495b",
    "procedure": "#66a182",
    "hypothesis": "#edae49",
    "working": "#8d6a9f",
    "reflection": "#6c757d",
    "preference": "#bc6c25",
}
_OTHER = "#495057"


@dataclass(frozen=True, slots=True)
class Graph:
    """The strongest associations: labels by thing, and edges as (source, target, relation, weight)."""

    labels: Mapping[tuple[str, str], str]
    edges: Sequence[tuple[tuple[str, str], tuple[str, str], str, float]]


def plot(palace: Palace, directory: Path) -> list[Path]:
    """Draw ``attention``, ``retention`` and ``associations`` into a directory; returns the files.

    What has nothing to show yet says so in its picture. Raises CastleError without matplotlib, or where the
    directory cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CastleError(WITHOUT) from error
    with palace.ledger.read() as cx:
        now = palace.ledger.clock()
        working = [((now - one.last_accessed_at) / 6e7, attention(one, now)) for one in items(cx)]
        scores, threshold = scores_of(cx), _threshold(cx)
        graph = associations(cx, palace.salt)
    drawn: dict[str, Callable[[Any], None]] = {
        "attention": lambda axes: _attention(axes, working),
        "retention": lambda axes: _retention(axes, scores, threshold),
        "associations": lambda axes: _associations(axes, graph),
    }
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, draw in drawn.items():
            figure = Figure(figsize=(8, 5), layout="tight")
            draw(figure.add_subplot())
            for ending in FORMATS:
                path = directory / f"{name}.{ending}"
                _save(figure, path)
                written.append(path)
    except OSError as error:
        raise CastleError(f"{directory} cannot be written: {error.strerror or error}") from error
    return written


def associations(cx: Connection, salt: bytes) -> Graph:
    """Return what the picture of associations shows: at most 60 things, those with the most edges."""
    edges = strongest_edges(cx, MOST_EDGES)
    counts: dict[tuple[str, str], int] = {}
    for source, target, _, _ in edges:
        counts[source] = counts.get(source, 0) + 1
        counts[target] = counts.get(target, 0) + 1
    kept = sorted(counts, key=lambda key: (-counts[key], key))[:MOST_NODES]
    said: dict[tuple[str, str], str] = texts_of(cx, kept)
    drawers = texts(cx, [id_ for kind, id_ in kept if kind == "drawer"])
    said.update((("drawer", id_), text) for id_, text in drawers.items())
    labels = {key: _label(mask_secrets(said.get(key, key[1]), salt)) for key in kept}
    return Graph(labels, [edge for edge in edges if edge[0] in labels and edge[1] in labels])


def _threshold(cx: Connection) -> float | None:
    last = last_cycle(cx, JOB)
    value = None if last is None else last.result.get("forget_threshold")
    return None if value is None else float(value)


def _save(figure: Any, path: Path) -> None:
    import matplotlib

    with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": "castle", "svg.fonttype": "path"}):
        # A script that the font does not know is drawn as boxes; that is no reason to say so on a terminal.
        warnings.simplefilter("ignore")
        about = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        with draft_beside(path) as draft:
            figure.savefig(draft / path.name, dpi=120, metadata=about)
            (draft / path.name).replace(path)


def _attention(axes: Any, working: Sequence[tuple[float, float]]) -> None:
    minutes = [MINUTES * step / 200 for step in range(201)]
    for priority in PRIORITIES:
        values = [priority * math.exp(-60 * minute / TAU_SECONDS) for minute in minutes]
        axes.plot(minutes, values, label=f"base priority {priority:g}")
    axes.axhspan(FAINT, ENDANGERED, color="#e9c46a", alpha=0.35, label="preheated")
    axes.axhline(SESSION_END, color="#495057", linestyle=":", label="kept at the end of a session")
    if working:
        axes.scatter(*zip(*working, strict=True), color="#d1495b", zorder=3, label="in mind now")
    axes.set(xlabel="minutes since the last access", ylabel="attention", title="Attention decay")
    axes.set_xlim(0, MINUTES)
    axes.legend()


def _retention(axes: Any, scores: Sequence[tuple[float, str]], threshold: float | None) -> None:
    axes.set(xlabel="retention score", ylabel="episodes", title=f"Retention of {len(scores):,} episodes")
    if not scores:
        _nothing(axes, "no episode was scored yet: castle memory consolidate")
        return
    values = [[score for score, state in scores if state == wanted] for wanted in STATES]
    axes.hist(values, bins=BINS, stacked=True, label=STATES, color=[_STATE_COLOURS[name] for name in STATES])
    if threshold is not None:
        axes.axvline(threshold, color="#d1495b", linestyle="--", label=f"threshold {threshold:.2f}")
    axes.legend()


def _associations(axes: Any, graph: Graph) -> None:
    axes.set_title(f"Associations: {len(graph.labels)} things, {len(graph.edges)} edges")
    axes.axis("off")
    if not graph.edges:
        _nothing(axes, "nothing is associated yet: castle memory associate")
        return
    import networkx as nx

    net = nx.Graph()
    net.add_nodes_from(graph.labels)
    net.add_weighted_edges_from((one, other, max(abs(weight), 0.05)) for one, other, _, weight in graph.edges)
    places = nx.spring_layout(net, seed=SEED)
    for one, other, relation, weight in graph.edges:
        against = relation == "contradicts" or weight < 0
        axes.plot(
            *zip(places[one], places[other], strict=True),
            color="#d1495b" if against else "#adb5bd",
            linestyle="--" if against else "-",
            linewidth=0.5 + 2 * abs(weight),
            zorder=1,
        )
    for kind in sorted({kind for kind, _ in graph.labels}):
        here = [places[key] for key in graph.labels if key[0] == kind]
        colour = _KIND_COLOURS.get(kind, _OTHER)
        axes.scatter(*zip(*here, strict=True), color=colour, s=50, label=kind, zorder=2)
    for key, label in graph.labels.items():
        # What a text holds is shown as it stands: a dollar sign begins no formula.
        axes.annotate(
            label, places[key], xytext=(4, 4), textcoords="offset points", fontsize=6, parse_math=False
        )
    axes.legend()


def _nothing(axes: Any, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def _label(text: str) -> str:
    line = "".join(char for char in " ".join(text.split()) if char.isprintable())
    return line if len(line) <= LABEL_CHARS else line[: LABEL_CHARS - 1] + "…"
