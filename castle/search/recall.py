"""Stage 1: candidates by meaning, by words, and from drawers that no index holds yet."""

from __future__ import annotations

from collections.abc import Sequence

from castle.records import Scope
from castle.search.candidates import Candidate
from castle.store.lexicon import LexicalMatch, Lexicon
from castle.store.palace import Palace
from castle.store.projection import Watermark
from castle.store.reading import changed_in_scope

DENSE_LIMIT = 100
LEXICAL_LIMIT = 100
UNPROJECTED_LIMIT = 2000


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


def unprojected(
    palace: Palace, after: int, query: str, scope: Scope, limit: int
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
    return _candidates(index.search(query, scope, limit)), total - len(rows)


def _candidates(matches: Sequence[LexicalMatch]) -> list[Candidate]:
    return [Candidate(match.id, match.sha256, match.score, matched=match.matched) for match in matches]
