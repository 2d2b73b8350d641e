"""Vectors that were made once: a file of them that any number of palaces are filed with.

A haystack shares sessions with others, and a palace is filed anew whenever filing changes; the vector of a
text is the same to the bit in all of them. Only the model is spared: everything else is filed as usual.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from castle.models.registry import load_embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TABLE = """create table if not exists vectors
(embedder text not null, input blob not null, vector blob not null, primary key (embedder, input))
without rowid"""
_BATCH = 500


class Memo:
    """Stands before an embedder of this process and keeps what it makes, as 16-bit floats like the ledger.

    ``seconds`` counts wall time inside the model, ``texts`` what it was asked for, ``made`` what was new.
    """

    def __init__(self, path: Path, name: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.seconds, self.texts, self.made = 0.0, 0, 0
        self._file = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
        self._file.execute("pragma journal_mode=wal")
        self._file.execute("pragma synchronous=off")
        self._file.execute(_TABLE)
        self._embedder = cast("Any", load_embedder(name))
        self._original = self._embedder.embed_documents
        self._embedder.embed_documents = self.documents

    def close(self) -> None:
        """Give the embedder back as it was."""
        del self._embedder.embed_documents
        self._file.close()

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question, which is never kept."""
        vector: NDArray[np.float32] = self._embedder.embed_query(text)
        return vector

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector a text, from the file or the model."""
        import numpy as np

        keys = [hashlib.sha256(text.encode("utf-8")).digest() for text in texts]
        known = self._known(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        self.texts += len(texts)
        self.made += len(missing)
        if missing:
            started = time.perf_counter()
            halves = self._original(list(missing.values())).astype(np.float16)
            self.seconds += time.perf_counter() - started
            new = dict(zip(missing, (half.tobytes() for half in halves), strict=True))
            identity = self._embedder.identity.identity
            self._file.execute("begin immediate")
            self._file.executemany(
                "insert or replace into vectors values (?, ?, ?)",
                [(identity, key, blob) for key, blob in new.items()],
            )
            self._file.execute("commit")
            known |= new
        return np.stack([np.frombuffer(known[key], np.float16) for key in keys]).astype(np.float32)

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for first in range(0, len(keys), _BATCH):
            part = keys[first : first + _BATCH]
            marks = ",".join("?" * len(part))
            found |= self._file.execute(
                f"select input, vector from vectors where embedder = ? and input in ({marks})",
                (self._embedder.identity.identity, *part),
            ).fetchall()
        return found
