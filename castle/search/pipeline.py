"""The searcher: six stages in order, each with its report; none of them can fail the search.

Recall by meaning, by words and by the graph; fusion, recency and info-weight; the cross-encoder; the judge;
Soar; quality. The last four work on blocks of the best candidates. What is found is never cut to a block: the
rest follows in the order of the fusion.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from castle.errors import CastleError
from castle.records import Drawer, JudgeStatus, Scope, SearchResult
from castle.search import cursor, recall
from castle.search.candidates import Candidate, ranked
from castle.search.fusion import Signals, calibrated_scores, reciprocal_ranks, with_signals
from castle.search.hits import SESSIONS, to_hits, united
from castle.search.options import Options
from castle.search.priors import recency
from castle.search.question import Question, ask, ask_palace
from castle.search.refine import Engines, Refiner, prepare
from castle.search.rerank import Absent
from castle.search.retention import looked_up
from castle.search.run import Run, timed
from castle.search.sessions import SHIPPED, Seen, signs
from castle.search.signals import signals, weights_for
from castle.search.soar import WORKING_MEMORY
from castle.search.surroundings import SESSION, places_of, surroundings
from castle.store.catchup import behind, catch_up_lexicon, catch_up_vectors, missing, up_to_date
from castle.store.palace import Palace
from castle.store.reading import count_changed, drawers_by_id
from castle.store.vector_scan import Scan, scan_of
from castle.text.served import mask_secrets


@dataclass(frozen=True, slots=True)
class Ranking:
    """Everything a search found, best first, with what is known of it."""

    question: Question
    lists: Mapping[str, Sequence[Candidate]]
    candidates: tuple[Candidate, ...]
    drawers: Mapping[str, Drawer]
    scopes: tuple[Scope, ...]
    run: Run
    behind: int = 0
    confident: bool = True
    judge_status: JudgeStatus | None = None
    hidden: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, float] = field(default_factory=dict)
    """What speaks for each session as a whole, by source; none where drawers are asked for."""


NO_ENGINES = Engines()
USUAL = Options()
FEW_LATE = 5
"""Drawers that the index of words may lack without a word about it."""


def search(
    palace: Palace,
    query: str,
    scope: Scope,
    limit: int,
    options: Options = USUAL,
    engines: Engines = NO_ENGINES,
    after: str | None = None,
) -> SearchResult:
    """Find up to ``limit`` drawers, messages or sessions for the query inside the scope, best first.

    ``after`` is the cursor of the page before; a cursor of another question raises UsageError.
    """
    return found(palace, query, scope, limit, options, engines, after)[1]


def found(
    palace: Palace,
    query: str,
    scope: Scope,
    limit: int,
    options: Options,
    engines: Engines,
    after: str | None = None,
) -> tuple[Ranking, SearchResult]:
    """Search, and return the whole ranking beside the page of it that was asked for."""
    page = _page(palace, query, scope, limit, options, engines, after)
    options = replace(options, now=page.now)
    ranking = rank(palace, query, scope, options, engines, page, page.offset + limit)
    if after is not None and page.head != _head(palace):
        ranking.run.degraded.append(
            "the palace has changed since the first page; hits may repeat or be missing"
        )
    judged = ranking.judge_status is not None and not ranking.judge_status.error
    by_words = bool(ranking.run.without)
    if after is None:
        page = replace(page, judged=judged, by_words=by_words)
    elif page.by_words != by_words:
        ranking.run.degraded.append("one of the pages is by words only; hits may repeat or be missing")
    elif page.judged != judged and page.offset < page.block:
        ranking.run.degraded.append("only one of the pages was judged; hits may repeat or be missing")
    # What a language model put in order keeps it, on the pages after the one that it read as well.
    units = united(ranking.candidates, ranking.drawers, options.by, {} if page.judged else ranking.evidence)
    chosen = units[page.offset : page.offset + limit]
    end = page.offset + len(chosen)
    result = SearchResult(
        mask_secrets(query, palace.salt),
        to_hits(palace, chosen, ranking.drawers, ranking.scopes),
        tuple(ranking.run.reports),
        ranking.behind,
        tuple(ranking.run.degraded),
        mode=options.mode,
        by=options.by,
        confident=ranking.confident,
        ranked=len(units),
        cursor=replace(page, offset=end).encode() if end < len(units) else None,
        here=page.encode(),
        judge_status=ranking.judge_status,
        read_as=ranking.question.read_as,
        hidden=ranking.hidden,
    )
    return ranking, result


def rank(
    palace: Palace,
    query: str,
    scope: Scope,
    options: Options,
    engines: Engines,
    page: cursor.Cursor,
    needed: int,
) -> Ranking:
    """Rank everything that is found; the first ``needed`` have been through every stage."""
    run = Run(palace.unready)
    if run.without and engines.encoder is not None:
        engines = replace(engines, encoder=lambda: Absent(run.without))
    prepare(options, engines)
    scan = None if palace.opened or run.without else scan_of(palace, scope)
    _open(palace, run, scan)
    words_after = _catch_up(palace, run, options.catch_up_ms / 1000, scan)
    question = _understand(palace, run, query, page.now)
    if options.weights.get("voice", 0.0) <= 0:
        question = replace(question, voice=None)
    options = replace(options, weights=weights_for(question, options.weights))
    hidden = recall.quoted_scope(query, scope)
    scopes = (scope,) if hidden is None else (scope, hidden)
    lists, unseen = _recall(palace, run, question, scopes, page.depth, options, words_after, scan)
    drawers = _load(palace, lists, scopes)
    drawers, retention, left_out = looked_up(palace, run, drawers, options)
    lists = {name: [c for c in found if c.id in drawers] for name, found in lists.items()}
    fused = run.stage("fusion", lambda: _fuse(lists, options))
    fused, heard, around = _listen(palace, run, fused, question, drawers, options)
    fused = _weigh(palace, run, fused, drawers, options)
    refiner = Refiner(question, drawers, options, engines, run, heard, around, palace.salt, retention)
    wanted = needed if options.by == "drawer" else 1
    candidates = refiner.refine(_without_copies(fused), page.block, wanted, judged=page.offset < page.block)
    timely = heard.get("times", {}) if options.weights.get("times", 0.0) > 0 else {}
    seen = Seen(candidates, drawers, lists["dense"], timely, refiner.together)
    evidence = _compare_sessions(palace, run, question, scope, seen, options)
    return Ranking(
        question,
        lists,
        tuple(candidates),
        drawers,
        scopes,
        run,
        unseen,
        refiner.confident,
        refiner.judge_status,
        left_out,
        evidence,
    )


def _compare_sessions(
    palace: Palace, run: Run, question: Question, scope: Scope, seen: Seen, options: Options
) -> Mapping[str, float]:
    """Return what speaks for each session as a whole, where sessions are asked for."""
    found: dict[str, float] = {}

    def work() -> Sequence[Candidate]:
        for source, sign in signs(palace, question, scope, seen).items():
            found[source] = sign.evidence(SHIPPED, advice=question.advice)
        return seen.ranked

    if options.by == "session" and options.weights.get(SESSION, 0.0) > 0:
        run.stage(SESSIONS, work, seen.ranked)
    return found


def _understand(palace: Palace, run: Run, query: str, now: int) -> Question:
    """Read the question; without the names that the palace knows where these cannot be read."""
    understood: list[Question] = []

    def work() -> list[Candidate]:
        understood.append(ask_palace(palace, query, now))
        return []

    run.stage("question", work)
    return understood[0] if understood else ask(query, now)


def _page(
    palace: Palace,
    query: str,
    scope: Scope,
    limit: int,
    options: Options,
    engines: Engines,
    after: str | None,
) -> cursor.Cursor:
    asked = cursor.fingerprint(
        palace.ledger.lineage(0), query, scope, replace(options, now=None), engines.encoder_name
    )
    if after is not None:
        page = cursor.decode(after)
        if page.asked != asked or options.now not in (None, page.now):
            raise cursor.foreign()
        return page
    now = options.now if options.now is not None else palace.ledger.clock()
    depth = max(recall.DENSE_LIMIT, 2 * limit)
    block = max(options.rerank_k, min(limit, WORKING_MEMORY))
    return cursor.Cursor(asked, 0, block, depth, now, _head(palace))


def _head(palace: Palace) -> int:
    return int(palace.ledger.value("seq") or 0)


def _recall(
    palace: Palace,
    run: Run,
    question: Question,
    scopes: Sequence[Scope],
    depth: int,
    options: Options,
    words_after: int | None,
    scan: Scan | None,
) -> tuple[dict[str, Sequence[Candidate]], int]:
    """Ask the three sources side by side; also count drawers that could not be looked at."""
    scope, query = scopes[0], question.text
    dated = recall.dated_scopes(question, scope)
    done = {}
    # While a model reads the question, another thread has the processor.
    with ThreadPoolExecutor(1, thread_name_prefix="castle-recall") as pool:
        words = pool.submit(
            timed, "lexical", lambda: recall.lexical(palace, question.query, scope, depth, dated)
        )
        if run.without:
            run.skip("dense", run.without)
        else:
            done["dense"] = timed("dense", lambda: recall.dense(palace, query, scope, depth, dated, scan))
        named = timed("graph", lambda: recall.graph(palace, question, scope, options.graph_top_n))
        done.update(lexical=words.result(), graph=named)
    lists: dict[str, Sequence[Candidate]] = {"dense": []}
    for name, (listed, report, failure) in done.items():
        run.add(report, failure)
        lists[name] = listed
    unseen = 0
    if words_after is not None:
        fresh, unseen = recall.unprojected(palace, words_after, question.query, scope, recall.LEXICAL_LIMIT)
        lists["lexical"] = _merged(fresh, lists["lexical"])
    if len(scopes) > 1:
        quoted, late = _exact_words(palace, run, words_after, question.query, scopes[1], depth)
        lists["lexical"] = _merged(quoted, lists["lexical"])
        unseen += late
    if unseen:
        run.degraded.append(f"{unseen} drawers are not indexed yet and were not searched")
    return lists, unseen


def _exact_words(
    palace: Palace, run: Run, after: int | None, query: str, hidden: Scope, most: int
) -> tuple[list[Candidate], int]:
    """Recall hidden drawers that hold a quoted phrase; also count those that could not be looked at."""
    unseen = 0

    def work() -> list[Candidate]:
        nonlocal unseen
        found, unseen = recall.exact_words(palace, after, query, hidden, most)
        return found

    return run.stage("exact words", work), unseen


def _load(
    palace: Palace, lists: Mapping[str, Sequence[Candidate]], scopes: Sequence[Scope]
) -> dict[str, Drawer]:
    """Return the drawers of the candidates that lie in one of the scopes, whatever a source may say."""
    ids = list(dict.fromkeys(c.id for found in lists.values() for c in found))
    with palace.ledger.read() as cx:
        found = {id_: drawer for scope in scopes for id_, drawer in drawers_by_id(cx, ids, scope).items()}
    return {id_: found[id_] for id_ in ids if id_ in found}


def _fuse(lists: Mapping[str, Sequence[Candidate]], options: Options) -> list[Candidate]:
    if options.fusion == "rrf":
        return ranked(reciprocal_ranks(lists, options.weights, options.k_rrf), "fusion")
    return ranked(calibrated_scores(lists, options.weights), "fusion")


def _listen(
    palace: Palace,
    run: Run,
    fused: Sequence[Candidate],
    question: Question,
    drawers: Mapping[str, Drawer],
    options: Options,
) -> tuple[list[Candidate], Signals, Signals]:
    """Add what a question asks for beside its words, and what is around the candidates.

    Both are returned as well, for later stages.
    """
    heard: dict[str, Mapping[str, float]] = {}
    around: dict[str, Mapping[str, float]] = {}

    def work() -> list[Candidate]:
        heard.update(signals(question, drawers))
        with palace.ledger.read() as cx:
            places = places_of(cx, [candidate.id for candidate in fused])
        around.update(surroundings(fused, drawers, places))
        return ranked(with_signals(fused, {**heard, **around}, options.weights), "signals")

    return run.stage("signals", work, fused), heard, around


def _weigh(
    palace: Palace, run: Run, fused: Sequence[Candidate], drawers: Mapping[str, Drawer], options: Options
) -> list[Candidate]:
    """Apply what is known of drawers before anybody reads them: recency, and novelty if asked for."""
    authored = {id_: drawer.authored_at for id_, drawer in drawers.items()}
    assert options.now is not None
    now = options.now
    weighed = run.stage(
        "recency",
        lambda: recency(
            fused,
            authored,
            now,
            max_boost=options.recency_max_boost,
            tau_days=options.recency_tau_days,
            strength=options.strength("recency"),
        ),
        fused,
    )
    if not options.info_weight:
        return weighed

    def work() -> list[Candidate]:
        from castle.novelty import scores
        from castle.search.infoweight import info_weight

        with palace.ledger.read() as cx:
            novelty = scores(cx, [c.id for c in weighed])
        return info_weight(
            weighed,
            novelty,
            threshold=options.info_weight_threshold,
            min_factor=options.info_weight_min_factor,
        )

    return run.stage("info-weight", work, weighed)


def _merged(fresh: Sequence[Candidate], indexed: Sequence[Candidate]) -> list[Candidate]:
    """Join two word lists; what the ledger holds now replaces what an index held before."""
    new = {candidate.id for candidate in fresh}
    joined = [*fresh, *(candidate for candidate in indexed if candidate.id not in new)]
    return sorted(joined, key=lambda candidate: (-candidate.score, candidate.id))


def _without_copies(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep the best of the candidates that hold the same text."""
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        best.setdefault(candidate.sha256, candidate)
    return list(best.values())


def _open(palace: Palace, run: Run, scan: Scan | None) -> None:
    """Load what the first search of a process needs, one after the other.

    Libraries that are imported in several threads at once get in each other's way. What cannot be opened is
    reported by the stage that needs it.
    """
    if palace.opened or run.without:
        return

    def work() -> list[Candidate]:
        for needed in ("lexicon", "vectors", "embedder") if scan is None else ("lexicon", "embedder"):
            with suppress(CastleError):
                opened = getattr(palace, needed)
                if needed != "embedder":
                    opened.watermark()
        return []

    run.stage("opening", work)


def _catch_up(palace: Palace, run: Run, seconds: float, scan: Scan | None) -> int | None:
    """Spend ``seconds`` on the projections; return the change after which words need the ledger."""
    lacking, current = 0, False

    def work() -> list[Candidate]:
        nonlocal lacking, current
        current = up_to_date(palace, palace.lexicon)
        if not current:
            lacking = missing(palace, palace.lexicon)
            catch_up_lexicon(palace, deadline=time.monotonic() + seconds)
        if not run.without and scan is None and behind(palace, palace.vectors):
            _ = palace.embedder
            catch_up_vectors(palace, deadline=time.monotonic() + seconds)
            late = missing(palace, palace.vectors)
            if late:
                run.degraded.append(f"drawers with no vector yet, found by words only: {late}")
        return []

    run.stage("catch-up", work)
    if current:
        return None
    try:
        mark = palace.lexicon.watermark()
        if not behind(palace, palace.lexicon):
            return None
        _tell_if_late(palace, run, lacking)
        return mark.seq if mark else 0
    except CastleError:
        return 0


def _tell_if_late(palace: Palace, run: Run, lacking: int) -> None:
    """Say so when the index of words is being made and weighs words in another way.

    It is when it lacked more than a few drawers before it was caught up.
    """
    late = missing(palace, palace.lexicon)
    with palace.ledger.read() as cx:
        total = count_changed(cx, 0, forgotten=False)
    if late > FEW_LATE and max(late, lacking) > total // 10:
        run.degraded.append(f"the index of words is being made, it lacks {late:,} of {total:,} drawers")
