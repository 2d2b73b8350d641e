"""Stage 1: candidates by meaning, by words, by the graph, and from drawers that no index holds yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from castle.records import Scope
from castle.search.candidates import Candidate, recalled
from castle.search.question import Question
from castle.search.run import StageUnavailable, model_time
from castle.search.signals import time_edge
from castle.store.catchup import behind
from castle.store.lexicon import LexicalMatch, Lexicon
from castle.store.palace import Palace
from castle.store.projection import Projection, ProjectionUnavailable, Watermark
from castle.store.reading import changed_in_scope, drawers_by_id, served
from castle.store.speaking import drawers_about
from castle.text.when import BEGINNING, ENDLESS
from castle.text.words import phrases, words

if TYPE_CHECKING:
    from castle.store.vector_scan import Scan

DENSE_LIMIT = 100
LEXICAL_LIMIT = 100
GRAPH_LIMIT = 50
DATED_LIMIT = 30
MOST_DATED = 2
"""Times of a question around which recall looks once more."""
UNPROJECTED_LIMIT = 2000
QUOTED_KINDS = ("tool", "thinking")
"""Hidden kinds that a search finds all the same by the exact words that it quotes."""


def dense(
    palace: Palace,
    query: str,
    scope: Scope,
    limit: int,
    dated: Sequence[Scope] = (),
    scan: Scan | None = None,
) -> list[Candidate]:
    """Return the drawers nearest to the query by cosine, best first; some more of each dated scope.

    ``scan`` has the vectors of the scope where the table need not be opened.
    """
    space = palace.space
    held = scan if scan is not None and scan.identity == space.identity else None
    embedder = space.embedder
    with model_time():
        vector = embedder.embed_query(query)
    found: dict[str, Candidate] = {}
    with _awaited(palace, lambda: space.vectors):
        for part, most in ((scope, limit), *((part, DATED_LIMIT) for part in dated)):
            for match in (held or space.vectors).search(vector, part, most):
                found.setdefault(match.id, recalled(match.id, match.sha256, match.score))
    return _best_first(found.values())


def lexical(
    palace: Palace, query: str, scope: Scope, limit: int, dated: Sequence[Scope] = ()
) -> list[Candidate]:
    """Return the drawers that share words with the query, best BM25 score first; likewise of dated scopes."""
    found: dict[str, Candidate] = {}
    with _awaited(palace, lambda: palace.lexicon):
        for part, most in ((scope, limit), *((part, DATED_LIMIT) for part in dated)):
            for candidate in _candidates(palace.lexicon.search(query, part, most)):
                found.setdefault(candidate.id, candidate)
    return _best_first(found.values())


@contextmanager
def _awaited(palace: Palace, used: Callable[[], Projection]) -> Iterator[None]:
    """Take nothing amiss where a projection is missing because it is only just being made, or has nothing."""
    try:
        yield
    except ProjectionUnavailable:
        projection = used()
        if projection.disk_bytes():
            raise
        if not behind(palace, projection):
            raise StageUnavailable("nothing is filed yet") from None
        lock = palace.lock(projection.name)
        if lock.try_acquire():
            lock.release()
            raise
        raise StageUnavailable("it is being made for the first time") from None


def _best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.id))


def graph(palace: Palace, question: Question, scope: Scope, limit: int = GRAPH_LIMIT) -> list[Candidate]:
    """Return the drawers that speak of the entities a question names.

    These are the evidence of facts about them, and drawers that mention those few mention. A drawer's score
    in (0, 1] is the share of the entities that it speaks of, by fact or else by mention; equal ones come
    latest recorded first, then by id. Facts that were retracted or corrected do not count.
    """
    named = [name.entity for name in question.names]
    if not named or limit <= 0:
        return []
    with palace.ledger.read() as cx:
        found = drawers_about(cx, named, question.now, scope, limit)
    return [recalled(id_, digest, weight / len(named), entity_match=True) for id_, digest, weight in found]


def dated_scopes(question: Question, scope: Scope) -> list[Scope]:
    """Return the parts of a scope in which to recall once more, because the question speaks of these times.

    They reach as far beyond its intervals as a time may be off. What recall finds in them is scored as what
    it finds in the whole scope. Times that are less than sure, or go on without end both ways, have none.
    """
    scopes: list[Scope] = []
    for time in question.times:
        if time.weight < 1.0 or len(scopes) == MOST_DATED:
            continue
        edge = time_edge(time)
        since = None if time.start == BEGINNING else time.start - edge
        until = None if time.end == ENDLESS else time.end + edge
        since = max((s for s in (since, scope.since) if s is not None), default=None)
        until = min((u for u in (until, scope.until) if u is not None), default=None)
        if since is None or until is None or since < until:
            scopes.append(replace(scope, since=since, until=until))
    return scopes


def quoted_scope(query: str, scope: Scope) -> Scope | None:
    """Return the scope in which a query's phrases are looked for among hidden kinds, None for nowhere."""
    if scope.kinds or not any(words(phrase) for phrase in phrases(query)):
        return None
    return replace(scope, kinds=QUOTED_KINDS)


def exact_words(
    palace: Palace, after: int | None, query: str, hidden: Scope, limit: int
) -> tuple[list[Candidate], int]:
    """Return the drawers in the hidden scope that hold a phrase of the query.

    The second value counts those that were not looked at. ``after`` is the change after which the index of
    words is late, None when it is not.
    """
    found: dict[str, Candidate] = {}
    unseen = 0
    try:
        indexed = palace.lexicon.search(query, hidden, limit, quoted=True)
        found.update((candidate.id, candidate) for candidate in _candidates(indexed))
    except ProjectionUnavailable:
        if after is None:
            raise
    if after is not None:
        fresh, unseen = unprojected(palace, after, query, hidden, limit, quoted=True)
        found.update((candidate.id, candidate) for candidate in fresh)
    with palace.ledger.read() as cx:
        texts = {id_: served(drawer) for id_, drawer in drawers_by_id(cx, list(found)).items()}
    wanted = [words(phrase) for phrase in phrases(query)]
    holding = [c for c in found.values() if c.id in texts and _holds(words(texts[c.id]), wanted)]
    return sorted(holding, key=lambda c: (-c.score, c.id))[:limit], unseen


def _holds(text: Sequence[str], wanted: Sequence[Sequence[str]]) -> bool:
    """Whether one of the runs of words stands in a text; an index that stems finds more than these."""
    joined = f" {' '.join(text)} "
    return any(run and f" {' '.join(run)} " in joined for run in wanted)


def unprojected(
    palace: Palace, after: int, query: str, scope: Scope, limit: int, *, quoted: bool = False
) -> tuple[list[Candidate], int]:
    """Match drawers that changed after ``after`` in the ledger itself, by words.

    Looks at no more than UNPROJECTED_LIMIT; returns the candidates and how many drawers were not looked at.
    """
    with palace.ledger.read() as cx:
        total, rows = changed_in_scope(cx, after, scope, UNPROJECTED_LIMIT)
    if not rows:
        return [], total
    index = Lexicon(None)
    index.apply(rows, Watermark("", rows[-1].seq))
    return _candidates(index.search(query, scope, limit, quoted=quoted)), total - len(rows)


def _candidates(matches: Sequence[LexicalMatch]) -> list[Candidate]:
    return [recalled(match.id, match.sha256, match.score, matched=match.matched) for match in matches]
