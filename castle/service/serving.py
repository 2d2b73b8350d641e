"""What a server needs, which has to answer at once: searches that do without models until these are there."""

from __future__ import annotations

from contextlib import suppress

from castle.errors import CastleError
from castle.records import Scope
from castle.service.searching import Searching

LOADING = "the embedder is being loaded; words only"


class Serving(Searching):
    """Searching for a program that answers others."""

    def defer_models(self, reason: str = LOADING) -> None:
        """Open the palace; from now on searches go by words and give the reason, until ``load_models``."""
        palace = self._palace()
        # Made here, so that searches and whoever loads the models have the same ones.
        self._engines()
        palace.unready = reason

    def load_models(self) -> None:
        """Load what a search needs, one after the other; another thread may search meanwhile.

        Raises ModelError when there is no embedder; what else is missing, the stages of a search report.
        """
        from castle.search.recall import dense

        palace, engines = self._palace(), self._engines()
        with suppress(CastleError):
            palace.vectors.watermark()
        _ = palace.embedder
        with suppress(CastleError):
            if engines.encoder is not None:
                engines.encoder()
        with suppress(CastleError):
            # The first search of the table takes longer than those that follow.
            dense(palace, LOADING, Scope(), 1)
        palace.unready = ""
