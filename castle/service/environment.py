"""Looking at a project's environment, so that what it makes out of date is no longer believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castle.arguments import legal, user
from castle.service.base import Base


@dataclass(frozen=True, slots=True)
class CheckedEntry:
    """A fact, procedure or preference with a condition, and what came of it: met, not_met or unknown."""

    kind: str
    id: str
    result: str
    reason: str
    expired: bool


@dataclass(frozen=True, slots=True)
class CheckedEnvironment:
    """What was found in a project's directory, how it differs from the last time, and what followed.

    ``environment`` holds the fields that were found, ``notes`` what could not be read. ``entries`` are those
    whose condition is met or cannot be told; ``checked`` counts all of them.
    """

    project: str
    wing: str
    environment: Mapping[str, Any]
    changed: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    checked: int
    entries: tuple[CheckedEntry, ...]
    notes: tuple[str, ...]
    dry_run: bool

    @property
    def expired(self) -> tuple[CheckedEntry, ...]:
        """The entries that are out of date because of this check."""
        return tuple(entry for entry in self.entries if entry.expired)


class Checking(Base):
    """What holds facts against the world."""

    def check_env(
        self, directory: Path | str = ".", *, wing: str | None = None, dry_run: bool = False
    ) -> CheckedEnvironment:
        """Collect the environment of a project and check what is believed in its wing against it.

        Manifests, lock files and the versions of tools are compared with the last time; facts, procedures and
        preferences whose condition is met expire, facts of the graph linked to them end. ``wing`` replaces
        that of the directory. A dry run only says what would be done. Raises UsageError for what is no
        directory.
        """
        from castle.mind.environment.checking import check_project
        from castle.mine.whereabouts import Whereabouts

        palace = self._palace()
        project = Path(directory).expanduser().absolute()
        with palace.ledger.read() as cx:
            named = Whereabouts(legal(wing) or None, "general").wing_of(cx, "", str(project), "")
        found, answer = check_project(palace, project, wing=named, dry_run=dry_run, actor=user())
        differs = answer["changes_detected"]
        return CheckedEnvironment(
            project=str(project),
            wing=named,
            environment=found.values,
            changed=tuple(differs["changed_fields"]),
            added=tuple(differs["added_fields"]),
            removed=tuple(differs["removed_fields"]),
            checked=answer["entries_checked"],
            entries=tuple(
                CheckedEntry(row["kind"], row["entry_id"], row["result"], row["reason"], row["expired"])
                for row in (*answer["triggered_entries"], *answer["unknown_entries"])
            ),
            notes=found.notes,
            dry_run=dry_run,
        )
