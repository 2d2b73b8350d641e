"""``castle-mcp``: the palace as read-only tools of the Model Context Protocol, on stdin and stdout.

Nothing is imported before stdout is out of the reach of whatever might print, and no palace is opened before
the first call of a tool.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Serve one client until its end of our input is closed, or a signal ends the process."""
    palace = _palace(sys.argv[1:] if argv is None else argv)
    # The collector finds nothing among the classes of the SDK, and takes a quarter of the time of a start.
    gc.disable()
    wire = _guarded()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    from castle.mcp.server import build

    server = build(palace)
    gc.freeze()
    gc.enable()
    _unguarded(wire)
    try:
        # From here to its end the SDK keeps descriptor 1 to itself in the same way.
        server.run("stdio")
    except* BrokenPipeError:
        pass  # the client has gone without closing our input
    finally:
        os.dup2(2, 1)


def _palace(argv: Sequence[str]) -> str | None:
    import argparse

    from castle import __version__

    parser = argparse.ArgumentParser(
        prog="castle-mcp",
        description="Serve a palace to an agent: the Model Context Protocol on stdin and stdout.",
        epilog="`castle mcp` prints the line that sets a client up.",
        allow_abbrev=False,
    )
    parser.add_argument("--palace", metavar="PATH", help="directory of the palace (CASTLE_PALACE_PATH)")
    parser.add_argument("--version", action="version", version=f"Cognitive Castle {__version__}")
    palace: str | None = parser.parse_args(argv).palace
    return palace


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


def _leave(number: int, frame: FrameType | None) -> None:
    # A thread is blocked on stdin and would never let the interpreter shut down. Nothing is lost: reading
    # changes nothing but the indexes, which survive any end.
    os._exit(0 if number == signal.SIGTERM else 130)
