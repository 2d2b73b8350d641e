"""What the hosts document: example payloads and what a hook may print, one file for each host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HOSTS = ("claude-code", "codex")

_TYPES: Mapping[str, type] = {"string": str, "boolean": bool}


def documented(host: str) -> dict[str, Any]:
    """Return what a host documents: ``input`` and ``output`` by event."""
    file = Path(__file__).parent / "data" / f"{host}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def hooks_of(host: str) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks of a host's plugin by event."""
    file = ROOT / "plugins" / host / "hooks" / "hooks.json"
    found: dict[str, list[dict[str, Any]]] = json.loads(file.read_text(encoding="utf-8"))["hooks"]
    return found


def handlers(host: str) -> dict[str, dict[str, Any]]:
    """Return the one handler that a host's plugin has for each event."""
    found = {}
    for event, groups in hooks_of(host).items():
        (group,) = groups
        (found[event],) = group["hooks"]
    return found


def misfits(value: object, schema: Mapping[str, Any], where: str = "") -> list[str]:
    """Return what a value has that a schema does not allow; a key that it does not name is one."""
    if not isinstance(value, dict):
        return [f"{where or 'the output'} is no object"]
    found: list[str] = []
    for key, part in value.items():
        allowed = schema.get(key)
        if allowed is None:
            found.append(f"{where}{key} is not allowed")
        elif isinstance(allowed, dict):
            found += misfits(part, allowed, f"{where}{key}.")
        elif not isinstance(part, _TYPES[allowed]):
            found.append(f"{where}{key} is no {allowed}")
    return found
