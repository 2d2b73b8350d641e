"""Models behind the chat interface of OpenAI: LM Studio, llama.cpp, vLLM, OpenAI itself and many others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from castle.llm.base import MAX_ANSWER_TOKENS, TIMEOUT_S, LlmError
from castle.llm.http import Server
from castle.llm.waiting import PROBES


def base_url(url: str) -> str:
    """Return the URL that ``/chat/completions`` is added to: with ``/v1`` unless it names a version."""
    url = url.removesuffix("/chat/completions")
    versioned = any(re.fullmatch(r"v\d\w*", part) for part in urlsplit(url).path.split("/"))
    return url if versioned else f"{url}/v1"


@dataclass(frozen=True, slots=True)
class OpenAICompatible:
    """A model of a server that speaks ``/v1/chat/completions``.

    ``schema`` is a JSON schema that answers are held to where JSON is asked for.
    """

    server: Server
    model: str
    timeout: float = TIMEOUT_S
    schema: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        return "openai-compat"

    def available(self) -> str | None:
        """Return None unless the server should be on this machine and is not; then the reason."""
        if not self.server.local:
            return None
        return PROBES.ask(self._key, self.server.listening)

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Return the model's answer; raises LlmError."""
        payload = {
            "model": self.model,
            "stream": False,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
        }
        # LM Studio refuses json_object; models that reason refuse a temperature and this limit. Without a
        # limit a small model that is held to JSON may never come to an end.
        optional = {
            "temperature": 0,
            "max_tokens": MAX_ANSWER_TOKENS,
            **({"response_format": self._format} if json else {}),
        }
        try:
            answer = self.server.post("/chat/completions", payload, self.timeout, optional)
        except LlmError as error:
            PROBES.rest(self._key, str(error))
            raise
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        text = message.get("content") if isinstance(message, dict) else None
        if not isinstance(choice, dict) or not isinstance(text, str):
            raise LlmError(f"{self.server} answered without a message")
        if choice.get("finish_reason") == "length":
            raise LlmError(f"the answer of {self.model} was cut off")
        return text

    @property
    def _format(self) -> Mapping[str, Any]:
        if self.schema is None:
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": self.schema}}

    @property
    def _key(self) -> tuple[str, str]:
        return self.name, self.server.url
