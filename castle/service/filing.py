"""Filing: projects, conversations and diaries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from castle.arguments import user
from castle.errors import PalaceBusyError, UsageError
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.mine.diary import Entries, Entry
    from castle.mine.layout import Plan
    from castle.mine.modes import Mode
    from castle.mine.report import ConvoReport, MineReport, Progress, SyncReport
    from castle.mine.split import SplitReport

Extract = Literal["exchange", "general"]
Report = TypeVar("Report", "MineReport", "ConvoReport")
NOVELTY_SECONDS = 2.0


class Filing(Base):
    """What brings words into the palace."""

    def plan(self, directory: Path | str) -> Plan:
        """Say how a directory would be filed: wing, rooms, files and bytes; changes nothing."""
        from castle.mine.layout import plan

        return plan(Path(directory))

    def init(self, directory: Path | str, plan: Plan | None = None) -> Path | None:
        """Write the project's ``castle.yaml``; return its path, None when one was there already."""
        from castle.mine.layout import write_plan

        return write_plan(plan or self.plan(directory))

    def mine(
        self,
        path: Path | str,
        *,
        mode: Mode = "auto",
        wing: str | None = None,
        gitignore: bool = True,
        include_ignored: Sequence[str] = (),
        agent: str = "cognitive-castle",
        limit: int = 0,
        extract: Extract = "exchange",
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> MineReport | ConvoReport:
        """File a project's text files, or the messages of transcripts, then bring the indexes up to date.

        ``mode`` auto tells the two apart by content. ``limit`` files at most are read (0: all). ``extract``
        general labels each message with its type of memory. A KeyboardInterrupt loses nothing that was filed;
        the same call goes on. Raises UsageError when there is nothing at ``path``.
        """
        from castle.mine.modes import MODES, mode_of

        if mode not in MODES:
            raise UsageError(f"mode {mode!r} is none of {', '.join(MODES)}")
        if (mode_of(Path(path)) if mode == "auto" else mode) == "convos":
            return self.mine_conversations(
                path, wing=wing, agent=agent, limit=limit, extract=extract, dry_run=dry_run, progress=progress
            )
        return self.mine_project(
            path,
            wing=wing,
            gitignore=gitignore,
            include_ignored=include_ignored,
            agent=agent,
            limit=limit,
            dry_run=dry_run,
            progress=progress,
        )

    def mine_project(
        self,
        path: Path | str,
        *,
        wing: str | None = None,
        gitignore: bool = True,
        include_ignored: Sequence[str] = (),
        agent: str = "cognitive-castle",
        limit: int = 0,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> MineReport:
        """File a project's text files; see ``mine``."""
        from castle.mine.project import MineOptions, mine

        options = MineOptions(wing, gitignore, tuple(include_ignored), agent, limit, dry_run)
        palace = None if dry_run and not self._exists() else self._palace(create=not dry_run)
        report = mine(palace, Path(path), options, self.settings, progress)
        root = Path(path).resolve()
        return self._learn(report, root if root.is_dir() else root.parent)

    def mine_conversations(
        self,
        path: Path | str,
        *,
        wing: str | None = None,
        agent: str = "cognitive-castle",
        limit: int = 0,
        extract: Extract = "exchange",
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ConvoReport:
        """File the messages of a transcript, an export or a folder of them; see ``mine``."""
        from castle.mine.convos import ConvoOptions, mine_conversations

        if extract not in ("exchange", "general"):
            raise UsageError(f"extract {extract!r} is neither exchange nor general")
        options = ConvoOptions(wing, agent, limit, dry_run, extract == "general")
        palace = None if dry_run and not self._exists() else self._palace(create=not dry_run)
        return self._learn(mine_conversations(palace, Path(path), options, self.settings, progress), None)

    def sync(self, path: Path | str, *, apply: bool = False, actor: str | None = None) -> SyncReport:
        """Report a project's filed files that are gone from disk; ``apply`` marks their drawers superseded.

        Raises RefusedError when the whole directory is missing or none of its files is there.
        """
        from castle.mine.sync import sync

        report = sync(self._palace(), Path(path), apply, actor or user())
        if apply:
            self._render()
        return report

    def split(
        self,
        path: Path | str,
        *,
        output: Path | str | None = None,
        dry_run: bool = False,
        min_sessions: int = 2,
    ) -> SplitReport:
        """Cut text files that hold several terminal sessions into one file each; no byte is lost."""
        from castle.mine.split import split

        target = Path(output) if output is not None else None
        return split(Path(path), output=target, dry_run=dry_run, min_sessions=min_sessions)

    def diary_write(self, agent: str, text: str, *, topic: str = "general", wing: str | None = None) -> Entry:
        """File an entry of an agent's diary, by default in wing ``wing_AGENT``; entries are never changed."""
        from castle.mine.diary import write

        entry = write(self._palace(create=True), agent, text, topic=topic, wing=wing)
        self._refresh()
        self._render()
        return entry

    def diary_read(self, agent: str, *, last: int = 10, wing: str | None = None) -> Entries:
        """Return an agent's last diary entries, newest first, from all wings or from one."""
        from castle.mine.diary import read

        return read(self._palace(), agent, last=last, wing=wing)

    def diary_ingest(
        self, directory: Path | str, *, wing: str = "diary", progress: Progress | None = None
    ) -> MineReport:
        """File the day files (``YYYY-MM-DD*.md``) of a directory; a changed one becomes a new revision."""
        from castle.mine.diary import ingest

        report = ingest(self._palace(create=True), Path(directory), wing=wing, progress=progress)
        self._render()
        return report

    def _learn(self, report: Report, root: Path | None) -> Report:
        """Register the names that a run of a miner brought; ``root`` is the project's directory."""
        if report.dry_run or report.interrupted:
            return report
        from castle.mine.learning import learn
        from castle.novelty import refresh

        notes: tuple[str, ...] = ()
        try:
            notes = learn(self._palace(), self.settings, root, user()).notes
            refresh(self._palace(), NOVELTY_SECONDS)
            with suppress(PalaceBusyError):
                self._palace().ledger.analyze()
            self._render()
        except KeyboardInterrupt:
            return replace(report, interrupted=True)
        return replace(report, notes=(*report.notes, *notes))
