"""What the palace knows beside its words: facts, names, ways between wings, closets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from castle.arguments import user
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.mine.report import Progress
    from castle.store.closets import Closet, Compressed
    from castle.store.entities import Entities
    from castle.store.facts import Issue
    from castle.store.graph import Graph
    from castle.store.tunnels import Tunnels


class Knowing(Base):
    """What is known of people, projects and facts."""

    def check(self, *, stale_after_days: int = 365) -> list[Issue]:
        """Return contradictions, stale facts and similar names in the graph; changes nothing."""
        from castle.store.facts import check

        return check(self._palace().ledger, stale_after_days=stale_after_days)

    @property
    def kg(self) -> Graph:
        """The knowledge graph of the palace."""
        from castle.store.graph import Graph

        return Graph(self._palace().ledger, actor=user())

    @property
    def entities(self) -> Entities:
        """The people, projects and topics that are looked for in what is filed."""
        from castle.store.entities import Entities

        return Entities(self._palace().ledger, actor=user(), languages=self.settings.entity_languages)

    @property
    def tunnels(self) -> Tunnels:
        """The ways between the wings of the palace."""
        from castle.store.tunnels import Tunnels

        return Tunnels(self._palace().ledger, actor=user())

    def compress(
        self,
        wing: str | None = None,
        *,
        config: Path | str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Compressed:
        """Make AAAK lines and closets of what has changed; ``config`` is a JSON file with codes of names."""
        from castle.store.closets import compress
        from castle.text.aaak import load_dialect

        dialect = load_dialect(Path(config)) if config is not None else None
        return compress(self._palace().ledger, wing, dialect=dialect, dry_run=dry_run, progress=progress)

    def closets(self, *, wing: str | None = None, source: str | None = None) -> list[Closet]:
        """Return the pages of pointers that ``compress`` made, of a wing or of a source's key."""
        from castle.store.closets import read_closets

        return read_closets(self._palace().ledger, wing=wing, source=source)
