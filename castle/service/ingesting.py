"""Ingesting: what hosts tell of sessions while these go on, and what a server does by itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from castle.errors import CastleError
from castle.service.capture import Capturing
from castle.service.remembering import Remembering

if TYPE_CHECKING:
    from castle.mind.ingest import Absorbed, Received
    from castle.mine.report import Progress
    from castle.mine.spool import DrainReport
    from castle.store.palace import Palace

EMBEDDED_AT_ONCE = 128
CATCH_UP_SECONDS = 3.0
"""What one turn of the background work spends on an index."""
_HASTE = 0.5


class Ingesting(Capturing, Remembering):
    """What the hooks' drainer and servers call; see ``castle.mind.ingest`` and ``castle.mind.scheduler``."""

    def ingest(self, body: object, *, local: bool = True) -> Received:
        """Keep what a host tells of a session, once, and note its transcript in the spool.

        ``local`` says that it was told on this machine: only then a transcript that it names is one of here.
        Raises UsageError for what is no event, PalaceNotFoundError where there is no palace.
        """
        from castle.mind.events import read, unpacked
        from castle.mind.ingest import receive
        from castle.store.mind_spool import note_transcript

        body = unpacked(body)
        if isinstance(body, dict) and not local:
            body = {name: value for name, value in body.items() if name != "transcript_path"}
        palace = self._palace()
        for event in read(body):
            if event.hook and event.transcript:
                line = {"v": 1, "at": self._clock(), "hook": event.hook, "harness": event.platform}
                where = {"session": event.session, "transcript": event.transcript, "cwd": event.cwd}
                note_transcript(palace.root, {**line, **where})
        return receive(self._mind(), body, self.settings.home)

    def absorb(self) -> Absorbed | None:
        """Settle what hosts told as far as transcripts are filed by now; None where there is nothing."""
        from castle.mind.ingest import absorb, anything_to_absorb

        mind = self._mind()
        return absorb(mind, self.settings.home) if anything_to_absorb(mind) else None

    def capture(self, *, progress: Progress | None = None) -> DrainReport:
        """File the transcripts that hooks have named, and then what follows from them for the mind.

        Working memory of sessions that have ended is routed. That this fails keeps no transcript from being
        filed; it is tried again with the next one.
        """
        from dataclasses import replace

        from castle.store.spool import read, written

        events, _ = read(written(self.root))
        report = self.drain_spool(progress=progress)
        if report.locked_out or not self._exists():
            return report
        try:
            self._follow([json.loads(event.line) for event in events])
        except CastleError as error:
            return replace(report, notes=(*report.notes, f"working memory waits: {error}"))
        return report

    def _follow(self, lines: list[dict[str, Any]]) -> None:
        """Let the mind know of what hooks have noted, whose transcripts are filed."""
        from castle.mind.ingest import absorb, bear_in_mind, told_by_hooks
        from castle.store.mind_spool import take_signals

        mind = self._mind()
        files, signals = take_signals(self.root)
        absorb(mind, self.settings.home, told_by_hooks([*lines, *signals]))
        for file in files:
            file.unlink(missing_ok=True)
        asked = (str(line.get("session") or "") for line in lines if line.get("hook") == "user-prompt-submit")
        for session in dict.fromkeys(filter(None, asked)):
            bear_in_mind(mind, session)

    def background_palace(self) -> Palace | None:
        """Return the palace if there is one, for the work that a server does by itself."""
        return self._palace() if self._exists() else None

    def background_index(self) -> dict[str, Any] | None:
        """Spend a few seconds on the index of words if it lacks drawers.

        A search spends less than one: after a large note it would take hundreds of them.
        """
        from castle.store.catchup import catch_up_lexicon

        return _caught_up(self._palace(), "lexicon", catch_up_lexicon)

    def background_embed(self) -> dict[str, Any] | None:
        """Give vectors to some of what has none, drawers, too, if the embedder is loaded."""
        from castle.store.catchup import catch_up_vectors
        from castle.store.mind_index import embed_missing

        palace = self._palace()
        if palace.unready or not palace.embedder_loaded:
            return None
        done = embed_missing(palace, EMBEDDED_AT_ONCE, _HASTE, seconds=CATCH_UP_SECONDS)
        caught_up = _caught_up(palace, "vectors", catch_up_vectors)
        return {"embedded": done, **(caught_up or {})} if done or caught_up else None

    def background_consolidate(self) -> dict[str, Any] | None:
        """Run a cycle of consolidation if one is due."""
        told = self._mind().consolidate_if_due()
        if told is None:
            return None
        return {name: value for name, value in told.items() if isinstance(value, int | float | str)}

    def background_absorb(self) -> dict[str, Any] | None:
        """Settle what hosts told."""
        from dataclasses import asdict

        done = self.absorb()
        return asdict(done) if done else None

    def background_capture(self) -> dict[str, Any] | None:
        """File the transcripts that were named, unless a drainer is at work."""
        from castle.mine.drainer import at_work
        from castle.store.spool import pending

        if not pending(self.root) or at_work(self.root) is not None:
            return None
        report = self.capture()
        return {"events": report.events, "messages_new": report.messages_new, "failed": report.failed}


def _caught_up(palace: Palace, name: str, catch_up: Callable[..., None]) -> dict[str, Any] | None:
    """Spend a turn on an index that lacks drawers; None where it lacks none, or cannot be read or written.

    Searches tell what is wrong with it.
    """
    from castle.store.catchup import missing
    from castle.store.projection import ProjectionBlocked, ProjectionUnavailable

    with suppress(ProjectionBlocked, ProjectionUnavailable):
        index = getattr(palace, name)
        lacking = missing(palace, index)
        if lacking:
            catch_up(palace, deadline=time.monotonic() + CATCH_UP_SECONDS)
            left = missing(palace, index)
            return {"drawers": lacking - left, "left": left}
    return None
