"""What a language model is to the rest of Castle."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

from castle.errors import ModelError

TIMEOUT_S = 120.0
MAX_ANSWER_BYTES = 1_000_000
MAX_ANSWER_TOKENS = 2048

MORE_TIME = "more time: castle config set llm_timeout SECONDS"
_MOST_MARKS = 20

JSON_ONLY = "Answer with one JSON object and nothing else: no prose, no markdown fence."
"""Added to the instructions for providers whose wire format cannot ask for JSON."""


class LlmError(ModelError):
    """A language model could not be asked, or its answer is unusable."""


class UnansweredError(LlmError):
    """The model is not there, or took too long."""


class Provider(Protocol):
    """A language model that can be asked."""

    @property
    def name(self) -> str:
        """The provider's name in the settings."""

    @property
    def model(self) -> str:
        """The model's name at the provider."""

    def available(self) -> str | None:
        """Return None when the model can be asked, else the reason in one line; raises nothing."""

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Return the model's answer; raises LlmError.

        ``system`` holds instructions only: a provider may show it to other users of the machine, in the list
        of processes. What is private belongs in ``prompt``. ``json`` asks for one JSON object; the answer may
        still be wrapped in prose, so read it with ``json_object``.
        """


def held_to(provider: Provider, schema: Mapping[str, Any]) -> Provider:
    """Return the provider with its answers held to a JSON schema, where it is one that can do so."""
    if "schema" not in getattr(provider, "__dataclass_fields__", {}):
        return provider
    return cast(Provider, replace(cast(Any, provider), schema=schema))


class Unusable:
    """Stands for a provider that the settings name but cannot be built; it only knows why."""

    def __init__(self, name: str, model: str, reason: str) -> None:
        self.name = name
        self.model = model
        self._reason = reason

    def available(self) -> str | None:
        """Return the reason."""
        return self._reason

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Raise LlmError with the reason."""
        raise LlmError(self._reason)


def json_object(answer: str) -> dict[str, Any]:
    """Return the one JSON object of an answer, whatever stands around it; raises LlmError.

    Thoughts before a closing ``</think>`` are skipped. Two objects, or half of one, are an error.
    """
    # The mark may stand inside a text of the object itself: then what begins before it is the object.
    parts = answer.split("</think>")
    said = ["</think>".join(parts[number:]) for number in range(len(parts) - 1, -1, -1)][:_MOST_MARKS]
    if not said[0].strip():
        said = [""]  # thoughts and nothing after them
    found = next((value for text in said if (value := _object_in(text)) is not None), None)
    if found is None:
        raise LlmError(f"the answer is not one JSON object: {one_line(said[0], 80) or 'it is empty'}")
    return found


def _object_in(text: str) -> dict[str, Any] | None:
    start, end = text.find("{"), text.rfind("}") + 1
    try:
        found = json.loads(text[start:end]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def one_line(text: str, most: int = 200) -> str:
    """Return at most ``most`` characters of the text on one line without control characters."""
    line = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"
