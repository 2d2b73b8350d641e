"""Searching, and saying why a drawer was found and how new a text is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from castle.arguments import MAX_QUERY, check_kinds, check_query, legal, moment, place
from castle.clock import check_span
from castle.errors import UsageError
from castle.records import Scope, SearchResult
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.config.settings import SearchMode
    from castle.novelty import InfoScore, Pruning
    from castle.search.options import Options, Unit
    from castle.search.refine import Engines
    from castle.search.why import Why

DEFAULT_LIMIT = 5


class Searching(Base):
    """What finds words again."""

    def search(
        self,
        query: str,
        *,
        wing: str | None = None,
        room: str | None = None,
        limit: int = DEFAULT_LIMIT,
        mode: SearchMode | None = None,
        by: Unit = "drawer",
        since: str | None = None,
        until: str | None = None,
        role: str | None = None,
        source: str | None = None,
        kinds: Sequence[str] = (),
        history: bool = False,
        as_of: str | None = None,
        now: str | None = None,
        info_weight: bool | None = None,
        cursor: str | None = None,
        hide_cold: bool = False,
        retention_weight: float = 0.0,
        include_state: bool = False,
    ) -> SearchResult:
        """Find what answers a query, best first, with equal texts folded into one hit.

        ``mode`` says which stages run (fast, standard, boosted, max), ``by`` what one hit is: a drawer, or
        the message or session it is part of; the settings decide where nothing is given. ``since``
        (inclusive) and ``until`` (exclusive; a bare date includes its day) bound ``authored_at`` and are ISO
        dates or date-times, UTC without an offset. ``history`` adds superseded drawers, ``as_of`` asks for
        those that were current at a time. ``now`` is what recency and words like "yesterday" refer to.
        ``cursor`` of one answer asks for the next page of it. Any text is a legal query; an empty one is a
        UsageError.

        What the mind holds of drawers changes nothing unless it is asked for: ``hide_cold`` leaves out what
        is cold or expired there and counts it as ``hidden``, ``retention_weight`` in [0, 1] lets what is kept
        less near step back, ``include_state`` gives each hit its ``memory``.
        """
        from castle.search.pipeline import search

        check_query(query, limit)
        scope = self._scope(wing, room, role, since, until, kinds, history, as_of, source)
        options = self._options(mode, by, now, info_weight, hide_cold, retention_weight)
        found = search(self._palace(), legal(query), scope, limit, options, self._engines(), cursor)
        if not include_state:
            return found
        from castle.search.retention import with_memory

        return with_memory(self._palace(), found)

    def why(
        self,
        query: str,
        *,
        drawer: str | None = None,
        wing: str | None = None,
        room: str | None = None,
        limit: int = DEFAULT_LIMIT,
        mode: SearchMode | None = None,
        since: str | None = None,
        until: str | None = None,
        role: str | None = None,
        source: str | None = None,
        kinds: Sequence[str] = (),
        history: bool = False,
        as_of: str | None = None,
        now: str | None = None,
        info_weight: bool | None = None,
    ) -> Why:
        """Search, and say what became of one drawer: its place in the ranking, or what kept it out.

        The arguments are those of ``search``. Raises NotFoundError when there is no such drawer.
        """
        from castle.search.why import explain

        check_query(query, limit)
        scope = self._scope(wing, room, role, since, until, kinds, history, as_of, source)
        options = self._options(mode, "drawer", now, info_weight)
        return explain(self._palace(), legal(query), scope, limit, options, self._engines(), drawer)

    def _scope(
        self,
        wing: str | None,
        room: str | None,
        role: str | None,
        since: str | None,
        until: str | None,
        kinds: Sequence[str],
        history: bool,
        as_of: str | None,
        source: str | None,
    ) -> Scope:
        scope = Scope(
            wing=place("wing", wing),
            room=place("room", room),
            role=legal(role),
            since=moment("since", since),
            until=moment("until", until, end_of_day=True),
            kinds=check_kinds(kinds, role),
            history=history,
            as_of=moment("as_of", as_of, end_of_day=True),
        )
        check_span(scope.since, scope.until)
        return self._in_source(scope, source)

    def _options(
        self,
        mode: SearchMode | None,
        by: Unit,
        now: str | None,
        info_weight: bool | None,
        hide_cold: bool = False,
        retention_weight: float = 0.0,
    ) -> Options:
        from castle.search.options import options_of

        return options_of(
            self.settings,
            mode=mode,
            by=by,
            now=moment("now", now),
            info_weight=info_weight,
            hide_cold=hide_cold,
            retention_weight=retention_weight,
        )

    def _engines(self) -> Engines:
        if self._search_engines is None:
            from castle.search.engines import engines_of

            self._search_engines = engines_of(self.settings, self._palace())
        return self._search_engines

    def clear_caches(self) -> None:
        """Forget what models have computed for searches; it is computed again when it is needed."""
        from castle.search.engines import clear_caches

        clear_caches(self._palace())
        self._search_engines = None

    def info_score(
        self, text: str | None = None, *, id: str | None = None, wing: str | None = None, top_k: int = 5
    ) -> InfoScore:
        """Say how new a text would be beside what is filed, or a drawer beside what was filed before it."""
        from castle.novelty import info_score

        if text is not None and len(text) > MAX_QUERY:
            raise UsageError(f"the text has {len(text)} characters, {MAX_QUERY} are the most")
        return info_score(self._palace(), text, id_=id, wing=legal(wing), top_k=top_k)

    def prune_suggest(
        self, *, threshold: float = 0.10, wing: str | None = None, sample: int = 0, seed: int = 42
    ) -> Pruning:
        """List drawers that said hardly anything new when they were filed; changes nothing."""
        from castle.novelty import prune_suggest

        return prune_suggest(self._palace(), threshold=threshold, wing=legal(wing), sample=sample, seed=seed)
