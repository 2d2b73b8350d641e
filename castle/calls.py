"""How calls of tools went, as hosts tell it; for hooks, too, so with nothing but the standard library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def went_well(name: str, given: Mapping[str, object]) -> bool | None:
    """Return whether a call of a tool went well, None where the host does not say."""
    if "failure" in name.lower() or given.get("error"):
        return False
    answer = given.get("tool_response", given.get("tool_result", given.get("result")))
    if isinstance(answer, Mapping):
        for key, bad in (("is_error", True), ("isError", True), ("interrupted", True), ("success", False)):
            if answer.get(key) is bad:
                return False
        for key in ("exit_code", "exitCode", "returncode"):
            if isinstance(answer.get(key), int):
                return int(answer[key]) == 0
        return True
    if isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        return not any(isinstance(part, Mapping) and part.get("is_error") is True for part in answer)
    return None if answer is None else True
