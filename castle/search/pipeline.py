"""The searcher: stages in order, each with its report; none of them can fail the search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from castle.errors import CastleError
from castle.records import Address, Drawer, Hit, Scope, SearchResult, StageReport
from castle.search import recall
from castle.search.candidates import Candidate
from castle.search.fusion import calibrated_scores, reciprocal_ranks
from castle.store.catchup import behind, catch_up_lexicon, catch_up_vectors
from castle.store.palace import Palace
from castle.store.reading import addresses, copies_of, drawers_by_id, served, within


@dataclass(frozen=True, slots=True)
class Options:
    """How to search: the fusion, its weights, and how long to spend on catching up first."""

    fusion: str = "scores"
    k_rrf: float = 60.0
    weight_dense: float = 1.0
    weight_sparse: float = 1.0
    catch_up_ms: int = 200


class _Run:
    """One search on its way: what has been reported and what could not be done."""

    def __init__(self) -> None:
        self.reports: list[StageReport] = []
        self.degraded: list[str] = []

    def stage(self, name: str, work: Callable[[], list[Candidate]]) -> list[Candidate]:
        started = time.perf_counter()
        try:
            found = work()
        except CastleError as error:
            self.degraded.append(f"{name}: {error}")
            self.reports.append(StageReport(name, f"skipped: {error}", time.perf_counter() - started, 0))
            return []
        self.reports.append(StageReport(name, "ran", time.perf_counter() - started, len(found)))
        return found


def search(palace: Palace, query: str, scope: Scope, limit: int, options: Options) -> SearchResult:
    """Find up to ``limit`` drawers for the query inside the scope, copies folded, best first."""
    run = _Run()
    words_after = _catch_up(palace, run, options.catch_up_ms / 1000)
    dense = run.stage("dense", lambda: recall.dense(palace, query, scope, max(recall.DENSE_LIMIT, 2 * limit)))
    words = run.stage(
        "lexical", lambda: recall.lexical(palace, query, scope, max(recall.LEXICAL_LIMIT, 2 * limit))
    )
    unseen = 0
    lists = {"dense": dense, "lexical": words}
    if words_after is not None:
        fresh, unseen = recall.unprojected(palace, words_after, query, scope, recall.LEXICAL_LIMIT)
        lists["lexical"] = _merged(fresh, words)
    hidden = recall.quoted_scope(query, scope)
    if hidden is not None:
        quoted, late = _exact_words(palace, run, words_after, query, hidden, limit)
        lists["lexical"] = _merged(quoted, lists["lexical"])
        unseen += late
    if unseen:
        run.degraded.append(f"{unseen} drawers are not indexed yet and were not searched")
    fused = run.stage("fusion", lambda: _fuse(lists, options))
    hits = _hits(palace, fused, [scope] if hidden is None else [scope, hidden], limit)
    return SearchResult(query, hits, tuple(run.reports), unseen, tuple(run.degraded))


def _exact_words(
    palace: Palace, run: _Run, after: int | None, query: str, hidden: Scope, limit: int
) -> tuple[list[Candidate], int]:
    """Recall hidden drawers that hold a quoted phrase; also count those that could not be looked at."""
    unseen = 0

    def work() -> list[Candidate]:
        nonlocal unseen
        most = max(recall.LEXICAL_LIMIT, 2 * limit)
        found, unseen = recall.exact_words(palace, after, query, hidden, most)
        return found

    return run.stage("exact words", work), unseen


def _fuse(lists: Mapping[str, Sequence[Candidate]], options: Options) -> list[Candidate]:
    weights = {"dense": options.weight_dense, "lexical": options.weight_sparse}
    if options.fusion == "rrf":
        return reciprocal_ranks(lists, weights, options.k_rrf)
    return calibrated_scores(lists, weights)


def _catch_up(palace: Palace, run: _Run, seconds: float) -> int | None:
    """Spend ``seconds`` on the projections; return the change after which words need the ledger."""

    def work() -> list[Candidate]:
        catch_up_lexicon(palace, deadline=time.monotonic() + seconds)
        late = behind(palace, palace.vectors)
        if late:
            _ = palace.embedder
            catch_up_vectors(palace, deadline=time.monotonic() + seconds)
            late = behind(palace, palace.vectors)
        if late:
            run.degraded.append(f"{late} drawers have no vector yet and are found by words only")
        return []

    run.stage("catch-up", work)
    try:
        mark = palace.lexicon.watermark()
        return (mark.seq if mark else 0) if behind(palace, palace.lexicon) else None
    except CastleError:
        return 0


def _merged(fresh: Sequence[Candidate], indexed: Sequence[Candidate]) -> list[Candidate]:
    """Join two word lists; what the ledger holds now replaces what an index held before."""
    new = {candidate.id for candidate in fresh}
    joined = [*fresh, *(candidate for candidate in indexed if candidate.id not in new)]
    return sorted(joined, key=lambda candidate: (-candidate.score, candidate.id))


def _hits(
    palace: Palace, ranked: Sequence[Candidate], scopes: Sequence[Scope], limit: int
) -> tuple[Hit, ...]:
    """Turn the best candidates that lie in one of the scopes into hits, with their copies there."""
    with palace.ledger.read() as cx:
        ids = [candidate.id for candidate in ranked]
        inside = {id_: scope for scope in reversed(scopes) for id_ in within(cx, ids, scope)}
        best: dict[str, Candidate] = {}
        for candidate in ranked:
            if candidate.id in inside:
                best.setdefault(candidate.sha256, candidate)
            if len(best) == limit:
                break
        chosen = list(best.values())
        copies = {
            digest: ids
            for scope in scopes
            for digest, ids in copies_of(
                cx, [candidate.sha256 for candidate in chosen if inside[candidate.id] == scope], scope
            ).items()
        }
        found = drawers_by_id(cx, [candidate.id for candidate in chosen])
        where = addresses(cx, list(found))
    return tuple(
        _hit(found[c.id], c, where[c.id], tuple(id_ for id_ in copies[c.sha256] if id_ != c.id))
        for c in chosen
    )


def _hit(drawer: Drawer, candidate: Candidate, address: Address, copies: tuple[str, ...]) -> Hit:
    return Hit(
        id=drawer.id,
        text=served(drawer),
        score=candidate.score,
        wing=drawer.wing,
        room=drawer.room,
        kind=drawer.kind,
        role=drawer.role,
        speaker=drawer.speaker,
        message_id=drawer.message_id,
        source=drawer.source,
        address=address,
        authored_at=drawer.authored_at,
        filed_at=drawer.filed_at,
        state=drawer.state,
        copies=copies,
        stages=candidate.stages,
        matched=candidate.matched,
    )
