"""Repair: projections that are damaged, or do not match the ledger, are built again from it."""

from __future__ import annotations

from castle.records import Finding
from castle.store.catchup import Progress, catch_up_lexicon, catch_up_vectors
from castle.store.palace import Palace
from castle.store.redetect import redetect
from castle.store.verify import Progress as VerifyProgress
from castle.store.verify import every_row, verify


def repair(palace: Palace, progress: VerifyProgress | None = None) -> list[Finding]:
    """Verify, rebuild each projection that failed, and return the findings of a second verification.

    Drawers that were read with older rules for secrets are read again. Nothing else of the ledger is changed:
    what is wrong in it stays reported. Raises PalaceError, and leaves the
    projections as they are, when a row is so damaged that they cannot be built from it.
    """

    def phase(name: str) -> Progress | None:
        return None if progress is None else lambda done, total: progress(name, done, total)

    redetect(palace, progress=phase("secrets"))
    failed = {finding.check for finding in verify(palace, progress) if finding.status == "failed"}

    if not failed.isdisjoint(("words", "vectors")):
        for _ in every_row(palace):
            pass
    palace.clear_the_way()
    if "words" in failed:
        with palace.exclusively("lexicon"):
            palace.lexicon.reset()
    if "vectors" in failed:
        with palace.exclusively("vectors"):
            palace.vectors.reset()
    catch_up_lexicon(palace, progress=phase("words"))
    catch_up_vectors(palace, progress=phase("vectors"))
    return verify(palace, progress)
