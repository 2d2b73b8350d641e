"""Filing lists of texts as if they were the chunks of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from castle.records import Chunk
from castle.store.filing import Filed, Filing, NewDrawer, Place, Version
from castle.store.ledger import Ledger


def chunks(texts: Sequence[str], *, authored_at: int = 0, kind: str = "file") -> list[NewDrawer]:
    """Return the texts as consecutive chunks."""
    made = []
    offset = 0
    line = 1
    for text in texts:
        end_line = line + text.count("\n")
        chunk = Chunk(text, offset, offset + len(text), line, end_line)
        made.append(NewDrawer(chunk, None, "general", kind, "", authored_at))
        offset += len(text)
        line = end_line
    return made


def file(
    ledger: Ledger,
    texts: Sequence[str],
    *,
    path: str = "notes.md",
    base: int = 0,
    wing: str = "wing",
    room: str = "general",
    authored_at: int = 0,
    kind: str = "file",
) -> Filed:
    """File the texts as the next revision of ``path``."""
    filing = Filing(ledger, Place(f"file:{path}", "file", path, path, wing, room), base)
    data = "".join(texts).encode("utf-8")
    version = Version(hashlib.sha256(data).digest(), len(data), "signature", "test/1", "utf-8", 0, "test")
    with ledger.write() as cx:
        filing.stage(cx, chunks(texts, authored_at=authored_at, kind=kind), "test")
        return filing.complete(cx, version)
