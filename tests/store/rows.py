"""Rows, words and vectors for the tests of the projections."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castle.models.base import EmbedderIdentity
from castle.store.projection import ProjectionRow

DIM = 8


IDENTITY = EmbedderIdentity("test", DIM, "test@1")


def make_row(number: int, text: str = "", **changes: Any) -> ProjectionRow:
    """Return a current row of prose by the user; the id follows from the number."""
    text = text or f"note {number} about the harbour"
    row = ProjectionRow(
        id=hashlib.sha256(str(number).encode()).hexdigest()[:24],
        seq=number,
        source="source",
        title="notes/harbour.md",
        wing="wing",
        room="room",
        kind="prose",
        role="user",
        speaker="",
        state="current",
        authored_at=1000 * number,
        filed_at=1000 * number,
        ended_at=None,
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        context="",
        text=text,
    )
    return row._replace(**changes)


def make_vectors(numbers: list[int]) -> NDArray[np.float32]:
    """Return a unit vector for each number, always the same."""
    rows = [np.random.default_rng(number).standard_normal(DIM) for number in numbers]
    matrix = np.array(rows, dtype=np.float32).reshape(-1, DIM)
    unit: NDArray[np.float32] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit
