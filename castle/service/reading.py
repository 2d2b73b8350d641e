"""Reading what is filed: drawers, sources, sessions, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from castle.answers import Found, Page, to_found
from castle.arguments import check_kinds, legal, moment, place
from castle.records import Scope
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.store.reading import PlaceCount
    from castle.store.session_reading import SessionPage, Spoken
    from castle.store.use import Uses


class Reading(Base):
    """What shows words as they are filed."""

    @cached_property
    def _uses(self) -> Uses:
        """The uses of drawers that are not written yet."""
        from castle.store.use import Uses

        return Uses()

    def _write_uses(self) -> None:
        if self._opened is not None:
            self._uses.flush(self._opened.ledger)

    def close(self) -> None:
        """Close the palace."""
        self._write_uses()
        super().close()

    def get(self, id: str, *, context: int = 0) -> list[Found]:
        """Return a drawer, with up to ``context`` neighbours before and after it in its source.

        ``id`` may be a unique beginning of at least six characters. Counts as a use of the drawer. Raises
        NotFoundError.
        """
        from castle.store.purged import check_not_purged
        from castle.store.reading import full_id, neighbours

        ledger = self._palace().ledger
        with ledger.read() as cx:
            id = full_id(cx, id)
            check_not_purged(cx, id)
            found = [to_found(*pair) for pair in neighbours(cx, id, context)]
        self._uses.add(ledger, id)
        return found

    def get_source(self, name: str) -> list[Found]:
        """Return every drawer of a source's last revision in order; joined, their texts are the source.

        ``name`` is a path, the end of one, a source key, or the id of one of its drawers.
        """
        from castle.store.reading import members, named_source

        with self._palace().ledger.read() as cx:
            return [to_found(*pair) for pair in members(cx, named_source(cx, name).key)]

    def get_session(self, name: str) -> list[Spoken]:
        """Return every message of a session in order; ``name`` is its id, its beginning, or a drawer's id."""
        from castle.store.session_reading import session_source, spoken

        with self._palace().ledger.read() as cx:
            return spoken(cx, session_source(cx, legal(name)))

    def get_message(self, id: str, *, session: str | None = None) -> list[Found]:
        """Return the drawers of a message in order, by the id that its transcript gives it.

        ``session``, as in ``get_session``, is needed where several sessions have a message with that id
        (UsageError). Raises NotFoundError, also for what was counted and not stored.
        """
        from castle.store.reading import addresses
        from castle.store.session_reading import message_drawers, session_source

        with self._palace().ledger.read() as cx:
            key = session_source(cx, legal(session)) if session is not None else None
            found = message_drawers(cx, legal(id), key)
            where = addresses(cx, [drawer.id for drawer in found])
            return [to_found(drawer, where[drawer.id]) for drawer in found]

    def sessions(self, *, wing: str | None = None, limit: int = 20, offset: int = 0) -> SessionPage:
        """Return one page of the sessions, the latest first."""
        from castle.store.session_reading import SessionPage, list_sessions

        with self._palace().ledger.read() as cx:
            total, rows = list_sessions(cx, legal(wing), limit, offset)
            return SessionPage(total, offset, tuple(rows))

    def list_drawers(
        self,
        *,
        wing: str | None = None,
        room: str | None = None,
        source: str | None = None,
        kinds: Sequence[str] = (),
        history: bool = False,
        as_of: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> Page:
        """Return one page of the drawers in a scope, in the order they were filed."""
        from castle.store.reading import addresses, listed

        scope = Scope(
            wing=place("wing", wing),
            room=place("room", room),
            kinds=check_kinds(kinds),
            history=history,
            as_of=moment("as_of", as_of, end_of_day=True),
        )
        palace = self._palace()
        scope = self._in_source(scope, source)
        with palace.ledger.read() as cx:
            total, page = listed(cx, scope, limit, offset)
            where = addresses(cx, [drawer.id for drawer in page])
            return Page(total, offset, drawers=tuple(to_found(d, where[d.id]) for d in page))

    def list_sources(self, *, wing: str | None = None, limit: int = 20, offset: int = 0) -> Page:
        """Return one page of the sources, by wing and path."""
        from castle.store.reading import list_sources

        with self._palace().ledger.read() as cx:
            total, page = list_sources(cx, legal(wing), limit, offset)
            return Page(total, offset, sources=tuple(page))

    def places(self) -> list[PlaceCount]:
        """Return how many drawers stand in each room of each wing, by state."""
        from castle.store.reading import counts

        with self._palace().ledger.read() as cx:
            return counts(cx)
