"""Telling text from other content, and in which encoding it is.

Content decides. Only encodings without state are used, in which every character stands for bytes of its own.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

SNIFF_BYTES = 64 * 1024
"""How much of a file's beginning ``sniff`` should be given."""

SAMPLE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Encoding:
    """How bytes become text. ``label`` is for people; ``provisional`` when only ASCII was seen so far."""

    codec: str
    label: str
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class Binary:
    """Content that is not text, and what tells so."""

    reason: str


UTF8 = Encoding("utf-8", "utf-8")
_CP1252 = Encoding("cp1252", "cp1252")
ASCII_SO_FAR = Encoding("utf-8", "utf-8", provisional=True)

_BOMS = (
    (codecs.BOM_UTF8, "utf-8", "utf-8 with BOM"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32-le with BOM"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32-be with BOM"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le with BOM"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16-be with BOM"),
)

_MAGIC = (
    (b"%PDF-", "PDF document"),
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"PK\x03\x04", "zip archive"),
    (b"PK\x05\x06", "zip archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh91AY&SY", "bzip2 archive"),
    (b"\xfd7zXZ\0", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"Rar!\x1a\x07", "rar archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\x7fELF", "ELF program"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (b"\0asm", "WebAssembly module"),
    (b"OggS\0", "Ogg media"),
    (b"fLaC\0", "FLAC audio"),
    (b"ID3\x02\0", "MP3 audio"),
    (b"ID3\x03\0", "MP3 audio"),
    (b"ID3\x04\0", "MP3 audio"),
    (b"wOF2", "WOFF2 font"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Microsoft Office document"),
)
_MEDIA_SUFFIXES = frozenset(
    ".7z .a .avi .bin .bmp .bz2 .class .db .dll .doc .dylib .eot .exe .flac .gif .gz .heic .ico .jar .jpeg"
    " .jpg .m4a .mkv .mov .mp3 .mp4 .npy .npz .o .ogg .onnx .otf .parquet .pdf .png .ppt .pyc .pyd .pyo .rar"
    " .so .sqlite .sqlite3 .tar .tgz .tif .tiff .ttf .wasm .wav .webm .webp .woff .woff2 .xls .xz .zip"
    " .zst".split()
)
_CANDIDATES = (
    "cp1252 cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 koi8_r koi8_u cp437 cp850 cp866"
    " mac_roman iso8859_2 iso8859_5 iso8859_7 iso8859_9 iso8859_15 tis_620 cp932 euc_jp gb18030 big5 cp949"
).split()
_LABELS = {"cp932": "shift_jis"}
_LETTERS = "àâäáãåæçéèêëîïíìñôöóòõøœùûüúß"
_WESTERN = frozenset(_LETTERS + _LETTERS.upper() + "‘’“”„–—…•·€£§°«»¿¡©®™´ªº½¼²")
_THREE_LETTERS = re.compile("[À-ÖØ-öø-ÿŒœŠšŽžŸƒ]{3}")
_IN_WORD = re.compile(r"(?<=[^\W\d_])[^\x00-\x7f’…–—•·](?=[^\W\d_])")
_ALLOWED_CONTROLS = frozenset(b"\t\n\v\f\r\b\a\x1b\x1a")
_CONTROLS = frozenset((*range(0x20), 0x7F)) - _ALLOWED_CONTROLS - {0}
_CONTROL_BYTES = bytes(_CONTROLS)


def sniff(head: bytes, name: str = "") -> Encoding | Binary:
    """Decide from the beginning of a file whether it is text. ``name`` only settles doubtful media files.

    Of a longer file, give ``SNIFF_BYTES``. An empty file is text.
    """
    for bom, codec, label in _BOMS:
        if head.startswith(bom) and _plausible_after_bom(head, codec):
            return Encoding(codec, label)
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return Binary(f"binary: {what}")
    if b"\0" in head:
        wide = _wide(head)
        if wide:
            return Encoding(wide, wide)
        return _with_nuls(head)
    controls = _share(head, _CONTROL_BYTES)
    if controls > 0.05:
        return Binary("binary: control characters")
    if head.isascii():
        return ASCII_SO_FAR
    if _is_mostly_utf8(head):
        return UTF8
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    if suffix in _MEDIA_SUFFIXES or controls > 0.01:
        return Binary("binary: neither UTF-8 nor free of control characters")
    found = _legacy(head)
    return found if found else Binary("binary: text in no known encoding")


def refine(data: bytes, *, final: bool) -> Encoding:
    """Decide for a file that was ASCII so far, at its first block that is not.

    ``final`` says that the block is the file's last; a block that fits nothing is read as UTF-8.
    """
    first = next((at for at in range(0, len(data), 4096) if not data[at : at + 4096].isascii()), 0)
    sample = data[first : first + SNIFF_BYTES]
    if _is_mostly_utf8(sample):
        return UTF8
    return _legacy(sample) or UTF8


def _share(data: bytes, chosen: bytes) -> float:
    """Return the share of ``data`` that consists of the ``chosen`` bytes."""
    return (len(data) - len(data.translate(None, chosen))) / len(data) if data else 0.0


def _is_mostly_utf8(data: bytes) -> bool:
    """Tell whether data is UTF-8, allowing for damage: fewer stray bytes than characters beyond ASCII."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(data)
    beyond = text.translate(_DROP_ASCII) if not text.isascii() else ""
    stray = sum("\ud800" <= char <= "\udfff" for char in beyond)
    return stray == 0 or stray * 2 <= len(beyond) - stray


_DROP_ASCII = dict.fromkeys(range(128))


def _plausible_after_bom(head: bytes, codec: str) -> bool:
    if codec == "utf-8":
        return _share(head, _CONTROL_BYTES) <= 0.05
    text = _strictly(head, codec)
    return text is not None and _bad_characters(text) * 20 <= len(text)


def _strictly(head: bytes, codec: str) -> str | None:
    """Decode, leaving out an incomplete end; None if anything else is wrong."""
    try:
        return codecs.getincrementaldecoder(codec)("strict").decode(head)
    except UnicodeDecodeError:
        return None


def _bad_characters(text: str) -> int:
    """Count characters that text does not hold: controls, unassigned and private ones."""
    counted = {char: text.count(char) for char in set(text)}
    return sum(
        count
        for char, count in counted.items()
        if unicodedata.category(char) in ("Cn", "Co", "Cs")
        or (unicodedata.category(char) == "Cc" and (ord(char) > 0x7E or ord(char) not in _ALLOWED_CONTROLS))
    )


def _wide(head: bytes) -> str | None:
    """Return the UTF-16 or UTF-32 that bytes with NULs are in, None if in neither.

    All characters must be ones that text holds, at least one in fifty must be ASCII, as spaces and line ends
    are, and there must be two of them; of two that fit, the one with more ASCII is right.
    """
    best, best_ascii = None, 0
    for codec in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        text = _strictly(head, codec)
        if text is None or len(text) < 2 or _bad_characters(text):
            continue
        plain = sum(map(text.count, _ASCII_TEXT))
        if plain * 50 >= len(text) and plain > best_ascii:
            best, best_ascii = codec, plain
    return best


_ASCII_TEXT = "\t\n\r" + "".join(map(chr, range(0x20, 0x7F)))


def _with_nuls(head: bytes) -> Encoding | Binary:
    """Judge bytes with NULs that are not UTF-16: text with holes, or lists separated by NUL, or no text."""
    controls, nuls = _share(head, _CONTROL_BYTES), _share(head, b"\0")
    text = _strictly(head, "utf-8")
    if text is not None and controls <= 0.01 and (nuls <= 0.1 or _is_hole(head)):
        return ASCII_SO_FAR if head.isascii() else UTF8
    return Binary("binary: NUL bytes")


def _is_hole(head: bytes) -> bool:
    """Tell whether the NULs are one run, as a crash leaves it in a log, with text around it."""
    text = head.strip(b"\0")
    middle = text.rfind(b"\0") - text.find(b"\0") + 1 if b"\0" in text else 0
    return len(text) - middle >= 64 and text.count(b"\0") == middle


def _legacy(head: bytes) -> Encoding | None:
    """Return the encoding older than Unicode that bytes are most probably in, None if in none."""
    first = next((at for at, byte in enumerate(head) if byte > 0x7F), 0)
    begin = max(0, head.rfind(b"\n", 0, first) + 1, first - 256)
    sample = head[begin : begin + SAMPLE_BYTES]
    if _is_typically_western(sample):
        return _CP1252
    from charset_normalizer import from_bytes

    matches = from_bytes(sample, cp_isolation=list(_CANDIDATES), preemptive_behaviour=False)
    best = matches.best()
    if best is None:
        return _CP1252 if _is_roughly_western(sample) else None
    if sample.decode("cp1252", "replace") == sample.decode(best.encoding, "replace"):
        return _CP1252
    western = next((match for match in matches if match.encoding == "cp1252"), None)
    if western and western.chaos <= best.chaos and western.coherence >= best.coherence:
        return _CP1252
    return Encoding(best.encoding, _LABELS.get(best.encoding, best.encoding))


def _is_typically_western(sample: bytes) -> bool:
    """Tell whether bytes read as Windows-1252 look like a language of Western Europe.

    One character in five at most is beyond ASCII, nineteen in twenty of those are letters and signs these
    languages use, no three such letters stand together, and no sign stands inside a word.
    """
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    high = [char for char in text if char > "\x7f"]
    typical = sum(char in _WESTERN for char in high)
    return (
        len(high) * 5 <= len(text)
        and typical * 20 >= len(high) * 19
        and not _THREE_LETTERS.search(text)
        and not any(not match.group().isalpha() for match in _IN_WORD.finditer(text))
    )


def _is_roughly_western(sample: bytes) -> bool:
    """Tell whether most of the bytes are ASCII and all others mean something in Windows-1252."""
    high = sample.translate(None, bytes(range(128)))
    return len(high) * 5 <= len(sample) and not any(byte in b"\x81\x8d\x8f\x90\x9d" for byte in high)
