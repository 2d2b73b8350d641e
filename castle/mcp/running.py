"""What runs beside the protocol in every server: the loading of models, and the local socket."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from castle.mcp.listener import Listener
from castle.mcp.tools import Tools
from castle.mcp.warm import Warmer

PATIENCE = 0.06
"""Seconds that a hook may wait for a call of a tool to end; it gives up soon after."""


class Running:
    """The tools of a palace, None for the one that the settings name, with what works beside them."""

    def __init__(self, palace: str | None = None) -> None:
        self._palace = palace
        self._warmer = Warmer()
        self.tools = Tools(palace, self._warmer)
        self._listener = Listener(self._root, self._recall, self.tools.read)

    def start(self) -> None:
        """Begin to answer hooks, a second from now."""
        self._listener.start()

    def stop(self) -> None:
        """Remove the socket of the hooks; may be called by a handler of a signal."""
        self._listener.stop()

    def leave_if_busy(self, code: int) -> None:
        """End the process at once if a thread is at work inside a native library.

        Python lets such a thread run into an interpreter that is gone, which may end in an abort.
        """
        if self._warmer.busy or self.tools.busy:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _root(self) -> Path:
        from castle import config

        return config.load({"palace_path": self._palace}).palace_path

    def _recall(self, prompt: str, cwd: str | None, max_tokens: int) -> str:
        return self.tools.recall(prompt, cwd, max_tokens, PATIENCE)
