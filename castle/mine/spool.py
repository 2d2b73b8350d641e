"""Draining the spool: filing every transcript that a hook has named, then removing exactly those events."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import Connection

from castle.errors import CastleError, PalaceBusyError, PalaceError
from castle.mine.formats.container import NO_TRANSCRIPT
from castle.mine.optout import opted_out, session_directories
from castle.mine.receipts import Comparison, compare, read_again
from castle.mine.report import ConvoReport
from castle.mine.turns import legal
from castle.records import Skipped
from castle.store.drafts import reason
from castle.store.locks import FileLock
from castle.store.palace import Palace
from castle.store.projects import can_name, path_text
from castle.store.receipts import Receipt, State, last_failed, record, saved_since
from castle.store.receipts import dismiss as dismiss_receipts
from castle.store.spool import (
    FOLDER,
    LOCK,
    Event,
    in_the_way,
    lost,
    read,
    settle,
    take,
    tell_failure,
    tell_success,
    told,
)
from castle.text.served import mask_secrets

QUIET_AFTER = 86_400_000_000
"""For how long, in microseconds, sessions begin with word of a missing transcript, when others are saved."""

GIVE_UP_AFTER = 30 * 86_400_000_000
"""For how long, in microseconds, a transcript that cannot be filed is tried again."""

ANSWERED = ("stop", "precompact")
"""Hooks that run only when there is something to file; before and after, a transcript may not exist."""

SAVING = (*ANSWERED, "session-end")
LATE = "late"
"""The hook of an event that the drainer notes itself, for a transcript that grew after it was filed."""

BUSY = "the spool is not drained here: its lock is held by another process"
MISSING = "missing"
NAMELESS = "no file can have such a path"
UNKNOWN = "no conversation is recognised in it"
HOPELESS = (NAMELESS, UNKNOWN)
"""What trying again does not change."""

File = Callable[[Path], ConvoReport]
OpenPalace = Callable[[], Palace]
Stamp = tuple[int, int]
"""Size and time of a file, in bytes and nanoseconds."""


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What a run over the spool did.

    ``events`` named ``transcripts`` different files, of which ``filed`` were read. ``kept`` events wait for
    the next run, because of what ``skipped`` says; ``given_up`` were tried for 30 days and are let go.
    ``failed`` saves left a receipt that says why. ``saved`` are the transcripts that were filed, as they were
    before. ``locked_out``: nothing was done, because another process drains, or the lock cannot be had.
    """

    events: int = 0
    transcripts: int = 0
    filed: int = 0
    messages_new: int = 0
    drawers_new: int = 0
    kept: int = 0
    given_up: int = 0
    failed: int = 0
    saved: Mapping[str, Stamp] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    ignored: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    locked_out: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether something that should have been filed was not."""
        return bool(self.skipped or self.failed)


def drain(root: Path, now: int, open_palace: OpenPalace, file: File, home: Path) -> DrainReport:
    """Call ``file`` with every transcript that the spool of the palace at ``root`` names.

    Each save leaves a receipt. ``home`` is Castle's own directory. Safe to kill at any point and to call from
    several processes: what was taken and not finished is taken again.
    """
    folder = root / FOLDER
    trouble = in_the_way(root)
    if not folder.is_dir():
        return DrainReport(skipped=(Skipped(FOLDER, trouble),) if trouble else ())
    lock = FileLock(folder / LOCK)
    with lock as held:
        if not held:
            note = f"the spool is not drained here: its lock is {lock.reason}"
            return DrainReport(notes=(note,), locked_out=True)
        files = take(root)
        events, unreadable = read(files)
        dropped = lost(unreadable)
        unreadable = [line for line in unreadable if not lost([line])]
        drainer = _Drainer(open_palace, file, now, home)
        drainer.run(events)
        if dropped:
            drainer.lose(dropped)
        if trouble:
            drainer.skipped.append(Skipped(FOLDER, trouble))
        drainer.tell(root, bool(events or dropped or told(root)))
        try:
            settle(root, files, drainer.kept, unreadable)
        except OSError as error:
            raise PalaceError(
                f"{folder} cannot be written: {reason(error)}; what was noted there waits for the next sweep"
            ) from error
        if unreadable:
            detail = f"lines that are no event were moved there: {len(unreadable)}"
            drainer.skipped.append(Skipped(f"{FOLDER}/unreadable.jsonl", "broken", detail))
        return drainer.report(len(events))


@dataclass(frozen=True, slots=True)
class Dismissed:
    """A save that is not asked for any more; ``gone`` when there is no transcript left to save from."""

    receipt: Receipt
    gone: bool


def dismiss(palace: Palace, name: str, now: int) -> tuple[Dismissed, ...]:
    """Settle the saves of a receipt's id, or of a session, that are not ok, and let go of their events.

    Events of a transcript that is still there stay, and are tried again. Raises NotFoundError, UsageError,
    and PalaceBusyError while another process drains.
    """
    root = palace.root
    lock = FileLock(root / FOLDER / LOCK)
    spooled = (root / FOLDER).is_dir()
    with ExitStack() as stack:
        if spooled and not stack.enter_context(lock):
            raise PalaceBusyError(
                f"the spool is being drained: its lock is {lock.reason}; try again in a moment"
            )
        with palace.ledger.write() as cx:
            settled = dismiss_receipts(cx, name, now)
            failure = last_failed(cx)
        found = tuple(Dismissed(one, not Path(one.transcript).exists()) for one in settled)
        if spooled:
            gone = {one.receipt.transcript for one in found if one.gone}
            files = take(root)
            events, unreadable = read(files)
            kept = [event for event in events if path_text(event.transcript) not in gone]
            # Lines that are no event are the next drainer's affair, which tells of them.
            settle(root, files, [*kept, *(Event(line, 0, "", "", "", "") for line in unreadable)], ())
            word = told(root)
            if word is None or word.transcript in {one.transcript for one in settled}:
                _tell(root, failure)
    return found


def _tell(root: Path, failure: Receipt | None) -> None:
    """Leave word of a failure for the beginning of the next session, or take it back."""
    if failure is None:
        tell_success(root)
    else:
        tell_failure(root, failure.at, failure.session, failure.transcript, failure.detail)


class _Drainer:
    """One run over some events."""

    def __init__(self, open_palace: OpenPalace, file: File, now: int, home: Path) -> None:
        self._open_palace = open_palace
        self._file = file
        self._now = now
        self._home = home
        self._reports: list[ConvoReport] = []
        self._transcripts = 0
        self._filed = 0
        self._given_up = 0
        self._failed = 0
        self._interrupted = False
        self._unrecorded: Receipt | None = None
        self._missing: dict[str, int] = {}
        self._ignored: list[Skipped] = []
        self._saved: dict[str, Stamp] = {}
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
            receipt = self._one(Path(transcript), named)
            if receipt is None:
                continue
            if receipt.state != "ok":
                receipt = self._keep(transcript, named, receipt)
            self._record(receipt)

    def lose(self, count: int) -> None:
        """Leave a receipt for events that found no room anywhere."""
        what = "1 event" if count == 1 else f"{count} events"
        detail = f"{what} of hooks found no room: `castle mine DIR` files the transcripts"
        self.skipped.append(Skipped(FOLDER, detail))
        self._failed += 1
        self._record(_receipt(self._now, (), "failed", detail))

    def tell(self, root: Path, ran: bool) -> None:
        """Leave word for the beginning of the next session, of the last save that failed."""
        failure = self._unrecorded
        if failure is None and ran:
            try:
                with self._open_palace().ledger.read() as cx:
                    failure = last_failed(cx, self._long_gone(cx))
            except CastleError as error:
                failure = _receipt(self._now, (), "failed", str(error))
        if failure is not None or ran:
            _tell(root, failure)

    def _long_gone(self, cx: Connection) -> list[str]:
        """Return the transcripts that have been missing for a day, while others were saved."""
        old = [(path, at) for path, at in self._missing.items() if self._now - at > QUIET_AFTER]
        return [path for path, at in old if saved_since(cx, at)]

    def report(self, events: int) -> DrainReport:
        """Say what was done."""
        skips = dict.fromkeys(skip for report in self._reports for skip in unread(report))
        ignored = [
            skip
            for report in self._reports
            for skip in (*report.ignored, *(s for s in report.skipped if s.reason == NO_TRANSCRIPT))
        ]
        return DrainReport(
            events=events,
            transcripts=self._transcripts,
            filed=self._filed,
            messages_new=sum(report.messages_new for report in self._reports),
            drawers_new=sum(report.drawers_new for report in self._reports),
            kept=len(self.kept),
            given_up=self._given_up,
            failed=self._failed,
            saved=self._saved,
            skipped=(*skips, *self.skipped),
            ignored=tuple(dict.fromkeys((*ignored, *self._ignored))),
            notes=tuple(dict.fromkeys(note for report in self._reports for note in report.notes)),
            interrupted=self._interrupted,
        )

    def _one(self, path: Path, named: Sequence[Event]) -> Receipt | None:
        """File a transcript; return the receipt, None when there was nothing to be saved."""
        if not can_name(path):
            return _receipt(self._now, named, "failed", NAMELESS)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                return _receipt(self._now, named, "failed", "not a regular file")
            reason = opted_out([*(event.cwd for event in named), *session_directories(path)], self._home)
            if reason:
                self._ignored.append(Skipped(path_text(path), "ignored: opted out", reason))
                return _receipt(self._now, named, "ok", f"opted out: {reason}")
            return self._save(path, named, stamp(status))
        except FileNotFoundError:
            answered = any(event.hook in ANSWERED for event in named)
            return _receipt(self._now, named, "failed", MISSING) if answered else None
        except (CastleError, OSError) as error:
            return _receipt(self._now, named, "failed", str(error))
        except KeyboardInterrupt:
            self._interrupted = True
            self.kept += named
            return None
        except Exception as error:  # the edge of one save: a fault in it must not hold up every other
            return _receipt(self._now, named, "failed", f"{type(error).__name__}: {error}")

    def _save(self, path: Path, named: Sequence[Event], before: Stamp) -> Receipt | None:
        """File a transcript and those of its subagents, and compare them with what is stored."""
        paths = [path, *_subagents(path)]
        reports = self._read(paths)
        new = sum(report.messages_new for report in reports)
        found = Comparison() if self._interrupted else compare(self._open_palace(), paths)
        if found.lacking and stamp(path.stat()) == before:
            # What was read before is no longer what stands there, or has got lost.
            read_again(self._open_palace(), paths)
            reports = self._read(paths)
            new += sum(report.messages_new for report in reports)
            found = Comparison() if self._interrupted else compare(self._open_palace(), paths)
        if self._interrupted:
            self.kept += named
            return None
        self._filed += sum(report.transcripts for report in reports)
        unreadable = [skip for report in reports for skip in unread(report)]
        if unread(reports[0]) and not reports[0].transcripts:
            return _receipt(self._now, named, "failed", f"nothing in it can be read: {unreadable[0].reason}")
        if any(event.hook != LATE for event in named):
            self._saved[str(path)] = before
        detail = f"{len(unreadable)} of its records cannot be read" if unreadable else ""
        state: State = "ok"
        if not reports[0].transcripts and any(event.hook in ANSWERED for event in named):
            state, detail = "failed", UNKNOWN
        elif found.lacking:
            grew = stamp(path.stat()) != before
            state = "waiting" if grew else "failed"
            detail = "it was still growing" if grew else f"{found.lacking} of its entries are not stored"
            detail += f", {found.withheld} withheld" if found.withheld else ""
        return _receipt(self._now, named, state, detail, found, new)

    def _read(self, paths: Sequence[Path]) -> list[ConvoReport]:
        reports: list[ConvoReport] = []
        for path in paths:
            reports.append(self._file(path))
            if reports[-1].interrupted:
                self._interrupted = True
                break
        self._reports += reports
        return reports

    def _keep(self, transcript: str, named: Sequence[Event], receipt: Receipt) -> Receipt:
        """Let the events of a save that is not ok wait for the next run, for 30 days."""
        if receipt.detail in HOPELESS:
            self._failed += 1
            if receipt.detail == NAMELESS:
                self.skipped.append(Skipped(path_text(transcript), NAMELESS, "is let go"))
            return receipt
        young = [event for event in named if self._now - event.at < GIVE_UP_AFTER]
        self.kept += young
        if receipt.detail == MISSING:
            self._missing[receipt.transcript] = min(event.at for event in named)
        self._given_up += len(named) - len(young)
        tried = "is tried again" if young else "was tried for 30 days and is let go"
        self.skipped.append(Skipped(path_text(transcript), receipt.detail, tried))
        self._failed += receipt.state == "failed"
        return (
            receipt if young else replace(receipt, detail=f"{receipt.detail}; {tried}", settled_at=self._now)
        )

    def _record(self, receipt: Receipt) -> None:
        try:
            palace = self._open_palace()
            receipt = replace(receipt, detail=mask_secrets(receipt.detail, palace.salt))
            with palace.ledger.write() as cx:
                record(cx, receipt)
        except CastleError as error:
            # What cannot be recorded must be told all the same; a save nobody knows of is as good as none.
            detail = receipt.detail if receipt.state == "failed" else f"its receipt: {error}"
            self._unrecorded = replace(receipt, state="failed", detail=detail)


def _receipt(
    now: int,
    named: Sequence[Event],
    state: State,
    detail: str,
    found: Comparison | None = None,
    new: int = 0,
) -> Receipt:
    """Make the receipt of a save; of several events, the last that asks for one is named."""
    found = found or Comparison()
    saving = [event for event in named if event.hook in SAVING] or list(named)
    last = saving[-1] if saving else Event(b"", now, "", "", "", "")
    return Receipt(
        id=0,
        at=now,
        harness=legal(last.harness),
        hook=legal(last.hook),
        session=legal(last.session),
        transcript=path_text(last.transcript),
        entries=found.entries,
        stored=found.stored,
        withheld=found.withheld,
        digest=found.digest,
        state=state,
        detail=legal(detail),
        new=new,
    )


def stamp(status: os.stat_result) -> Stamp:
    """Return what changes when a file is written to."""
    return status.st_size, status.st_mtime_ns


def _subagents(path: Path) -> list[Path]:
    """Return the folder with the transcripts of a session's subagents, where Claude Code has made one."""
    folder = path.with_suffix("") / "subagents"
    return [folder] if folder.is_dir() and not folder.is_symlink() else []


def unread(report: ConvoReport) -> list[Skipped]:
    """Return what should have been filed and was not; a file without a conversation has nothing to file."""
    return [skip for skip in report.skipped if skip.reason != NO_TRANSCRIPT]
