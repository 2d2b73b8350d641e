"""Castle: the one object that the command line, the MCP server, the hooks and Python programs call."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeVar

from castle import config
from castle.clock import Clock, parse_iso, system_clock
from castle.errors import UsageError
from castle.records import Address, Drawer, Finding, Scope, SearchResult, State

if TYPE_CHECKING:
    from castle.mine.diary import Entries, Entry
    from castle.mine.layout import Plan
    from castle.mine.modes import Mode
    from castle.mine.report import ConvoReport, MineReport, Progress, SyncReport
    from castle.mine.split import SplitReport
    from castle.mine.spool import DrainReport
    from castle.store.closets import Closet, Compressed
    from castle.store.entities import Entities
    from castle.store.facts import Issue
    from castle.store.graph import Graph
    from castle.store.palace import Palace
    from castle.store.reading import PlaceCount, SourceInfo
    from castle.store.session_reading import SessionPage, Spoken
    from castle.store.status import Status
    from castle.store.tunnels import Tunnels
    from castle.store.verify import Progress as VerifyProgress

Extract = Literal["exchange", "general"]
Report = TypeVar("Report", "MineReport", "ConvoReport")
DEFAULT_LIMIT = 5
MAX_LIMIT = 10_000
REFRESH_SECONDS = 1.0
MAX_QUERY = 100_000


@dataclass(frozen=True, slots=True)
class Found:
    """One drawer with everything that may be shown of it; ``text`` is served text."""

    id: str
    text: str
    wing: str
    room: str
    hall: str
    kind: str
    role: str
    speaker: str
    source: str
    address: Address
    authored_at: int
    filed_at: int
    added_by: str
    sha256: str
    state: State
    sealed: int


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing, and how many there are in all."""

    total: int
    offset: int
    drawers: tuple[Found, ...] = ()
    sources: tuple[SourceInfo, ...] = ()


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
            self._opened = None

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

        return sync(self._palace(), Path(path), apply, actor or _user())

    def search(
        self,
        query: str,
        *,
        wing: str | None = None,
        room: str | None = None,
        limit: int = DEFAULT_LIMIT,
        since: str | None = None,
        until: str | None = None,
        role: str | None = None,
        source: str | None = None,
        kinds: Sequence[str] = (),
        history: bool = False,
        as_of: str | None = None,
    ) -> SearchResult:
        """Find the drawers that answer a query, best first, with equal texts folded into one hit.

        ``since`` (inclusive) and ``until`` (exclusive; a bare date includes its day) bound ``authored_at``
        and are ISO dates or date-times, UTC without an offset. ``history`` adds superseded drawers, ``as_of``
        asks for those that were current at a time. Any text is a legal query; an empty one is a UsageError.
        """
        from castle.search.pipeline import Options, search

        _check_query(query, limit)
        scope = self._scope(wing, room, role, source, since, until, kinds, history, as_of)
        palace = self._palace()
        options = Options(
            fusion=self.settings.fusion,
            k_rrf=self.settings.k_rrf,
            weight_dense=self.settings.weight_dense,
            weight_sparse=self.settings.weight_sparse,
            catch_up_ms=self.settings.search_catch_up_ms,
        )
        return search(palace, query, scope, limit, options)

    def get(self, id: str, *, context: int = 0) -> list[Found]:
        """Return a drawer, with up to ``context`` neighbours before and after it in its source.

        ``id`` may be a unique beginning of at least six characters. Raises NotFoundError.
        """
        from castle.store.reading import full_id, neighbours

        with self._palace().ledger.read() as cx:
            return [_found(*pair) for pair in neighbours(cx, full_id(cx, id), context)]

    def get_source(self, name: str) -> list[Found]:
        """Return every drawer of a source's last revision in order; joined, their texts are the source.

        ``name`` is a path, the end of one, a source key, or the id of one of its drawers.
        """
        from castle.store.reading import members, named_source

        with self._palace().ledger.read() as cx:
            return [_found(*pair) for pair in members(cx, named_source(cx, name).key)]

    def get_session(self, name: str) -> list[Spoken]:
        """Return every message of a session in order; ``name`` is its id, its beginning, or a drawer's id."""
        from castle.store.session_reading import session_source, spoken

        with self._palace().ledger.read() as cx:
            return spoken(cx, session_source(cx, name))

    def sessions(self, *, wing: str | None = None, limit: int = 20, offset: int = 0) -> SessionPage:
        """Return one page of the sessions, the latest first."""
        from castle.store.session_reading import SessionPage, list_sessions

        with self._palace().ledger.read() as cx:
            total, rows = list_sessions(cx, wing, limit, offset)
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

        scope = self._scope(wing, room, None, source, None, None, kinds, history, as_of)
        palace = self._palace()
        with palace.ledger.read() as cx:
            total, page = listed(cx, scope, limit, offset)
            where = addresses(cx, [drawer.id for drawer in page])
            return Page(total, offset, drawers=tuple(_found(d, where[d.id]) for d in page))

    def list_sources(self, *, wing: str | None = None, limit: int = 20, offset: int = 0) -> Page:
        """Return one page of the sources, by wing and path."""
        from castle.store.reading import list_sources

        with self._palace().ledger.read() as cx:
            total, page = list_sources(cx, wing, limit, offset)
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

        _one_of(id, source, wing)
        count = forget(self._palace().ledger, id_=id, source=source, wing=wing, actor=actor or _user())
        self._refresh()
        return count

    def restore(self, id: str | None = None, *, source: str | None = None, wing: str | None = None) -> int:
        """Bring back what was forgotten; return how many drawers."""
        from castle.store.places import restore

        _one_of(id, source, wing)
        count = restore(self._palace().ledger, id_=id, source=source, wing=wing)
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

        return Graph(self._palace().ledger, actor=_user())

    @property
    def entities(self) -> Entities:
        """The people, projects and topics that are looked for in what is filed."""
        from castle.store.entities import Entities

        return Entities(self._palace().ledger, actor=_user(), languages=self.settings.entity_languages)

    @property
    def tunnels(self) -> Tunnels:
        """The ways between the wings of the palace."""
        from castle.store.tunnels import Tunnels

        return Tunnels(self._palace().ledger, actor=_user())

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

        notes: tuple[str, ...] = ()
        try:
            notes = learn(self._palace(), self.settings, root, _user()).notes
        except KeyboardInterrupt:
            return replace(report, interrupted=True)
        return replace(report, notes=(*report.notes, *notes))

    def _refresh(self) -> None:
        """Spend a second on the indexes after a change; whatever remains is done by the next search."""
        from castle.store.catchup import refresh

        refresh(self._palace(), REFRESH_SECONDS)

    def _exists(self) -> bool:
        return (self.root / "castle.db").is_file()

    def _palace(self, *, create: bool = False) -> Palace:
        if self._opened is None:
            from castle.store.palace import Palace

            explicit = self.settings.origin("embedder_model") != "default"
            wanted = self.settings.embedder_model if explicit else None
            self._opened = Palace(self.root, create=create, embedder=wanted, clock=self._clock)
        return self._opened

    def _scope(
        self,
        wing: str | None,
        room: str | None,
        role: str | None,
        source: str | None,
        since: str | None,
        until: str | None,
        kinds: Sequence[str],
        history: bool,
        as_of: str | None,
    ) -> Scope:
        scope = Scope(
            wing=wing,
            room=room,
            role=role,
            since=_moment("since", since),
            until=_moment("until", until, end_of_day=True),
            kinds=tuple(kinds),
            history=history,
            as_of=_moment("as_of", as_of, end_of_day=True),
        )
        if source is None:
            return scope
        from castle.store.reading import named_source

        with self._palace().ledger.read() as cx:
            return replace(scope, source=named_source(cx, source).key)


def _moment(name: str, text: str | None, *, end_of_day: bool = False) -> int | None:
    if text is None:
        return None
    try:
        return parse_iso(text, end_of_day=end_of_day)
    except ValueError as error:
        raise UsageError(
            f"{name} {text!r} is no ISO date or time: write 2026-05-31 or 2026-05-31T09:30:00+02:00"
        ) from error


def _check_query(query: str, limit: int) -> None:
    if not query.strip():
        raise UsageError('the query is empty: castle search "what you look for"')
    if len(query) > MAX_QUERY:
        raise UsageError(f"the query has {len(query)} characters, {MAX_QUERY} are the most")
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"limit {limit} is not between 1 and {MAX_LIMIT}")


def _one_of(*given: str | None) -> None:
    if sum(value is not None for value in given) != 1:
        raise UsageError("name one of: a drawer id, --source, --wing")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def _found(drawer: Drawer, address: Address) -> Found:
    from castle.store.reading import served

    return Found(
        id=drawer.id,
        text=served(drawer),
        wing=drawer.wing,
        room=drawer.room,
        hall=drawer.hall,
        kind=drawer.kind,
        role=drawer.role,
        speaker=drawer.speaker,
        source=drawer.source,
        address=address,
        authored_at=drawer.authored_at,
        filed_at=drawer.filed_at,
        added_by=drawer.added_by,
        sha256=drawer.sha256,
        state=drawer.state,
        sealed=len(drawer.sealed),
    )
