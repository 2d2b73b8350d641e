"""What every group of tools stands on: the palace, opened when it is needed, and what parameters mean."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field

from castle import wire
from castle.clock import to_iso
from castle.errors import CastleError
from castle.mcp.answers import DrawerItem
from castle.mcp.budget import MOST, fitted
from castle.mcp.quoting import harmless
from castle.mcp.warm import Warmer

if TYPE_CHECKING:
    from castle.answers import Found
    from castle.records import Hit
    from castle.service import Castle

Tier = Literal["core", "standard", "memory", "all"]
TIERS: tuple[Tier, ...] = ("core", "standard", "memory", "all")
SETS: Mapping[Tier, tuple[Tier, ...]] = {
    "core": ("core",),
    "standard": ("core", "standard"),
    "memory": ("core", "memory"),
    "all": TIERS,
}
"""The tiers whose tools are offered with each set; ``memory`` is the core and the mind."""
Kind = Literal["reads", "adds", "changes"]
Method = TypeVar("Method", bound=Callable[..., Any])

PREVIEW = 200
"""Characters of a text that a list shows."""

MOST_PATH = 300

LOADING_SECONDS = 10.0
"""How long a call that needs models waits for them."""

Wing = Annotated[str, Field(description="only this wing")]
Room = Annotated[str, Field(description="only this room")]
DrawerId = Annotated[str, Field(description="the id, or at least 6 characters of its beginning")]
Source = Annotated[str, Field(description="only this source: a path, its end, or a drawer_id")]
Kinds = Annotated[
    list[str], Field(description="only these kinds; without it all but tool, thinking, injected, subagent")
]
History = Annotated[bool, Field(description="superseded drawers too")]
AsOf = Annotated[str, Field(description="what was current at this ISO date or time")]
Limit = Annotated[int, Field(ge=1, le=100)]
Offset = Annotated[int, Field(ge=0, le=1_000_000_000)]


@dataclass(frozen=True, slots=True)
class Offer:
    """In which sets a tool is offered, and what a host is told of it.

    ``adds`` leaves everything that is there as it is, ``changes`` does not. ``idempotent``: the same call
    again changes nothing more.
    """

    tier: Tier
    kind: Kind
    idempotent: bool


def offered(tier: Tier, kind: Kind = "reads", *, idempotent: bool = True) -> Callable[[Method], Method]:
    """Mark a method as a tool; ``tier`` is the smallest set that has it."""

    def mark(method: Method) -> Method:
        method.offer = Offer(tier, kind, idempotent)  # type: ignore[attr-defined]
        return method

    return mark


class Palace:
    """The palace behind the tools, opened by the first that needs it. Calls are answered one by one.

    With a ``warmer`` no search waits for a model; without one, each waits for what it needs.
    """

    def __init__(self, palace: str | None = None, warmer: Warmer | None = None) -> None:
        self._palace = palace
        self._warmer = warmer
        self._lock = threading.Lock()
        self._castle: Castle | None = None
        self._identity: tuple[int, int] | None = None
        self._told: set[str] = set()

    @property
    def busy(self) -> bool:
        """Whether a call is being answered at this moment."""
        return self._lock.locked()

    @property
    def opened(self) -> Castle | None:
        """The palace that calls have open, None before the first one."""
        return self._castle

    @contextmanager
    def _asked(self, patience: float = -1) -> Iterator[Castle]:
        """Give the open palace to one call at a time; an error of Castle's becomes one line of the tool's.

        ``patience`` is how many seconds to wait for another call, -1 for as long as that takes.
        """
        if not self._lock.acquire(timeout=patience):
            raise ToolError("the palace is busy with another call")
        try:
            castle = self._open()
            if self._warmer is not None:
                self._warmer.before(castle)
            yield castle
        except CastleError as error:
            raise ToolError(str(error)) from error
        finally:
            if self._warmer is not None:
                self._warmer.after()
            self._lock.release()

    @contextmanager
    def _asked_with_models(self) -> Iterator[Castle]:
        """Give the palace to a call that cannot do without models; others are answered while they load."""
        from castle.service.serving import LOADING

        if self._warmer is not None:
            with self._asked():
                pass
            self._warmer.wait(LOADING_SECONDS)
        with self._asked() as castle:
            if castle.unready == LOADING:
                raise ToolError("the embedder is being loaded; ask again in a moment")
            if castle.unready:
                raise ToolError(castle.unready)
            yield castle

    def recall(self, prompt: str, cwd: str | None, max_tokens: int, patience: float) -> str:
        """Return what is known of a prompt; ToolError when a call takes longer than ``patience`` seconds."""
        with self._asked(patience) as castle:
            return castle.recall_for_prompt(prompt, cwd=cwd, max_tokens=max_tokens)

    def read(self, request: Mapping[str, object], taken: Callable[[], None]) -> object:
        """Answer a command as its own process would; ToolError where this one might answer otherwise.

        ``request`` is what ``castle.wire`` says, ``taken`` is called as soon as nothing is in its way.
        """
        verb, given, arguments = wire.asked(request)
        with self._asked(wire.BUSY_SECONDS) as castle:
            if castle.unready:
                raise ToolError(castle.unready)
            if wire.fingerprint(castle.settings) != request.get("fingerprint"):
                raise ToolError("this server has another version, or other settings")
            taken()
            return wire.packed(getattr(castle, verb)(*given, **arguments))

    def _open(self) -> Castle:
        """Return the palace, opened again when another one has taken its place on disk."""
        from castle.service import Castle

        if self._castle is not None and _identity(self._castle.root) != self._identity:
            self._castle.close()
            self._castle = None
        if self._castle is None:
            self._castle = Castle(self._palace)
            self._identity = _identity(self._castle.root)
        return self._castle


def must_exist(castle: Castle) -> None:
    """Raise PalaceNotFoundError where there is no palace: no tool makes one by a slip of a path."""
    if _identity(castle.root) is None:
        castle.status()


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        status = (root / "castle.db").stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def page(
    items: Sequence[Any],
    total: int,
    offset: int,
    build: Callable[[int, int, int | None, list[Any]], Any],
    longest: int = MOST,
) -> CallToolResult:
    """Fit one page into the budget; the next one begins after what had room."""

    def answer(shown: list[Any]) -> Any:
        end = offset + len(shown)
        return build(total, offset, end if shown and end < total else None, shown)

    return fitted(items, answer, longest=longest)


def listed(answer: type[Any], name: str, total: int, offset: int, following: int | None, items: Any) -> Any:
    """Build a page whose entries are a field called ``name``."""
    return answer(total=total, offset=offset, next_offset=following, **{name: items})


def drawer_item(found: Found) -> DrawerItem:
    """Return what is shown of a drawer."""
    return DrawerItem(**drawer_fields(found))


def drawer_fields(drawer: Hit | Found) -> dict[str, Any]:
    """Return what a drawer and a hit have in common."""
    first, last = drawer.address.first_line, drawer.address.last_line
    return {
        "drawer_id": drawer.id,
        "content": drawer.text,
        "wing": drawer.wing,
        "room": drawer.room,
        "kind": drawer.kind,
        "role": drawer.role,
        "speaker": drawer.speaker,
        "source": harmless(short(drawer.address.path, MOST_PATH)),
        "lines": str(first) if first == last else f"{first}-{last}",
        "authored_at": time_of(drawer.authored_at),
        "filed_at": time_of(drawer.filed_at),
        "state": drawer.state,
    }


def time_of(micros: int | None) -> str:
    """Return a time as ISO 8601 with its offset; "" for none."""
    return "" if micros is None else to_iso(micros).replace(".000000", "")


def short(text: str, limit: int) -> str:
    """Shorten what is long by accident, such as a path; the end of it tells more than the beginning."""
    return text if len(text) <= limit else f"…{text[-limit:]}"
