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
def logs(tmp_path: Path) -> Path:
    """Give a directory with nothing else in it."""
    root = tmp_path / "logs"
    root.mkdir()
    return root


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def contents(paths: list[Path]) -> bytes:
    return b"".join(path.read_bytes() for path in paths)


def test_a_file_with_two_sessions_becomes_two_files_and_a_backup(logs: Path) -> None:
    mega = write(logs / "log.txt", FIRST + SECOND)
    report = split(logs, names=["Maria"], usernames={"mx": "Max"})
    (done,) = report.split
    pieces = [piece.path for piece in done.pieces]
    assert [path.name for path in pieces] == [
        "log__2026-03-24_1430_Max-Maria_please-fix-the-login-page.txt",
        "log__part02_unknown_hi.txt",
    ]
    assert pieces[0].read_text(encoding="utf-8") == FIRST
    assert pieces[1].read_text(encoding="utf-8") == SECOND
    assert not mega.exists()
    assert done.backup == logs / "log.mega_backup"
    assert done.backup.read_text(encoding="utf-8") == FIRST + SECOND


def test_with_an_output_directory_the_file_stays(logs: Path) -> None:
    mega = write(logs / "log.txt", FIRST + SECOND)
    (done,) = split(mega, output=logs / "new" / "out").split
    assert mega.read_text(encoding="utf-8") == FIRST + SECOND
    assert done.backup is None
    assert {piece.path.parent for piece in done.pieces} == {logs / "new" / "out"}


def test_a_session_that_goes_on_is_not_a_new_one(logs: Path) -> None:
    write(logs / "log.txt", FIRST + REPEATED + SECOND)
    (done,) = split(logs).split
    assert [piece.path.read_text(encoding="utf-8") for piece in done.pieces] == [FIRST + REPEATED, SECOND]


def test_the_sixth_line_decides_and_the_seventh_does_not(logs: Path) -> None:
    head = "Claude Code v1\n"
    write(logs / "six.txt", head + "x\n" * 9 + head + "x\n" * 5 + "previous messages\n" + head)
    write(logs / "seven.txt", head + "x\n" * 9 + head + "x\n" * 6 + "previous messages\n" + head)
    found = {done.path.name: len(done.pieces) for done in split(logs, dry_run=True).split}
    assert found == {"six.txt": 2, "seven.txt": 3}


def test_a_dry_run_writes_nothing(logs: Path) -> None:
    write(logs / "log.txt", FIRST + SECOND)
    report = split(logs, dry_run=True)
    assert [len(done.pieces) for done in report.split] == [2]
    assert [path.name for path in logs.iterdir()] == ["log.txt"]


def test_too_few_sessions_are_left_and_a_second_run_has_nothing_to_do(logs: Path) -> None:
    write(logs / "log.txt", FIRST + SECOND)
    assert split(logs, min_sessions=3).single == (logs / "log.txt",)
    assert len(split(logs).split) == 1
    before = sorted(logs.iterdir())
    again = split(logs)
    assert (again.split, len(again.single)) == ((), 2)
    assert sorted(logs.iterdir()) == before


def test_names_that_collide_are_numbered_and_nothing_is_replaced(logs: Path) -> None:
    taken = write(logs / "log__2026-03-24_1430_unknown_please-fix-the-login-page.txt", "mine")
    backup = write(logs / "log.mega_backup", "older")
    write(logs / "log.txt", FIRST + FIRST)
    (done,) = split(logs / "log.txt").split
    assert [piece.path.name[-8:] for piece in done.pieces] == ["ge_2.txt", "ge_3.txt"]
    assert (taken.read_text(encoding="utf-8"), backup.read_text(encoding="utf-8")) == ("mine", "older")
    assert done.backup == logs / "log.2.mega_backup"


def test_what_cannot_be_read_is_reported_and_the_rest_goes_on(logs: Path) -> None:
    write(logs / "good.txt", FIRST + SECOND)
    (logs / "link.txt").symlink_to(logs / "good.txt")
    os.mkfifo(logs / "pipe.txt")
    report = split(logs)
    assert len(report.split) == 1
    assert sorted(Path(left.path).name for left in report.skipped) == ["link.txt", "pipe.txt"]


def test_a_file_that_grows_meanwhile_is_not_split(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mega = write(logs / "log.txt", FIRST + SECOND)
    named = splitting._named

    def growing(*arguments: object) -> object:
        with mega.open("ab") as file:
            file.write(b"more\n")
        return named(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(splitting, "_named", growing)
    report = split(logs)
    assert [left.reason for left in report.skipped] == ["changed"]
    assert [path.name for path in logs.iterdir()] == ["log.txt"]
    assert mega.read_text(encoding="utf-8").endswith("more\n")


def test_pieces_are_no_more_open_than_the_file(logs: Path) -> None:
    mega = write(logs / "log.txt", FIRST + SECOND)
    mega.chmod(0o600)
    (done,) = split(mega).split
    assert {stat.S_IMODE(piece.path.stat().st_mode) for piece in done.pieces} == {0o600}


def test_nothing_at_the_path(logs: Path) -> None:
    with pytest.raises(UsageError, match="nothing at"):
        split(logs / "no")


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


def test_a_name_of_the_greatest_length_gets_a_backup_of_its_own(logs: Path) -> None:
    for name in ("n" * 246 + ".txt", "é" * 123 + ".txt"):
        mega = write(logs / name, FIRST + SECOND)
        write(logs / (os.fsdecode(os.fsencode(mega.stem)[:238]) + ".mega_backup"), "older")
        (done,) = split(mega).split
        assert done.backup is not None
        assert done.backup.read_text(encoding="utf-8") == FIRST + SECOND
        assert len(os.fsencode(done.backup.name)) <= 255
        assert contents([piece.path for piece in done.pieces]) == (FIRST + SECOND).encode()
        assert not mega.exists()
    assert [path.read_bytes() for path in logs.glob("*.mega_backup")].count(b"older") == 2


def test_when_the_file_cannot_be_renamed_the_pieces_are_taken_away(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mega = write(logs / "log.txt", FIRST + SECOND)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "rename", refuse)
    report = split(logs)
    assert [(left.path, left.detail) for left in report.skipped] == [(str(mega), "Operation not permitted")]
    assert report.split == ()
    assert [path.name for path in logs.iterdir()] == ["log.txt"]
    assert mega.read_text(encoding="utf-8") == FIRST + SECOND
