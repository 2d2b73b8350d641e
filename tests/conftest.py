"""What many tests need: a palace in a temporary home, a clock that can be turned."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from castle.models.cache import cache_root

if TYPE_CHECKING:
    from castle.store.palace import Palace

# A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Taken before a fixture moves the home: the built-in model is built once for all tests.
CACHE = cache_root()

# The same examples everywhere, so that only a change lets a test fail; HYPOTHESIS_PROFILE=search has others.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# Fixtures of whole modules run before those of a test: nothing of whoever runs the tests may reach them.
for _name in list(os.environ):
    if _name.startswith("CASTLE_") and not _name.startswith("CASTLE_TEST_"):
        del os.environ[_name]


class TurnedClock:
    """A clock that moves by a second at every look, and wherever a test sets it."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        """Return the time in microseconds."""
        self.now += 1_000_000
        return self.now


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test away from the user's own files and environment."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CASTLE_CACHE_DIR", str(CACHE))
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MEMPAL_PALACE_PATH")
    own = (
        "CASTLE_HOME",
        "CASTLE_PALACE_PATH",
        "CASTLE_EMBEDDER_MODEL",
        "CASTLE_PROJECT",
        "CASTLE_SERVE_TOKEN",
    )
    hosts = ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA", "XDG_CONFIG_HOME", "GEMINI_CLI_HOME")
    for name in (*keys, *own, *hosts, *(name for name in os.environ if name.startswith("CASTLE_LLM_"))):
        monkeypatch.delenv(name, raising=False)
    # Nothing listens there: a model that happens to run on this machine has no part in a test.
    monkeypatch.setenv("CASTLE_LLM_ENDPOINT", "http://127.0.0.1:9")
    return home


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test reach beyond this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError(f"a connection to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def palace(tmp_path: Path, clock: TurnedClock) -> Iterator[Palace]:
    """A new palace with the fake embedder."""
    from castle.store.palace import Palace

    opened = Palace(tmp_path / "palace", create=True, embedder="fake", clock=clock)
    yield opened
    opened.close()
