"""Keeping every answer within a number of bytes, and saying what was left out.

Texts are shortened first, all to the same length, down to ``LEAST``; then entries are left out from the end.
Both are said in the answer; totals stay exact. Every text is quoted here, after it was shortened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent
from pydantic_core import PydanticSerializationError

from castle.mcp.answers import Answer, Item, Quoted
from castle.store.projection import legal_text

BUDGET = 16_000
"""The most bytes a result may have, its structured content and its text together."""

ENVELOPE = 200
"""Bytes of it that the SDK uses to say which server answered."""

LEAST = 160
"""Characters of a text that are shown at least."""

LONGEST_ERROR = 1_000
"""Characters of an error's message."""

MOST = 100_000
ANOTHER_CALL = "castle_get_drawer {drawer_id} gives the rest"

AnyItem = TypeVar("AnyItem", bound=Item)
Result = CallToolResult | InputRequiredResult


def result(answer: Answer) -> CallToolResult:
    """Return an answer as structured content, and as the same JSON for hosts that read only text."""
    content = answer.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)


def sendable(answer: Result) -> Result:
    """Return a result as it can be written: half surrogate pairs, which UTF-8 has none of, are replaced.

    Raises ToolError for one that is larger than the budget all the same.
    """
    if not isinstance(answer, CallToolResult):
        return answer
    try:
        length = size(answer)
    except PydanticSerializationError:
        answer = CallToolResult.model_validate(_legal(answer.model_dump(by_alias=True)))
        length = size(answer)
    if length > BUDGET:
        raise ToolError(f"the answer has {length} bytes, {BUDGET} are the most: ask for less")
    return answer


def said(message: str) -> str:
    """Return an error's message as it can be sent: one that repeats what it was given can have any length."""
    text = legal_text(message)
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}… ({len(text)} characters)"


def _legal(value: Any) -> Any:
    if isinstance(value, str):
        return legal_text(value)
    if isinstance(value, dict):
        return {_legal(key): _legal(part) for key, part in value.items()}
    return [_legal(part) for part in value] if isinstance(value, list) else value


def size(answer: CallToolResult) -> int:
    """Return the number of bytes that a result takes on the wire."""
    return len(answer.model_dump_json(by_alias=True, exclude_none=True).encode())


def fitted(
    items: Sequence[AnyItem],
    build: Callable[[list[AnyItem]], Answer],
    *,
    budget: int = BUDGET - ENVELOPE,
    longest: int = MOST,
    first_whole: bool = False,
    rest: str = ANOTHER_CALL,
) -> CallToolResult:
    """Return what ``build`` makes of as many items as have room, the first of them always among them.

    No text is shown beyond ``longest`` characters. ``first_whole`` shortens the first only when it has no
    room on its own. ``rest`` says how to get what was cut off.
    """

    def attempt(count: int, length: int) -> CallToolResult:
        shown = [shortened(item, length, rest) for item in items[:count]]
        if first_whole and shown:
            shown[0] = shortened(items[0], longest, rest)
        return result(build(shown))

    def fits(count: int, length: int) -> bool:
        return size(attempt(count, length)) <= budget

    whole = attempt(len(items), longest)
    if size(whole) <= budget:
        return whole
    first_whole = first_whole and fits(1, longest)
    count = len(items)
    if not fits(count, LEAST):
        count = max(1, _last(1, count, lambda number: fits(number, LEAST)))
    return attempt(count, max(1, _last(1, longest, lambda length: fits(count, length))))


def _last(low: int, high: int, good: Callable[[int], bool]) -> int:
    """Return the last number between two bounds that is good, where all before it are; below them if none."""
    while low <= high:
        middle = (low + high) // 2
        if good(middle):
            low = middle + 1
        else:
            high = middle - 1
    return high


def shortened(item: AnyItem, length: int, rest: str = ANOTHER_CALL) -> AnyItem:
    """Shorten recorded words to ``length`` characters, saying so, and quote them."""
    if not isinstance(item, Quoted) or not item.drawer_id:
        return item
    from castle.mine.formats import recall_block

    shown = item.content[:length]
    note = ""
    if len(shown) < len(item.content):
        note = f"{len(shown)} of {len(item.content)} characters: {rest.format(drawer_id=item.drawer_id)}"
    return item.model_copy(update={"content": recall_block(shown), "cut": note})
