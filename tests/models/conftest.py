"""The built-in embedder, loaded once."""

from __future__ import annotations

import pytest

from castle.models.builtin import BuiltinEmbedder


@pytest.fixture(scope="session")
def builtin() -> BuiltinEmbedder:
    return BuiltinEmbedder()
