"""Writing out what the mind holds, as one JSON object a line: a table, and a row of it.

Drawers are named by their ids. What is made again from the rest, such as vectors, stays out, as do leases.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from castle.errors import UsageError
from castle.store.drafts import draft_beside, see_on_disk, telling
from castle.store.mind_tables import MIND
from castle.store.schema import SCHEMA_VERSION, drawers, tables
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    from castle.store.palace import Palace

MADE_AGAIN = ("mem_leases", "mem_terms", "mem_texts", "mem_vectors")


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
