"""Finding things of the mind: by words at once, by meaning as soon as the embedder is there.

There are thousands of them, not millions, so the words are rows of the ledger, ranked by BM25 (Robertson and
Zaragoza, "The Probabilistic Relevance Framework", 2009), and the vectors are compared one by one. Both are
derived from the text: vectors are float16, one for each embedder, and stale once the text has another hash.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, and_, delete, func, insert, select

from castle.store.ledger import batches, run
from castle.store.mind_tables import mem_terms, mem_texts, mem_vectors
from castle.store.mind_texts import texts_of
from castle.store.novelty_tables import novelty
from castle.store.schema import drawers, vectors
from castle.text.stems import marked_stems, stems_anywhere
from castle.text.words import words

if TYPE_CHECKING:
    import numpy as np
    import tantivy
    from numpy.typing import NDArray

    from castle.store.palace import Palace

K1, B = 1.2, 0.75
MOST_TERMS = 2_000
"""Different words of one text that are indexed; what is beyond is found by meaning."""
MOST_ASKED = 60
"""Words of a query that are looked for."""
EMBED_SECONDS = 20.0
"""How long things without a vector are embedded for at a stretch."""
_BATCH = 64
_BATCH_CHARS = 40_000

_DULL = frozenset(
    "a about am an and are as at be been but by can could did do does for from had has have he her him his "
    "how i if in into is it its me my of on or our she should so that the their them then there these they "
    "this those to was we were what when where which who why will with would you your".split()
)


@dataclass(frozen=True, slots=True)
class Match:
    """Something that was found: its score in its list, and the words of the query that it holds."""

    kind: str
    id: str
    score: float
    matched: tuple[str, ...] = ()


def index(cx: Connection, kind: str, id_: str, text: str) -> None:
    """Make a thing findable by the words of a text, in the place of those that it was found by before."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    known = cx.execute(
        select(mem_texts.c.sha256).where(mem_texts.c.kind == kind, mem_texts.c.id == id_)
    ).scalar()
    if known == digest:
        return
    unindex(cx, kind, id_)
    tokens = words(text)
    counts = Counter([*map(_stem, tokens), *marked_stems(tokens)])
    cx.execute(insert(mem_texts).values(kind=kind, id=id_, sha256=digest, length=counts.total()))
    rows = [
        {"term": term, "kind": kind, "id": id_, "count": count}
        for term, count in counts.most_common(MOST_TERMS)
    ]
    if rows:
        cx.execute(insert(mem_terms), rows)


def unindex(cx: Connection, kind: str, id_: str) -> None:
    """Let a thing be found no more; its vectors go, too."""
    for table in (mem_terms, mem_texts, mem_vectors):
        cx.execute(delete(table).where(table.c.kind == kind, table.c.id == id_))


def by_words(cx: Connection, query: str, kinds: Sequence[str], limit: int) -> list[Match]:
    """Return what holds any word of a query, best first; any string is a legal query.

    Words that say nothing count only in a query that has no others.
    """
    asked = _asked(query)
    if not asked:
        return []
    size, average = _sizes(cx, kinds)
    scores: dict[tuple[str, str], float] = defaultdict(float)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    rows = _holding(cx, [term for terms in asked.values() for term in terms], kinds)
    for word, terms in asked.items():
        counted: dict[tuple[str, str], tuple[int, int]] = {}
        for term in terms:
            for key, count, length in rows.get(term, ()):
                if count > counted.get(key, (0, 0))[0]:
                    counted[key] = (count, length)
        rarity = math.log(1 + (size - len(counted) + 0.5) / (len(counted) + 0.5))
        for key, (count, length) in counted.items():
            norm = count + K1 * (1 - B + B * length / average)
            scores[key] += rarity * count * (K1 + 1) / norm
            found[key].append(word)
    best = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
    return [Match(key[0], key[1], scores[key], tuple(found[key])) for key in best]


def count_words(query: str) -> int:
    """Return how many words of a query are looked for."""
    return len(_asked(query))


def embed_missing(
    palace: Palace,
    limit: int = 1_000,
    patience: float | None = None,
    *,
    seconds: float = EMBED_SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Embed what has no vector of the embedder in force yet; returns how many were. Loads the embedder.

    No more than ``limit``, and none begun after ``seconds``: the next call goes on, as it does after an
    interrupt. ``progress`` is told how many are done, and of how many. Raises PalaceBusyError when others
    write for longer than ``patience`` seconds, ModelError.
    """
    space = palace.space
    identity = space.identity.identity
    done = 0
    ends = time.monotonic() + seconds
    with palace.ledger.read() as cx:
        total = min(waiting(cx, identity), limit) if progress is not None else 0
    while done < limit and (not done or time.monotonic() < ends):
        with palace.ledger.read() as cx:
            lacking = _without_vector(cx, identity, min(_BATCH, limit - done))
            texts = texts_of(cx, [(kind, id_) for kind, id_, _ in lacking])
        if not lacking:
            break
        lacking = _few(lacking, texts)
        rows = [(kind, id_, digest) for kind, id_, digest in lacking if (kind, id_) in texts]
        made = space.embedder.embed_documents([texts[kind, id_] for kind, id_, _ in rows]) if rows else ()
        with palace.ledger.write(patience) as cx:
            for kind, id_, _ in lacking:
                if (kind, id_) not in texts:
                    unindex(cx, kind, id_)
            _put(cx, identity, rows, made)
        done += len(lacking)
        if progress is not None:
            progress(done, max(total, done))
    return done


def _few(
    lacking: list[tuple[str, str, bytes]], texts: Mapping[tuple[str, str], str]
) -> list[tuple[str, str, bytes]]:
    """Return as many of these as are embedded in about a second, one at least."""
    left = _BATCH_CHARS
    for place, (kind, id_, _) in enumerate(lacking):
        left -= len(texts.get((kind, id_), ""))
        if left < 0:
            return lacking[: max(place, 1)]
    return lacking


def by_vector(
    palace: Palace, cx: Connection, vector: NDArray[np.float32], kinds: Sequence[str], limit: int
) -> list[Match]:
    """Return what is nearest to a unit vector by cosine, best first; only what has a vector that is valid."""
    import numpy as np

    keys, matrix = _matrix(cx, palace.identity.identity, palace.identity.dim, kinds, None)
    if not keys:
        return []
    cosines = matrix @ vector
    order = np.argsort(-cosines, kind="stable")[:limit]
    return [Match(keys[place][0], keys[place][1], float(cosines[place])) for place in order]


def vectors_of(
    palace: Palace, cx: Connection, kind: str, ids: Sequence[str]
) -> dict[str, NDArray[np.float32]]:
    """Return the unit vectors of those things that have one."""
    found: dict[str, NDArray[np.float32]] = {}
    for part in batches(ids):
        keys, matrix = _matrix(cx, palace.identity.identity, palace.identity.dim, (kind,), part)
        found.update((id_, vector) for (_, id_), vector in zip(keys, matrix, strict=True))
    return found


def drawer_vectors(palace: Palace, cx: Connection, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the unit vectors of those drawers whose vector the ledger keeps; loads no model."""
    import numpy as np

    identity = palace.identity
    found: dict[str, NDArray[np.float32]] = {}
    for part in batches(ids):
        query = (
            select(drawers.c.id, vectors.c.vector)
            .select_from(drawers.join(novelty, novelty.c.drawer == drawers.c.rid))
            .join(vectors, and_(vectors.c.input == novelty.c.input, vectors.c.embedder == identity.identity))
            .where(drawers.c.id.in_(part))
        )
        for id_, blob in cx.execute(query):
            if len(blob) == 2 * identity.dim:
                found[id_] = _unit(np.frombuffer(blob, dtype=np.float16).astype(np.float32))
    return found


def waiting(cx: Connection, identity: str) -> int:
    """Return how many things have no vector of an embedder yet."""
    query = _lacking(identity).with_only_columns(func.count())
    return int(cx.execute(query).scalar_one())


def put_vectors(
    cx: Connection, identity: str, kind: str, ids: Sequence[str], made: NDArray[np.float32]
) -> None:
    """Keep vectors that somebody else computed of the texts of things."""
    known = {
        row.id: row.sha256
        for part in batches(ids)
        for row in cx.execute(
            select(mem_texts.c.id, mem_texts.c.sha256).where(
                mem_texts.c.kind == kind, mem_texts.c.id.in_(part)
            )
        )
    }
    rows = [(kind, id_, known[id_]) for id_ in ids if id_ in known]
    kept = [vector for id_, vector in zip(ids, made, strict=True) if id_ in known]
    _put(cx, identity, rows, kept)


def _put(
    cx: Connection, identity: str, rows: Sequence[tuple[str, str, bytes]], made: Iterable[NDArray[np.float32]]
) -> None:
    values = [
        {"kind": k, "id": i, "embedder": identity, "sha256": digest, "vector": v.astype("float16").tobytes()}
        for (k, i, digest), v in zip(rows, made, strict=True)
    ]
    if values:
        cx.execute(insert(mem_vectors).prefix_with("OR REPLACE"), values)


def _matrix(
    cx: Connection, identity: str, dim: int, kinds: Sequence[str], ids: Sequence[str] | None
) -> tuple[list[tuple[str, str]], NDArray[np.float32]]:
    import numpy as np

    same = and_(
        mem_texts.c.kind == mem_vectors.c.kind,
        mem_texts.c.id == mem_vectors.c.id,
        mem_texts.c.sha256 == mem_vectors.c.sha256,
    )
    query = (
        select(mem_vectors.c.kind, mem_vectors.c.id, mem_vectors.c.vector)
        .join(mem_texts, same)
        .where(mem_vectors.c.embedder == identity, mem_vectors.c.kind.in_(kinds))
    )
    if ids is not None:
        query = query.where(mem_vectors.c.id.in_(ids))
    rows = [row for row in cx.execute(query) if len(row.vector) == 2 * dim]
    if not rows:
        return [], np.zeros((0, dim), dtype=np.float32)
    halves = np.frombuffer(b"".join(row.vector for row in rows), dtype=np.float16)
    return [(row.kind, row.id) for row in rows], _unit(halves.astype(np.float32).reshape(len(rows), dim))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = (rows / np.where(norms > 0, norms, 1)).astype(np.float32)
    return unit


def _lacking(identity: str) -> Select[Any]:
    same = and_(
        mem_vectors.c.kind == mem_texts.c.kind,
        mem_vectors.c.id == mem_texts.c.id,
        mem_vectors.c.sha256 == mem_texts.c.sha256,
        mem_vectors.c.embedder == identity,
    )
    return (
        select(mem_texts.c.kind, mem_texts.c.id, mem_texts.c.sha256)
        .select_from(mem_texts.outerjoin(mem_vectors, same))
        .where(mem_vectors.c.id.is_(None))
    )


def _without_vector(cx: Connection, identity: str, limit: int) -> list[tuple[str, str, bytes]]:
    return [(row.kind, row.id, row.sha256) for row in cx.execute(_lacking(identity).limit(limit))]


def _sizes(cx: Connection, kinds: Sequence[str]) -> tuple[int, float]:
    query = f"SELECT count(*), avg(length) FROM mem_texts WHERE kind IN ({_marks(kinds)})"
    count, average = run(cx, query, list(kinds)).fetchone()
    return count, max(float(average or 0), 1.0)


def _holding(
    cx: Connection, terms: Sequence[str], kinds: Sequence[str]
) -> dict[str, list[tuple[tuple[str, str], int, int]]]:
    """Return by term which things have it, how often, and how long each of them is."""
    query = (
        "SELECT t.term, t.kind, t.id, t.count, x.length FROM mem_terms t "
        "CROSS JOIN mem_texts x ON x.kind = t.kind AND x.id = t.id "
        f"WHERE t.term IN ({_marks(terms)}) AND t.kind IN ({_marks(kinds)})"
    )
    found: dict[str, list[tuple[tuple[str, str], int, int]]] = defaultdict(list)
    for term, kind, id_, count, length in run(cx, query, [*terms, *kinds]):
        found[term].append(((kind, id_), count, length))
    return found


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))


@lru_cache(64)
def _asked(query: str) -> Mapping[str, list[str]]:
    """Return the words to look for, each with the terms that stand for it."""
    tokens = list(dict.fromkeys(words(query)))
    telling = [token for token in tokens if token not in _DULL] or tokens
    return {token: [_stem(token), *stems_anywhere(token)] for token in telling[:MOST_ASKED]}


def _stem(word: str) -> str:
    if not (word.isascii() and word.isalpha()):
        return word
    return _stemmed(word)


@cache
def _english() -> tantivy.TextAnalyzer:
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    return builder.filter(tantivy.Filter.stemmer("english")).build()


@lru_cache(100_000)
def _stemmed(word: str) -> str:
    return next(iter(_english().analyze(word)), word)
