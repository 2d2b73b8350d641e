"""Capture: filing what agents' hooks have noted, and the receipts that say whether that went well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castle import config
from castle.service.filing import Filing

if TYPE_CHECKING:
    from castle.mine.report import Progress
    from castle.mine.spool import Dismissed, DrainReport
    from castle.store.receipts import FiledAway, Receipt, ReceiptPage


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The settings of hooks in force, and which keys a call has set; ``ignored`` ones have no effect."""

    silent_save: bool
    desktop_toast: bool
    updated: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


class Capturing(Filing):
    """What keeps the sessions of agents."""

    def drain_spool(self, *, progress: Progress | None = None) -> DrainReport:
        """File every transcript that agents' hooks have named since the last time; see ``castle.hooks``.

        Events whose transcript could not be filed are kept and reported. Each save leaves a receipt.
        """
        from castle.mine.spool import drain

        return drain(
            self.root,
            self._clock(),
            lambda: self._palace(create=True),
            lambda path: self.mine_conversations(path, progress=progress),
            self.settings.home,
        )

    def prepare_wake_up(self) -> bool:
        """Write what sessions begin with, for hooks; return whether anything in it has changed."""
        from castle.wakeup.prerendered import prerender

        return prerender(self._palace(), self.settings)

    def receipts(
        self, *, limit: int = 20, offset: int = 0, session: str | None = None, failed: bool = False
    ) -> ReceiptPage:
        """List what saves of sessions were to store and did store, the latest first.

        ``session`` is the id of one, or its beginning; ``failed`` leaves the saves that no later one made up
        for.
        """
        from castle.store.receipts import list_receipts

        with self._palace().ledger.read() as cx:
            return list_receipts(cx, limit, offset, session, failed)

    def dismiss_save(self, name: str) -> tuple[Dismissed, ...]:
        """Settle saves that failed and cannot be made up for, such as those of a transcript that is gone.

        ``name`` is the id of a receipt, or a session's id or its beginning. Raises NotFoundError, UsageError,
        and PalaceBusyError while another process drains.
        """
        from castle.mine.spool import dismiss

        return dismiss(self._palace(), name, self._clock())

    def last_failed_save(self) -> Receipt | None:
        """Return the latest save that failed and that no later one made up for.

        Its ``id`` is 0 when there is no receipt of it, because the drainer itself has failed.
        """
        from castle.store.receipts import failed_save

        with self._palace().ledger.read() as cx:
            return failed_save(cx, self.root)

    def memories_filed_away(self) -> FiledAway:
        """Say what has been saved since this was last asked, and whether a save has failed."""
        from castle.store.receipts import FiledAway, failed_save, mark_seen, unseen

        ledger = self._palace().ledger
        with ledger.read() if ledger.read_only else ledger.write() as cx:
            count, last = unseen(cx)
            failure = failed_save(cx, self.root)
            if last is not None and not ledger.read_only:
                mark_seen(cx)
        if failure is not None:
            return FiledAway("error", f"the last save failed: {failure.detail}", count, failure.at)
        if not count:
            return FiledAway("quiet", "nothing new has been filed", 0, last)
        return FiledAway("ok", f"{count} message{'' if count == 1 else 's'} filed", count, last)

    def hook_settings(
        self, *, silent_save: bool | None = None, desktop_toast: bool | None = None
    ) -> HookSettings:
        """Show the settings of hooks, or set them in the user's ``castle.yaml``.

        ``silent_save`` is kept for older callers and has no effect: a save never interrupts the agent.
        """
        from castle.config.compiled import compile_hooks

        given = {"hooks.silent_save": silent_save, "hooks.desktop_toast": desktop_toast}
        wanted = {key: value for key, value in given.items() if value is not None}
        for key, value in wanted.items():
            config.set_user(key, value, home=self.settings.home)
        own = config.load(home=self.settings.home)
        if wanted:
            compile_hooks(own)
        names = tuple(key.removeprefix("hooks.") for key in wanted)
        ignored = tuple(name for name in names if name == "silent_save")
        return HookSettings(own.hooks.silent_save, own.hooks.desktop_toast, names, ignored)
