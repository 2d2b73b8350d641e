"""Models of Anthropic."""

from __future__ import annotations

from dataclasses import dataclass

from castle.llm.base import JSON_ONLY, MAX_ANSWER_TOKENS, TIMEOUT_S, LlmError
from castle.llm.http import Server

URL = "https://api.anthropic.com"
MODEL = "claude-haiku-4-5"
VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class Anthropic:
    """A model behind ``/v1/messages``."""

    server: Server
    model: str = MODEL
    timeout: float = TIMEOUT_S

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        return "anthropic"

    def available(self) -> str | None:
        """Return None: every question costs, so only a real one tells."""
        return None

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Return the model's answer; raises LlmError."""
        payload = {
            "model": self.model,
            "max_tokens": MAX_ANSWER_TOKENS,
            "system": f"{system}\n\n{JSON_ONLY}" if json else system,
            "messages": [{"role": "user", "content": prompt}],
        }
        answer = self.server.post("/v1/messages", payload, self.timeout)
        blocks = answer.get("content")
        texts = [
            block["text"]
            for block in (blocks if isinstance(blocks, list) else [])
            if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
        ]
        if not texts:
            raise LlmError(f"{self.server} answered without a text")
        if answer.get("stop_reason") == "max_tokens":
            raise LlmError(f"the answer of {self.model} was cut off")
        return "".join(texts)
