"""The local socket of a running server, at which the hooks and commands of the same user ask it.

Hooks ask what the palace knows of a prompt, commands what ``castle.wire`` lists.

One server of a palace listens, whoever has its kernel lock; when that one ends, however it ends, another one
takes over within seconds. ``castle.local`` is the other side.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from castle.errors import CastleError, PalaceError
from castle.local import MOST_ANSWER, MOST_REQUEST, TAKEN, socket_path
from castle.store.locks import FileLock

POLL_SECONDS = 1.0
"""How often a server without the lock tries to get it, and one with it looks whether it is still wanted."""

REQUEST_SECONDS = 0.5
"""How long a request may take to come in."""

MOST_TOKENS = 2_000

Recall = Callable[[str, str | None, int], str]
"""Returns what is known of a prompt: the prompt, the directory it is written in, tokens at most."""

Read = Callable[[Mapping[str, object], Callable[[], None]], object]
"""Answers a command: its request, and what to call as soon as that is taken up. Returns what JSON knows."""

_BACKLOG = 16
_PIECE = 65_536
_log = logging.getLogger("castle.mcp")


class Listener:
    """Answers in threads of its own; ``root`` names the palace and may raise CastleError.

    Without ``read`` commands are not answered.
    """

    def __init__(self, root: Callable[[], Path], recall: Recall, read: Read | None = None) -> None:
        self._root = root
        self._recall = recall
        self._read = read
        self._places = threading.BoundedSemaphore(_BACKLOG)
        self._ended = threading.Event()
        self._guard = threading.RLock()
        self._path: Path | None = None

    def start(self) -> None:
        """Begin within a second; do nothing where the platform has no such sockets."""
        if not hasattr(socket, "AF_UNIX"):
            _log.debug("hooks cannot ask this server: the platform has no local sockets")
            return
        threading.Thread(target=self._run, name="castle-listener", daemon=True).start()

    def stop(self) -> None:
        """Remove the socket and answer no more; may be called by a handler of a signal."""
        self._ended.set()
        self._remove()

    def _run(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            try:
                root = self._root()
                if (root / "castle.db").is_file():
                    self._hold(root)
            except (CastleError, OSError) as error:
                _log.debug("hooks cannot ask this server: %s", error)

    def _hold(self, root: Path) -> None:
        """Answer for this palace, unless somebody else does."""
        _make_private(root / "run")
        with FileLock(root / "run" / "recall.lock") as held:
            if held:
                self._listen(root, Path(socket_path(str(root))))

    def _listen(self, root: Path, path: Path) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            place = self._bind(listening, path)
            try:
                while not self._ended.is_set() and _at(path) == place and (root / "castle.db").is_file():
                    try:
                        connection, _ = listening.accept()
                    except TimeoutError:
                        continue
                    self._places.acquire()
                    threading.Thread(
                        target=self._answer, args=(connection,), name="castle-answer", daemon=True
                    ).start()
            finally:
                self._remove()

    def _bind(self, listening: socket.socket, path: Path) -> tuple[int, int] | None:
        """Put the socket at its path, in the place of one that a dead server left; return its identity."""
        _make_private(path.parent)
        with self._guard:
            if self._ended.is_set():
                return None
            path.unlink(missing_ok=True)
            listening.bind(str(path))
            self._path = path
            path.chmod(0o600)
        listening.listen(_BACKLOG)
        listening.settimeout(POLL_SECONDS)
        return _at(path)

    def _remove(self) -> None:
        with self._guard:
            if self._path is not None:
                self._path.unlink(missing_ok=True)
                self._path = None

    def _answer(self, connection: socket.socket) -> None:
        try:
            with connection:
                if not _is_own_user(connection):
                    return
                connection.settimeout(REQUEST_SECONDS)
                answer = self._answered(_line(connection), lambda: _send(connection, TAKEN))
                _send(connection, answer)
        except OSError as error:
            _log.debug("somebody could not be answered: %s", error)
        finally:
            self._places.release()

    def _answered(self, line: bytes, taken: Callable[[], None]) -> Mapping[str, object]:
        try:
            request = _request(line)
            if "read" in request and self._read is not None:
                return {"value": self._read(request, taken)}
            return {"text": self._recall(*_prompt(request))}
        except (ValueError, RecursionError) as error:
            return {"text": "", "error": f"not a request: {error}"}
        except Exception as error:  # the edge of a thread: one request that fails is not the last one
            _log.debug("a request failed", exc_info=True)
            return {"text": "", "error": f"{type(error).__name__}: {error}"}


def _send(connection: socket.socket, answer: Mapping[str, object]) -> None:
    line = json.dumps(answer).encode() + b"\n"
    if len(line) > MOST_ANSWER:
        line = b'{"text": "", "error": "the answer is too long"}\n'
    connection.sendall(line)


def _make_private(directory: Path) -> None:
    """Make a directory that only this user can enter; PalaceError when it is somebody else's."""
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PalaceError(f"{directory} is not a directory of this user's own")
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        directory.chmod(0o700)


def _at(path: Path) -> tuple[int, int] | None:
    """Return what identifies the file at a path."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_own_user(connection: socket.socket) -> bool:
    """Whether a peer is this user; where the kernel does not tell, the directory has kept others out."""
    if sys.platform != "linux":
        return True
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(user == os.getuid())


def _line(connection: socket.socket) -> bytes:
    """Read one line; OSError when it is too long, or takes too long."""
    deadline = time.monotonic() + REQUEST_SECONDS
    pieces = bytearray()
    while b"\n" not in pieces:
        piece = connection.recv(_PIECE)
        pieces += piece
        if not piece:
            break
        if len(pieces) > MOST_REQUEST or time.monotonic() > deadline:
            raise OSError("the request is too long")
    return bytes(pieces.partition(b"\n")[0])


def _request(line: bytes) -> dict[str, object]:
    """Read a request; ValueError when it is none."""
    request = json.loads(line)
    if not isinstance(request, dict) or request.get("v") != 1:
        raise ValueError("version 1 is what this server speaks")
    return request


def _prompt(request: Mapping[str, object]) -> tuple[str, str | None, int]:
    """Return what a hook asks; ValueError when it is not what a hook asks."""
    prompt, cwd, most = request.get("prompt"), request.get("cwd") or None, request.get("max_tokens", 300)
    if not isinstance(prompt, str) or not isinstance(cwd, str | None):
        raise ValueError("prompt and cwd are texts")
    if type(most) is not int or not 1 <= most <= MOST_TOKENS:
        raise ValueError(f"max_tokens is a number from 1 to {MOST_TOKENS}")
    return prompt, cwd, most
