from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import ConfigError
from castle.mine.report import MineReport


def mine(castle: Castle, path: Path) -> MineReport:
    """Let Castle tell by itself what it is given."""
    report = castle.mine_project(path)
    assert isinstance(report, MineReport)
    return report


def reasons(report: MineReport) -> dict[str, str]:
    return {skip.path: skip.reason for skip in report.skipped}


def source(castle: Castle, name: str) -> str:
    return "".join(part.text for part in castle.get_source(name))


def all_ok(castle: Castle) -> bool:
    return {finding.status for finding in castle.verify()} == {"ok"}


def test_an_empty_directory_and_an_empty_file_are_fine(castle: Castle, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert mine(castle, tmp_path / "empty").files == 0
    (tmp_path / "empty" / "nothing.txt").touch()
    report = mine(castle, tmp_path / "empty")
    assert (report.new, report.drawers_new, report.incomplete) == (1, 0, False)
    assert mine(castle, tmp_path / "empty").unchanged == 1
    assert all_ok(castle)


def test_a_paragraph_of_twelve_thousand_characters(castle: Castle, project: Path) -> None:
    text = "".join(f"Sentence {n} of the long paragraph speaks of harbours. " for n in range(240))
    assert len(text) > 12_000
    (project / "long.md").write_text(text, encoding="utf-8")
    mine(castle, project)
    assert source(castle, "long.md") == text
    hit = castle.search("Sentence 237").hits[0]
    assert "Sentence 237" in hit.text
    assert len(hit.text) <= 800


@pytest.mark.slow
@pytest.mark.parametrize(
    "megabytes",
    [
        2,
        pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_one_line_of_many_megabytes(castle: Castle, project: Path, megabytes: int) -> None:
    line = "".join(f"{n % 4099:x};" for n in range(megabytes * 260_000)) + "30d3ff"
    assert len(line) > megabytes * 1_000_000
    (project / "line.txt").write_text(line, encoding="utf-8")
    assert not mine(castle, project).incomplete
    assert source(castle, "line.txt") == line
    # What is nearest by meaning comes beside the only drawer with the word: either may be first.
    hits = castle.search('"30d3ff"').hits
    (found,) = (hit for hit in hits[:2] if "30d3ff" in hit.matched)
    assert found.text.endswith(";30d3ff")


def test_what_is_not_a_file_is_listed_and_never_waited_for(castle: Castle, project: Path) -> None:
    os.mkfifo(project / "pipe.txt")
    (project / "loop").symlink_to(project)
    (project / "outside.txt").symlink_to("/etc/hostname")
    (project / "dangling.txt").symlink_to("nowhere")
    (project / "zero.txt").symlink_to("/dev/zero")
    found: list[MineReport] = []
    worker = threading.Thread(target=lambda: found.append(mine(castle, project)), daemon=True)
    worker.start()
    worker.join(60)
    assert not worker.is_alive()
    assert reasons(found[0]) == {
        "pipe.txt": "not a regular file",
        "loop": "symlink",
        "outside.txt": "symlink",
        "dangling.txt": "symlink",
        "zero.txt": "symlink",
    }
    assert found[0].new == 4


def test_a_fifo_as_the_argument_is_turned_down(castle: Castle, project: Path) -> None:
    os.mkfifo(project / "pipe.txt")
    assert reasons(mine(castle, project / "pipe.txt")) == {"pipe.txt": "not a regular file"}


def test_binary_files_are_listed(castle: Castle, project: Path) -> None:
    (project / "program").write_bytes(b"\x7fELF" + os.urandom(2000))
    (project / "photo.jpeg").write_bytes(b"\xff\xd8\xff" + os.urandom(2000))
    (project / "noise.dat").write_bytes(os.urandom(4000))
    report = mine(castle, project)
    assert set(reasons(report)) == {"program", "photo.jpeg", "noise.dat"}
    assert all(reason.startswith("binary") for reason in reasons(report).values())
    assert report.new == 4


def test_an_unreadable_file_is_listed_and_the_rest_filed(
    castle: Castle, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: object, *arguments: object, **named: object) -> int:
        if os.fsencode(path).endswith(b"notes.txt"):  # type: ignore[arg-type]
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    report = mine(castle, project)
    monkeypatch.undo()
    (skip,) = report.skipped
    assert (skip.path, skip.reason, skip.detail) == ("notes.txt", "unreadable", "Permission denied")
    assert report.new == 3


NAMES = [
    b"line\nbreak.txt",
    b"-rf.txt",
    b"--yes",
    b"caf\xe9.txt",
    b"back\\xe9slash.txt",
    b" spaces .txt ",
    b"quote'\".txt",
    b"\xe6\x97\xa5\xe6\x9c\xac.txt",
    b"n" * 251 + b".txt",
]


def test_odd_names_are_sources_like_others(castle: Castle, project: Path) -> None:
    for number, name in enumerate(NAMES):
        (project / os.fsdecode(name)).write_text(f"harbour number {number}", encoding="utf-8")
    report = mine(castle, project)
    assert not report.incomplete
    assert report.new == 4 + len(NAMES)
    assert mine(castle, project).new == 0
    hits = castle.search("harbour number", limit=50).hits
    assert {hit.text for hit in hits} >= {f"harbour number {number}" for number in range(len(NAMES))}
    (project / "caf").with_name(os.fsdecode(b"caf\xe9.txt")).unlink()
    assert len(castle.sync(project).gone) == 1
    assert all_ok(castle)


def test_forty_levels_of_directories(castle: Castle, tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    place = deep.joinpath(*["level" * 8] * 40)
    place.mkdir(parents=True)
    (place / "bottom.txt").write_text("the deepest harbour", encoding="utf-8")
    assert mine(castle, deep).new == 1
    assert castle.search("deepest").hits[0].address.path == str(place / "bottom.txt")


ENCODED = {
    "utf8-bom.txt": "\ufeffGrüße aus dem Hafen\r\n".encode(),
    "utf16.txt": "\ufeffGrüße aus dem Hafen\n".encode("utf-16-le"),
    "latin1.txt": "Grüße aus dem schönen Hafen, für immer.\n".encode("latin-1"),
    "shift_jis.txt": ("港は日曜日に閉まっています。灯台は開いています。\n" * 5).encode("shift_jis"),
    "broken.txt": b"valid \xff\xfe\xfa and more valid text\n",
    "nul.txt": b"a harbour\x00with a hole in a longer line of text\n" * 3,
    "mixed-ends.txt": b"one\rtwo\r\nthree\nfour",
}


def test_every_encoding_comes_back_byte_for_byte(castle: Castle, project: Path) -> None:
    from castle.store.reading import members, one_source

    for name, data in ENCODED.items():
        (project / name).write_bytes(data)
    report = mine(castle, project)
    assert not report.incomplete
    with castle._palace().ledger.read() as cx:
        for name, data in ENCODED.items():
            parts = [drawer for drawer, _ in members(cx, one_source(cx, name).key)]
            exact = b"".join(part.text.encode() if part.raw is None else part.raw for part in parts)
            assert exact == data, name
            assert "\x00" not in "".join(part.text for part in parts)
    assert any("decoded as shift_jis" in note for note in report.notes)
    assert "灯台" in castle.search("灯台").hits[0].text
    assert all_ok(castle)


def test_secrets_are_masked_wherever_text_leaves(castle: Castle, project: Path) -> None:
    key = "AKIA" + "QWERTYUIOPASDFGH"[:16]
    (project / "deploy.env").write_text(f"# harbour\nAWS_ACCESS_KEY_ID={key}\n", encoding="utf-8")
    mine(castle, project)
    assert key not in source(castle, "deploy.env")
    assert "«secret:" in source(castle, "deploy.env")
    hits = castle.search(key).hits
    assert all(key not in hit.text for hit in hits)
    palace = castle.root
    castle.close()
    for file in palace.rglob("*"):
        if file.is_file() and not file.name.startswith("castle.db"):
            assert key.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wing: [a,,]\n", "castle.yaml:1"),
        ("wing: 5\n", "wing"),
        ("roms: []\n", "rooms"),
        ("palace_path: /tmp/elsewhere\n", "palace_path"),
        ("wing: a\nwing: b\n", "castle.yaml:2"),
    ],
)
def test_a_broken_castle_yaml_stops_the_run_and_stays_as_it_is(
    castle: Castle, project: Path, text: str, words: str
) -> None:
    (project / "castle.yaml").write_text(text, encoding="utf-8")
    for call in (castle.mine, castle.init):
        with pytest.raises(ConfigError, match=words):
            call(project)
    assert (project / "castle.yaml").read_text(encoding="utf-8") == text
    assert not castle.root.exists() or castle.status().sources == 0


def test_patterns_of_castle_yaml_are_heeded(castle: Castle, project: Path) -> None:
    (project / "castle.yaml").write_text('ignore: ["docs/", "*.txt"]\n', encoding="utf-8")
    report = mine(castle, project)
    assert report.new == 2
    assert {skip.path for skip in report.ignored} >= {"docs/", "notes.txt"}


BIG = """
import re, sys
from pathlib import Path
from castle import Castle
root = Path(sys.argv[1])
with Castle(root / "palace", embedder="fake") as castle:
    report = castle.mine_project(root / "big")
    assert not report.incomplete, report.skipped
    hits = castle.search('"line 3999999"').hits
    assert any("line 3999999 " in hit.text for hit in hits), hits
status = Path("/proc/self/status").read_text(encoding="utf-8")
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read in /proc")
def test_a_file_of_three_hundred_megabytes_needs_bounded_memory(tmp_path: Path) -> None:
    big = tmp_path / "big" / "big.log"
    big.parent.mkdir()
    with big.open("w", encoding="utf-8") as file:
        for first in range(0, 4_500_000, 10_000):
            file.writelines(
                f"line {n} the harbour master wrote this down at {n % 1440} and then some\n"
                for n in range(first, first + 10_000)
            )
    assert big.stat().st_size > 300_000_000
    command = [sys.executable, "-c", BIG, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 1000, "megabytes"
