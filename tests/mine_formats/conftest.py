from __future__ import annotations

from pathlib import Path

import pytest

EXPORTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "exports"


@pytest.fixture(scope="session")
def exports() -> Path:
    """The real exports, which lie beside the repository."""
    assert EXPORTS.is_dir(), f"the exports that these tests read are missing: {EXPORTS}"
    return EXPORTS
