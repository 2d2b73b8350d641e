"""The rows of a database of the former kind, and how to read what stands in them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from castle.clock import parse_iso

Row: TypeAlias = Mapping[str, Any]


def json_of(text: Any) -> Any:
    """Return what a column holds as JSON, None where it holds none."""
    with suppress(ValueError, TypeError):
        return json.loads(text)
    return None


def object_of(row: Row, name: str) -> dict[str, Any]:
    """Return the JSON object in a column, an empty one where there is none."""
    found = json_of(row.get(name))
    return found if isinstance(found, dict) else {}


def list_of(row: Row, name: str) -> list[Any]:
    """Return the JSON list in a column, an empty one where there is none."""
    found = json_of(row.get(name))
    return found if isinstance(found, list) else []


def public(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without the private keys of the program that wrote it."""
    return {key: value for key, value in metadata.items() if not key.startswith("_")}


def text_of(row: Row, name: str) -> str:
    """Return the text in a column; raises ValueError where there is none."""
    value = row.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def number_of(row: Row, name: str, otherwise: float) -> float:
    """Return the finite number in a column, ``otherwise`` where there is none."""
    with suppress(ValueError, TypeError):
        found = float(row.get(name, otherwise))
        if math.isfinite(found):
            return found
    return otherwise


def count_of(row: Row, name: str) -> int:
    """Return how often something happened, 0 where a column does not say."""
    return max(0, int(number_of(row, name, 0)))


def written_at(row: Row) -> int | None:
    """Return when a row was written, as far as it says: a cold one when it was put away."""
    for name in ("event_at", "created_at", "compressed_at"):
        at = moment_of(row.get(name), 0)
        if at:
            return at
    return None


def moment_of(text: Any, otherwise: int) -> int:
    """Return an ISO time in microseconds, ``otherwise`` where it is none."""
    with suppress(ValueError):
        return parse_iso(str(text or ""))
    return otherwise
