"""Models that Ollama serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from castle.llm.base import MAX_ANSWER_TOKENS, TIMEOUT_S, LlmError
from castle.llm.http import Server
from castle.llm.waiting import PROBES

URL = "http://127.0.0.1:11434"
PROBE_S = 0.5
"""Seconds for a server on this machine to list its models."""
REMOTE_PROBE_S = 3.0


@dataclass(frozen=True, slots=True)
class Ollama:
    """A model of an Ollama server, asked through ``/api/chat``.

    ``schema`` is a JSON schema that answers are held to where JSON is asked for.
    """

    server: Server
    model: str
    timeout: float = TIMEOUT_S
    schema: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        return "ollama"

    def available(self) -> str | None:
        """Return None when the server runs and has the model, else the reason in one line.

        The server is asked once per process; one that is not there or fails is
        left alone for half a minute.
        """
        return PROBES.ask(self._key, self._probe)

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Return the model's answer; raises LlmError."""
        payload = {
            "model": self.model,
            "stream": False,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            "options": {"temperature": 0, "num_predict": MAX_ANSWER_TOKENS, **_context(system + prompt)},
            **({"format": self.schema or "json"} if json else {}),
        }
        try:
            # Thoughts only take time here; some versions refuse the field for a model that has none.
            answer = self.server.post("/api/chat", payload, self.timeout, optional={"think": False})
        except LlmError as error:
            PROBES.rest(self._key, str(error))
            raise
        message = answer.get("message")
        text = message.get("content") if isinstance(message, dict) else None
        if not isinstance(text, str):
            raise LlmError(f"{self.server} answered without a message")
        if answer.get("done_reason") == "length":
            raise LlmError(f"the answer of {self.model} was cut off")
        return text

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.name, self.server.url, self.model

    def _probe(self) -> str | None:
        if self.server.local:
            absent = self.server.listening()
            if absent:
                return f"{absent}; start it: ollama serve"
        try:
            listed = self.server.get("/api/tags", PROBE_S if self.server.local else REMOTE_PROBE_S).get(
                "models"
            )
        except LlmError as error:
            return str(error)
        names = {
            str(item.get(key, "")).lower()
            for item in (listed if isinstance(listed, list) else [])
            if isinstance(item, dict)
            for key in ("name", "model")
        }
        if _tagged(self.model) in {_tagged(name) for name in names}:
            return None
        return f"{self.server} does not have the model {self.model}; get it: ollama pull {self.model}"


def _tagged(model: str) -> str:
    """Return the model's full name: Ollama reads a name without a tag as its ``latest``."""
    name = model.lower()
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _context(text: str) -> dict[str, int]:
    """Return the option that makes room for a long text, which Ollama would cut off without a word.

    Three bytes of UTF-8 count as a token, more than any language needs. A size other than the default makes
    Ollama load the model again, so a short text does not ask for one.
    """
    tokens = len(text.encode("utf-8", "replace")) // 3 + MAX_ANSWER_TOKENS // 2
    return {"num_ctx": 1 << tokens.bit_length()} if tokens > 4096 else {}
