"""What the tests of the measures share."""

from __future__ import annotations

import pytest

from castle.text.understanding import understand


def check(text: str, name: str, raw: float, score: float) -> None:
    """Compare one measure of a text with values worked out by hand."""
    (found,) = [metric for metric in understand(text).metrics if metric.name == name]
    assert found.raw == pytest.approx(raw, abs=1e-9)
    assert found.score == pytest.approx(score, abs=1e-9)
