"""Embedders behind a server: Ollama, and whatever speaks the embeddings interface of OpenAI.

``ollama/MODEL`` is asked through ``/api/embed``, ``openai-compat/MODEL`` through ``/v1/embeddings``. Texts go
to the server that the settings name and nowhere else, and only for a palace whose embedder has such a name.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from castle.errors import ModelError
from castle.llm.base import LlmError, UnansweredError
from castle.llm.http import AnsweredError, Server, read_url
from castle.llm.ollama import URL as OLLAMA_URL
from castle.llm.openai_compatible import base_url
from castle.llm.waiting import PROBES
from castle.models.base import EmbedderIdentity, checked
from castle.models.hub import prompts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PROVIDERS = ("ollama", "openai-compat")

BATCH = 32
MOST_BYTES = 16_000_000
DOCUMENTS_S = 120.0
"""Seconds for a batch of documents; a model that is not in memory has to be loaded first."""
QUERY_S = 10.0
PROBE_S = 30.0
TRIES = 3
PAUSE_S = 0.5
"""Before the second try; before each further one four times as long."""

_PASSING = frozenset((408, 425, 429, 500, 502, 503, 504))
_TEXT_IS_WHY = frozenset((400, 413, 422, 500))
"""What servers answer when a text is too long for the model, or when it makes a NaN of it."""
_SHORTEST = 100
_NO_WORDS = "."
_PROBE = "The harbour is closed on Sundays."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The server of embedders that the settings name; ``url`` is None for Ollama on this machine.

    ``allowed`` names the hosts and networks beside this machine and the open internet that may be asked.
    """

    url: str | None = None
    key: str | None = field(default=None, repr=False)
    allowed: tuple[str, ...] = ()


NOWHERE = Endpoint()


def is_remote(name: str) -> bool:
    """Say whether a name means an embedder behind a server."""
    provider, _, model = name.partition("/")
    return provider in PROVIDERS and bool(model)


class RemoteEmbedder:
    """Vectors that a server makes, normalised.

    A text that the server refuses, because it is too long or a NaN comes of it, is sent in halves, and its
    vector is their mean, weighted by size. ``max_tokens`` is not known and says what most models read.
    """

    max_tokens = 512

    def __init__(self, name: str, endpoint: Endpoint = NOWHERE) -> None:
        """Ask the server for one vector, which tells their length.

        Raises ModelError when it cannot be asked, or does not have the model.
        """
        provider, _, model = name.partition("/")
        self._name = name
        self._provider = provider
        self._model = model
        self._query_prompt, self._document_prompt = prompts_of(model)
        self._server = _server(provider, endpoint)
        with self._hasty():
            absent = self._server.listening() if self._server.local else None
            if absent is not None:
                raise UnansweredError(absent + ("; start it: ollama serve" if provider == "ollama" else ""))
            dim = self._ask([_PROBE], PROBE_S)[0].size
            self.identity = EmbedderIdentity(name, dim, self._identity(dim))

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), dim), in the order of the texts."""
        import numpy as np

        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        for start in range(0, len(texts), BATCH):
            part = [self._document_prompt + text for text in texts[start : start + BATCH]]
            vectors[start : start + BATCH] = self._batch(part)
        return checked(vectors, self.identity)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (dim,)."""
        import numpy as np

        prompted = self._query_prompt + text
        try:
            with self._hasty():
                found = self._same_length(self._ask([prompted], QUERY_S))
        except (AnsweredError, _Unusable) as error:
            if not _is_about_the_text(error):
                raise
            found = [self._halves(prompted, error)]
        vector: NDArray[np.float32] = checked(np.stack(found), self.identity)[0]
        return vector

    @contextmanager
    def _hasty(self) -> Iterator[None]:
        """Let nobody who searches wait for a server that is not there again and again."""
        key = (self._name, self._server.url)
        reason = PROBES.ask(key, lambda: None)
        if reason is not None:
            raise LlmError(reason)
        try:
            yield
        except UnansweredError as error:
            PROBES.rest(key, str(error))
            raise

    def _batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of some documents; where the server refuses them, one after the other."""
        import numpy as np

        try:
            return np.stack(self._same_length(self._patiently(texts)))
        except (AnsweredError, _Unusable) as error:
            if not _is_about_the_text(error):
                raise
            if len(texts) == 1:
                return np.stack([self._halves(texts[0], error)])
        return np.concatenate([self._batch([text]) for text in texts])

    def _halves(self, text: str, error: LlmError) -> NDArray[np.float32]:
        """Return the mean of the vectors of a text's halves, which may be halved again."""
        import numpy as np

        if len(text) < _SHORTEST:
            raise error
        middle = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
        halves = (text[:middle], text[middle:])
        total = sum(len(half) * self._batch([half])[0] for half in halves)
        mean: NDArray[np.float32] = (total / np.linalg.norm(total)).astype(np.float32)
        return mean

    def _patiently(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Ask, and ask again when the reason may be over by then."""
        for pause in _pauses():
            try:
                return self._ask(texts, DOCUMENTS_S)
            except (AnsweredError, UnansweredError) as error:
                passing = isinstance(error, UnansweredError) or error.status in _PASSING
                if pause is None or not passing:
                    raise
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _ask(self, texts: Sequence[str], seconds: float) -> list[NDArray[np.float32]]:
        """Return the unit vectors of the texts in their order, as one call gives them."""
        sent = [_sendable(text) for text in texts]
        if self._provider == "ollama":
            # Otherwise the end of a long text would be cut off without a word.
            payload = {"model": self._model, "input": sent, "truncate": False}
            try:
                answer = self._server.post("/api/embed", payload, seconds)
            except AnsweredError as error:
                raise self._explained(error) from None
            rows = answer.get("embeddings")
        else:
            wanted = {"encoding_format": "float"}
            answer = self._server.post(
                "/embeddings", {"model": self._model, "input": sent}, seconds, optional=wanted
            )
            rows = _in_order(answer.get("data"))
        if not isinstance(rows, list) or len(rows) != len(texts):
            raise LlmError(f"{self._server} did not answer with one vector for each of {len(texts)} texts")
        return [self._unit(row) for row in rows]

    def _unit(self, row: Any) -> NDArray[np.float32]:
        import numpy as np

        try:
            found = np.array(row, dtype=np.float64)
            norm = np.linalg.norm(found)
        except (TypeError, ValueError):
            found, norm = np.zeros(0), np.float64(0)
        if found.ndim != 1 or not found.size:
            raise LlmError(f"{self._server} answered with something that is no vector")
        if not np.isfinite(norm) or not norm:
            raise _Unusable(f"{self._server} made a vector of a text that is zero, NaN or infinite")
        unit: NDArray[np.float32] = (found / norm).astype(np.float32)
        return unit

    def _same_length(self, vectors: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        for vector in vectors:
            if vector.size != self.identity.dim:
                raise ModelError(
                    f"{self._server} makes vectors of {vector.size} now, {self._name} made vectors of "
                    f"{self.identity.dim}"
                )
        return vectors

    def _identity(self, dim: int) -> str:
        """Return the identity: with the digest of the model where the server gives it."""
        revision = self._digest() if self._provider == "ollama" else ""
        prompts = f"{self._query_prompt}\0{self._document_prompt}"
        asked = hashlib.sha256(prompts.encode()).hexdigest()[:8] if prompts != "\0" else ""
        return "/".join(part for part in (self._name, str(dim), revision, asked) if part)

    def _digest(self) -> str:
        """Return the beginning of the digest by which Ollama knows the model."""
        listed = self._server.get("/api/tags", PROBE_S).get("models")
        wanted = self._model if ":" in self._model.rpartition("/")[2] else f"{self._model}:latest"
        for item in listed if isinstance(listed, list) else []:
            if isinstance(item, dict) and str(item.get("name", "")).lower() == wanted.lower():
                return str(item.get("digest") or "").removeprefix("sha256:")[:12]
        return ""

    def _explained(self, error: AnsweredError) -> AnsweredError:
        if error.status != 404:
            return error
        return AnsweredError(
            f"{self._server} does not have the model {self._model}; get it: ollama pull {self._model}", 404
        )


class _Unusable(LlmError):
    """What a server made of a text is no direction."""


def _is_about_the_text(error: LlmError) -> bool:
    return not isinstance(error, AnsweredError) or error.status in _TEXT_IS_WHY


def _server(provider: str, endpoint: Endpoint) -> Server:
    url = endpoint.url or ""
    if provider == "ollama":
        label, url = "Ollama", read_url(url or OLLAMA_URL, "embedder")
    elif url:
        label = "the server of embedders"
        url = base_url(read_url(url, "embedder").removesuffix("/embeddings"))
    else:
        raise ModelError(
            "openai-compat needs the URL of its server, such as "
            "castle config set embedder_endpoint http://localhost:1234/v1"
        )
    key = (endpoint.key or "").strip()
    if not key.isascii() or any(c.isspace() or not c.isprintable() for c in key):
        raise ModelError("the API key holds characters that no key has: castle config set embedder_api_key -")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    secrets = (key,) if key else ()
    return Server(label, url, headers, secrets, "embedder", MOST_BYTES, endpoint.allowed)


def _in_order(data: Any) -> list[Any] | None:
    """Return the vectors of an answer by their ``index``; where that is missing, as they come."""
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        return None
    if any("index" in item for item in data):
        if sorted(str(item.get("index")) for item in data) != sorted(str(n) for n in range(len(data))):
            return None
        data = sorted(data, key=lambda item: int(item["index"]))
    return [item.get("embedding") for item in data]


def _sendable(text: str) -> str:
    """Return a text that every server takes: none is empty, and half a pair is a question mark."""
    legal = text.encode("utf-8", "replace").decode("utf-8")
    return legal if legal.strip() else _NO_WORDS


def _pauses() -> Iterator[float | None]:
    """Yield how long to wait after each try that fails, None after the last."""
    for number in range(TRIES - 1):
        yield PAUSE_S * 4**number
    yield None
