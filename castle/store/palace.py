"""A palace on disk: its ledger, its projections, its locks and the embedder it was made for."""

from __future__ import annotations

import json
import secrets
import shutil
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from castle.clock import Clock, system_clock
from castle.errors import EmbedderIdentityMismatchError, PalaceError
from castle.models.base import Embedder, EmbedderIdentity
from castle.models.registry import describe_embedder, load_embedder
from castle.store.ledger import Ledger, set_value, to_json
from castle.store.locks import FileLock

if TYPE_CHECKING:
    from castle.store.lexicon import Lexicon
    from castle.store.vectors import Vectors

DEFAULT_EMBEDDER = "builtin"
POLL_SECONDS = 0.1

# Whoever imports the native libraries has to do it alone: a thread that meets numpy half imported fails.
_NATIVE = threading.RLock()

TOKEN_CACHE = "tokens.db"
"""What the built-in cross-encoder has computed; bounded, and computed again where it is missing."""


class Palace:
    """The open palace at ``root``.

    ``embedder`` names the embedder the user asked for explicitly, None when the palace's own is to be used.
    It decides when the palace is made, and raises the mismatch when it differs from the one recorded then.
    """

    def __init__(
        self,
        root: Path,
        *,
        create: bool = False,
        embedder: str | None = None,
        device: str = "auto",
        clock: Clock = system_clock,
    ) -> None:
        if any(unicodedata.category(char) in ("Cc", "Cs") for char in str(root)):
            raise PalaceError(
                f"a palace cannot be at {str(root)!a}: control characters or bytes that are no UTF-8"
            )
        self.root = root
        self.ledger = Ledger(root, create=create, clock=clock)
        self._wanted = embedder
        self._device = device
        self._embedder: Embedder | None = None
        self.unready = ""
        """Why searches have to do without models now, "" when they need not.

        Who sets it says that models are loaded elsewhere, and that nobody is to wait for them.
        """
        if create:
            self._record_embedder(describe_embedder(embedder or DEFAULT_EMBEDDER))

    def close(self) -> None:
        """Close the ledger and whatever projection was opened."""
        for name in ("lexicon", "vectors"):
            if name in self.__dict__:
                self.__dict__[name].close()
        self.ledger.close()

    @property
    def identity(self) -> EmbedderIdentity:
        """The embedder whose vectors the palace holds, read from the ledger at each use."""
        try:
            stored = json.loads(self.ledger.value("embedder") or "{}")
            found = EmbedderIdentity(str(stored["name"]), int(stored["dim"]), str(stored["identity"]))
        except (ValueError, KeyError, TypeError) as error:
            raise PalaceError(
                f"{self.ledger.path} does not say which embedder it is for: it is damaged"
            ) from error
        return found

    @cached_property
    def salt(self) -> bytes:
        """The palace's own key for tags of sealed spans."""
        return bytes.fromhex(self.ledger.value("salt") or "")

    @cached_property
    def lexicon(self) -> Lexicon:
        """The index of words."""
        from castle.store.lexicon import Lexicon

        return Lexicon(self.root / "lexicon")

    @cached_property
    def vectors(self) -> Vectors:
        """The table of vectors."""
        with _NATIVE:
            from castle.store.lance import import_lancedb
            from castle.store.vectors import Vectors

            import_lancedb()
            return Vectors(self.root / "drawers.lance", self.identity)

    @property
    def embedder(self) -> Embedder:
        """The palace's embedder, loaded at first use, by whichever thread comes first.

        Raises EmbedderIdentityMismatchError when another one was asked for or the installed one has changed.
        """
        with _NATIVE:
            if self._embedder is None:
                self.check_embedder()
                self._embedder = load_embedder(self._wanted or self.identity.name, self._device)
            return self._embedder

    @property
    def opened(self) -> bool:
        """Whether both projections have been used."""
        return {"lexicon", "vectors"} <= self.__dict__.keys()

    @property
    def embedder_loaded(self) -> bool:
        """Whether using the embedder costs no loading."""
        return self._embedder is not None

    def check_embedder(self) -> None:
        """Raise EmbedderIdentityMismatchError unless the palace's embedder is the one to be used."""
        stored = self.identity
        wanted = describe_embedder(self._wanted or stored.name)
        if wanted.identity == stored.identity:
            return
        raise EmbedderIdentityMismatchError(
            f"palace {self.root} holds vectors of {stored.identity} (dim {stored.dim}), asked for is "
            f"{wanted.identity} (dim {wanted.dim}): keep the first with `castle config set embedder_model "
            f"{stored.name}`, or make a palace for the second with --palace"
        )

    def clear_the_way(self) -> None:
        """Delete indexes that were thrown away by a process that was killed over it.

        A file in the place of an index is not ours: it gets another name.
        """
        for pattern in ("lexicon.discarded-*", "drawers.lance/*.discarded-*"):
            for old in self.root.glob(pattern):
                shutil.rmtree(old, ignore_errors=True)
        for name in ("lexicon", "drawers.lance"):
            place = self.root / name
            if place.is_file():
                with suppress(FileNotFoundError):
                    place.rename(place.with_name(f"{name}.in-the-way-{secrets.token_hex(4)}"))

    def lock(self, name: str) -> FileLock:
        """Return the kernel lock of a projection, not yet taken."""
        return FileLock(self.root / f"{name}.lock")

    @contextmanager
    def exclusively(self, name: str) -> Iterator[None]:
        """Hold a projection's lock, waiting for it; raises PalaceError when it cannot be taken."""
        lock = self.lock(name)
        while not lock.try_acquire():
            if not lock.reason.startswith("held"):
                raise PalaceError(f"the lock of {name} cannot be taken: {lock.reason}")
            time.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            lock.release()

    def _record_embedder(self, identity: EmbedderIdentity) -> None:
        with self.ledger.write() as cx:
            known = cx.exec_driver_sql("SELECT 1 FROM meta WHERE key = 'embedder'").first()
            if known is None:
                value = {"name": identity.name, "dim": identity.dim, "identity": identity.identity}
                set_value(cx, "embedder", to_json(value))
