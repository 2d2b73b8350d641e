"""A search that a running server answers, before the command line is built.

Building the command line takes longer than such an answer. What is typed is read here only where that is
plain; everything else, and every mistake, is left to the command itself, which reads it in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from castle.errors import ConfigError

_TEXTS = {
    "--palace": "palace",
    "--wing": "wing",
    "--room": "room",
    "--mode": "mode",
    "--by": "by",
    "--since": "since",
    "--until": "until",
    "--role": "role",
    "--as-of": "as_of",
    "--now": "now",
    "--cursor": "cursor",
    "--limit": "limit",
    "--results": "limit",
    "-n": "limit",
    "--kind": "kinds",
}
_FLAGS = {
    "--history": ("history", True),
    "--info-weight": ("info_weight", True),
    "--no-info-weight": ("info_weight", False),
    "--hide-cold": ("hide_cold", True),
    "--explain": ("explain", True),
    "--json": ("as_json", True),
}
_CHOICES = {
    "mode": ("fast", "standard", "boosted", "max"),
    "by": ("drawer", "message", "session"),
}


def answered(arguments: Sequence[str]) -> int | None:
    """Print the answer of a running server to a search; return the exit code, None where there is none."""
    read = plain_search(arguments)
    if read is None:
        return None
    from castle import config
    from castle.cli.asking import found_elsewhere
    from castle.cli.hits import say_hits
    from castle.cli.output import PARTIAL, say_json

    palace, explain, as_json = read.pop("palace"), read.pop("explain"), read.pop("as_json")
    try:
        settings = config.load({"palace_path": palace})
    except ConfigError:
        return None
    result = found_elsewhere(settings, "search", [read.pop("query")], read)
    if result is None or not (result.hits or read["wing"] is None is read["room"]):
        return None  # a place that is not there is named with those that are
    if as_json:
        say_json(result)
    else:
        say_hits(result, explain)
    return PARTIAL if result.degraded else 0


def plain_search(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return what a plain command line for a search says, with what the command takes for what it leaves out.

    None for everything else.
    """
    read: dict[str, Any] = dict.fromkeys(_TEXTS.values())
    read |= {"limit": 5, "by": "drawer", "kinds": [], "retention_weight": 0.0}
    read |= {name: None if name == "info_weight" else False for name, _ in _FLAGS.values()}
    words: list[str] = []
    pending = iter(arguments)
    for argument in pending:
        option, equals, value = argument.partition("=")
        if not argument.startswith("-"):
            words.append(argument)
        elif argument in _FLAGS:
            name, on = _FLAGS[argument]
            read[name] = on
        elif option in _TEXTS and not _take(read, _TEXTS[option], value if equals else next(pending, "-")):
            return None
        elif option not in _TEXTS:
            return None
    if len(words) != 2 or words[0] != "search":
        return None
    return {**read, "query": words[1]}


def _take(read: dict[str, Any], name: str, value: str) -> bool:
    """Note the value of an option; False for one that only the command itself can judge."""
    if value.startswith("-") or not value or value not in _CHOICES.get(name, (value,)):
        return False
    if name == "kinds":
        read[name].append(value)
    elif name == "limit":
        if not (value.isascii() and value.isdigit()):
            return False
        read[name] = int(value)
    else:
        read[name] = value
    return True
