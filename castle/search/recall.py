"""Stage 1: candidates by meaning, by words, and from drawers that no index holds yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from castle.records import Scope
from castle.search.candidates import Candidate
from castle.store.lexicon import LexicalMatch, Lexicon
from castle.store.palace import Palace
from castle.store.projection import ProjectionUnavailable, Watermark
from castle.store.reading import changed_in_scope, drawers_by_id, served
from castle.text.words import phrases, words

DENSE_LIMIT = 100
LEXICAL_LIMIT = 100
UNPROJECTED_LIMIT = 2000
QUOTED_KINDS = ("tool", "thinking")
"""Hidden kinds that a search finds all the same by the exact words that it quotes."""


def dense(palace: Palace, query: str, scope: Scope, limit: int) -> list[Candidate]:
    """Return the drawers nearest to the query by cosine, best first."""
    vector = palace.embedder.embed_query(query)
    return [
        Candidate(match.id, match.sha256, match.score)
        for match in palace.vectors.search(vector, scope, limit)
    ]


def lexical(palace: Palace, query: str, scope: Scope, limit: int) -> list[Candidate]:
    """Return the drawers that share words with the query, best BM25 score first."""
    return _candidates(palace.lexicon.search(query, scope, limit))


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
    return [Candidate(match.id, match.sha256, match.score, matched=match.matched) for match in matches]
