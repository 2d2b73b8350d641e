"""Embedders behind a server: both wire formats, on loopback."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from castle import Castle
from castle.errors import EmbedderIdentityMismatchError, ModelError
from castle.llm.waiting import PROBES
from castle.models import registry, remote
from castle.models.registry import describe_embedder, load_embedder
from castle.models.remote import Endpoint, RemoteEmbedder
from castle.store.palace import Palace
from tests.llm.servers import Answer, Fake, Reply, Request, serving
from tests.store.filer import file

DIM = 12
DIGEST = "ab12cd34ef567890aabbccddeeff"


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    PROBES.clear()
    registry._remote.cache_clear()
    monkeypatch.setattr(remote, "PAUSE_S", 0.001)
    yield
    registry._remote.cache_clear()
    PROBES.clear()


def vector(text: str, dim: int = DIM) -> list[float]:
    """Return some vector, the same for the same text, of any length."""
    chance = random.Random(text)
    return [5 * chance.gauss(0, 1) for _ in range(dim)]


def unit(text: str) -> NDArray[np.float32]:
    made = np.array(vector(text))
    found: NDArray[np.float32] = (made / np.linalg.norm(made)).astype(np.float32)
    return found


Vector = Callable[[str], Any]


def ollama(make: Vector = vector, digest: str = DIGEST, models: tuple[str, ...] = ("m:latest",)) -> Answer:
    """Answer as an Ollama does that has these models."""

    def answer(request: Request) -> Reply:
        if request.path == "/api/tags":
            return Reply({"models": [{"name": name, "digest": f"sha256:{digest}"} for name in models]})
        assert request.path == "/api/embed"
        named = request.body["model"]
        if named not in models and f"{named}:latest" not in models:
            return Reply({"error": f'model "{named}" not found, try pulling it first'}, 404)
        return Reply({"model": named, "embeddings": [make(text) for text in request.body["input"]]})

    return answer


def openai(make: Vector = vector, *, shuffled: bool = True) -> Answer:
    """Answer as a server with OpenAI's interface; the vectors come in any order."""

    def answer(request: Request) -> Reply:
        assert request.path == "/v1/embeddings"
        data = [
            {"object": "embedding", "index": number, "embedding": make(text)}
            for number, text in enumerate(request.body["input"])
        ]
        if shuffled:
            random.Random(1).shuffle(data)
        return Reply({"object": "list", "data": data, "model": request.body["model"]})

    return answer


def embedder(fake: Fake, name: str = "openai-compat/m", key: str | None = None) -> RemoteEmbedder:
    found = load_embedder(name, endpoint=Endpoint(fake.url, key))
    assert isinstance(found, RemoteEmbedder)
    return found


@pytest.mark.parametrize(("name", "answer"), [("ollama/m", ollama()), ("openai-compat/m", openai())])
def test_vectors_are_unit_vectors_in_the_order_of_the_texts(name: str, answer: Answer) -> None:
    texts = [f"text {number}" for number in range(70)]
    with serving(answer) as fake:
        found = embedder(fake, name)
        assert (found.identity.name, found.identity.dim) == (name, DIM)
        vectors = found.embed_documents(texts)
        assert vectors.dtype == np.float32
        assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)
        assert np.allclose(found.embed_query("text 3"), vectors[3], atol=1e-6)
        assert found.embed_documents([]).shape == (0, DIM)
    sent = [len(request.body["input"]) for request in fake.requests if request.body]
    assert sent == [1, 32, 32, 6, 1]


def test_what_ollama_is_asked() -> None:
    with serving(ollama()) as fake:
        embedder(fake, "ollama/m").embed_documents(["a", ""])
    assert [request.path for request in fake.requests] == ["/api/embed", "/api/tags", "/api/embed"]
    assert fake.requests[-1].body == {"model": "m", "input": ["a", "."], "truncate": False}
    assert "authorization" not in fake.requests[-1].headers


def test_what_a_server_of_openais_interface_is_asked() -> None:
    with serving(openai()) as fake:
        embedder(fake, key="secret-key").embed_query("half a \ud83c pair")
    assert fake.requests[-1].body == {"model": "m", "input": ["half a ? pair"], "encoding_format": "float"}
    assert fake.requests[-1].headers["authorization"] == "Bearer secret-key"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_urls_as_users_write_them(ending: str) -> None:
    with serving(openai()) as fake:
        load_embedder("openai-compat/m", endpoint=Endpoint(fake.url + ending)).embed_query("a")
    assert set(fake.asked) == {"/v1/embeddings"}


def test_a_server_that_does_not_know_a_field_is_asked_without() -> None:
    def answer(request: Request) -> Reply:
        if "encoding_format" in request.body:
            return Reply({"error": {"message": "unknown field"}}, 400)
        return openai()(request)

    with serving(answer) as fake:
        assert np.allclose(embedder(fake).embed_query("a"), unit("a"), atol=1e-6)


def test_vectors_without_an_index_come_as_they_come() -> None:
    def answer(request: Request) -> Reply:
        return Reply({"data": [{"embedding": vector(text)} for text in request.body["input"]]})

    with serving(answer) as fake:
        assert np.allclose(embedder(fake).embed_documents(["a", "b"])[1], unit("b"), atol=1e-6)


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("bge-m3", "", ""),
    ],
)
def test_prompts_that_are_known_of_a_model(model: str, query: str, document: str) -> None:
    with serving(openai()) as fake:
        found = embedder(fake, f"openai-compat/{model}")
        found.embed_query("key")
        found.embed_documents(["key"])
    assert fake.requests[-2].body["input"] == [f"{query}key"]
    assert fake.requests[-1].body["input"] == [f"{document}key"]
    assert (found.identity.identity == f"openai-compat/{model}/{DIM}") == (not query)


def test_the_digest_is_part_of_an_ollama_models_identity() -> None:
    with serving(ollama()) as fake:
        first = describe_embedder("ollama/m", Endpoint(fake.url))
    assert first.identity == f"ollama/m/{DIM}/{DIGEST[:12]}"
    with serving(ollama(digest="ffff" * 8)) as fake:
        assert describe_embedder("ollama/m", Endpoint(fake.url)).identity != first.identity


# What cannot be used


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([0.0] * DIM, "zero, NaN or infinite"),
        ([float("nan")] * DIM, "zero, NaN or infinite"),
        ([float("inf")] * DIM, "zero, NaN or infinite"),
        ([], "no vector"),
        (["a", "b"], "no vector"),
        ([[1.0, 2.0]], "no vector"),
        ("base64", "no vector"),
        (None, "no vector"),
        ({"a": 1}, "no vector"),
    ],
)
def test_what_is_no_direction_is_refused(made: Any, message: str) -> None:
    with serving(openai(lambda text: made if text == "bad" else vector(text))) as fake:
        found = embedder(fake)
        with pytest.raises(ModelError, match=message) as caught:
            found.embed_documents(["good", "bad"])
        assert "\n" not in str(caught.value)
        with pytest.raises(ModelError, match=message):
            found.embed_query("bad")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": None},
        {"data": []},
        {"data": [{"index": 0}, {"index": 0}]},
        {"data": [1]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        [1],
        b"<html>",
    ],
)
def test_an_answer_of_another_form_is_one_line(body: Any) -> None:
    with (
        serving(Reply(body)) as fake,
        pytest.raises(ModelError, match="the server of embedders at") as caught,
    ):
        embedder(fake)
    assert "\n" not in str(caught.value)


def test_another_length_than_before_is_refused() -> None:
    with serving(openai(lambda text: vector(text, 3 if text == "short" else DIM))) as fake:
        found = embedder(fake)
        with pytest.raises(
            ModelError, match=f"makes vectors of 3 now, openai-compat/m made vectors of {DIM}"
        ):
            found.embed_documents(["short"])


@pytest.mark.parametrize("status", [400, 413, 500])
def test_a_text_that_a_server_refuses_is_read_in_halves(status: int) -> None:
    refused: list[int] = []

    def answer(request: Request) -> Reply:
        long = [len(text) for text in request.body["input"] if len(text) > 200]
        if long:
            refused.append(max(long))
            return Reply({"error": "the input length exceeds the context length"}, status)
        return openai()(request)

    text = "a long text about the harbour " * 20
    with serving(answer) as fake:
        found = embedder(fake)
        vectors = found.embed_documents(["before", text, "after"])
        assert np.allclose(vectors[[0, 2]], [unit("before"), unit("after")], atol=1e-6)
        assert np.allclose(found.embed_query(text), vectors[1], atol=1e-6)
        sent = [request.body["input"] for request in fake.requests]
    assert refused
    pieces = {texts[0] for texts in sent if len(texts) == 1 and 1 < len(texts[0]) <= 200}
    assert sum(len(piece) for piece in pieces - {"before", "after", remote._PROBE}) >= 0.2 * len(text)
    assert any(piece.startswith("a long text") for piece in pieces)


def test_one_text_that_becomes_a_nan_does_not_hold_up_the_others() -> None:
    def answer(request: Request) -> Reply:
        sent = request.body["input"] if request.body else []
        if any(text.startswith("cursed ") and len(text) > 150 for text in sent):
            return Reply({"error": "failed to encode response: json: unsupported value: NaN"}, 500)
        return ollama()(request)

    with serving(answer) as fake:
        vectors = embedder(fake, "ollama/m").embed_documents(["good", "cursed " + "word " * 40])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.allclose(vectors[0], unit("good"), atol=1e-6)


def test_a_server_that_always_fails_is_given_up_soon() -> None:
    broken = False

    def answer(request: Request) -> Reply:
        return Reply({"error": "out of memory"}, 500) if broken else openai()(request)

    with serving(answer) as fake:
        found = embedder(fake)
        broken = True
        before = len(fake.requests)
        with pytest.raises(ModelError, match="answered 500: out of memory"):
            found.embed_documents(["word " * 160] * 64)
        assert len(fake.requests) - before <= remote.TRIES * 6


def test_what_passes_is_tried_again_and_what_does_not_is_not() -> None:
    replies: list[Reply] = []

    def answer(request: Request) -> Reply:
        return replies.pop() if replies else openai()(request)

    with serving(answer) as fake:
        found = embedder(fake)
        replies[:] = [Reply({}, 429), Reply(hang_up=True)]
        assert np.allclose(found.embed_documents(["a"])[0], unit("a"), atol=1e-6)
        replies[:] = [Reply({}, 503)] * 9
        with pytest.raises(ModelError, match="answered 503"):
            found.embed_documents(["a"])
        assert len(replies) == 9 - remote.TRIES
        replies[:] = [Reply({"error": {"message": "no"}}, 401)] * 9
        with pytest.raises(ModelError, match="401: no; set the key: castle config set embedder_api_key -"):
            found.embed_documents(["a"])
        assert len(replies) == 8


def test_no_message_shows_the_key() -> None:
    with (
        serving(Reply({"error": "Incorrect API key provided: very-secret"}, 401)) as fake,
        pytest.raises(ModelError) as caught,
    ):
        embedder(fake, key="very-secret")
    assert "very-secret" not in str(caught.value)
    assert "very-secret" not in repr(Endpoint("http://a", "very-secret"))


def test_a_server_that_takes_too_long_is_given_up_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "QUERY_S", 0.3)
    slow = False

    def answer(request: Request) -> Reply:
        return Reply(b"{" + b" " * 50, drip=True) if slow else openai()(request)

    with serving(answer) as fake:
        found = embedder(fake)
        slow = True
        with pytest.raises(ModelError, match="did not answer within 0.3 s$"):
            found.embed_query("a")
        asked = len(fake.requests)
        with pytest.raises(ModelError, match="did not answer within 0.3 s$"):
            found.embed_query("b")
        assert len(fake.requests) == asked


def test_an_ollama_that_is_not_there_or_has_not_the_model() -> None:
    nowhere = Endpoint("http://127.0.0.1:59997")
    with pytest.raises(ModelError, match="Ollama at http://127.0.0.1:59997 is not running .*ollama serve"):
        load_embedder("ollama/m", endpoint=nowhere)
    with serving(ollama()) as fake, pytest.raises(ModelError, match="get it: ollama pull other$"):
        embedder(fake, "ollama/other")


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        (Endpoint(), "castle config set embedder_endpoint http://localhost:1234/v1"),
        (Endpoint("ftp://a"), "embedder_endpoint is not the http or https URL"),
        (Endpoint("http://127.0.0.1:9", "a b"), "castle config set embedder_api_key -"),
    ],
)
def test_settings_that_do_not_do(endpoint: Endpoint, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_embedder("openai-compat/m", endpoint=endpoint)


@pytest.mark.parametrize("name", ["ollama/", "openai-compat/", "ollama"])
def test_a_name_without_a_model_means_nobody(name: str) -> None:
    with pytest.raises(ModelError):
        describe_embedder(name)


# In a palace


def test_a_palace_of_an_ollama_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "palace"
    with serving(ollama()) as fake:
        monkeypatch.setenv("CASTLE_EMBEDDER_ENDPOINT", fake.url)
        with Castle(root, embedder="ollama/m") as castle:
            castle.diary_write("test", "the key lies under the stone")
        registry._remote.cache_clear()
        with Castle(root) as castle:
            found = castle.search("key", mode="fast")
            assert (len(found.hits), found.degraded) == (1, ())
            assert castle.status().embedder == "ollama/m"
    PROBES.clear()
    # A server that is gone costs the vectors of a search, not the search.
    registry._remote.cache_clear()
    with Castle(root) as castle:
        found = castle.search("key", mode="fast")
        assert len(found.hits) == 1
        assert "Ollama at" in " ".join(found.degraded)
        castle.diary_write("test", "the lantern hangs at the door")
        assert len(castle.search("lantern", mode="fast").hits) == 1
    PROBES.clear()


def test_a_model_that_was_pulled_anew_is_a_mismatch(tmp_path: Path) -> None:
    root = tmp_path / "palace"
    with serving(ollama()) as fake:
        made = Palace(root, create=True, embedder="ollama/m", endpoint=Endpoint(fake.url))
        file(made.ledger, ["a text"])
        made.close()
        fake.answer = ollama(digest="ffff" * 8)
        registry._remote.cache_clear()
        opened = Palace(root, endpoint=Endpoint(fake.url))
        with pytest.raises(
            EmbedderIdentityMismatchError, match="--embedder ollama/m --embedder-dim 12 --yes"
        ):
            _ = opened.embedder
        opened.close()


def test_a_palace_of_another_embedder_asks_nobody(tmp_path: Path) -> None:
    with serving(ollama()) as fake, Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.diary_write("test", "a key")
        castle.search("key", mode="fast")
        assert fake.requests == []
    missing = Palace(tmp_path / "palace", embedder="ollama/m", endpoint=Endpoint("http://127.0.0.1:9"))
    with pytest.raises(EmbedderIdentityMismatchError, match="--embedder ollama/m --yes"):
        missing.check_embedder()
    missing.close()


def test_the_module_is_cheap() -> None:
    code = (
        "import sys; import castle.models.remote;"
        "sys.exit(str(sorted({'numpy', 'httpx', 'pydantic'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"
