"""``castle reindex``: asked for, refused, interrupted, gone on with."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from castle.store import catchup, reindex
from castle.store.palace import Palace
from tests.cli.conftest import Run
from tests.store import second


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    second.install()
    yield
    second.remove()


@pytest.fixture
def place(run: Run, project: Path, own_home: Path) -> Path:
    assert run("mine", str(project)).code == 0
    return own_home / ".castle" / "palace"


def answering(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(line))


def embedder_of(place: Path) -> str:
    opened = Palace(place)
    name = opened.identity.name
    opened.close()
    return name


def test_the_command_line_that_users_of_other_versions_know(
    run: Run, place: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "later.md").write_text("# Later\n\nThe lighthouse was painted red.\n", encoding="utf-8")
    done = run(
        *("reindex", "--palace", str(place), "--sources", str(project), "--embedder", "second"),
        *("--embedder-dim", "48", "--yes"),
    )
    assert (done.code, done.out) == (0, "")
    assert "4 drawers get new vectors of second (48) in the place of fake (64); about 1 s" in done.err
    assert "mined: 1 drawer new" in done.err
    assert embedder_of(place) == "second"
    monkeypatch.setenv("CASTLE_EMBEDDER_MODEL", "second")
    assert "degraded" not in run("search", "lighthouse", "--mode", "fast").err
    assert "painted red" in run("search", "lighthouse").out
    assert run("verify").code == 0


def test_it_says_when_the_settings_ask_for_another(run: Run, place: Path) -> None:
    done = run("reindex", "--embedder", "second", "--yes")
    assert "embedder_model still asks for fake (environment CASTLE_EMBEDDER_MODEL)" in done.err
    assert "castle config set embedder_model second" in done.err
    found = run("search", "harbour")
    assert "harbour" in found.out
    assert f"castle reindex --palace {place} --embedder fake --embedder-dim 64 --yes" in found.err
    assert run("reindex", "--embedder", "fake", "--embedder-dim", "64", "--yes").code == 0
    assert "castle reindex" not in run("search", "harbour").err


def test_it_asks(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in ("", "\n", "n\n"):
        answering(monkeypatch, line)
        asked = run("reindex", "--embedder", "second")
        assert asked.code == 1
        assert "4 drawers get new vectors" in asked.err
        assert "Go on? [y/N] " in asked.err
        assert "nothing was changed" in asked.err
        assert embedder_of(place) == "fake"
    answering(monkeypatch, "y\n")
    assert run("reindex", "--embedder", "second").code == 0
    assert embedder_of(place) == "second"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--embedder", "second", "--embedder-dim", "1024"], "makes vectors of 48, not of 1024"),
        (["--embedder-dim", "48"], "--embedder-dim goes with --embedder NAME"),
        (["--embedder", "second", "--sources", "nowhere"], "there is nothing at nowhere"),
        (["elsewhere"], "directories to mine again come after --sources"),
        (["--embedder", "second", "--embedder-dim", "0"], "--embedder-dim"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_anything_is_done(
    run: Run, place: Path, arguments: list[str], message: str
) -> None:
    before = sorted(place.rglob("*"))
    refused = run("reindex", "--yes", *arguments)
    assert refused.code == 2
    assert message in refused.err
    assert refused.err.count("\n") == 1
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("name", ["bge-m3", "sekond", "ollama/m", "openai-compat/m"])
def test_an_embedder_that_cannot_be_had_is_one_line_with_a_way_out(run: Run, place: Path, name: str) -> None:
    refused = run("reindex", "--embedder", name, "--yes")
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    wanted = ("pip install", "hf download", "did you mean 'second'", "ollama serve", "castle config set")
    assert any(help_ in refused.err for help_ in wanted)
    assert embedder_of(place) == "fake"


def test_without_a_name_it_is_the_palaces_own(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("reindex", "--yes", "--json")
    assert done.code == 0
    report = json.loads(done.out)
    assert report["done"]["after"]["name"] == report["done"]["before"]["name"] == "fake"
    assert (report["done"]["drawers"], report["done"]["behind"], report["mined"]) == (4, 0, [])
    monkeypatch.setenv("CASTLE_EMBEDDER_MODEL", "second")
    refused = run("reindex", "--yes")
    assert refused.code == 2
    assert "embedder_model asks for second (environment CASTLE_EMBEDDER_MODEL): name one" in refused.err


def test_several_sources(run: Run, place: Path, project: Path, own_home: Path) -> None:
    other = own_home / "other"
    other.mkdir()
    (other / "note.md").write_text("The bridge is closed.\n", encoding="utf-8")
    for arguments in (
        ["--sources", str(project), str(other)],
        ["--sources", str(project), "--sources", str(other)],
    ):
        done = run("reindex", "--yes", "--json", *arguments)
        assert done.code == 0
        assert len(json.loads(done.out)["mined"]) == 2
    assert "closed" in run("search", "bridge").out


def test_interrupted_it_goes_on(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reindex, "VECTOR_BATCH", 1)
    monkeypatch.setattr(catchup, "EMBED_BATCH", 1)
    calls: list[int] = []

    def before(texts: Sequence[str]) -> None:
        calls.append(len(texts))
        # Two are the estimate.
        if len(calls) == 5:
            raise KeyboardInterrupt

    second.install(before)
    stopped = run("reindex", "--embedder", "second", "--yes")
    assert stopped.code == 130
    assert "run the same command again" in stopped.err
    assert embedder_of(place) == "fake"
    begun = "new vectors of second (48): 2 of 4 made, then it was stopped; `castle reindex --embedder second`"
    for command in ("status", "doctor", "repair-status"):
        assert begun in run(command).out
    gone_on = run("reindex", "--embedder", "second", "--yes")
    assert gone_on.code == 0
    assert "; 2 are done" in gone_on.err
    assert calls[7:] == [1, 1]
    assert embedder_of(place) == "second"


def test_another_one_at_work_is_named(run: Run, place: Path) -> None:
    opened = Palace(place)
    lock = opened.lock(reindex.LOCK)
    assert lock.try_acquire()
    refused = run("reindex", "--yes")
    lock.release()
    opened.close()
    assert refused.code == 1
    assert "has just begun to make vectors anew: wait for it" in refused.err


def test_where_there_is_no_palace(run: Run, own_home: Path) -> None:
    refused = run("reindex", "--palace", str(own_home / "none"), "--yes")
    assert refused.code == 1
    assert "no palace at" in refused.err
    assert not (own_home / "none").exists()
