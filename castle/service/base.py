"""What every part of ``Castle`` stands on: settings, clock, and the palace, opened when it is needed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from castle import config
from castle.clock import Clock, system_clock
from castle.errors import CastleError
from castle.records import Scope

if TYPE_CHECKING:
    from castle.models.remote import Endpoint
    from castle.search.refine import Engines
    from castle.store.backup import Progress
    from castle.store.palace import Palace

REFRESH_SECONDS = 5.0


class Base:
    """A palace that is opened by the first call that needs it, and the settings in force."""

    def __init__(
        self,
        palace: Path | str | None = None,
        *,
        embedder: str | None = None,
        settings: config.Settings | None = None,
        clock: Clock = system_clock,
    ) -> None:
        flags = {"palace_path": None if palace is None else str(palace), "embedder_model": embedder}
        self.settings = settings if settings is not None else config.load(flags)
        self._clock = clock
        self._opened: Palace | None = None
        self._search_engines: Engines | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the palace."""
        if self._opened is not None:
            self._opened.close()
            self._opened = self._search_engines = None

    @property
    def root(self) -> Path:
        """The directory of the palace."""
        return self.settings.palace_path

    @property
    def unready(self) -> str:
        """Why there are no models for now, "" where they are there or are loaded when they are needed."""
        return self._opened.unready if self._opened is not None else ""

    def catch_up(self, progress: Progress | None = None) -> list[str]:
        """Bring all indexes up to date; return what could not be done now, in words for the user."""
        from castle.store.catchup import catch_up_lexicon, catch_up_vectors

        palace = self._palace()
        troubles = []
        for name, work in (("words", catch_up_lexicon), ("vectors", catch_up_vectors)):

            def report(done: int, total: int, name: str = name) -> None:
                if progress is not None:
                    progress(name, done, total)

            try:
                work(palace, progress=report)
            except CastleError as error:
                troubles.append(f"{name}: {error}")
        return troubles

    def _refresh(self) -> None:
        """Spend a few seconds on the indexes after a change; whatever remains is done by the next search."""
        from castle.store.catchup import refresh

        refresh(self._palace(), REFRESH_SECONDS)

    def _render(self) -> None:
        """Bring what hooks print up to date; the next one that files does it where this cannot."""
        from castle.wakeup import prerender

        with suppress(CastleError):
            prerender(self._palace(), self.settings)

    def _exists(self) -> bool:
        return (self.root / "castle.db").is_file()

    def _palace(self, *, create: bool = False) -> Palace:
        if self._opened is None:
            from castle.store.palace import Palace

            explicit = self.settings.origin("embedder_model") != "default"
            wanted = self.settings.embedder_model if explicit else None
            self._opened = Palace(
                self.root,
                create=create,
                embedder=wanted,
                dim=self.settings.embedder_dim,
                identity=self.settings.embedder_identity,
                device=self.settings.embedding_device,
                endpoint=self._endpoint,
                clock=self._clock,
            )
        return self._opened

    @property
    def _endpoint(self) -> Endpoint:
        """The server of embedders that the settings name."""
        from castle.models.remote import Endpoint

        settings = self.settings
        return Endpoint(settings.embedder_endpoint, settings.embedder_api_key, settings.llm_allowed_hosts)

    def _in_source(self, scope: Scope, source: str | None) -> Scope:
        """Limit a scope to the source that a path, a key or an id names."""
        if source is None:
            return scope
        from castle.store.reading import named_source

        with self._palace().ledger.read() as cx:
            return replace(scope, source=named_source(cx, source).key)
