"""Late interaction: the relevance of a text from the vectors of its tokens, made by an embedder.

Each token of the query looks for the token of the text that is nearest to it; the similarities are averaged,
rare tokens counting more. MaxSim is from Khattab and Zaharia, "ColBERT" (SIGIR 2020); weighting its terms by
rarity, and doing it with a model that was trained for single vectors, is measured below.

Rarity is that of the language and not of a collection, so that a score depends on the query and the text
alone: the tables of word pieces are in the order of frequency, and by Zipf's law the logarithm of a rank goes
with the negative logarithm of a frequency. Weights taken from the collection were no better.

Measured on 703 questions to 5 conversations of LoCoMo, turns as texts, K candidates fused by scores:

=============================  =======  ====  ====  ====
ranking                        nDCG@10  r@1   r@5   r@10
=============================  =======  ====  ====  ====
fused                          .454     .276  .526  .604
late interaction, K = 20       .553     .401  .605  .657
late interaction, K = 50       .577     .404  .627  .703
blended with .4, K = 20        .551     .391  .604  .662
blended with .4, K = 50        .573     .396  .628  .702
=============================  =======  ====  ====  ====

How much the fused score counts is 1 since it holds what is around a candidate; between .4 and 2 it made no
difference to ten turns, and 1 puts the right one first a little more often.

The first session found for 94 questions of LongMemEval was right for 91.5 % when fused and for 94.7 % when
blended with .4, K = 20 (nDCG@10 .954 and .964), the first turn for 57 and 62 %.

``compare`` also takes the texts that were read for a question together: what most of them have tells them
apart the least. Of 891 questions to LoCoMo it puts a right turn first for 45.3 % instead of 41.6 % (nDCG@10
.622 and .587); with turns of LongMemEval, which are longer and fewer, it is as without (.725 and .726).
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from castle.errors import ModelError, UnreadableError
from castle.models.base import EmbedderIdentity
from castle.models.encoder import TokenVectors
from castle.models.token_cache import TokenCache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1
_LEVELS = 7
_LEAST_WEIGHT = 0.2
_LEAST_MATCH = 0.01


class TokenEmbedder(Protocol):
    """An embedder that gives out the vectors of tokens."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Say which vectors these are."""

    def embed_tokens(self, texts: Sequence[str], *, query: bool = False) -> list[TokenVectors]:
        """Return the vectors of the tokens of each text."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was measured for a model.

    Tokens before ``first_word`` are punctuation and single characters, ``origin`` is what ranks are counted
    from. The relevance of a mean similarity s is 1 / (1 + exp(-(slope * s + offset))). A best relevance below
    ``confident`` says that nothing matches. ``latin`` says that the model reads no other script.
    """

    first_word: int
    origin: int
    slope: float
    offset: float
    confident: float
    latin: bool = False


TUNINGS = {
    "builtin": Tuning(1996, 1990, 10.1, -7.8, 0.05, latin=True),
    "multilingual": Tuning(4, 3, 55.3, -48.2, 0.02),
}
"""By the name of the embedder.

Slopes and offsets are logistic regressions of "holds the evidence" on the similarity of the 20 best fused
candidates: for ``builtin`` of 703 questions to 5 conversations of LoCoMo and 94 of LongMemEval, for
``multilingual`` of the same LoCoMo questions and 450 of XQuAD (en, es, zh); each with questions to other
collections, 1,107 and 705 of them, which nothing answers. Where the mean relevance predicted was .055, .14,
.38 and .56, the share observed was .05, .12, .41 and .59.

Below ``confident`` are the best of 4.6 % of LoCoMo's questions and 3.2 % of LongMemEval's, and of the
questions to other collections 92 to 97 %, but 71 % of those to another user's LongMemEval (area under the ROC
curve .98). For ``multilingual`` it is 5.8 % of LoCoMo's, .9 % of XQuAD's, and 91 to 98 % of the others (.99).
Questions that only look as if they could be answered are not told apart: 5 % of LoCoMo's adversarial ones are
below, and 2 of 7 of LongMemEval's.
"""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read for a query: the weights of its tokens, and by text the best cosine of each of them.

    Weights add up to 1. A text, or a query, without tokens has matches of no length.
    """

    query: str
    weights: NDArray[np.float64]
    matches: Mapping[str, NDArray[np.float32]]


class LateInteraction:
    """Relevance by late interaction over the token vectors of ``model``, those of texts kept in ``cache``.

    Vectors of texts are rounded to 4 bits per value, which costs nothing (nDCG@10 .566 either way on turns of
    LoCoMo), whether they come from the cache or not.
    """

    blend = 1.0
    reason = ""

    def __init__(self, model: TokenEmbedder, cache: TokenCache | None = None) -> None:
        """Raises ModelError for an embedder that nothing was measured for."""
        name = model.identity.name
        if name not in TUNINGS:
            raise ModelError(f"late interaction does not know the embedder {name!r}")
        self.identity = f"late-interaction-{_VERSION}/{model.identity.identity}"
        self._tuning = TUNINGS[name]
        self.confident = self._tuning.confident
        self._model = model
        self._cache = TokenCache() if cache is None else cache
        self._last: _Read | None = None

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a relevance in [0, 1] for each text, shape (len(texts),); 0 where either has no tokens.

        Raises UnreadableError for a query in a script that the model does not read: its tokens would match
        anything in that script (XQuAD in Chinese: nDCG@10 .47 after a fused .87).
        """
        import numpy as np

        read = self._read(query, texts)
        similarities = np.array(
            [found @ read.weights if len(found := read.matches[text]) else -np.inf for text in texts],
            dtype=np.float64,
        )
        exponents = self._tuning.slope * similarities + self._tuning.offset
        relevance: NDArray[np.float32] = (1 / (1 + np.exp(-exponents))).astype(np.float32)
        return relevance

    def compare(self, query: str, groups: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return how well the texts of each group, as one, answer a query beside the others, in log odds.

        Shape (len(groups),). Each token of the query looks for the nearest one in all texts of a group. What
        most groups have tells them apart the least: a token counts by its weight times log(1 / m), m being
        the mean of the similarities that it finds, one for each group. Only differences matter; a group
        without tokens has the least of all. What ``score`` has just read is not read again. Raises
        UnreadableError as ``score``.
        """
        import numpy as np

        read = self._read(query, list({text for group in groups for text in group}))
        held = [[m for text in group if len(m := read.matches[text])] for group in groups]
        best = np.array([np.max(matches, axis=0) for matches in held if matches], dtype=np.float64)
        answers = np.zeros(len(groups))
        if len(best):
            weights = read.weights * -np.log(np.clip(best.mean(axis=0), _LEAST_MATCH, 1 - _LEAST_MATCH))
            found = self._tuning.slope * (best @ (weights / weights.sum()))
            answers += found.min()
            answers[[bool(matches) for matches in held]] = found
        return answers

    def prepare(self, texts: Sequence[str]) -> None:
        """Fill the cache, so that scoring these texts costs nearly nothing."""
        self._packed(texts)

    def _weights(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        import numpy as np

        ranks = np.maximum(ids - self._tuning.origin, 1)
        weights = np.maximum(np.log(ranks) - 1, _LEAST_WEIGHT)
        return np.where(ids < self._tuning.first_word, _LEAST_WEIGHT, weights)

    def _read(self, query: str, texts: Sequence[str]) -> _Read:
        """Read the texts for a query; those that were read for the last query are not read again."""
        import numpy as np

        if self._tuning.latin and _foreign(query):
            raise UnreadableError(f"the model {self._model.identity.name!r} reads no script but the Latin")
        last = self._last
        if last is not None and last.query == query and all(text in last.matches for text in texts):
            return last
        asked = self._model.embed_tokens([query], query=True)[0]
        weights = self._weights(asked.ids)
        distinct = list(dict.fromkeys(texts))
        if len(asked.ids):
            weights /= weights.sum()
            matches = [_matches(asked.rows, data) for data in self._packed(distinct)]
        else:
            matches = [np.empty(0, np.float32)] * len(distinct)
        read = _Read(query, weights, dict(zip(distinct, matches, strict=True)))
        self._last = read
        return read

    def _packed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the rounded vectors of each text, computing those that the cache has not."""
        keys = [self._key(text) for text in texts]
        width = self._model.identity.dim // 2
        known = {key: data for key, data in self._cache.get(keys).items() if len(data) % width == 0}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        vectors = self._model.embed_tokens(list(missing.values()))
        made = {key: _pack(vector.rows) for key, vector in zip(missing, vectors, strict=True)}
        self._cache.put(made)
        known.update(made)
        return [known[key] for key in keys]

    def _key(self, text: str) -> bytes:
        named = f"{self.identity}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(named).digest()


def _matches(rows: NDArray[np.float32], data: bytes) -> NDArray[np.float32]:
    """Return the best cosine that each row of a query finds in a text; nothing where that has none."""
    import numpy as np

    found = _unpack(data, rows.shape[1])
    products = found @ rows.T
    products /= np.sqrt(np.einsum("ij,ij->i", found, found))[:, None]
    best: NDArray[np.float32] = products.max(axis=0) if len(found) else np.empty(0, np.float32)
    return best


def _foreign(text: str) -> bool:
    """Say whether most letters of a text are not Latin."""
    latin = [unicodedata.name(sign, "").startswith("LATIN") for sign in text if sign.isalpha()]
    return 2 * sum(latin) < len(latin)


def _pack(rows: NDArray[np.float32]) -> bytes:
    """Round rows to whole numbers from -7 to 7, relative to the largest value, two to a byte.

    A byte holds a value of the first half of a row in its lower bits, one of the second half above them.
    """
    import numpy as np

    most = np.abs(rows).max(axis=1, keepdims=True)
    levels = np.rint(rows * (_LEVELS / most)).astype(np.int8).view(np.uint8) & 15
    half = rows.shape[1] // 2
    packed: bytes = (levels[:, :half] | levels[:, half:] << 4).tobytes()
    return packed


def _unpack(data: bytes, dim: int) -> NDArray[np.float32]:
    """Return the rows, of any length."""
    import numpy as np

    half = dim // 2
    pairs = np.frombuffer(data, np.int8).reshape(-1, half)
    rows = np.empty((len(pairs), dim), np.float32)
    rows[:, :half] = pairs << 4 >> 4
    rows[:, half:] = pairs >> 4
    return rows
