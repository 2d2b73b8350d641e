from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import castle.mine.project as miner
from castle import Castle
from castle.errors import ModelError
from castle.models.encoder import OnnxEmbedder
from castle.models.fake import FakeEmbedder
from castle.store import ahead
from castle.store.catchup import catch_up_lexicon, catch_up_vectors
from castle.store.projection import Watermark
from castle.store.vectors import Vectors

AHEAD = "castle-ahead"
FILES = 40


@pytest.fixture
def castle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Castle]:
    """A palace whose embedder leaves Python to others, and eight transactions for the project."""
    monkeypatch.setattr(ahead, "OnnxEmbedder", FakeEmbedder)
    monkeypatch.setattr(miner, "BATCH", FILES // 8)
    with Castle(tmp_path / "palace", embedder="fake") as opened:
        yield opened


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for number in range(FILES):
        (root / f"{number:02}.txt").write_text(
            f"File {number} is about harbour {number}.\n", encoding="utf-8"
        )
    return root


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is embedded: the name of the thread without its number, and the text."""
    found: list[tuple[str, str]] = []
    embed = FakeEmbedder.embed_documents

    def embedding(self: FakeEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
        thread = threading.current_thread().name.rpartition("_")[0]
        found.extend((thread, text) for text in texts)
        return embed(self, texts)

    monkeypatch.setattr(FakeEmbedder, "embed_documents", embedding)
    return found


def words_wait(monkeypatch: pytest.MonkeyPatch, made: list[tuple[str, str]], count: int) -> None:
    """Let the words be indexed only when ``count`` texts have been embedded, or ten seconds have passed."""

    def waiting(*arguments: object, **options: object) -> None:
        pause = threading.Event()
        for _ in range(1000):
            if len(made) >= count:
                break
            pause.wait(0.01)
        catch_up_lexicon(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(miner, "catch_up_lexicon", waiting)


def whole(castle: Castle) -> bool:
    return {finding.status for finding in castle.verify()} == {"ok"} and castle.status().drawers == FILES


def test_vectors_are_made_while_words_are_indexed_and_each_once(
    castle: Castle, project: Path, made: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    words_wait(monkeypatch, made, 1)
    castle.mine_project(project)
    assert made[0][0] == AHEAD
    assert len(made) == len({text for _, text in made}) == FILES
    assert whole(castle)


def test_an_embedder_that_needs_python_is_not_run_ahead(
    castle: Castle, project: Path, made: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "OnnxEmbedder", OnnxEmbedder)
    castle.mine_project(project)
    assert AHEAD not in {thread for thread, _ in made}
    assert whole(castle)


def test_nothing_is_embedded_when_nothing_is_new(
    castle: Castle, project: Path, made: list[tuple[str, str]]
) -> None:
    castle.mine_project(project)
    made.clear()
    castle.mine_project(project)
    assert made == []


def test_an_interrupt_ends_it_and_nothing_is_lost(
    castle: Castle, project: Path, made: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "PART", 1)

    def interrupt(phase: str, done: int, total: int) -> None:
        if (phase, done) == ("filing", FILES // 2):
            raise KeyboardInterrupt

    assert castle.mine_project(project, progress=interrupt).interrupted
    assert not any(thread.name.startswith(AHEAD) for thread in threading.enumerate())
    castle.mine_project(project)
    assert len(made) == FILES
    assert whole(castle)


def test_who_ends_it_waits_for_one_part(
    castle: Castle, project: Path, made: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "PART", 1)
    ended = threading.Event()
    stop = ahead.Ahead.__exit__
    embed = FakeEmbedder.embed_documents

    def slow(self: FakeEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
        if threading.current_thread().name.startswith(AHEAD):
            ended.wait(10)
        return embed(self, texts)

    def ending(self: ahead.Ahead, *error: object) -> None:
        self._stopped.set()
        ended.set()
        stop(self, *error)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeEmbedder, "embed_documents", slow)
    monkeypatch.setattr(ahead.Ahead, "__exit__", ending)
    castle.mine_project(project)
    assert [thread for thread, _ in made].count(AHEAD) == 1
    assert len(made) == FILES
    assert whole(castle)


def test_a_model_that_fails_ahead_is_told_as_without(
    castle: Castle, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: FakeEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
        raise ModelError("no weights")

    with monkeypatch.context() as patch:
        patch.setattr(FakeEmbedder, "embed_documents", broken)
        with pytest.raises(ModelError, match="no weights"):
            castle.mine_project(project)
    assert castle.status().drawers == FILES
    castle.mine_project(project)
    assert whole(castle)


def test_what_is_wrong_with_the_program_is_raised(
    castle: Castle, project: Path, made: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = FakeEmbedder.embed_documents

    def broken(self: FakeEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
        if threading.current_thread().name.startswith(AHEAD):
            raise ZeroDivisionError
        return embed(self, texts)

    monkeypatch.setattr(FakeEmbedder, "embed_documents", broken)
    with pytest.raises(ZeroDivisionError):
        castle.mine_project(project)


def test_who_makes_vectors_already_is_not_disturbed(
    castle: Castle, project: Path, made: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = castle._palace(create=True).lock("vectors")
    assert lock.try_acquire()

    def released(*arguments: object, **options: object) -> None:
        lock.release()
        catch_up_vectors(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(miner, "catch_up_vectors", released)
    castle.mine_project(project)
    assert AHEAD not in {thread for thread, _ in made}
    assert len(made) == FILES
    assert whole(castle)


def test_the_table_is_opened_before_it_ends(
    castle: Castle, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    look, end = Vectors.watermark, ahead.Ahead.__exit__

    def looked(self: Vectors) -> Watermark | None:
        order.append("table")
        return look(self)

    def ended(self: ahead.Ahead, *error: object) -> None:
        order.append("end")
        end(self, *error)  # type: ignore[arg-type]

    monkeypatch.setattr(Vectors, "watermark", looked)
    monkeypatch.setattr(ahead.Ahead, "__exit__", ended)
    castle.mine_project(project)
    assert order[:2] == ["table", "end"]
