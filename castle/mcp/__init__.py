"""``castle-mcp``: the palace as tools of the Model Context Protocol, on stdin and stdout.

Nothing is imported before stdout is out of the reach of whatever might print, and no palace is opened before
the first call of a tool.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["TIERS", "main"]

TIERS = ("core", "standard", "memory", "all")
"""The sets of tools: ``standard`` and ``memory`` hold the core, ``all`` holds every one."""


def main(argv: Sequence[str] | None = None) -> None:
    """Serve one client until its end of our input is closed, or a signal ends the process."""
    # Read when numpy is loaded: for products as small as ours, waking threads takes longer than computing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options = _options(sys.argv[1:] if argv is None else argv)
    # The collector finds nothing among the classes of the SDK, and takes a quarter of the time of a start.
    gc.disable()
    wire = _guarded()
    stopping: list[Callable[[], None]] = []

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        # A thread is blocked on stdin and would never let the interpreter shut down. Nothing is lost: what
        # is being written is committed as a whole or not at all, and the indexes survive any end.
        for stop in stopping:
            stop()
        os._exit(0 if number == signal.SIGTERM else 130)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    from castle.store.lance import defer

    # What the package itself imports is for clients: a twelfth of the time of a start.
    defer("mcp")
    from castle.mcp.running import Running
    from castle.mcp.server import build

    running = Running(options.palace)
    server = build(running.tools, options.tools)
    gc.freeze()
    gc.enable()
    _unguarded(wire)
    stopping.append(running.stop)
    running.start()
    try:
        # From here to its end the SDK keeps descriptor 1 to itself in the same way.
        server.run("stdio")
    except* BrokenPipeError:
        pass  # the client has gone without closing our input
    finally:
        os.dup2(2, 1)
        running.stop()
    running.leave_if_busy(0)


def _options(argv: Sequence[str]) -> Namespace:
    import argparse

    from castle import __version__

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            self.exit(2, f"{self.prog}: {message}: see `{self.prog} --help`\n")

    parser = Parser(
        prog="castle-mcp",
        description="Serve a palace to an agent: the Model Context Protocol on stdin and stdout.",
        epilog="`castle mcp` prints the line that sets a client up.",
        allow_abbrev=False,
    )
    parser.add_argument("--palace", metavar="PATH", help="directory of the palace (CASTLE_PALACE_PATH)")
    parser.add_argument(
        "--tools", choices=TIERS, default="standard", help="which tools are offered; standard unless given"
    )
    parser.add_argument("--version", action="version", version=f"Cognitive Castle {__version__}")
    return parser.parse_args(argv)


def _guarded() -> int:
    """Point stdout at stderr; return a descriptor of what it was."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    return wire


def _unguarded(wire: int) -> None:
    """Point stdout at the client again, after whatever was printed meanwhile has gone to stderr."""
    sys.stdout.flush()
    os.dup2(wire, 1)
    os.close(wire)
