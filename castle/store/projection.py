"""What a projection is: rows derived from the ledger, and how far it has come."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from castle.errors import CastleError
from castle.records import State


@dataclass(frozen=True, slots=True)
class Watermark:
    """The last change that a projection holds, and in ``epoch`` the ledger's lineage at that change."""

    epoch: str
    seq: int


class ProjectionRow(NamedTuple):
    """One drawer as projections see it: ``text`` and ``context`` are served, never exact.

    ``title`` is what the source is called. ``sha256`` is that of the exact text, equal for copies.
    ``ended_at`` is when a superseded drawer left its source's current revision, None while it has not.
    """

    id: str
    seq: int
    source: str
    title: str
    wing: str
    room: str
    kind: str
    role: str
    speaker: str
    state: State
    authored_at: int
    filed_at: int
    ended_at: int | None
    sha256: str
    context: str
    text: str

    @property
    def embedded(self) -> str:
        """The text an embedder is given."""
        return f"{self.context}\n{self.text}" if self.context else self.text


class Projection(Protocol):
    """A searchable copy of the ledger's drawers that can be thrown away and built again."""

    name: str

    def watermark(self) -> Watermark | None:
        """Return what it has reached, None when it is empty, missing or damaged.

        Raises ProjectionBlocked.
        """
        ...

    def reset(self) -> None:
        """Throw everything away."""
        ...

    def disk_bytes(self) -> int:
        """Return its size on disk."""
        ...


class ProjectionUnavailable(CastleError):
    """A projection is missing, damaged or of another version; building it again from the ledger helps."""


class ProjectionBlocked(CastleError):
    """Permissions, space or another writer stand in the way; building the projection again does not help."""


class ProjectionBusy(ProjectionBlocked):
    """Another process is writing the projection at this moment."""


def legal_text(text: str) -> str:
    """Return the text with lone surrogates, which native libraries refuse, replaced by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def disk_bytes(directory: Path) -> int:
    """Return the size of all files below a directory, 0 when there is none."""
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(place) / name).lstat().st_size
    return total
