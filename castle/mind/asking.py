"""What a recall may be asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from castle.clock import check_span, parse_iso
from castle.errors import UsageError
from castle.mind.objects import Memory
from castle.store.mind_suggestions import Suggestion

TYPES = ("working", "episodic", "semantic", "procedural")
STRATEGIES = ("direct", "rrf_fusion", "two_pass")
TOP_K = 10
MOST = 200
_KNOWN = (
    "memory_type",
    "top_k",
    "limit",
    "strategy",
    "min_confidence",
    "query_text",
    "include_expired",
    "include_cold",
    "session_id",
    "tags",
    "since",
    "until",
    "wing",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One recall. ``since`` (inclusive) and ``until`` (exclusive) are microseconds.

    ``strategy``: ``direct`` goes by meaning, ``rrf_fusion`` by meaning and words, ``two_pass`` also along
    associations. ``min_confidence`` is about facts and leaves the other layers alone. ``session`` and
    ``tags`` are what the memories must have.
    """

    layers: tuple[str, ...] = TYPES
    top_k: int = TOP_K
    strategy: str = "rrf_fusion"
    min_confidence: float = 0.0
    include_expired: bool = False
    include_cold: bool = False
    session: str = ""
    tags: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    wing: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was recalled, best first.

    ``fallback`` is true where words alone decided, or some things have no vector yet; ``degraded`` says which
    guarantee was not in force. ``hidden`` counts what matched and is not shown because it is cold, expired or
    less sure than asked. ``preferences``, ``procedures`` and ``conflicts`` stand beside the memories, as
    do ``suggestions``: facts of the graph that one of them contradicts, with the command that ends each.
    """

    query: str
    memories: tuple[Memory, ...]
    fallback: bool
    degraded: tuple[str, ...] = ()
    hidden: Mapping[str, int] | None = None
    preferences: tuple[Mapping[str, Any], ...] = ()
    procedures: tuple[Memory, ...] = ()
    conflicts: tuple[tuple[str, str], ...] = ()
    suggestions: tuple[Suggestion, ...] = ()


def read(options: Mapping[str, Any]) -> Asked:
    """Read the options of a recall; raises UsageError for one that there is not or that makes no sense."""
    unknown = sorted(set(options) - set(_KNOWN))
    if unknown:
        raise UsageError(f"recall has no option {', '.join(map(repr, unknown))}: it has {', '.join(_KNOWN)}")
    given = {name: value for name, value in options.items() if value is not None}
    top_k = given.get("top_k", given.get("limit", TOP_K))
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MOST:
        raise UsageError(f"top_k is a whole number between 1 and {MOST}, not {top_k!r}")
    strategy = given.get("strategy", "rrf_fusion")
    if strategy not in STRATEGIES:
        raise UsageError(f"strategy {strategy!r} is none of {', '.join(STRATEGIES)}")
    least = given.get("min_confidence", 0.0)
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise UsageError(f"min_confidence is a number between 0 and 1, not {least!r}")
    since, until = _moment("since", given.get("since")), _moment("until", given.get("until"))
    check_span(since, until)
    return Asked(
        layers=_layers(given.get("memory_type")),
        top_k=top_k,
        strategy=strategy,
        min_confidence=float(least),
        include_expired=bool(given.get("include_expired", False)),
        include_cold=bool(given.get("include_cold", False)),
        session=str(given.get("session_id", "")),
        tags=_tags(given.get("tags", ())),
        since=since,
        until=until,
        wing=given.get("wing") or None,
    )


def _layers(given: object) -> tuple[str, ...]:
    if given is None:
        return TYPES
    wanted: Sequence[object] = [given] if isinstance(given, str) else list(given)  # type: ignore[call-overload]
    for one in wanted:
        if one not in TYPES:
            raise UsageError(f"memory_type {one!r} is none of {', '.join(TYPES)}")
    return tuple(layer for layer in TYPES if layer in wanted)


def _tags(given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list | tuple):
        raise UsageError(f"tags are a list of texts, not {given!r}")
    return tuple(str(tag) for tag in given)


def _moment(name: str, given: object) -> int | None:
    if given is None:
        return None
    try:
        return parse_iso(str(given), end_of_day=name == "until")
    except ValueError as error:
        raise UsageError(f"{name} {given!r} is no ISO date or time: write 2026-05-31") from error
