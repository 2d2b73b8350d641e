"""Writing out what the mind holds, and taking it in: one JSON object a line, a table and a row of it.

Drawers are named by their ids; they come and go with `castle export` and `castle import`. What is made again
from the rest, such as vectors, stays out, as do leases.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Connection, LargeBinary, Table, and_, insert, select

from castle.errors import RefusedError, UsageError
from castle.mind.import_rows import json_of
from castle.store.drafts import draft_beside, see_on_disk, telling
from castle.store.mind_index import index
from castle.store.mind_tables import MIND
from castle.store.projection import legal_text
from castle.store.purge_guard import refuse
from castle.store.schema import SCHEMA_VERSION, drawers, tables
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    from castle.store.palace import Palace

_FOUND_AS = {
    "mem_facts": "fact",
    "mem_procedures": "procedure",
    "mem_hypotheses": "hypothesis",
    "mem_preferences": "preference",
    "mem_reflections": "reflection",
    "mem_working": "working",
}
"""Tables whose rows are found by their words, with the kind as which they are."""
_TEXTS = ("statement", "content", "text")
MADE_AGAIN = ("mem_leases", "mem_terms", "mem_texts", "mem_vectors")


class _Unfit(ValueError):
    """A row that no export would hold."""


def export(palace: Palace, path: Path) -> dict[str, int]:
    """Write everything to a new file and return how many rows there are of each table.

    Secrets in items of working memory are masked. Raises UsageError where the file is
    there already, PalaceError where it cannot be written.
    """
    if path.exists():
        raise UsageError(f"{path} is there already: name a file that is not")
    counts: dict[str, int] = {}
    with telling("nothing can be exported to", path), draft_beside(path) as draft:
        file = draft / path.name
        with file.open("w", encoding="utf-8") as out, palace.ledger.read() as cx:
            out.write(_line({"castle_mind": 1, "schema": SCHEMA_VERSION}))
            for name in MIND:
                if name in MADE_AGAIN:
                    continue
                table = tables.tables[name]
                query = select(table)
                if name == "mem_episodes":
                    query = select(table, drawers.c.id.label("drawer_id")).join(
                        drawers, drawers.c.rid == table.c.drawer
                    )
                for row in cx.execute(query):
                    values = dict(row._mapping)
                    if name == "mem_working":
                        values["content"] = mask_secrets(values["content"], palace.salt)
                    out.write(_line({"t": name, **_values(values)}))
                    counts[name] = counts.get(name, 0) + 1
        see_on_disk(file)
        file.replace(path)
        see_on_disk(path.parent)
    return counts


@dataclass(slots=True)
class TakenIn:
    """What came in by table: rows added, known before, and left out, with the reasons."""

    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)


def take_in(palace: Palace, path: Path) -> TakenIn:
    """Add what an export holds and the palace lacks, in one transaction; what is there stays as it is.

    What belongs to a drawer that is not here is left out, and what a purge took stays away. Raises UsageError
    for a file that is no export, or of another version.
    """
    done = TakenIn()
    try:
        _is_text(path)
        with path.open(encoding="utf-8") as lines, palace.ledger.write() as cx:
            _check(next(lines, ""), path)
            for number, line in enumerate(lines, start=2):
                try:
                    _take_row(cx, palace, _record(line, path, number), done)
                except ValueError as error:
                    raise UsageError(f"{path}: line {number}: {error}; nothing was taken in") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    lacking = done.dropped["mem_episodes"]
    if lacking:
        done.warnings.append(
            f"{lacking:,} rows of mem_episodes are about drawers that are not here: take those in first with "
            "`castle import`, then this again"
        )
    return done


def _is_text(path: Path) -> None:
    """Read all of a file before the ledger is touched, of which it would be said otherwise."""
    with path.open(encoding="utf-8") as lines:
        for _ in lines:
            pass


def _check(line: str, path: Path) -> None:
    head = _record(line, path, 1)
    if head.get("castle_mind") != 1:
        raise UsageError(f"{path} is no export of a mind: `castle memory export FILE` writes one")
    if head.get("schema") != SCHEMA_VERSION:
        raise UsageError(
            f"{path} is of schema {head.get('schema')}, this Castle's is {SCHEMA_VERSION}: export it anew"
        )


def _record(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: line {number} is no JSON; nothing was taken in") from error
    if not isinstance(record, dict):
        raise UsageError(f"{path}: line {number} is no object; nothing was taken in")
    return record


def _take_row(cx: Connection, palace: Palace, record: dict[str, Any], done: TakenIn) -> None:
    name = str(record.pop("t", ""))
    table = tables.tables.get(name)
    if name not in MIND or name in MADE_AGAIN or table is None or not set(record) <= set(table.c.keys()):
        raise _Unfit(f"{name[:80]!r} is no table of the mind with these columns")
    if name == "mem_episodes":
        named = select(drawers.c.rid).where(drawers.c.id == str(record.get("drawer")))
        rid = cx.execute(named).scalar()
        if rid is None:
            done.dropped[name] += 1
            return
        record["drawer"] = rid
    for column in table.c:
        if isinstance(column.type, LargeBinary) and isinstance(record.get(column.name), str):
            record[column.name] = base64.b64decode(record[column.name])
        if column.name != "rid" and not _fits(column, record.get(column.name)):
            raise _Unfit(f"{column.name} of {name} is not what stands there")
    text = next((str(record[column]) for column in _TEXTS if column in record), "")
    if name in _FOUND_AS:
        try:
            refuse(cx, text)
        except RefusedError as error:
            done.dropped[name] += 1
            done.warnings.append(f"{name} {record.get('id')}: {error}")
            return
    if not _added(cx, table, record):
        done.known[name] += 1
        return
    done.added[name] += 1
    if name in _FOUND_AS:
        index(cx, _FOUND_AS[name], str(record["id"]), _words(name, record, palace.salt))


def _fits(column: Column[Any], value: object) -> bool:
    """Whether a column may hold a value, which is None where it was left out."""
    if value is None:
        return bool(column.nullable)
    kind = column.type.python_type
    if type(value) is not kind and not (kind is float and type(value) is int):
        return False
    if isinstance(value, int | float):
        return math.isfinite(value) and abs(value) < 2**63
    if isinstance(value, str):
        made = json_of(value) if column.name.endswith("_json") else {}
        return legal_text(value) == value and isinstance(made, dict | list)
    return True


def _added(cx: Connection, table: Table, record: dict[str, Any]) -> bool:
    """Insert a row unless it is known: by its key, or by all that it says where the key is only a number."""
    if "rid" in table.c:
        record.pop("rid", None)
        same = and_(*(table.c[name] == value for name, value in record.items()))
        if cx.execute(select(table.c.rid).where(same).limit(1)).first() is not None:
            return False
    return cx.execute(insert(table).prefix_with("OR IGNORE").values(**record)).rowcount > 0


def _words(name: str, record: dict[str, Any], salt: bytes) -> str:
    """Return the words by which a row is found, with what brings it to mind."""
    text = next(str(record[column]) for column in _TEXTS if column in record)
    trigger = str(record.get("trigger") or "")
    return mask_secrets(f"{trigger}\n{text}" if trigger else text, salt)


def _values(row: dict[str, Any]) -> dict[str, Any]:
    if "drawer_id" in row:
        row["drawer"] = row.pop("drawer_id")
    return {
        key: base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value
        for key, value in row.items()
        if value is not None
    }


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
