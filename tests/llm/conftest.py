"""No keys, endpoints or proxies of the machine, and nothing known from another test."""

from __future__ import annotations

import pytest

from castle.llm import ollama
from castle.llm.waiting import PROBES

FOREIGN = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    PROBES.clear()
    # A busy machine may take longer than half a second for its own server of a test.
    monkeypatch.setattr(ollama, "PROBE_S", 30.0)
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
