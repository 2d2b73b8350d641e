"""Reviews of requirements: what a model makes of chosen drawers, kept apart from everything that is filed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from castle.errors import PalaceError, RefusedError
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.records import Drawer
    from castle.sue.specification import Snapshot
    from castle.sue.status import Review

POLL_SECONDS = 0.1


class Reviewing(Base):
    """What examines how requirements can be read."""

    def sue_review(
        self,
        drawers: Sequence[str],
        decision: str,
        *,
        provider: str = "ollama",
        model: str | None = None,
        lens: str = "euthyphro",
        max_turns: int = 7,
        timeout: float = 120,
        wait: bool = False,
    ) -> Review:
        """Begin a review of 1 to 20 drawers in a process of its own; return how it stands.

        What is read are snapshots of the served text: no secret reaches a model. ``provider`` is asked and no
        other: ``ollama`` is the one on this machine, the others are asked only when named. ``timeout`` is in
        seconds for each of 2 attempts at each of ``max_turns`` questions. ``wait`` returns when it is over.
        Raises UsageError, NotFoundError, RefusedError for a drawer that is forgotten or a read-only palace.
        """
        from castle.store.reviews import no_purge
        from castle.sue.processes import start
        from castle.sue.runs import Plan, check, create, fail
        from castle.sue.status import standing
        from castle.sue.transports import transport
        from castle.text.served import mask_secrets

        check(drawers, decision, lens, max_turns, timeout)
        found = transport(self.settings, provider, model, timeout)
        palace = self._palace()
        if reason := palace.ledger.unwritable():
            raise RefusedError(f"{reason}: no review can be written to it")
        plan = Plan(
            decision=mask_secrets(decision.strip(), palace.salt),
            lens=lens,
            max_turns=max_turns,
            timeout=timeout,
            provider=provider,
            model=found.provider.model,
            place=found.place,
            external=found.external,
        )
        with no_purge(palace):
            run = create(self.root, plan, self._snapshots(drawers), self._clock())
        try:
            start(run)
        except OSError as error:
            with suppress(OSError):  # on a full disk it stays queued, and is told as interrupted later
                fail(run, f"its worker cannot be started: {error.strerror or error}", self._clock())
            raise PalaceError(f"the worker of the review cannot be started: {error.strerror}") from error
        return self._when_over(run) if wait else standing(run, self._clock())

    def sue_status(self, run: str | None = None) -> Review | list[Review]:
        """Return how a review stands, by its id or its beginning, or how the last 20 do; changes nothing."""
        from castle.sue.runs import find
        from castle.sue.status import last, standing

        self._palace()
        if run is None:
            return last(self.root, self._clock())
        return standing(find(self.root, run), self._clock())

    def sue_wait(self, run: str) -> Review:
        """Return how a review stands once nothing more will come of it."""
        from castle.sue.runs import find

        self._palace()
        return self._when_over(find(self.root, run))

    def sue_report(self, run: str) -> str:
        """Return the report of a review, by its id or its beginning; raises NotFoundError where none is."""
        from castle.errors import NotFoundError
        from castle.sue.runs import REPORT, find
        from castle.sue.status import standing

        self._palace()
        place = find(self.root, run)
        try:
            return (place / REPORT).read_text(encoding="utf-8")
        except FileNotFoundError:
            now = standing(place, self._clock())
            why = f" ({now.why})" if now.why else ""
            raise NotFoundError(
                f"review {place.name} is {now.status}{why} and has no report: castle sue status {place.name}"
            ) from None

    def _when_over(self, run: Path) -> Review:
        from castle.sue.status import standing

        while not (now := standing(run, self._clock())).settled:
            time.sleep(POLL_SECONDS)
        return now

    def _snapshots(self, ids: Sequence[str]) -> list[Snapshot]:
        """Return the served text of each drawer, in the order given, all of one moment."""
        from castle.errors import NotFoundError, UsageError
        from castle.store.purged import check_not_purged
        from castle.store.reading import addresses, drawers_by_id, full_id, served
        from castle.sue.specification import Snapshot

        palace = self._palace()
        with palace.ledger.read() as cx:
            known = [full_id(cx, id_) for id_ in ids]
            if len(set(known)) < len(known):
                raise UsageError("a drawer is named twice: name each once")
            for id_ in known:
                check_not_purged(cx, id_)
            found, where = drawers_by_id(cx, known), addresses(cx, known)
        for id_ in known:
            if id_ not in found or id_ not in where:
                raise NotFoundError(f"no drawer {id_}: `castle list` shows the ids there are")
            if found[id_].state == "forgotten":
                raise RefusedError(f"drawer {id_} is forgotten: `castle restore {id_}` takes it back")
        return [Snapshot(id_, served(found[id_]), self._about(found[id_], where[id_].path)) for id_ in known]

    def _about(self, drawer: Drawer, path: str) -> Mapping[str, object]:
        """Return what a model may know of a drawer beside its text; of the path only the name."""
        from castle.clock import to_iso
        from castle.text.served import mask_secrets

        salt = self._palace().salt
        words = {
            "wing": drawer.wing,
            "room": drawer.room,
            "kind": drawer.kind,
            "role": drawer.role,
            "speaker": drawer.speaker,
            "source": Path(path).name,
        }
        return {
            **{name: mask_secrets(text, salt) for name, text in words.items() if text},
            "state": drawer.state,
            "authored_at": to_iso(drawer.authored_at),
            "filed_at": to_iso(drawer.filed_at),
            "secrets_masked": len(drawer.sealed),
        }
