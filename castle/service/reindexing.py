"""Making a palace's vectors anew, with the same embedder or with another."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from castle.arguments import legal
from castle.errors import ModelError, UsageError
from castle.service.filing import Filing

if TYPE_CHECKING:
    from castle.mine.report import ConvoReport, MineReport
    from castle.models.base import Embedder
    from castle.store.reindex import Progress, Reindexed, ReindexPlan


@dataclass(frozen=True, slots=True)
class ReindexReport:
    """What a reindex did, what was mined after it, and what the person should know."""

    done: Reindexed
    mined: tuple[MineReport | ConvoReport, ...] = ()
    notes: tuple[str, ...] = ()


class Reindexing(Filing):
    """What exchanges the embedder of a palace."""

    _loaded: Embedder | None = None
    """The embedder that was planned with, so that it is loaded once."""

    def plan_reindex(
        self,
        *,
        embedder: str | None = None,
        embedder_dim: int | None = None,
        sources: Sequence[Path | str] = (),
    ) -> ReindexPlan:
        """Say what ``reindex`` would do with these arguments, and how long; changes nothing.

        Loads the embedder. Raises what ``reindex`` raises before it begins.
        """
        from castle.store.reindex import plan

        _must_exist(sources)
        return plan(self._palace(), self._target(embedder, embedder_dim))

    def reindex(
        self,
        *,
        embedder: str | None = None,
        embedder_dim: int | None = None,
        sources: Sequence[Path | str] = (),
        progress: Progress | None = None,
    ) -> ReindexReport:
        """Make the vectors of every drawer anew from the ledger, then mine ``sources`` again, if any.

        ``embedder`` names another embedder for the palace, ``embedder_dim`` the length of its vectors where
        that is to be checked. Searches use the vectors there were until all are made; an interrupted call
        goes on where it was. Raises UsageError when the arguments do not fit, ModelError when the embedder
        cannot be loaded, PalaceBusyError when another process is at it.
        """
        from castle.store.reindex import reindex

        _must_exist(sources)
        target = self._target(embedder, embedder_dim)
        notes = self._asks_for_another(target)
        done = reindex(self._palace(), target, progress)
        mined = tuple(self.mine(Path(source), progress=progress) for source in sources)
        return ReindexReport(done, mined, notes)

    def _target(self, name: str | None, dim: int | None) -> Embedder:
        """Return the embedder that is asked for, or that of the palace; raises UsageError and ModelError."""
        from castle.models.registry import describe_embedder, load_embedder

        if name is None and dim is not None:
            raise UsageError("--embedder-dim goes with --embedder NAME")
        stored = self._palace().identity
        wanted = legal(name) or stored.name
        if name is None:
            self._must_not_differ()
        found = describe_embedder(wanted, self._endpoint)
        if dim is not None and dim != found.dim:
            raise UsageError(
                f"the embedder {wanted} makes vectors of {found.dim}, not of {dim}: "
                f"--embedder {shlex.quote(wanted)} --embedder-dim {found.dim}"
            )
        if self._loaded is None or self._loaded.identity != found:
            self._loaded = load_embedder(wanted, self.settings.embedding_device, self._endpoint)
        return self._loaded

    def _must_not_differ(self) -> None:
        """Refuse to guess which embedder is meant when the settings ask for another than the palace's."""
        stored, asked = self._palace().identity.name, self.settings.embedder_model
        if self._is_asked_for(stored):
            return
        raise UsageError(
            f"the palace holds vectors of {stored}, embedder_model asks for {asked} "
            f"({self.settings.origin('embedder_model')}): name one with --embedder"
        )

    def _asks_for_another(self, target: Embedder) -> tuple[str, ...]:
        """Return notes when the settings will ask for other vectors than the palace's new ones."""
        made = target.identity
        right = {
            "embedder_model": made.name if not self._is_asked_for(made.name) else None,
            "embedder_dim": made.dim if self.settings.embedder_dim not in (None, made.dim) else None,
            "embedder_identity": made.identity
            if self.settings.embedder_identity not in (None, made.identity)
            else None,
        }
        return tuple(
            f"{key} still asks for {getattr(self.settings, key)} ({self.settings.origin(key)}), and searches "
            f"go by words only while it does: castle config set {key} {shlex.quote(str(value))}"
            for key, value in right.items()
            if value is not None
        )

    def _is_asked_for(self, name: str) -> bool:
        """Whether the settings leave the embedder open, or mean this one."""
        from castle.models.registry import describe_embedder
        from castle.models.remote import is_remote

        asked = self.settings.embedder_model
        if self.settings.origin("embedder_model") == "default" or asked == name:
            return True
        if is_remote(asked) or is_remote(name):
            return False
        try:
            return describe_embedder(asked).identity == describe_embedder(name).identity
        except ModelError:
            return False


def _must_exist(sources: Sequence[Path | str]) -> None:
    for source in sources:
        if not Path(source).exists():
            raise UsageError(f"there is nothing at {source}: name a directory or a transcript with --sources")
