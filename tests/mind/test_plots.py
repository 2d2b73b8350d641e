"""Pictures of the mind."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from castle.errors import CastleError
from castle.mind.consolidation.cycle import consolidate
from castle.mind.mind import Mind
from castle.mind.plots import Graph, associations, plot
from castle.store.palace import Palace
from tests.mind.conftest import Save
from tests.mind.episodes import chatter, file_all

NAMES = [
    f"{name}.{ending}" for name in ("attention", "retention", "associations") for ending in ("png", "svg")
]


def test_without_matplotlib_it_says_what_to_install(
    palace: Palace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(CastleError, match=r"pip install 'cognitive-castle\[research\]'"):
        plot(palace, tmp_path / "plots")
    assert not (tmp_path / "plots").exists()


def test_the_graph_holds_what_is_joined_with_its_words(palace: Palace, mind: Mind, save: Save) -> None:
    episode = save("We moved the shop to Postgres")
    fact = save("The shop runs on Postgres", "semantic", source_references=[episode.id])
    other = save("The shop runs on SQLite", "semantic")
    mind.associate(fact.id, other.id, -0.8, "contradicts")
    with palace.ledger.read() as cx:
        graph = associations(cx, palace.salt)
    assert graph.labels == {
        ("fact", fact.id): "The shop runs on Postgres",
        ("fact", other.id): "The shop runs on SQLite",
        ("drawer", episode.id): "We moved the shop to Postgr…",
    }
    weights = {(one[1], two[1]): weight for one, two, _, weight in graph.edges}
    assert weights == {(fact.id, other.id): -0.8, (fact.id, episode.id): 0.5}
    assert isinstance(graph, Graph)


@pytest.mark.slow  # a new home has no cache of fonts
@pytest.mark.extras
def test_pictures_are_written_as_png_and_svg(palace: Palace, mind: Mind, save: Save, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    empty = plot(palace, tmp_path / "empty")
    assert [path.name for path in empty] == NAMES
    file_all(palace, chatter(120), "s")
    save("Look at $PATH and 検索", "working")
    one, other = save("costs $5", "semantic"), save("costs $7", "semantic")
    mind.associate(one.id, other.id)
    consolidate(palace, actor="test")
    written = plot(palace, tmp_path / "full")
    for path in written:
        begin = path.read_bytes()[:200]
        assert begin.startswith(b"\x89PNG") if path.suffix == ".png" else b"<?xml" in begin
        assert path.read_bytes() != (tmp_path / "empty" / path.name).read_bytes()
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(CastleError, match="cannot be written"):
        plot(palace, blocked)


@pytest.mark.extras
def test_a_picture_that_cannot_be_finished_leaves_nothing(
    palace: Palace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = pytest.importorskip("matplotlib.figure")

    def half(_: object, path: Path, **__: object) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(figures.Figure, "savefig", half)
    with pytest.raises(CastleError, match="No space left"):
        plot(palace, tmp_path)
    assert list(tmp_path.glob("*.png")) == []
    assert list(tmp_path.glob(".*.draft")) == []
