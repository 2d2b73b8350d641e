"""Several processes on one palace, and processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from castle import Castle
from tests.mine.conftest import write

CASTLE = str(Path(sys.executable).with_name("castle"))


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A project of 300 files in which every paragraph is its own."""
    root = tmp_path / "many"
    files = {}
    for number in range(300):
        paragraphs = [f"Harbour {number}-{n}. " + f"berth{number}x{n} " * 30 for n in range(8)]
        files[f"part{number % 7}/file{number}.md"] = "\n\n".join(paragraphs)
    write(root, files)
    return root


def start(palace: Path, *arguments: str) -> subprocess.Popen[str]:
    env = {**os.environ, "CASTLE_EMBEDDER_MODEL": "fake"}
    command = [CASTLE, "--palace", str(palace), *arguments]
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=200)
    return process.returncode, out, err


def assert_whole(palace: Path, project: Path) -> None:
    """Everything is there, word for word, once, and every index agrees."""
    with Castle(palace) as castle:
        report = castle.mine_project(project)
        assert (report.new, report.changed) == (0, 0)
        assert [(f.check, f.status, f.detail) for f in castle.verify() if f.status != "ok"] == []
        page = castle.list_sources(limit=1000)
        assert page.total == 300
        for source in page.sources[::29]:
            text = "".join(part.text for part in castle.get_source(source.key))
            assert text == Path(source.path).read_text(encoding="utf-8")
        hits = castle.search('"berth123x4"', limit=5).hits
        assert "berth123x4" in hits[0].text


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_kills_in_the_middle_of_a_mine_lose_nothing(tmp_path: Path, many: Path) -> None:
    palace = tmp_path / "palace"
    killed = 0
    for attempt in range(9):
        process = start(palace, "mine", str(many))
        time.sleep(0.5 + 0.3 * attempt)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
        if (palace / "castle.db").exists():
            code, out, err = finish(start(palace, "status", "--json"))
            # It may have been killed before the ledger was made.
            assert code in (0, 3) or "no palace" in err, err
            if code != 1:
                json.loads(out)
    assert killed >= 3
    code, _, err = finish(start(palace, "mine", str(many)))
    assert code == 0, err
    assert_whole(palace, many)


@pytest.mark.slow
def test_two_miners_and_a_searcher_at_once(tmp_path: Path, many: Path) -> None:
    palace = tmp_path / "palace"
    miners = [start(palace, "mine", str(many)) for _ in range(2)]
    searches = 0
    while any(miner.poll() is None for miner in miners):
        if (palace / "castle.db").exists():
            code, _, err = finish(start(palace, "search", "harbour berth"))
            assert code in (0, 1, 3), err
            assert code != 1 or "no palace" in err or "not a ledger" in err, err
            assert "locked" not in err
            searches += 1
    assert searches > 0
    for miner in miners:
        code, _, err = finish(miner)
        assert code == 0, err
    assert_whole(palace, many)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="no SIGINT")
def test_an_interrupt_leaves_with_130_and_goes_on(tmp_path: Path, many: Path) -> None:
    palace = tmp_path / "palace"
    code = 0
    for attempt in range(8):
        process = start(palace, "mine", str(many))
        time.sleep(0.7 + 0.2 * attempt)
        process.send_signal(signal.SIGINT)
        code, _, err = finish(process)
        assert "Traceback" not in err
        if code == 0:
            break
        assert code in (130, -signal.SIGINT), err
    assert finish(start(palace, "mine", str(many)))[0] == 0
    assert_whole(palace, many)
