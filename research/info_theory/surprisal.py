"""Surprisal: the bits that a language model needs for a text after earlier ones.

It is -log2 of the probability that the model gives the text, for each character. A server tells the
probabilities of what it writes, not of what it reads; so it is made to write the text token by token, by a
grammar that allows nothing else, and tells of each token how probable it was among all before the grammar.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from castle.llm.asking import MAX_TEXT_CHARS
from castle.llm.base import LlmError
from castle.llm.openai_compatible import OpenAICompatible

PRIORS = 5
"""Earlier texts that are read: the nearest ones, which tell most of it."""
BETWEEN = "\n"
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LEAST = -1e6
"""Below every log-probability; llama.cpp writes the least number there is for a probability of zero."""
_NEEDED = "surprisal needs the server of llama.cpp"


def surprisal(provider: OpenAICompatible, text: str, earlier: Sequence[str]) -> float:
    """Return the bits for each character of ``text`` after up to PRIORS earlier texts, the nearest first.

    The nearest comes last in what the model reads. Needs the server of llama.cpp; raises LlmError.
    """
    text = text[:MAX_TEXT_CHARS]
    read = [one[:MAX_TEXT_CHARS] for one in reversed(earlier[:PRIORS])]
    own = replace(provider.server, url=provider.server.url.removesuffix("/v1"))
    cut = own.post("/tokenize", {"content": text, "with_pieces": True}, provider.timeout)
    asked = {
        "model": provider.model,
        "prompt": BETWEEN.join([*read, ""]),
        "grammar": f"root ::= {grammar(cut)}",
        "max_tokens": len(text.encode("utf-8", "replace")) + 1,
        "temperature": 0,
        "logprobs": 1,
    }
    tokens = _tokens(provider.server.post("/completions", asked, provider.timeout))
    written = b"".join(spelt for spelt, _ in tokens).decode("utf-8", "replace")
    if written != text:
        raise LlmError(f"{provider.server} did not write the text: {_NEEDED}")
    if any(not _LEAST < logprob <= 0 for _, logprob in tokens):
        raise LlmError(f"{provider.server} told a probability that is none")
    return -sum(logprob for _, logprob in tokens) / math.log(2) / len(text)


def grammar(cut: Any) -> str:
    """Return a grammar of these tokens, as llama.cpp tells them, and of no other.

    A character of several tokens is written as itself: the server has to find its tokens, for a grammar of
    pieces of characters confuses it.
    """
    elements, begun = [], b""
    try:
        for token in cut["tokens"]:
            piece = token["piece"]
            if isinstance(piece, str) and not begun:
                elements.append(f"<[{int(token['id'])}]>")
                continue
            begun += piece.encode() if isinstance(piece, str) else bytes(piece)
            try:
                elements.append(literal(begun.decode()))
            except UnicodeDecodeError:
                continue
            begun = b""
    except (KeyError, TypeError, ValueError):
        raise LlmError(f"the server cuts no text into tokens: {_NEEDED}") from None
    return " ".join(elements)


def literal(text: str) -> str:
    """Return the text as a literal of llama.cpp's grammars."""
    escaped = (_ESCAPES.get(c) or (f"\\x{ord(c):02X}" if ord(c) < 32 else c) for c in text)
    return f'"{"".join(escaped)}"'


def _tokens(answer: Any) -> list[tuple[bytes, float]]:
    """Return what each token spells and its log-probability; the end, which spells nothing, is left out."""
    try:
        tokens = [
            (bytes(one["bytes"]), float(one["logprob"]))
            for one in answer["choices"][0]["logprobs"]["content"]
        ]
    except (KeyError, IndexError, TypeError, ValueError):
        raise LlmError(f"the server told no probabilities: {_NEEDED}") from None
    return [(spelt, logprob) for spelt, logprob in tokens if spelt]
