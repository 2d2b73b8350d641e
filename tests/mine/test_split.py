from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.errors import UsageError
from castle.mine import split as splitting
from castle.mine.split import split

FIRST = """some shell output
╭ Claude Code v1.0.3 ╮
⏺ 2:30 PM Wednesday, March 24, 2026
> cd /home/mx/app
> please fix the login page
done, said Maria
and then
the tests
ran
"""
SECOND = """╭ Claude Code v1.0.3 ╮
> hi
"""
REPEATED = """╭ Claude Code v1.0.3 ╮
  Ctrl+E to show 40 previous messages
> go on
"""


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """Give a directory with nothing else in it."""
    root = tmp_path / "logs"
    root.mkdir()
    return root


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def contents(paths: list[Path]) -> bytes:
    return b"".join(path.read_bytes() for path in paths)


def test_a_file_with_two_sessions_becomes_two_files_and_a_backup(tmp_path: Path) -> None:
    mega = write(tmp_path / "log.txt", FIRST + SECOND)
    report = split(tmp_path, names=["Maria"], usernames={"mx": "Max"})
    (done,) = report.split
    pieces = [piece.path for piece in done.pieces]
    assert [path.name for path in pieces] == [
        "log__2026-03-24_1430_Max-Maria_please-fix-the-login-page.txt",
        "log__part02_unknown_hi.txt",
    ]
    assert pieces[0].read_text(encoding="utf-8") == FIRST
    assert pieces[1].read_text(encoding="utf-8") == SECOND
    assert not mega.exists()
    assert done.backup == tmp_path / "log.mega_backup"
    assert done.backup.read_text(encoding="utf-8") == FIRST + SECOND


def test_with_an_output_directory_the_file_stays(tmp_path: Path) -> None:
    mega = write(tmp_path / "log.txt", FIRST + SECOND)
    (done,) = split(mega, output=tmp_path / "new" / "out").split
    assert mega.read_text(encoding="utf-8") == FIRST + SECOND
    assert done.backup is None
    assert {piece.path.parent for piece in done.pieces} == {tmp_path / "new" / "out"}


def test_a_session_that_goes_on_is_not_a_new_one(tmp_path: Path) -> None:
    write(tmp_path / "log.txt", FIRST + REPEATED + SECOND)
    (done,) = split(tmp_path).split
    assert [piece.path.read_text(encoding="utf-8") for piece in done.pieces] == [FIRST + REPEATED, SECOND]


def test_the_sixth_line_decides_and_the_seventh_does_not(tmp_path: Path) -> None:
    head = "Claude Code v1\n"
    write(tmp_path / "six.txt", head + "x\n" * 9 + head + "x\n" * 5 + "previous messages\n" + head)
    write(tmp_path / "seven.txt", head + "x\n" * 9 + head + "x\n" * 6 + "previous messages\n" + head)
    found = {done.path.name: len(done.pieces) for done in split(tmp_path, dry_run=True).split}
    assert found == {"six.txt": 2, "seven.txt": 3}


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "log.txt", FIRST + SECOND)
    report = split(tmp_path, dry_run=True)
    assert [len(done.pieces) for done in report.split] == [2]
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]


def test_too_few_sessions_are_left_and_a_second_run_has_nothing_to_do(tmp_path: Path) -> None:
    write(tmp_path / "log.txt", FIRST + SECOND)
    assert split(tmp_path, min_sessions=3).single == (tmp_path / "log.txt",)
    assert len(split(tmp_path).split) == 1
    before = sorted(tmp_path.iterdir())
    again = split(tmp_path)
    assert (again.split, len(again.single)) == ((), 2)
    assert sorted(tmp_path.iterdir()) == before


def test_names_that_collide_are_numbered_and_nothing_is_replaced(tmp_path: Path) -> None:
    taken = write(tmp_path / "log__2026-03-24_1430_unknown_please-fix-the-login-page.txt", "mine")
    backup = write(tmp_path / "log.mega_backup", "older")
    write(tmp_path / "log.txt", FIRST + FIRST)
    (done,) = split(tmp_path / "log.txt").split
    assert [piece.path.name[-8:] for piece in done.pieces] == ["ge_2.txt", "ge_3.txt"]
    assert (taken.read_text(encoding="utf-8"), backup.read_text(encoding="utf-8")) == ("mine", "older")
    assert done.backup == tmp_path / "log.2.mega_backup"


def test_what_cannot_be_read_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "good.txt", FIRST + SECOND)
    (tmp_path / "link.txt").symlink_to(tmp_path / "good.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    report = split(tmp_path)
    assert len(report.split) == 1
    assert sorted(Path(left.path).name for left in report.skipped) == ["link.txt", "pipe.txt"]


def test_a_file_that_grows_meanwhile_is_not_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mega = write(tmp_path / "log.txt", FIRST + SECOND)
    named = splitting._named

    def growing(*arguments: object) -> object:
        with mega.open("ab") as file:
            file.write(b"more\n")
        return named(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(splitting, "_named", growing)
    report = split(tmp_path)
    assert [left.reason for left in report.skipped] == ["changed"]
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]
    assert mega.read_text(encoding="utf-8").endswith("more\n")


def test_pieces_are_no_more_open_than_the_file(tmp_path: Path) -> None:
    mega = write(tmp_path / "log.txt", FIRST + SECOND)
    mega.chmod(0o600)
    (done,) = split(mega).split
    assert {stat.S_IMODE(piece.path.stat().st_mode) for piece in done.pieces} == {0o600}


def test_nothing_at_the_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing at"):
        split(tmp_path / "no")


LINES = st.sampled_from(
    [
        b"Claude Code v2\n",
        b"Claude Code v2 \r\n",
        b"x\n",
        b"\n",
        b"> /weird|name\x00\xff\n",
        b"> a subject\n",
        b"Ctrl+E\n",
        b"previous messages\n",
        "⏺ 9:05 AM Monday, June 1, 2026\n".encode(),
        "⏺ 99:05 AM Monday, June 31, 2026\n".encode(),
        b"y" * 70_000 + b"Claude Code v2\n",
    ]
)


@settings(deadline=None)
@given(st.lists(LINES, max_size=40), st.binary(max_size=5))
def test_the_pieces_in_order_are_the_file(lines: list[bytes], end: bytes) -> None:
    data = b"".join(lines) + end
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        mega = write(root / "mega.txt", data)
        report = split(root)
        if report.split:
            (done,) = report.split
            assert contents([piece.path for piece in done.pieces]) == data
            assert len(done.pieces) >= 2
            assert all(piece.end > piece.start for piece in done.pieces)
            assert done.backup is not None
            assert done.backup.read_bytes() == data
        else:
            assert mega.read_bytes() == data
