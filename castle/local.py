"""The local socket through which hooks and commands ask a running server of the same palace and user.

One JSON object on one line each way, then the connection ends. What may take long is answered by two lines:
the first says that the server has taken it up. A hook stands in the way of a person who waits, so this module
imports only the standard library, and ``socket`` and ``json`` only when they are used.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

__all__ = ["MOST_ANSWER", "MOST_REQUEST", "TAKEN", "ask", "is_ours", "socket_path"]

MOST_REQUEST = 1_000_000
"""Bytes of a request that a server reads at most."""

MOST_ANSWER = 1_000_000
"""Bytes of an answer that are read at most."""

TAKEN = {"taken": True}
"""The line by which a server says that it has taken up what may take long."""

# An address holds 104 bytes on macOS and 108 on Linux, with a zero at its end.
_LONGEST = 100
_PIECE = 65_536


def socket_path(root: str) -> str:
    """Return where the server of the palace at ``root`` listens, whether one does or not.

    That is ``run/recall.sock`` in the palace, or a short name under ``/tmp`` where this is too long for the
    address of a socket. ``TMPDIR`` has no say: hooks and servers often have different ones.
    """
    whole = os.path.realpath(root)  # (pathlib costs a hook several milliseconds)
    path = os.path.join(whole, "run", "recall.sock")  # noqa: PTH118
    if len(os.fsencode(path)) <= _LONGEST or not hasattr(os, "getuid"):
        return path
    import hashlib

    name = hashlib.sha256(os.fsencode(whole)).hexdigest()[:24]
    return f"/tmp/castle-{os.getuid()}/{name}.sock"  # noqa: S108


def is_ours(path: str) -> bool:
    """Whether a socket and its directory belong to this user and nobody else can reach it.

    False also where there is none. Without this a stranger's directory under ``/tmp`` could hear prompts.
    """
    try:
        there, around = os.lstat(path), os.lstat(os.path.dirname(path))  # noqa: PTH120
    except OSError:
        return False
    return (
        stat.S_ISSOCK(there.st_mode)
        and stat.S_ISDIR(around.st_mode)
        and there.st_uid == around.st_uid == os.getuid()
        and not around.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    )


def ask(
    root: str, request: Mapping[str, object], seconds: float, patience: float | None = None
) -> dict[str, object] | None:
    """Ask the running server of the palace at ``root``; return its answer, None within ``seconds`` if none.

    With ``patience`` the server has to take the request up within ``seconds``, and its answer may take
    ``patience`` seconds more. None, too, when no server listens, when the socket is not this user's own, and
    for anything that is not one JSON object on one line. Never raises for anything that a server or a file
    system can bring about.
    """
    import json
    import socket

    family = getattr(socket, "AF_UNIX", None)
    path = socket_path(root)
    if family is None or not is_ours(path):
        return None
    deadline = time.monotonic() + seconds
    try:
        with socket.socket(family, socket.SOCK_STREAM) as line:
            line.settimeout(_left(deadline))
            line.connect(path)
            line.settimeout(_left(deadline))
            line.sendall(json.dumps(request, ensure_ascii=True).encode() + b"\n")
            first, rest = _read_line(line, b"", deadline)
            answer = json.loads(first)
            if patience is not None and answer == TAKEN:
                answer = json.loads(_read_line(line, rest, time.monotonic() + patience)[0])
    except (OSError, ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _read_line(line: socket.socket, begun: bytes, deadline: float) -> tuple[bytes, bytes]:
    """Read up to the end of a line of which the beginning is read; return it, and what came after it.

    ValueError when it is too long, TimeoutError when it takes too long.
    """
    pieces = bytearray(begun)
    while b"\n" not in pieces:
        line.settimeout(_left(deadline))
        piece = line.recv(_PIECE)
        pieces += piece
        if len(pieces) > MOST_ANSWER:
            raise ValueError("the answer is too long")
        if not piece:
            break
    first, _, rest = pieces.partition(b"\n")
    return bytes(first), bytes(rest)


def _left(deadline: float) -> float:
    """Return the seconds until a moment; TimeoutError when it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
