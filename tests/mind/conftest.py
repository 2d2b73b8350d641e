"""A mind over a palace with the fake embedder, whose clock the test turns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from castle.mind.mind import Mind
from castle.mind.objects import Memory
from castle.store.palace import Palace

Save = Callable[..., Memory]


@pytest.fixture
def mind(palace: Palace) -> Mind:
    """The mind of ann."""
    return Mind(palace, actor="ann", halls={}, wing="w")


@pytest.fixture
def save(mind: Mind) -> Save:
    """A function that saves a text, with options by name, and returns the memory."""

    def keep(text: str, kind: str = "episodic", **options: object) -> Memory:
        return mind.save(text, kind, options).memory

    return keep
