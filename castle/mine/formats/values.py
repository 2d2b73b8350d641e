"""Reading values out of records that may hold anything: wrong types become empty values, never errors."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import lzma
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castle.clock import parse_iso
from castle.mine.formats.base import Attachment

READ_ERRORS = (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
"""What reading a file or a zip member may raise."""

_FIRST_MICROS = -62_135_596_800_000_000
_LAST_MICROS = 253_402_300_799_999_999
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.ASCII)


def string(value: object) -> str:
    """Return a string as it is and anything else as an empty one."""
    return value if isinstance(value, str) else ""


def name_of(value: object) -> str:
    """Return a string, or a whole number as digits, for use as an id; anything else is empty."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object as it is and anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[Any]:
    """Return a JSON array as it is and anything else as an empty one."""
    return value if isinstance(value, list) else ()


def mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """Iterate over the objects of a JSON array, passing over everything else."""
    return (item for item in sequence(value) if isinstance(item, dict))


def json_text(value: object) -> str:
    """Write a JSON value on one line, keys in the order of the record, characters as they are."""
    return json.dumps(value, ensure_ascii=False)


def said(value: object) -> str:
    """Return a string as it is, nothing as an empty string, and any other value as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None or value in ([], {}) else json_text(value)


def micros(value: object) -> int | None:
    """Read a time: ISO text, or a number of seconds, milliseconds or microseconds told apart by its size."""
    result: int | None = None
    if isinstance(value, str):
        result = _from_text(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        result = _scaled(value)
    elif isinstance(value, float) and math.isfinite(value):
        result = round(value * (1_000_000 if abs(value) < 1e11 else 1000))
    return result if result is not None and _FIRST_MICROS <= result <= _LAST_MICROS else None


def _scaled(value: int) -> int:
    if abs(value) < 100_000_000_000:
        return value * 1_000_000
    return value * 1000 if abs(value) < 100_000_000_000_000 else value


def _from_text(text: str) -> int | None:
    seconds, dot, fraction = text.strip().partition(".")
    if seconds.isascii() and seconds.isdigit() and 5 <= len(seconds) <= 18:
        if not dot:
            return _scaled(int(seconds))
        if fraction.isascii() and fraction.isdigit():
            return int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    try:
        return parse_iso(text)
    except ValueError:
        return None


def derived_id(*fields: str | bytes) -> str:
    """Hash length-prefixed fields into an id of 24 hex characters, for records that have none."""
    digest = hashlib.sha256()
    for item in fields:
        data = item if isinstance(item, bytes) else item.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:24]


def embedded(data: object, media_type: str, name: str = "") -> Attachment:
    """Make an attachment of base64 text; what is not base64 is kept as it is, under a type of its own."""
    text = string(data)
    try:
        return Attachment(name, media_type, base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return Attachment(name, f"{media_type};undecodable-base64", text.encode("utf-8", "surrogatepass"))


def linked(url: object, media_type: str = "", name: str = "") -> Attachment:
    """Make an attachment of a URL: ``data:`` with base64 is decoded, any other is a reference."""
    text = string(url)
    found = _DATA_URL.match(text)
    if found is None:
        return Attachment(name, media_type, None, text)
    kind = media_type or found[1]
    if ";base64" in found[2]:
        return embedded(text[found.end() :], kind, name)
    return Attachment(name, kind, text[found.end() :].encode("utf-8", "surrogatepass"))


def small(**fields: object) -> dict[str, object]:
    """Build metadata from keyword arguments, leaving out what is empty."""
    return {key: value for key, value in fields.items() if value not in (None, "", False, [], {})}
