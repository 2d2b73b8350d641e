"""A palace on disk: its ledger, its projections, its locks and the embedder it was made for."""

from __future__ import annotations

import secrets
import shlex
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
from castle.errors import EmbedderIdentityMismatchError, ModelError, PalaceError
from castle.models.base import Embedder, EmbedderIdentity
from castle.models.registry import describe_embedder, load_embedder
from castle.models.remote import NOWHERE, Endpoint, is_remote
from castle.store.ledger import Ledger, get_value, set_value, to_json
from castle.store.locks import FileLock
from castle.store.spaces import IN_FORCE, Named, Space, in_force

if TYPE_CHECKING:
    from castle.store.lexicon import Lexicon
    from castle.store.vectors import Vectors

DEFAULT_EMBEDDER = "builtin"
POLL_SECONDS = 0.1

TOKEN_CACHE = "tokens.db"
"""What the built-in cross-encoder has computed; bounded, and computed again where it is missing."""


class Palace:
    """The open palace at ``root``.

    ``embedder`` names the embedder the user asked for explicitly, None when the palace's own is to be used.
    It decides when the palace is made, and raises the mismatch when it differs from the one recorded then.
    ``dim`` and ``identity`` are what its vectors must be where the user says so; others are a mismatch, too.
    """

    def __init__(
        self,
        root: Path,
        *,
        create: bool = False,
        embedder: str | None = None,
        dim: int | None = None,
        identity: str | None = None,
        device: str = "auto",
        endpoint: Endpoint = NOWHERE,
        clock: Clock = system_clock,
    ) -> None:
        if any(unicodedata.category(char) in ("Cc", "Cs") for char in str(root)):
            raise PalaceError(
                f"a palace cannot be at {str(root)!a}: control characters or bytes that are no UTF-8"
            )
        self.root = root
        self._wanted = embedder
        self._expected = (dim, identity)
        self._device = device
        self._endpoint = endpoint
        name = embedder or DEFAULT_EMBEDDER
        self.ledger = Ledger(root, create=create, clock=clock, first=lambda: self._embedder_of_new(name))
        self._space: Space | None = None
        self._spaces = threading.Lock()
        self.unready = ""
        """Why searches have to do without models now, "" when they need not.

        Who sets it says that models are loaded elsewhere, and that nobody is to wait for them.
        """
        self.asked = False
        """Whether vectors were compared already, so that opening their table pays."""
        if create:
            self._record_embedder(name)

    def close(self) -> None:
        """Close the ledger and whatever projection was opened."""
        if "lexicon" in self.__dict__:
            self.lexicon.close()
        if self._space is not None:
            self._space.close()
        self.ledger.close()

    @property
    def identity(self) -> EmbedderIdentity:
        """The embedder whose vectors the palace holds, read from the ledger at each use."""
        return self._in_force().identity

    @property
    def space(self) -> Space:
        """The embedder and the table that are in force, read from the ledger at each use.

        Whoever embeds and then looks in the table takes both from one of these: another process may put
        another one in force in between.
        """
        named = self._in_force()
        with self._spaces:
            if self._space is None or self._space.named != named:
                # The one before is not closed: another thread may be reading its table.
                self._space = Space(self.root, named, lambda: self._load(named.identity))
            return self._space

    @cached_property
    def salt(self) -> bytes:
        """The palace's own key for tags of sealed spans."""
        return bytes.fromhex(self.ledger.value("salt") or "")

    @cached_property
    def lexicon(self) -> Lexicon:
        """The index of words."""
        from castle.store.lexicon import Lexicon

        return Lexicon(self.root / "lexicon")

    @property
    def vectors(self) -> Vectors:
        """The table of vectors."""
        return self.space.vectors

    @property
    def embedder(self) -> Embedder:
        """The palace's embedder, loaded at first use, by whichever thread comes first.

        Raises EmbedderIdentityMismatchError when another one was asked for or the installed one has changed.
        """
        return self.space.embedder

    @property
    def opened(self) -> bool:
        """Whether both projections have been used; where the ledger names no vectors, words are enough."""
        used = "lexicon" in self.__dict__
        try:
            return used and self.space.opened
        except PalaceError:
            return used

    @property
    def embedder_loaded(self) -> bool:
        """Whether using the embedder costs no loading."""
        return self.space.loaded

    def want(self, embedder: str | None) -> None:
        """Ask for another embedder than the one that was asked for until now, whatever its vectors are."""
        self._wanted = embedder
        self._expected = (None, None)

    def check_embedder(self) -> None:
        """Raise EmbedderIdentityMismatchError unless the palace's embedder is the one to be used.

        One behind a server is not asked for this: it is when it is loaded.
        """
        self._check(self.identity)

    def _check(self, stored: EmbedderIdentity) -> None:
        name = self._wanted or stored.name
        if is_remote(name) and name == stored.name:
            self._must_be_expected(stored)
            return
        try:
            wanted = describe_embedder(name, self._endpoint)
        except ModelError:
            if is_remote(name):
                raise self._mismatch(stored, name, None) from None
            raise
        self._must_be_expected(wanted)
        if wanted.identity != stored.identity:
            raise self._mismatch(stored, name, wanted)

    def _must_be_expected(self, found: EmbedderIdentity) -> None:
        """Refuse an embedder whose vectors are others than the settings say."""
        made = (found.dim, found.identity)
        for key, value, own in zip(("embedder_dim", "embedder_identity"), self._expected, made, strict=True):
            if value is not None and value != own:
                raise EmbedderIdentityMismatchError(
                    f"{key} asks for {value}, {found.name} makes {own}: go by the embedder with `castle "
                    f"config unset {key}`, or name another with `castle config set embedder_model NAME`"
                )

    def _in_force(self) -> Named:
        with self.ledger.read() as cx:
            try:
                return in_force(cx)
            except PalaceError as error:
                raise PalaceError(f"{self.ledger.path}: {error}") from error

    def _load(self, stored: EmbedderIdentity) -> Embedder:
        self._check(stored)
        name = self._wanted or stored.name
        found = load_embedder(name, self._device, self._endpoint)
        if found.identity.identity != stored.identity:
            raise self._mismatch(stored, name, found.identity)
        return found

    def _mismatch(
        self, stored: EmbedderIdentity, name: str, wanted: EmbedderIdentity | None
    ) -> EmbedderIdentityMismatchError:
        """Return the error that names the two ways out; ``wanted`` is None where nobody could be asked."""
        dim = f" --embedder-dim {wanted.dim}" if wanted else ""
        place, asked = shlex.quote(str(self.root)), shlex.quote(name)
        holds = f"palace {self.root} holds vectors of {stored.identity} (dim {stored.dim})"
        makes = f"{wanted.identity} (dim {wanted.dim})" if wanted else name
        anew = f"make them anew with `castle reindex --palace {place} --embedder {asked}{dim} --yes`"
        if name == stored.name:
            return EmbedderIdentityMismatchError(
                f"{holds}, {name} makes those of {makes} now: {anew}, or install again what made them"
            )
        return EmbedderIdentityMismatchError(
            f"{holds}, asked for is {makes}: {anew}, or keep them with `castle config set embedder_model "
            f"{shlex.quote(stored.name)}`"
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

    def _embedder_of_new(self, name: str) -> dict[str, str]:
        found = describe_embedder(name, self._endpoint)
        self._must_be_expected(found)
        return {IN_FORCE: to_json(Named(found).stored())}

    def _record_embedder(self, name: str) -> None:
        """Record the embedder where none is yet; an unknown name raises ModelError in any case."""
        if self.ledger.value(IN_FORCE) is not None:
            if not is_remote(name):
                describe_embedder(name, self._endpoint)
            return
        rows = self._embedder_of_new(name)
        with self.ledger.write() as cx:
            for key, value in rows.items():
                if get_value(cx, key) is None:
                    set_value(cx, key, value)
