"""What was mended because of faults that ``benchmarks.faults`` brings about."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.faults import FAULTS
from castle import Castle
from castle.errors import PalaceError, RefusedError
from castle.records import Scope
from castle.store import ledger as ledger_module
from castle.store.ledger import Ledger
from castle.store.lexicon import Lexicon
from castle.store.lexicon_mark import NAME as MARK
from castle.store.palace import Palace
from castle.store.projection import ProjectionUnavailable, Watermark
from castle.store.repair import repair
from castle.store.sums import NAME, Sums
from castle.store.vectors import Vectors
from castle.store.verify import verify
from tests.store.filer import file
from tests.store.rows import IDENTITY, make_row, make_vectors

ROOT = Path(__file__).parents[2]

# Checksums


def flip(path: Path) -> None:
    """Change one byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def test_sums_tell_what_was_changed(tmp_path: Path) -> None:
    for name in ("a", "b", "deep/c", "left-out"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode() * 1000)
    sums = Sums(tmp_path, passed_over=("left-out",))
    assert sums.damaged() == []
    sums.note()
    assert sums.names() == {"a", "b", "deep/c"}
    assert Sums(tmp_path).damaged(thorough=True) == []
    flip(tmp_path / "deep/c")
    flip(tmp_path / "left-out")
    with (tmp_path / "a").open("ab") as out:
        out.write(b"more")
    assert sums.damaged() == ["a", "deep/c"]
    # Touched and whole, as in a copy of the directory: no fault.
    os.utime(tmp_path / "b")
    assert sums.damaged() == ["a", "deep/c"]
    (tmp_path / "a").unlink()
    assert sums.damaged() == ["deep/c"]


def test_a_change_that_leaves_the_time_is_found_by_a_thorough_look(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"words" * 100)
    sums = Sums(tmp_path)
    sums.note()
    status = path.stat()
    flip(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert sums.damaged() == []
    assert sums.damaged(thorough=True) == ["a"]


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    sums = Sums(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
        sums.note()
    with (tmp_path / NAME).open("r+b") as out:
        out.truncate((tmp_path / NAME).stat().st_size - 3)
    assert sums.names() == {"a"}
    (tmp_path / "c").write_bytes(b"c")
    sums.note()
    assert sums.names() == {"a", "b", "c"}
    assert sums.damaged(thorough=True) == []


def test_the_file_of_sums_does_not_grow_for_ever(tmp_path: Path) -> None:
    sums = Sums(tmp_path)
    for number in range(300):
        path = tmp_path / f"file{number}"
        path.write_bytes(b"x")
        sums.note()
        path.unlink()
    assert len((tmp_path / NAME).read_text(encoding="utf-8").splitlines()) < 200


# Words


@pytest.fixture
def lexicon(tmp_path: Path) -> Lexicon:
    made = Lexicon(tmp_path / "lexicon")
    made.apply([make_row(number) for number in range(1, 30)], Watermark("e", 29))
    made.apply([make_row(number) for number in range(30, 40)], Watermark("e", 39))
    return made


def test_every_changed_file_of_the_index_of_words_is_seen_before_it_is_searched(lexicon: Lexicon) -> None:
    assert lexicon.path is not None
    for path in sorted(lexicon.path.iterdir()):
        if path.name.startswith(".") or path.name == NAME or not path.stat().st_size:
            continue
        whole = path.read_bytes()
        flip(path)
        fresh = Lexicon(lexicon.path)
        assert fresh.watermark() is None, path.name
        if path.name != MARK:
            with pytest.raises(ProjectionUnavailable, match="castle repair"):
                fresh.search("harbour", Scope(), 5)
        path.write_bytes(whole)
    assert Lexicon(lexicon.path).watermark() == Watermark("e", 39)


def test_a_writer_that_was_killed_before_its_watermark_is_followed(lexicon: Lexicon) -> None:
    assert lexicon.path is not None
    before = {name: (lexicon.path / name).read_bytes() for name in (MARK, NAME)}
    rows = [make_row(number) for number in range(40, 60)]
    lexicon.apply(rows, Watermark("e", 59))
    for name, data in before.items():
        (lexicon.path / name).write_bytes(data)
    again = Lexicon(lexicon.path)
    assert again.watermark() == Watermark("e", 39)
    documents = again.count()
    again.apply(rows, Watermark("e", 59))
    assert again.count() == documents == 59
    assert Lexicon(lexicon.path).watermark() == Watermark("e", 59)


def test_an_older_list_of_segments_voids_the_watermark(lexicon: Lexicon) -> None:
    assert lexicon.path is not None
    kept = lexicon.path.with_name("kept")
    shutil.copytree(lexicon.path, kept)
    lexicon.apply([make_row(40)], Watermark("e", 40))
    newer = (lexicon.path / MARK).read_bytes()
    shutil.rmtree(lexicon.path)
    shutil.copytree(kept, lexicon.path)
    assert Lexicon(lexicon.path).watermark() == Watermark("e", 39)
    (lexicon.path / MARK).write_bytes(newer)
    assert Lexicon(lexicon.path).watermark() is None


def test_words_weigh_the_same_however_they_came_in(tmp_path: Path) -> None:
    rows = [make_row(number, f"boat {'harbour ' * (number % 5)} tide{number}") for number in range(1, 40)]
    at_once, one_by_one = Lexicon(tmp_path / "a"), Lexicon(tmp_path / "b")
    at_once.apply(rows, Watermark("e", 39))
    for row in rows:
        one_by_one.apply([row], Watermark("e", row.seq))
    one_by_one.apply(rows, Watermark("e", 39))
    for query in ("boat", "harbour tide7", "boat harbour tide3"):
        found = [
            [(match.id, match.score) for match in lexicon.search(query, Scope(), 10)]
            for lexicon in (at_once, one_by_one)
        ]
        assert found[0] == found[1]


# Vectors


def test_every_changed_file_of_the_table_of_vectors_is_seen_before_it_is_searched(tmp_path: Path) -> None:
    vectors = Vectors(tmp_path, IDENTITY)
    for last in (20, 40):
        numbers = list(range(last - 20, last))
        vectors.apply([make_row(number) for number in numbers], make_vectors(numbers), Watermark("e", last))
    vectors.apply([make_row(3, "another text")], make_vectors([3]), Watermark("e", 41))
    seen = 0
    for path in sorted(vectors.directory.rglob("*")):
        if not path.is_file() or path.name in (NAME, "latest_version_hint.json"):
            continue
        whole = path.read_bytes()
        flip(path)
        fresh = Vectors(tmp_path, IDENTITY)
        assert fresh.watermark() is None
        with pytest.raises(ProjectionUnavailable, match="is damaged"):
            fresh.search(make_vectors([1])[0], Scope(), 5)
        assert fresh.damaged_files() == [path.relative_to(vectors.directory).as_posix()]
        path.write_bytes(whole)
        seen += 1
    assert seen > 6
    assert Vectors(tmp_path, IDENTITY).watermark() == Watermark("e", 41)


def test_verify_finds_what_the_vectors_do_not_show_and_repair_mends_it(palace: Palace) -> None:
    file(palace.ledger, ["the harbour is closed\n", "the lighthouse stands\n"])
    repair(palace)
    before = [(hit.id, hit.score) for hit in palace.vectors.search(make_unit(palace), Scope(), 5)]
    data = next(palace.vectors.directory.rglob("*.lance"))
    status = data.stat()
    flip(data)
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))
    palace.vectors.close()
    found = {finding.check: finding for finding in verify(palace)}
    assert found["vectors"].status == "failed"
    assert {finding.status for finding in repair(palace)} == {"ok"}
    assert [(hit.id, hit.score) for hit in palace.vectors.search(make_unit(palace), Scope(), 5)] == before


def make_unit(palace: Palace) -> NDArray[np.float32]:
    return palace.embedder.embed_query("harbour")


# No room


def test_a_full_disk_is_searched_and_written_again_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.add("the harbour is closed", wing="w", room="r")
        castle.search("harbour")
    connect = ledger_module._connect

    def without_room(place: str) -> sqlite3.Connection:
        if "immutable" not in place:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
            raise error
        return connect(place)

    with monkeypatch.context() as patch:
        patch.setattr(ledger_module, "_connect", without_room)
        patch.setattr(ledger_module, "is_full", lambda _: True)
        castle = Castle(tmp_path / "palace")
        found = castle.search("harbour")
        assert [hit.text for hit in found.hits] == ["the harbour is closed"]
        with pytest.raises(PalaceError, match="is full: nothing can be written"):
            castle.add("no room for this", wing="w", room="r")
        with pytest.raises(PalaceError, match="is full: its vectors cannot be made anew"):
            castle.reindex()
        with pytest.raises(RefusedError, match="is full: nothing can be purged"):
            castle.purge(found.hits[0].id, reason="private")
    castle.add("there is room again", wing="w", room="r")
    assert len(castle.search("room again").hits) == 2
    castle.close()


def test_a_ledger_that_others_use_is_not_opened_past_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Ledger(tmp_path / "palace", create=True)
    with first.read():

        def without_room(_: str) -> sqlite3.Connection:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
            raise error

        monkeypatch.setattr(ledger_module, "_connect", without_room)
        with pytest.raises(PalaceError, match="disk I/O error"):
            Ledger(tmp_path / "palace")
    first.close()


# Without bytecode: that of a module would be cut off, and stay.
LIMITED = """
import resource, signal, sys
sys.dont_write_bytecode = True
from castle.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
main(["--palace", sys.argv[1], "search", "harbour"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no sizes of files")
def test_a_search_needs_no_room_at_all(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.add("the harbour is closed", wing="w", room="r")
        castle.search("harbour")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "palace")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode in (0, 3), done.stderr
    assert "the harbour is closed" in done.stdout


# Whole palaces

WORDS = "harbour berth crane ledger pilot tide rope lantern anchor cargo captain storm".split()
LATER = "2027-01-01T00:00:00+00:00"


def note(number: int) -> str:
    return f"note{number} of " + " ".join(WORDS[(number * 5 + n * 7) % 12] for n in range(6 + number % 5))


def best(castle: Castle) -> list[str]:
    return [hit.id for hit in castle.search("harbour berth", limit=10, mode="fast", now=LATER).hits]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a palace, ``whole``, and an older copy of it, ``before``."""
    folder = tmp_path_factory.mktemp("grown")
    fill(folder / "whole", range(24))
    shutil.copytree(folder / "whole", folder / "before")
    fill(folder / "whole", range(24, 28))
    return folder


def fill(place: Path, numbers: range) -> None:
    with Castle(place, embedder="fake") as castle:
        notes = [f"{note(number)}\n" for number in numbers]
        file(castle._palace(create=True).ledger, notes, path=f"{numbers}.md")
        assert {finding.status for finding in castle.repair()} == {"ok"}


def largest(place: Path) -> Path:
    return max((path for path in place.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


def damage(kind: str, place: Path, older: Path) -> None:
    if kind == "cut off":
        os.truncate(largest(place), largest(place).stat().st_size // 2)
        return
    shutil.rmtree(place)
    if kind == "older":
        shutil.copytree(older, place)


@pytest.mark.parametrize(
    ("place", "kind"),
    [("lexicon", "deleted"), ("lexicon", "older"), ("drawers.lance", "cut off"), ("drawers.lance", "older")],
)
def test_a_damaged_index_is_found_and_said_and_mended(
    grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, kind: str
) -> None:
    monkeypatch.setenv("CASTLE_SEARCH_CATCH_UP_MS", "60000")  # on a busy machine, too
    palace = tmp_path / "palace"
    shutil.copytree(grown / "whole", palace)
    with Castle(palace) as castle:
        wanted = best(castle)
    damage(kind, palace / place, grown / "before" / place)
    with Castle(palace) as castle:
        assert "ok" not in {f.status for f in castle.verify() if f.check == _CHECKS[place]}
        found = castle.search("harbour berth", limit=10, mode="fast", now=LATER)
        assert found.hits
        assert [hit.id for hit in found.hits] == wanted or found.degraded or found.behind
        added = castle.add("one more", wing="other", room="r")
        assert {finding.status for finding in castle.repair()} == {"ok"}
        assert best(castle) == wanted
        assert castle.get(added.id)[0].text == "one more"


_CHECKS = {"lexicon": "words", "drawers.lance": "vectors"}


def test_an_older_ledger_that_was_written_on_is_followed(grown: Path, tmp_path: Path) -> None:
    """As many changes as were lost, and others: numbers alone would not tell."""
    palace = tmp_path / "palace"
    shutil.copytree(grown / "whole", palace)
    for left in palace.glob("castle.db*"):
        left.unlink()
    shutil.copyfile(grown / "before" / "castle.db", palace / "castle.db")
    shutil.copytree(grown / "before", tmp_path / "other")
    found = []
    for place in (palace, tmp_path / "other"):
        fill(place, range(90, 94))
        with Castle(place) as castle:
            found.append(best(castle))
            assert not any("note27" in hit.text for hit in castle.search("note27", mode="fast").hits)
    assert found[0] == found[1]


def test_a_clock_that_goes_back_loses_and_hides_nothing(tmp_path: Path) -> None:
    looks = itertools.count()

    def clock() -> int:
        number = next(looks)
        return 1_780_000_000_000_000 + number * 1_000_000 - number % 3 * 365 * 86_400_000_000

    with Castle(tmp_path / "palace", embedder="fake", clock=clock) as castle:
        for number in range(4):
            added = castle.add(note(number), wing="w", room="r")
            assert castle.search(f'"note{number}"', limit=1, mode="fast").hits[0].id == added.id
        assert {finding.status for finding in castle.repair()} == {"ok"}


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_the_faults_of_the_benchmark(tmp_path: Path) -> None:
    """A few of each, minutes in all; with a line for each that lost, hid or broke something."""
    command = [sys.executable, "-m", "benchmarks.faults", "--quick", "--out", str(tmp_path / "faults")]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "faults.json").read_text(encoding="utf-8"))["results"]
    assert len(results) == len(FAULTS)
    assert sum(one["lost"] for one in results) == 0
    assert sum(one["acknowledged"] for one in results) > 100
