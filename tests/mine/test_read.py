import hashlib
import io
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from castle.mine.encodings import ASCII_SO_FAR, UTF8, Encoding, sniff
from castle.mine.read import SourceReader, display, open_regular
from castle.records import Skipped

CODECS = ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin_1", "cp1252", "koi8_r"] + [
    "cp932",
    "shift_jis",
    "euc_jp",
    "gb18030",
    "big5",
    "cp949",
    "tis_620",
]
ENCODINGS = [Encoding(codec, codec) for codec in CODECS] + [ASCII_SO_FAR]


def check(data: bytes, encoding: Encoding, cuts: list[int], block_bytes: int = 1 << 20) -> SourceReader:
    """Read data in slices of the given lengths and prove that nothing is lost or invalid."""
    reader = SourceReader(io.BytesIO(data), encoding, block_bytes=block_bytes)
    text = ""
    for block in reader.blocks():
        assert block.start == len(text)
        text += block.text
    assert "\0" not in text
    text.encode("utf-8")
    exact, raws, at, turn = [], [], 0, 0
    while at < len(text):
        end = min(len(text), at + (cuts[turn % len(cuts)] if cuts else 7))
        exact.append(reader.exact(at, end))
        raw = reader.raw_of(at, end)
        encoded = text[at:end].encode("utf-8")
        assert raw != encoded
        raws.append(encoded if raw is None else raw)
        at, turn = end, turn + 1
    assert b"".join(exact) == data
    assert b"".join(raws) == data
    assert reader.size == len(data)
    assert reader.sha256 == hashlib.sha256(data).hexdigest()
    assert not reader.changed
    return reader


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(ENCODINGS),
    st.lists(st.integers(1, 40), max_size=5),
    st.sampled_from([8, 9, 16, 33, 1 << 20]),
)
@example(b"\x00\xd8" * 5 + b"a", Encoding("utf-16-le", "utf-16-le"), [1], 8)
@example(b"\xff\xff\xff\xff\x00", Encoding("utf-32-le", "utf-32-le"), [1], 8)
@example(b"\xed\xa0\x80\x00\xf0\x9f", UTF8, [1], 8)
@example(b"\x81\x30\x81", Encoding("gb18030", "gb18030"), [1], 8)
def test_any_bytes_come_back(data: bytes, encoding: Encoding, cuts: list[int], block_bytes: int) -> None:
    check(data, encoding, cuts, block_bytes)


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.characters(codec="utf-8"), max_size=200),
    st.sampled_from(ENCODINGS),
    st.lists(st.integers(1, 40), max_size=5),
    st.integers(8, 64),
)
@example("a\r\nb\rc\n\0d", UTF8, [1], 8)
@example("😀" * 9, Encoding("utf-16-be", "utf-16-be"), [1], 9)
@example("\ufeffx\r\r\n" * 5, Encoding("utf-16-le", "utf-16-le"), [2], 8)
def test_text_in_any_encoding_comes_back_as_text(
    text: str, encoding: Encoding, cuts: list[int], block_bytes: int
) -> None:
    data = text.encode(encoding.codec, "ignore")
    reader = check(data, encoding, cuts, block_bytes)
    shown = "".join(block.text for block in SourceReader(io.BytesIO(data), encoding).blocks())
    assert shown == data.decode(encoding.codec).replace("\0", "\u2400")
    assert reader.encoding == encoding.label or encoding.provisional


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("\ufeffhéllo".encode(), "\ufeffhéllo"),
        ("\ufeffhéllo".encode("utf-16-le"), "\ufeffhéllo"),
        ("\ufeffhéllo".encode("utf-16-be"), "\ufeffhéllo"),
        ("\ufeffhéllo".encode("utf-32-le"), "\ufeffhéllo"),
        (b"naive caf\xe9 au lait, d\xe9j\xe0 vu\n", "naive café au lait, déjà vu\n"),
        ("über größe\n".encode() + b"\xff bad\n", "über größe\n\ufffd bad\n"),
        (b"log line\n" * 20 + b"\0" + b"more\n", "log line\n" * 20 + "\u2400more\n"),
        (b"a\rb\r\nc\n", "a\rb\r\nc\n"),
        (
            "私たちはデータベースを使うことに決めました。\n".encode("shift_jis"),
            "私たちはデータベースを使うことに決めました。\n",
        ),
        (
            "昨天我们决定使用数据库，请检查最新版本。\n".encode("gb18030"),
            "昨天我们决定使用数据库，请检查最新版本。\n",
        ),
        (
            "Вчера мы решили использовать базу данных.\n".encode("koi8_r"),
            "Вчера мы решили использовать базу данных.\n",
        ),
        ("größer\n".encode() * 9 + b"\xed\xa0\xbd", "größer\n" * 9 + "\ufffd\ufffd\ufffd"),
        (b"", ""),
    ],
)
def test_what_is_shown(data: bytes, shown: str) -> None:
    found = sniff(data)
    encoding = found if isinstance(found, Encoding) else UTF8
    check(data, encoding, [3])
    assert "".join(block.text for block in SourceReader(io.BytesIO(data), encoding).blocks()) == shown


def test_notes_tell_what_was_done() -> None:
    assert check(b"plain\n", ASCII_SO_FAR, []).notes == ()
    assert check(b"caf\xe9 d\xe9j\xe0 vu, tr\xe8s bien fait\n", ASCII_SO_FAR, []).notes == (
        "decoded as cp1252",
    )
    assert check("ü\n".encode() * 9 + b"\xff\0", UTF8, []).notes == (
        "bytes that are not valid utf-8, shown as U+FFFD: 1",
        "NUL characters, shown as U+2400: 1",
    )


def test_the_encoding_is_decided_at_the_first_byte_beyond_ascii() -> None:
    late = b"ascii line\n" * 300 + b"caf\xe9 d\xe9j\xe0 vu, tr\xe8s bien fait\n" * 4
    reader = check(late, ASCII_SO_FAR, [800], block_bytes=1024)
    assert reader.encoding == "cp1252"
    assert check(b"ascii\n" * 300 + "é\n".encode(), ASCII_SO_FAR, [], block_bytes=64).encoding == "utf-8"


def test_memory_is_bounded_by_what_is_not_released() -> None:
    class Endless(io.RawIOBase):
        left = 40 << 20

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1, /) -> bytes:
            size = min(size, self.left)
            self.left -= size
            return b"x" * size

    import tracemalloc

    tracemalloc.start()
    reader = SourceReader(Endless(), UTF8)  # type: ignore[arg-type]
    at = 0
    for block in reader.blocks():
        assert reader.raw_of(at, block.end) is None
        at = block.end
        reader.release(at)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reader.size == at == 40 << 20
    assert peak < 12 << 20


def test_blocks_end_at_line_ends_and_never_between_cr_and_lf() -> None:
    lines = b"one\r\n" * 400
    blocks = list(SourceReader(io.BytesIO(lines), UTF8, block_bytes=64).blocks())
    assert len(blocks) > 10
    assert all(block.text.endswith("\r\n") for block in blocks)
    one_line = list(SourceReader(io.BytesIO(b"a" * 63 + b"\r\n" + b"b" * 70), UTF8, block_bytes=64).blocks())
    assert [block.text[-1] for block in one_line[:2]] == ["a", "b"] or one_line[0].text.endswith("\r\n")
    assert not any(block.text.endswith("\r") for block in one_line)


def test_released_text_is_gone() -> None:
    reader = SourceReader(io.BytesIO(b"line\n" * 100), UTF8, block_bytes=50)
    list(reader.blocks())
    reader.release(200)
    assert reader.exact(200, 205) == b"line\n"
    with pytest.raises(ValueError, match="released"):
        reader.exact(100, 105)
    assert reader.exact(7, 7) == b""


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"line\n" * 100)
    opened = open_regular(path)
    assert not isinstance(opened, Skipped)
    with opened as file:
        reader = SourceReader(file, UTF8, block_bytes=100)
        blocks = reader.blocks()
        next(blocks)
        assert not reader.changed
        with path.open("ab") as writer:
            writer.write(b"more\n")
        list(blocks)
        assert reader.changed


def test_a_file_truncated_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"line\n" * 100)
    opened = open_regular(path)
    assert not isinstance(opened, Skipped)
    with opened as file:
        reader = SourceReader(file, UTF8, block_bytes=100)
        blocks = reader.blocks()
        next(blocks)
        os.truncate(path, 120)
        list(blocks)
        assert reader.changed


def test_open_refuses_what_is_not_a_regular_file(tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "dir").mkdir(parents=True)
    os.mkfifo(place / "fifo")
    (place / "file").write_bytes(b"x")
    (place / "link").symlink_to(place / "file")
    (place / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place / "socket"))
        reasons = {path.name: open_regular(path, shown=path.name) for path in place.iterdir()}
    file = reasons.pop("file")
    assert isinstance(file, io.FileIO) and file.read() == b"x"
    file.close()
    assert reasons == {
        "fifo": Skipped("fifo", "not a regular file"),
        "link": Skipped("link", "symlink"),
        "null": Skipped("null", "symlink"),
        "dir": Skipped("dir", "not a regular file"),
        "socket": Skipped("socket", "not a regular file"),
    }
    assert open_regular(Path("/dev/null")) == Skipped("/dev/null", "not a regular file")


def test_open_says_why_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_regular(tmp_path / "none", shown="none") == Skipped(
        "none", "unreadable", "No such file or directory"
    )

    def deny(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setattr(os, "open", deny)
    assert open_regular(tmp_path / "file", shown="file") == Skipped("file", "unreadable", "Permission denied")


@pytest.mark.parametrize(
    ("swap", "reason"),
    [
        (lambda path: path.symlink_to("/etc/hostname"), "symlink"),
        (lambda path: os.mkfifo(path), "not a regular file"),
    ],
)
def test_a_file_swapped_between_look_and_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], None], reason: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    honest = os.stat_result((stat.S_IFREG | 0o644, *[0] * 9))
    path.unlink()
    swap(path)
    monkeypatch.setattr(os, "stat", lambda *_, **__: honest)
    found = open_regular(path, shown="file")
    monkeypatch.undo()
    assert found == Skipped("file", reason)


def test_names_that_are_not_utf8_are_shown_escaped() -> None:
    assert display(b"caf\xe9\nx") == "caf\\xe9\nx"
    assert display("é".encode()) == "é"
