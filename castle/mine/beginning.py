"""The hash of all that a transcript was read to, which tells whether a reading may go on from there."""

from __future__ import annotations

import hashlib

from castle.mine.formats import Transcript

_PIECE = 1 << 20


class Beginning:
    """The beginning of one transcript, hashed once however often its end is moved on."""

    def __init__(self, transcript: Transcript) -> None:
        self._path = transcript.box.local(transcript.name)
        self._digest = hashlib.sha256()
        self._at = 0

    def up_to(self, offset: int) -> bytes:
        """Return the hash of the first ``offset`` bytes; b"" when there are fewer, or no file of its own."""
        if self._path is None or not self._path.is_file():
            return b""
        if offset < self._at:
            self._digest, self._at = hashlib.sha256(), 0
        with self._path.open("rb") as file:
            file.seek(self._at)
            while self._at < offset:
                piece = file.read(min(_PIECE, offset - self._at))
                if not piece:
                    return b""
                self._digest.update(piece)
                self._at += len(piece)
        return self._digest.digest()
