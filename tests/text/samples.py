"""A counter and text generators shared by the tests of the text package."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

_PIECE = re.compile(r"[A-Za-z0-9]{1,4}|[^\sA-Za-z0-9]")
_VOCABULARY = (
    "river stone window garden letter morning evening travel answer question memory castle palace tower "
    "bridge harbour silver copper market village people carry remember forget write reading quiet sudden "
    "yellow between under above never always perhaps before after winter summer small large open closed"
).split()


def count(texts: Sequence[str]) -> list[int]:
    """Count pieces of four letters or digits, and every other sign; white space counts nothing."""
    return [len(_PIECE.findall(text)) for text in texts]


def sentence(draw: random.Random) -> str:
    words = [draw.choice(_VOCABULARY) for _ in range(draw.randrange(5, 19))]
    return " ".join(words).capitalize() + "."


def paragraph(draw: random.Random) -> str:
    return " ".join(sentence(draw) for _ in range(draw.randrange(1, 8))) + "\n\n"


def document(draw: random.Random, size: int) -> str:
    parts: list[str] = []
    total = 0
    while total < size:
        level = draw.choice((0, 0, 0, 2, 3))
        part = f"{'#' * level} {sentence(draw)[:40]}\n\n" if level else paragraph(draw)
        parts.append(part)
        total += len(part)
    return "".join(parts)


def log(draw: random.Random, lines: int) -> str:
    return "".join(
        f"2026-03-{draw.randrange(1, 29):02}T{draw.randrange(24):02}:{draw.randrange(60):02}:30 "
        f"INFO worker-{draw.randrange(9)} {draw.choice(_VOCABULARY)} took {draw.randrange(9_000)} ms\n"
        for _ in range(lines)
    )


def module(draw: random.Random, functions: int) -> str:
    return "import os\n\n\n" + "\n\n".join(_definition(draw, number) for number in range(functions))


def _definition(draw: random.Random, number: int) -> str:
    name = f"{draw.choice(_VOCABULARY)}_{number}"
    if draw.random() < 0.3:
        methods = "\n".join(_function(draw, f"{draw.choice(_VOCABULARY)}_{n}", "    ") for n in range(3))
        return f"class {name.title()}:\n    '''{sentence(draw)}'''\n\n{methods}\n"
    return _function(draw, name, "")


def _function(draw: random.Random, name: str, indent: str) -> str:
    lines = [f"{indent}# {sentence(draw)}", f"{indent}@wrapped", f"{indent}def {name}(value):"]
    for _ in range(draw.randrange(2, 25)):
        lines.append(
            f"{indent}    {draw.choice(_VOCABULARY)} = value.{draw.choice(_VOCABULARY)}({draw.randrange(99)})"
        )
    return "\n".join(lines) + "\n"


def blocks(text: str, draw: random.Random) -> Iterator[str]:
    """Cut a text anywhere."""
    at = 0
    while at < len(text):
        size = draw.choice((1, 2, 7, 100, 3_000, 40_000))
        yield text[at : at + size]
        at += size
