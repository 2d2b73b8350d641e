"""Castle: the one object that the command line, the MCP server, the hooks and Python programs call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeVar

from castle import config
from castle.answers import Found, Page, to_found
from castle.arguments import MAX_QUERY, check_query, legal, moment, one_of, user
from castle.clock import Clock, system_clock
from castle.errors import PalaceBusyError, UsageError
from castle.records import Finding, Scope, SearchResult

if TYPE_CHECKING:
    from castle.config.settings import SearchMode
    from castle.mine.diary import Entries, Entry
    from castle.mine.layout import Plan
    from castle.mine.modes import Mode
    from castle.mine.report import ConvoReport, MineReport, Progress, SyncReport
    from castle.mine.split import SplitReport
    from castle.mine.spool import DrainReport
    from castle.novelty import InfoScore, NoveltyReport, Pruning
    from castle.novelty.scoring import Progress as NoveltyProgress
    from castle.search.options import Options, Unit
    from castle.search.refine import Engines
    from castle.search.why import Why
    from castle.store.closets import Closet, Compressed
    from castle.store.entities import Entities
    from castle.store.facts import Issue
    from castle.store.graph import Graph
    from castle.store.palace import Palace
    from castle.store.reading import PlaceCount
    from castle.store.session_reading import SessionPage, Spoken
    from castle.store.status import Status
    from castle.store.tunnels import Tunnels
    from castle.store.verify import Progress as VerifyProgress

Extract = Literal["exchange", "general"]
Report = TypeVar("Report", "MineReport", "ConvoReport")
DEFAULT_LIMIT = 5
REFRESH_SECONDS = 5.0
NOVELTY_SECONDS = 2.0


class Castle:
    """A palace and everything that can be done with it.

    ``palace`` is its directory; left out, the settings decide (the environment variable CASTLE_PALACE_PATH,
    the user's ``castle.yaml``, ``~/.castle/palace``). ``embedder`` names the embedder a new palace is made
    with. Nothing is opened or created before the first call that needs it.
    """

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

    def __enter__(self) -> Castle:
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

    def plan(self, directory: Path | str) -> Plan:
        """Say how a directory would be filed: wing, rooms, files and bytes; changes nothing."""
        from castle.mine.layout import plan

        return plan(Path(directory))

    def init(self, directory: Path | str, plan: Plan | None = None) -> Path | None:
        """Write the project's ``castle.yaml``; return its path, None when one was there already."""
        from castle.mine.layout import write_plan

        return write_plan(plan or self.plan(directory))

    def mine(
        self,
        path: Path | str,
        *,
        mode: Mode = "auto",
        wing: str | None = None,
        gitignore: bool = True,
        include_ignored: Sequence[str] = (),
        agent: str = "cognitive-castle",
        limit: int = 0,
        extract: Extract = "exchange",
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> MineReport | ConvoReport:
        """File a project's text files, or the messages of transcripts, then bring the indexes up to date.

        ``mode`` auto tells the two apart by content. ``limit`` files at most are read (0: all). ``extract``
        general labels each message with its type of memory. A KeyboardInterrupt loses nothing that was filed;
        the same call goes on. Raises UsageError when there is nothing at ``path``.
        """
        from castle.mine.modes import MODES, mode_of

        if mode not in MODES:
            raise UsageError(f"mode {mode!r} is none of {', '.join(MODES)}")
        if (mode_of(Path(path)) if mode == "auto" else mode) == "convos":
            return self.mine_conversations(
                path, wing=wing, agent=agent, limit=limit, extract=extract, dry_run=dry_run, progress=progress
            )
        return self.mine_project(
            path,
            wing=wing,
            gitignore=gitignore,
            include_ignored=include_ignored,
            agent=agent,
            limit=limit,
            dry_run=dry_run,
            progress=progress,
        )

    def mine_project(
        self,
        path: Path | str,
        *,
        wing: str | None = None,
        gitignore: bool = True,
        include_ignored: Sequence[str] = (),
        agent: str = "cognitive-castle",
        limit: int = 0,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> MineReport:
        """File a project's text files; see ``mine``."""
        from castle.mine.project import MineOptions, mine

        options = MineOptions(wing, gitignore, tuple(include_ignored), agent, limit, dry_run)
        palace = None if dry_run and not self._exists() else self._palace(create=not dry_run)
        report = mine(palace, Path(path), options, self.settings, progress)
        root = Path(path).resolve()
        return self._learn(report, root if root.is_dir() else root.parent)

    def mine_conversations(
        self,
        path: Path | str,
        *,
        wing: str | None = None,
        agent: str = "cognitive-castle",
        limit: int = 0,
        extract: Extract = "exchange",
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ConvoReport:
        """File the messages of a transcript, an export or a folder of them; see ``mine``."""
        from castle.mine.convos import ConvoOptions, mine_conversations

        if extract not in ("exchange", "general"):
            raise UsageError(f"extract {extract!r} is neither exchange nor general")
        options = ConvoOptions(wing, agent, limit, dry_run, extract == "general")
        palace = None if dry_run and not self._exists() else self._palace(create=not dry_run)
        return self._learn(mine_conversations(palace, Path(path), options, self.settings, progress), None)

    def drain_spool(self, *, progress: Progress | None = None) -> DrainReport:
        """File every transcript that agents' hooks have named since the last time; see ``castle.hooks``.

        Events whose transcript could not be filed are kept and reported.
        """
        from castle.mine.spool import drain

        return drain(self.root, self._clock(), lambda path: self.mine_conversations(path, progress=progress))

    def sync(self, path: Path | str, *, apply: bool = False, actor: str | None = None) -> SyncReport:
        """Report a project's filed files that are gone from disk; ``apply`` marks their drawers superseded.

        Raises RefusedError when the whole directory is missing or none of its files is there.
        """
        from castle.mine.sync import sync

        return sync(self._palace(), Path(path), apply, actor or user())

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
    ) -> SearchResult:
        """Find what answers a query, best first, with equal texts folded into one hit.

        ``mode`` says which stages run (fast, standard, boosted, max), ``by`` what one hit is: a drawer, or
        the message or session it is part of; the settings decide where nothing is given. ``since``
        (inclusive) and ``until`` (exclusive; a bare date includes its day) bound ``authored_at`` and are ISO
        dates or date-times, UTC without an offset. ``history`` adds superseded drawers, ``as_of`` asks for
        those that were current at a time. ``now`` is what recency and words like "yesterday" refer to.
        ``cursor`` of one answer asks for the next page of it. Any text is a legal query; an empty one is a
        UsageError.
        """
        from castle.search.pipeline import search

        check_query(query, limit)
        scope = self._scope(wing, room, role, since, until, kinds, history, as_of, source)
        options = self._options(mode, by, now, info_weight)
        return search(self._palace(), legal(query), scope, limit, options, self._engines(), cursor)

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
            wing=legal(wing),
            room=legal(room),
            role=legal(role),
            since=moment("since", since),
            until=moment("until", until, end_of_day=True),
            kinds=(kinds,) if isinstance(kinds, str) else tuple(kinds),
            history=history,
            as_of=moment("as_of", as_of, end_of_day=True),
        )
        return self._in_source(scope, source)

    def _options(
        self, mode: SearchMode | None, by: Unit, now: str | None, info_weight: bool | None
    ) -> Options:
        from castle.search.options import options_of

        return options_of(self.settings, mode=mode, by=by, now=moment("now", now), info_weight=info_weight)

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

    def get(self, id: str, *, context: int = 0) -> list[Found]:
        """Return a drawer, with up to ``context`` neighbours before and after it in its source.

        ``id`` may be a unique beginning of at least six characters. Raises NotFoundError.
        """
        from castle.store.reading import full_id, neighbours

        with self._palace().ledger.read() as cx:
            return [to_found(*pair) for pair in neighbours(cx, full_id(cx, id), context)]

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
            wing=legal(wing),
            room=legal(room),
            kinds=tuple(kinds),
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

    def status(self) -> Status:
        """Return what the palace holds, from counts."""
        from castle.store.status import status

        return status(self._palace())

    def verify(self, progress: VerifyProgress | None = None) -> list[Finding]:
        """Check the ledger against its hashes and every projection against the ledger."""
        from castle.store.verify import verify

        return verify(self._palace(), progress)

    def repair(self, progress: VerifyProgress | None = None) -> list[Finding]:
        """Build damaged or incomplete indexes again from the ledger; return what verification says then."""
        from castle.store.repair import repair

        return repair(self._palace(), progress)

    def backfill_novelty(self, progress: NoveltyProgress | None = None) -> NoveltyReport:
        """Score the novelty of every drawer that has none; an interrupted call goes on where it was."""
        from castle.novelty import backfill

        return backfill(self._palace(), progress)

    def forget(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        wing: str | None = None,
        actor: str | None = None,
    ) -> int:
        """Put a drawer, a source or a wing out of sight until it is restored; return how many drawers.

        A forgotten source is not filed again. Raises NotFoundError.
        """
        from castle.store.places import forget

        one_of(id, source, wing)
        count = forget(self._palace().ledger, id_=id, source=source, wing=legal(wing), actor=actor or user())
        self._refresh()
        return count

    def restore(self, id: str | None = None, *, source: str | None = None, wing: str | None = None) -> int:
        """Bring back what was forgotten; return how many drawers."""
        from castle.store.places import restore

        one_of(id, source, wing)
        count = restore(self._palace().ledger, id_=id, source=source, wing=legal(wing))
        self._refresh()
        return count

    def rename_wing(self, old: str, new: str, *, merge: bool = False) -> int:
        """Give a wing another name; return how many drawers moved.

        Raises RefusedError when there is one called ``new`` already and ``merge`` is false.
        """
        from castle.store.places import rename_wing

        count = rename_wing(self._palace().ledger, old, config.check_name("wing", new), merge=merge)
        self._refresh()
        return count

    @property
    def kg(self) -> Graph:
        """The knowledge graph of the palace."""
        from castle.store.graph import Graph

        return Graph(self._palace().ledger, actor=user())

    @property
    def entities(self) -> Entities:
        """The people, projects and topics that are looked for in what is filed."""
        from castle.store.entities import Entities

        return Entities(self._palace().ledger, actor=user(), languages=self.settings.entity_languages)

    @property
    def tunnels(self) -> Tunnels:
        """The ways between the wings of the palace."""
        from castle.store.tunnels import Tunnels

        return Tunnels(self._palace().ledger, actor=user())

    def diary_write(self, agent: str, text: str, *, topic: str = "general", wing: str | None = None) -> Entry:
        """File an entry of an agent's diary, by default in wing ``wing_AGENT``; entries are never changed."""
        from castle.mine.diary import write

        entry = write(self._palace(create=True), agent, text, topic=topic, wing=wing)
        self._refresh()
        return entry

    def diary_read(self, agent: str, *, last: int = 10, wing: str | None = None) -> Entries:
        """Return an agent's last diary entries, newest first, from all wings or from one."""
        from castle.mine.diary import read

        return read(self._palace(), agent, last=last, wing=wing)

    def diary_ingest(
        self, directory: Path | str, *, wing: str = "diary", progress: Progress | None = None
    ) -> MineReport:
        """File the day files (``YYYY-MM-DD*.md``) of a directory; a changed one becomes a new revision."""
        from castle.mine.diary import ingest

        return ingest(self._palace(create=True), Path(directory), wing=wing, progress=progress)

    def compress(
        self,
        wing: str | None = None,
        *,
        config: Path | str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Compressed:
        """Make AAAK lines and closets of what has changed; ``config`` is a JSON file with codes of names."""
        from castle.store.closets import compress
        from castle.text.aaak import load_dialect

        dialect = load_dialect(Path(config)) if config is not None else None
        return compress(self._palace().ledger, wing, dialect=dialect, dry_run=dry_run, progress=progress)

    def closets(self, *, wing: str | None = None, source: str | None = None) -> list[Closet]:
        """Return the pages of pointers that ``compress`` made, of a wing or of a source's key."""
        from castle.store.closets import read_closets

        return read_closets(self._palace().ledger, wing=wing, source=source)

    def split(
        self,
        path: Path | str,
        *,
        output: Path | str | None = None,
        dry_run: bool = False,
        min_sessions: int = 2,
    ) -> SplitReport:
        """Cut text files that hold several terminal sessions into one file each; no byte is lost."""
        from castle.mine.split import split

        target = Path(output) if output is not None else None
        return split(Path(path), output=target, dry_run=dry_run, min_sessions=min_sessions)

    def check(self, *, stale_after_days: int = 365) -> list[Issue]:
        """Return contradictions, stale facts and similar names in the graph; changes nothing."""
        from castle.store.facts import check

        return check(self._palace().ledger, stale_after_days=stale_after_days)

    def _learn(self, report: Report, root: Path | None) -> Report:
        """Register the names that a run of a miner brought; ``root`` is the project's directory."""
        if report.dry_run or report.interrupted:
            return report
        from castle.mine.learning import learn
        from castle.novelty import refresh

        notes: tuple[str, ...] = ()
        try:
            notes = learn(self._palace(), self.settings, root, user()).notes
            refresh(self._palace(), NOVELTY_SECONDS)
            with suppress(PalaceBusyError):
                self._palace().ledger.analyze()
        except KeyboardInterrupt:
            return replace(report, interrupted=True)
        return replace(report, notes=(*report.notes, *notes))

    def _refresh(self) -> None:
        """Spend a few seconds on the indexes after a change; whatever remains is done by the next search."""
        from castle.store.catchup import refresh

        refresh(self._palace(), REFRESH_SECONDS)

    def _exists(self) -> bool:
        return (self.root / "castle.db").is_file()

    def _palace(self, *, create: bool = False) -> Palace:
        if self._opened is None:
            from castle.store.palace import Palace

            explicit = self.settings.origin("embedder_model") != "default"
            wanted = self.settings.embedder_model if explicit else None
            device = self.settings.embedding_device
            self._opened = Palace(self.root, create=create, embedder=wanted, device=device, clock=self._clock)
        return self._opened

    def _in_source(self, scope: Scope, source: str | None) -> Scope:
        """Limit a scope to the source that a path, a key or an id names."""
        if source is None:
            return scope
        from castle.store.reading import named_source

        with self._palace().ledger.read() as cx:
            return replace(scope, source=named_source(cx, source).key)
