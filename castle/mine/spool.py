"""Draining the spool: filing every transcript that a hook has named, then removing exactly those events."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from castle.errors import CastleError
from castle.mine.formats.container import NO_TRANSCRIPT
from castle.mine.report import ConvoReport
from castle.records import Skipped
from castle.store.locks import FileLock
from castle.store.projects import path_text
from castle.store.spool import FOLDER, LOCK, Event, read, settle, take

GIVE_UP_AFTER = 30 * 86_400_000_000
"""For how long, in microseconds, a transcript that cannot be filed is tried again."""

ANSWERED = ("stop", "precompact")
"""Hooks that run only when there is something to file; before and after, a transcript may not exist."""

File = Callable[[Path], ConvoReport]


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What a run over the spool did.

    ``events`` named ``transcripts`` different files, of which ``filed`` were read. ``kept`` events wait for
    the next run, because of what ``skipped`` says; ``given_up`` were tried for 30 days and are let go.
    """

    events: int = 0
    transcripts: int = 0
    filed: int = 0
    messages_new: int = 0
    drawers_new: int = 0
    kept: int = 0
    given_up: int = 0
    skipped: tuple[Skipped, ...] = ()
    ignored: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether something that should have been filed was not."""
        return bool(self.skipped)


def drain(root: Path, now: int, file: File) -> DrainReport:
    """Call ``file`` with every transcript that the spool of the palace at ``root`` names.

    Safe to kill at any point and to call from several processes: what was taken and not finished is taken
    again.
    """
    folder = root / FOLDER
    if not folder.is_dir():
        return DrainReport()
    lock = FileLock(folder / LOCK)
    with lock as held:
        if not held:
            return DrainReport(notes=(f"the spool is not drained here: its lock is {lock.reason}",))
        files = take(root)
        events, unreadable = read(files)
        drainer = _Drainer(file, now)
        drainer.run(events)
        settle(root, files, drainer.kept, unreadable)
        if unreadable:
            detail = f"lines that are no event were moved there: {len(unreadable)}"
            drainer.skipped.append(Skipped(f"{FOLDER}/unreadable.jsonl", "broken", detail))
        return drainer.report(len(events))


class _Drainer:
    """One run over some events."""

    def __init__(self, file: File, now: int) -> None:
        self._file = file
        self._now = now
        self._reports: list[ConvoReport] = []
        self._transcripts = 0
        self._given_up = 0
        self._interrupted = False
        self.kept: list[Event] = []
        self.skipped: list[Skipped] = []

    def run(self, events: Sequence[Event]) -> None:
        """File each transcript once, in the order in which they were first named."""
        by_transcript: dict[str, list[Event]] = {}
        for event in events:
            by_transcript.setdefault(event.transcript, []).append(event)
        self._transcripts = len(by_transcript)
        for transcript, named in by_transcript.items():
            if self._interrupted:
                self.kept += named
                continue
            trouble = self._one(Path(transcript), named)
            if trouble:
                self._keep(transcript, named, trouble)

    def report(self, events: int) -> DrainReport:
        """Say what was done."""
        skips = [skip for report in self._reports for skip in unread(report)]
        return DrainReport(
            events=events,
            transcripts=self._transcripts,
            filed=sum(report.transcripts for report in self._reports),
            messages_new=sum(report.messages_new for report in self._reports),
            drawers_new=sum(report.drawers_new for report in self._reports),
            kept=len(self.kept),
            given_up=self._given_up,
            skipped=(*skips, *self.skipped),
            ignored=tuple(
                skip
                for report in self._reports
                for skip in (*report.ignored, *(s for s in report.skipped if s.reason == NO_TRANSCRIPT))
            ),
            notes=tuple(dict.fromkeys(note for report in self._reports for note in report.notes)),
            interrupted=self._interrupted,
        )

    def _one(self, path: Path, named: Sequence[Event]) -> str:
        """File a transcript; return why its events have to wait, "" when they need not."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                return "not a regular file"
            report = self._file(path)
        except FileNotFoundError:
            return "missing" if any(event.hook in ANSWERED for event in named) else ""
        except (CastleError, OSError) as error:
            return str(error)
        except KeyboardInterrupt:
            self._interrupted = True
            self.kept += named
            return ""
        self._reports.append(report)
        if report.interrupted:
            self._interrupted = True
            self.kept += named
            return ""
        return "nothing in it could be read" if unread(report) and not report.transcripts else ""

    def _keep(self, transcript: str, named: Sequence[Event], trouble: str) -> None:
        young = [event for event in named if self._now - event.at < GIVE_UP_AFTER]
        self.kept += young
        self._given_up += len(named) - len(young)
        tried = "is tried again" if young else "was tried for 30 days and is let go"
        self.skipped.append(Skipped(path_text(transcript), trouble, tried))


def unread(report: ConvoReport) -> list[Skipped]:
    """Return what should have been filed and was not; a file without a conversation has nothing to file."""
    return [skip for skip in report.skipped if skip.reason != NO_TRANSCRIPT]
