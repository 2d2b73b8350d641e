"""Checksums of Tantivy's segment files, which Tantivy writes and does not compare when it opens them.

A writer that meets a damaged file in a merge aborts the process, so the files are compared before writing.
The last eight bytes of a file are the length of its footer and a magic number; the footer is JSON and holds
the CRC-32 of what comes before it.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

_MAGIC = 1337
_PART = 1 << 20

Seen = set[tuple[str, int, int]]
"""Files found whole: name, size and time of change. They never change once they are written."""


def damaged_files(directory: Path, seen: Seen) -> list[str]:
    """Return the names of files of the last commit that are not as they were written, and add to ``seen``."""
    try:
        meta = json.loads((directory / "meta.json").read_bytes())
        live = {segment["segment_id"].replace("-", "") for segment in meta["segments"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        return ["meta.json"]
    damaged, abandoned = [], set(abandoned_deletions(directory))
    for file in sorted(directory.iterdir()):
        if file.name.partition(".")[0] in live and file not in abandoned:
            try:
                status = file.stat()
                key = (file.name, status.st_size, status.st_mtime_ns)
                if key in seen:
                    continue
                whole = _is_whole(file, status.st_size)
            except FileNotFoundError:
                continue
            if whole:
                seen.add(key)
            else:
                damaged.append(file.name)
    return damaged


def live_files(directory: Path) -> set[str]:
    """Return the names of the files that the last commit consists of, as far as they can be told."""
    try:
        meta = json.loads((directory / "meta.json").read_bytes())
        segments = {segment["segment_id"].replace("-", ""): segment for segment in meta["segments"]}
        live = {file.name for file in directory.iterdir() if file.name.partition(".")[0] in segments}
        deletions = {
            f"{name}.{segment['deletes']['opstamp']}.del"
            for name, segment in segments.items()
            if segment.get("deletes")
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()
    return {name for name in live if not name.endswith(".del")} | deletions


def abandoned_deletions(directory: Path) -> list[Path]:
    """Return the lists of deletions, ``SEGMENT.OPSTAMP.del``, that no commit names.

    A writer that was killed before its commit leaves them, and the next one, which counts from the last
    commit, would not write over a file that is there.
    """
    try:
        meta = json.loads((directory / "meta.json").read_bytes())
        named = {
            f"{segment['segment_id'].replace('-', '')}.{segment['deletes']['opstamp']}.del"
            for segment in meta["segments"]
            if segment.get("deletes")
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [file for file in directory.glob("*.del") if file.name not in named]


def _is_whole(file: Path, size: int) -> bool:
    """Whether the file's content has the CRC-32 that its footer says."""
    with file.open("rb") as stream:
        if size < 8:
            return False
        stream.seek(size - 8)
        length, magic = (int.from_bytes(stream.read(4), "little") for _ in range(2))
        end = size - 8 - length
        if magic != _MAGIC or end < 0:
            return False
        stream.seek(end)
        try:
            wanted = json.loads(stream.read(length))["crc"]
        except (ValueError, KeyError, TypeError):
            return False
        stream.seek(0)
        found = 0
        while end > 0 and (part := stream.read(min(end, _PART))):
            found = zlib.crc32(part, found)
            end -= len(part)
        return bool(found == wanted)
