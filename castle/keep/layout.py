"""The lossless export as a file: one JSON object a line, and which tables of the ledger it holds.

The first line is the head, the last one the foot with the number of lines of each kind and the hash of all
lines before it. Between them a line is a row: ``{"t": table, column: value, ...}``. NULL is left out, bytes
are base64. Numbers that only this database knows are replaced by what they stand for: a source by its key, a
drawer by its id. What belongs to one source follows the line of that source.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Column, LargeBinary, Table

from castle.errors import PalaceError, UsageError
from castle.store.mind_tables import MIND
from castle.store.schema import tables

FORMAT = 1
FILE = "palace.jsonl"
HEAD, FOOT = "castle_export", "end"

Record = dict[str, Any]

FIRST = ("projects", "project_aliases", "wing_names", "entities", "entity_aliases", "registry", "blobs")
"""Tables that come before the sources."""
OF_SOURCE = (
    "sources",
    "sessions",
    "revisions",
    "drawers",
    "membership",
    "tombstones",
    "messages",
    "attachments",
)
"""Tables whose rows stand with their source, in this order."""
LAST = (
    "mentions",
    "triples",
    "evidence",
    "tunnels",
    "pins",
    "uses",
    "receipts",
    "reveals",
    "readings",
)
"""Tables that come after the sources; their rows speak of drawers of several."""
LEFT_OUT: dict[str, str] = {
    "meta": "the head of the file has what matters of it",
    "lineage": "each palace has its own",
    "vectors": "made again by the embedder",
    "novelty": "made again from the vectors",
    "closets": "made again from the drawers",
    "closet_lines": "made again from the drawers",
    "closet_drawers": "made again from the drawers",
    "aaak": "made again from the drawers",
    "name_backlog": "begun again by the import",
    "purges": "what was purged is in no export",
    "purged": "what was purged is in no export",
    "purge_inputs": "what was purged is in no export",
    **dict.fromkeys(MIND, "of the mind, which `castle memory export` writes"),
}
"""Tables that are not exported, and why."""

_NUMBERS = {"sources": "id", "drawers": "rid", "triples": "rid", "evidence": "rid", "tunnels": "rid"}
_NUMBERS |= {"receipts": "id", "reveals": "id"}


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table as an export has them.

    ``plain`` are written as they are, ``source`` and ``drawer`` name a source or a drawer by its number.
    """

    table: Table
    plain: tuple[Column[Any], ...]
    source: tuple[Column[Any], ...]
    drawer: tuple[Column[Any], ...]


def columns_of(name: str) -> Columns:
    """Return the columns of an exported table."""
    table = tables.tables[name]
    by_target: dict[str, list[Column[Any]]] = {"": [], "sources.id": [], "drawers.rid": []}
    for column in table.columns:
        if column.name == _NUMBERS.get(name):
            continue
        targets = {key.target_fullname for key in column.foreign_keys} & by_target.keys()
        by_target[targets.pop() if targets else ""].append(column)
    return Columns(
        table, tuple(by_target[""]), tuple(by_target["sources.id"]), tuple(by_target["drawers.rid"])
    )


def encoded(value: object) -> object:
    """Return a value of the ledger as JSON has it."""
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def decoded(column: Column[Any], value: object) -> object:
    """Return a value of JSON as the column has it. Raises ValueError."""
    if isinstance(column.type, LargeBinary) and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    return value


class Writer:
    """Writes the lines of an export and counts them."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()

    def head(self, about: Mapping[str, object]) -> None:
        """Write the first line."""
        self._write({"t": HEAD, "format": FORMAT, **about})

    def row(self, table: str, record: Mapping[str, object]) -> None:
        """Write one row; what is None is left out."""
        self.counts[table] += 1
        self._write(
            {"t": table, **{key: encoded(value) for key, value in record.items() if value is not None}}
        )

    def foot(self) -> None:
        """Write the last line."""
        line = {"t": FOOT, "counts": dict(self.counts), "sha256": self._digest.hexdigest()}
        self._out.write(_line(line))

    def _write(self, record: Mapping[str, object]) -> None:
        line = _line(record)
        self._digest.update(line)
        self._out.write(line)


def _line(record: Mapping[str, object]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


@dataclass(frozen=True, slots=True)
class Head:
    """What an export says of itself; ``exact`` is false where sealed text was masked."""

    schema: int
    exact: bool
    counts: Mapping[str, int]
    about: Mapping[str, Any]


def proven(path: Path) -> Head:
    """Read all of an export once and return its head.

    Raises UsageError where there is no such file, PalaceError for one that is damaged or cut short.
    """
    digest = hashlib.sha256()
    counts: Counter[str] = Counter()
    head: Record | None = None
    known = {*FIRST, *OF_SOURCE, *LAST}
    for line, record in _lines(path):
        kind = record.get("t")
        if head is None:
            if kind != HEAD or type(record.get("format")) is not int:
                raise _damaged(path, "it does not begin as one")
            if record["format"] > FORMAT:
                raise PalaceError(
                    f"{path} is of a newer Castle: upgrade with `pip install -U cognitive-castle`"
                )
            head = record
        elif kind == FOOT:
            if record.get("counts") != dict(counts) or record.get("sha256") != digest.hexdigest():
                raise _damaged(
                    path,
                    "its lines are not those that were written (an editor, or git converting ends of lines, "
                    "may have changed them)",
                )
            return _head(path, head, counts)
        elif isinstance(kind, str) and kind in known:
            counts[kind] += 1
        else:
            raise _damaged(path, f"it holds a line of {str(kind)[:40]!r}")
        digest.update(line)
    raise _damaged(path, "it is cut short" if head is not None else "it is empty")


def _head(path: Path, head: Record, counts: Mapping[str, int]) -> Head:
    try:
        return Head(int(head["schema"]), head["exact"] is True, dict(counts), head)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, "its first line is not one of an export") from error


def records(path: Path) -> Iterator[tuple[str, Record]]:
    """Yield table and row of every line between head and foot."""
    for _, record in _lines(path):
        kind = str(record.pop("t"))
        if kind not in (HEAD, FOOT):
            yield kind, record


def _lines(path: Path) -> Iterator[tuple[bytes, Record]]:
    try:
        with path.open("rb") as file:
            for line in file:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise _damaged(path, "a line of it is no object")
                yield line, record
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}: name what `castle export --format jsonl` made") from error
    except OSError as error:
        raise PalaceError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError, binascii.Error) as error:
        raise _damaged(path, "a line of it is no JSON") from error


def _damaged(path: Path, why: str) -> PalaceError:
    return PalaceError(f"{path} is no export of Castle, or a damaged one: {why}; nothing was changed")
