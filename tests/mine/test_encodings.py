import os
import sqlite3
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.mine.encodings import Binary, Encoding, refine, sniff

GERMAN = "Die Käuferin überprüft täglich größere Straßen; Änderungen müssen früh bestätigt werden.\n"
FRENCH = "L'été dernier, nous avons décidé d'améliorer l'accès à la base; ça a coûté très cher.\n"
POLISH = "Zażółć gęślą jaźń. Wczoraj zdecydowaliśmy, że użyjemy bazy; proszę sprawdzić wersję.\n"
RUSSIAN = "Вчера мы решили использовать базу данных и проверить последнюю версию программы.\n"
JAPANESE = "昨日、私たちはデータベースを使うことに決めました。最新のバージョンを確認してください。\n"
CHINESE = "昨天我们决定使用数据库，请检查最新版本的程序。\n"
KOREAN = "어제 우리는 데이터베이스를 사용하기로 결정했습니다. 최신 버전을 확인하세요.\n"


@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize(
    ("text", "codec"),
    [(GERMAN, "latin_1"), (GERMAN, "cp1252"), (FRENCH, "cp1252"), (POLISH, "cp1250")]
    + [(RUSSIAN, codec) for codec in ("koi8_r", "cp1251", "cp866", "utf-16-le", "utf-8")]
    + [(JAPANESE, codec) for codec in ("shift_jis", "euc_jp", "utf-16-le", "utf-16-be", "utf-8")]
    + [(CHINESE, codec) for codec in ("gb18030", "utf-16-le", "utf-16-be", "utf-32-le")]
    + [(KOREAN, codec) for codec in ("cp949", "utf-16-le", "utf-8-sig")]
    + [(GERMAN, codec) for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-16", "utf-32")],
)
def test_text_is_read_as_it_was_written(text: str, codec: str, times: int) -> None:
    data = (text * times).encode(codec)
    found = sniff(data)
    assert isinstance(found, Encoding)
    assert data.decode(found.codec).removeprefix("\ufeff") == text * times


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\n", "PDF document"),
        (b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR", "PNG image"),
        (b"PK\x03\x04" + b"mimetypeapplication/epub+zip", "zip archive"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "ELF program"),
        (struct.pack("<HBBII", 0x0DA7, 13, 10, 0, 1700000000) + b"\xe3\0\0\0\0", "NUL bytes"),
        (b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff", "NUL bytes"),
        (zlib.compress(GERMAN.encode() * 40), ""),
        (b"\x01\x02\x03\x04\x05\x06", "control characters"),
        (bytes(1024), "NUL bytes"),
        (struct.pack("<200d", *map(float, range(200))), "NUL bytes"),
        (struct.pack("<200h", *range(200)), "NUL bytes"),
    ],
)
def test_other_content_is_not_text(data: bytes, what: str) -> None:
    found = sniff(data)
    assert isinstance(found, Binary)
    assert found.reason.startswith("binary: ") and what in found.reason


def test_a_database_is_not_text(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE t(x)")
    database.close()
    assert sniff((tmp_path / "x.db").read_bytes()) == Binary("binary: SQLite database")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"!function(){var a=1,b=2;return a+b}();" * 2000,
        b"\x1b[31mred\x1b[0m\r\n\x07bell\x08\n",
        b"one\0two\0three four five six seven eight\0nine ten eleven twelve thirteen\0",
        b"before the crash\n" * 9 + bytes(4096) + b"after the crash\n" * 9,
        "Ünïcödé".encode(),
        b'{"key": "value"}\n',
        b"MZ is how this text begins\n",
        b"PK is how this text begins\n",
        b"GIF is how this text begins\n",
    ],
)
def test_text_is_text_whatever_it_holds(data: bytes) -> None:
    assert isinstance(sniff(data), Encoding)


def test_damaged_utf8_stays_utf8() -> None:
    assert sniff(RUSSIAN.encode() + b"\xff\xfe" + RUSSIAN.encode()) == Encoding("utf-8", "utf-8")
    assert sniff(RUSSIAN.encode()[:-3]) == Encoding("utf-8", "utf-8")


def test_a_media_file_is_not_guessed_at() -> None:
    assert isinstance(sniff(b"\xe9\xea" * 40, "music.mp3"), Binary)


def test_ascii_is_provisional_and_refined_later() -> None:
    found = sniff(b"only ascii so far\n")
    assert isinstance(found, Encoding) and found.provisional
    assert refine(b"ascii\n" * 5000 + FRENCH.encode("cp1252"), final=True).codec == "cp1252"
    assert refine(b"ascii\n" * 5000 + FRENCH.encode(), final=True).codec == "utf-8"


def test_random_bytes_are_not_text() -> None:
    assert all(isinstance(sniff(os.urandom(4096)), Binary) for _ in range(20))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400), st.text(max_size=8))
def test_any_bytes_get_an_answer(data: bytes, name: str) -> None:
    assert isinstance(sniff(data, name), Encoding | Binary)
