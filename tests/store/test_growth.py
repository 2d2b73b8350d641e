"""What a palace takes on disk stays bounded by what it holds, and counting costs no look at every drawer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from castle.store.palace import Palace

WORDS = "harbour ship crane rope tide anchor gull storm quay lamp keeper ferry net salt chart".split()


@dataclass(frozen=True)
class Size:
    """What the indexes take: LanceDB's versions, fragments, files and bytes, and Tantivy's segments."""

    rows: int
    versions: int
    fragments: int
    files: int
    bytes: int
    live_bytes: int
    segments: int


def size_of(root: Path) -> Size:
    with Palace(root, embedder="fake").__class__(root, embedder="fake").ledger.read():
        pass
    palace = Palace(root, embedder="fake")
    vectors = palace.vectors
    stats = vectors._open().stats()
    meta = json.loads((root / "lexicon" / "meta.json").read_bytes())
    size = Size(
        rows=stats["num_rows"],
        versions=files(vectors, "_versions/*.manifest"),
        fragments=stats["fragment_stats"]["num_fragments"],
        files=files(vectors, "**/*.*"),
        bytes=vectors.disk_bytes(),
        live_bytes=stats["total_bytes"],
        segments=len(meta["segments"]),
    )
    palace.close()
    return size
