"""Repair: projections that are damaged, or do not match the ledger, are built again from it."""

from __future__ import annotations

from castle.errors import ModelError
from castle.records import Finding
from castle.store.catchup import Progress, catch_up_lexicon, catch_up_vectors
from castle.store.palace import Palace
from castle.store.purge import finish
from castle.store.redetect import redetect
from castle.store.verify import Progress as VerifyProgress
from castle.store.verify import every_row, verify


def repair(palace: Palace, progress: VerifyProgress | None = None) -> list[Finding]:
    """Verify, rebuild each projection that failed, and return the findings of a second verification.

    The last finding says what was mended, or that vectors could not be made for want of their embedder; the
    rest is done all the same. A purge that was begun is finished, and drawers that were read with
    older rules for secrets are read again. Nothing else of the ledger is changed: what is wrong in it stays
    reported. Raises PalaceError, and leaves the projections as they are, when a row is so damaged that they
    cannot be built from it.
    """

    def phase(name: str) -> Progress | None:
        return None if progress is None else lambda done, total: progress(name, done, total)

    finished = finish(palace)
    read = redetect(palace, progress=phase("secrets")).read
    before = verify(palace, progress)
    failed = {finding.check for finding in before if finding.status == "failed"}
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
    without = ""
    try:
        catch_up_vectors(palace, progress=phase("vectors"))
    except ModelError as error:
        without = str(error)
    after = verify(palace, progress)
    if without:
        return [*after, Finding("repair", "failed", f"vectors could not be made: {without}")]
    return [*after, Finding("repair", "ok", _mended(before, read, finished))]


def _mended(before: list[Finding], read: int, finished: int) -> str:
    """Say what there was to do."""
    projections = [finding for finding in before if finding.check in ("words", "vectors")]
    built = [finding.check for finding in projections if finding.status == "failed"]
    late = [finding.check for finding in projections if finding.status == "not checked"]
    done = [f"built again: {', '.join(built)}"] if built else []
    done += [f"brought up to date: {', '.join(late)}"] if late else []
    done += [f"purges finished: {finished}"] if finished else []
    done += [f"read again for secrets: {read:,} drawers"] if read else []
    if not done and all(finding.status == "ok" for finding in before):
        return "nothing was wrong, and nothing was changed"
    return "; ".join(done) or "nothing that a repair can mend was wrong"
