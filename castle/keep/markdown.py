"""The readable export: a tree of Markdown files, ``wing/room/source.md``, of text as it is served.

A file begins with what is known of its source and the drawers it holds; after that comes their text. What was
superseded is in a file of its own beside it, where that is asked for; what was forgotten is in none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, func, select

from castle.clock import to_iso
from castle.records import Drawer
from castle.store.palace import Palace
from castle.store.reading import AnyRow, drawers_by_id, served
from castle.store.schema import drawers, membership, sources
from castle.text.served import mask_secrets

Progress = Callable[[str, int, int], None]

_AT_ONCE = 200
_LONGEST = 120
_UNFIT = re.compile(r"[^\w.\- ]+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


@dataclass(frozen=True, slots=True)
class Written:
    """What a tree holds; ``masked`` of its drawers have something sealed, which is masked."""

    sources: int
    drawers: int
    masked: int
    files: int


def write_markdown(
    palace: Palace, root: Path, *, wing: str | None, history: bool, progress: Progress | None = None
) -> Written:
    """Write the tree into the directory ``root``, from one snapshot of the ledger. Raises OSError."""
    tell = progress or (lambda *_: None)
    sources_written = drawers_written = masked = files = 0
    with palace.ledger.read() as cx:
        query = select(sources).where(sources.c.revision > 0).order_by(sources.c.wing, sources.c.path)
        if wing is not None:
            query = query.where(sources.c.wing == wing)
        total = cx.execute(select(func.count()).select_from(query.subquery())).scalar_one()
        for number, source in enumerate(cx.execute(query.execution_options(yield_per=_AT_ONCE)), start=1):
            parts = [("current", "")] + ([("superseded", ".history")] if history else [])
            before = drawers_written
            for state, suffix in parts:
                rows = _drawers(cx, source.id, state)
                found = _Files(cx, root, source, suffix, rows).write()
                files += len({row.room for row in rows})
                drawers_written += len(rows)
                masked += found
            sources_written += drawers_written > before
            tell("sources", number, total)
    return Written(sources_written, drawers_written, masked, files)


def _drawers(cx: Connection, source: int, state: str) -> list[AnyRow]:
    """Return where the drawers of a source stand, without their text, in the order of the source."""
    last = func.max(membership.c.from_revision)
    stands = (
        select(
            membership.c.drawer, membership.c.ordinal, membership.c.first_line, membership.c.last_line, last
        )
        .where(membership.c.source == source)
        .group_by(membership.c.drawer)
        .subquery()
    )
    query = (
        select(
            drawers.c.id,
            drawers.c.room,
            drawers.c.authored_at,
            drawers.c.filed_at,
            drawers.c.ended_at,
            stands.c.first_line,
            stands.c.last_line,
        )
        .select_from(drawers.join(stands, stands.c.drawer == drawers.c.rid))
        .where(drawers.c.source == source, drawers.c.state == state, drawers.c.seq.is_not(None))
        .order_by(stands.c.ordinal, drawers.c.rid)
    )
    return list(cx.execute(query).all())


class _Files:
    """The files of one source: one for each room that its drawers stand in."""

    def __init__(
        self, cx: Connection, root: Path, source: AnyRow, suffix: str, rows: Sequence[AnyRow]
    ) -> None:
        self._cx = cx
        self._root = root
        self._source = source
        self._suffix = suffix
        self._rows = rows
        self._message = ""

    def write(self) -> int:
        """Write them; return how many drawers were masked."""
        masked = 0
        with ExitStack() as stack:
            files = {
                room: stack.enter_context(self._begun(room, [row for row in self._rows if row.room == room]))
                for room in dict.fromkeys(row.room for row in self._rows)
            }
            for drawer in self._texts():
                masked += bool(drawer.sealed)
                files[drawer.room].write(self._shown(drawer).encode("utf-8"))
        return masked

    def _texts(self) -> Iterator[Drawer]:
        for start in range(0, len(self._rows), _AT_ONCE):
            ids = [row.id for row in self._rows[start : start + _AT_ONCE]]
            found = drawers_by_id(self._cx, ids)
            yield from (found[id_] for id_ in ids)

    def _shown(self, drawer: Drawer) -> str:
        """Return the text of a drawer; what was said, or is not current, stands under who and when."""
        text = served(drawer)
        if self._suffix:
            return f"\n## {drawer.id}, filed {to_iso(drawer.filed_at)}\n\n{text}\n"
        if drawer.message_id and drawer.message_id != self._message:
            self._message = drawer.message_id
            who = _masked(drawer.speaker) or drawer.role or drawer.kind
            kind = "" if drawer.kind == "message" else f" ({drawer.kind})"
            return f"\n## {who}{kind}, {to_iso(drawer.authored_at)}\n\n{text}"
        return text

    def _begun(self, room: str, rows: Sequence[AnyRow]) -> IO[bytes]:
        """Open a new file and write what stands before the text."""
        source = self._source
        folder = self._root / _name(source.wing) / _name(room)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = _new_file(folder, _name(_masked(source.title or source.path)), self._suffix)
        about = {
            "source": _masked(source.key),
            "path": _masked(source.path),
            "wing": source.wing,
            "room": room,
            "kind": source.kind,
            "revision": source.revision,
            "state": "superseded" if self._suffix else "current",
            "first_authored_at": to_iso(min(row.authored_at for row in rows)),
            "last_authored_at": to_iso(max(row.authored_at for row in rows)),
        }
        lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in about.items()]
        lines += ["drawers:", *(_entry(row) for row in rows)]
        head = "\n".join(lines)
        file.write(f"---\n{head}\n---\n\n".encode())
        return file


def _entry(row: AnyRow) -> str:
    """Return the line of a drawer in the head of a file, which is both JSON and YAML."""
    entry: dict[str, Any] = {
        "id": row.id,
        "authored_at": to_iso(row.authored_at),
        "filed_at": to_iso(row.filed_at),
        "lines": f"{row.first_line}-{row.last_line}",
    }
    if row.ended_at is not None:
        entry["ended_at"] = to_iso(row.ended_at)
    return f"  - {json.dumps(entry)}"


def _new_file(folder: Path, name: str, suffix: str) -> IO[bytes]:
    """Open a file that was not there; one whose name is taken gets a number."""
    stem = name.removesuffix(".md")
    number = 1
    while True:
        path = folder / f"{stem}{f'~{number}' if number > 1 else ''}{suffix}.md"
        try:
            path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            number += 1
            continue
        return path.open("wb")


def _name(text: str) -> str:
    """Return a name that every file system takes."""
    plain = _UNFIT.sub("_", text).strip(" .")
    while len(plain.encode("utf-8")) > _LONGEST:
        plain = plain[1:]
    plain = plain.strip(" .") or "source"
    return f"_{plain}" if _RESERVED.fullmatch(plain) else plain


@lru_cache(maxsize=4096)
def _masked(text: str) -> str:
    return mask_secrets(text, b"")
