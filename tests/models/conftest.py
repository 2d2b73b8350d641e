"""The built-in embedder, loaded once; the model is built into the user's cache if it is not there."""

from __future__ import annotations

import pytest

from castle.models.builtin import BuiltinEmbedder


@pytest.fixture(scope="session")
def builtin() -> BuiltinEmbedder:
    return BuiltinEmbedder()
