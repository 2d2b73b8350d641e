"""What the miners tell about their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from castle.records import Skipped

Progress = Callable[[str, int, int], None]
"""Called with a phase, the number done in it, and the number there are to do (0: not known)."""


@dataclass(frozen=True, slots=True)
class MineReport:
    """What a run of the miner did.

    ``files`` were considered; ``skipped`` could not be filed and make the run ``incomplete``; ``ignored``
    were left out by a rule. ``planned`` lists path, room and drawers of a dry run; ``notes`` are for people.
    """

    wing: str
    files: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    drawers_new: int = 0
    drawers_kept: int = 0
    drawers_superseded: int = 0
    rooms: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    ignored: tuple[Skipped, ...] = ()
    planned: tuple[tuple[str, str, int], ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    dry_run: bool = False
    interrupted: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether something that should have been filed was not."""
        return bool(self.skipped)


@dataclass(frozen=True, slots=True)
class SyncReport:
    """Filed files that are gone from disk, of how many that were looked for."""

    checked: int
    gone: tuple[str, ...]
    applied: bool
    drawers_superseded: int = 0


@dataclass(frozen=True, slots=True)
class ConvoReport:
    """What a run over transcripts did.

    ``kinds`` counts the messages that were met by kind, ``formats`` the transcripts that were read by format.
    ``private`` and ``recalled`` messages are counted and not stored.
    """

    transcripts: int = 0
    unchanged: int = 0
    sessions: int = 0
    sessions_new: int = 0
    messages_new: int = 0
    messages_known: int = 0
    drawers_new: int = 0
    drawers_superseded: int = 0
    private: int = 0
    recalled: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    ignored: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    dry_run: bool = False
    interrupted: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether something that should have been filed was not."""
        return bool(self.skipped)
