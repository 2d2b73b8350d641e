"""The text of a wake-up: L0, who the user is, and L1, the essentials of the palace or of a wing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from castle.config import Settings
from castle.mind.waking import section
from castle.novelty import refresh
from castle.records import Drawer
from castle.store.mind_rows import has_mind
from castle.store.palace import Palace
from castle.store.reading import drawers_by_id, served
from castle.text.served import mask_secrets
from castle.wakeup.candidates import Candidate, candidates
from castle.wakeup.essentials import MOST_RANKED, chosen, ranked, tells
from castle.wakeup.identity import Identity, read_identity
from castle.wakeup.nearness import Nearness
from castle.wakeup.page import longest
from castle.wakeup.snippets import MOST_NAME, SHORT, day, name_of, snippet
from castle.wakeup.tokens import count, cut

BUDGET = 900
"""The most tokens of a wake-up, its wrapping included."""
OF_IDENTITY = 0.5
"""The share of the budget that an identity may take."""
OF_SNIPPET = 100
"""Tokens of one drawer at most: some scripts have one for each character."""
MOST_SHOWN = 60
MAY_LACK, FEW = 0.1, 100
"""The share of the candidates that may be without a novelty score, and how many may in any case."""
MORE = 'More: `castle recall --wing W --room R`, `castle search "words"` (castle_search).'


@dataclass(frozen=True, slots=True)
class WakeUp:
    """What an agent is told when it begins; ``text`` has ``tokens`` tokens.

    ``wing`` is None for all of them. ``drawers`` are the ids of those shown, ``left_out`` counts what was
    chosen and had no room, ``degraded`` says in words what was not in force, ``pending`` what the ranking
    does without until background work has come to it.
    """

    text: str
    tokens: int
    wing: str | None
    drawers: tuple[str, ...]
    left_out: int
    degraded: tuple[str, ...]
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Essentials:
    """What L1 may show: the first ``pins`` of ``items`` are pinned, the others follow as they were chosen.

    ``mind`` are the lines of what an agent prefers, works on and must not believe any more.
    """

    items: Sequence[Candidate]
    pins: int
    drawers: Mapping[str, Drawer]
    pending: tuple[str, ...]
    mind: str = ""


def wake_up(
    palace: Palace, settings: Settings, wing: str | None = None, budget: int = BUDGET, *, scoring: float = 0
) -> WakeUp:
    """Return the wake-up of a wing or of all of them; it never has more than ``budget`` tokens.

    The text is shorter where there is little to say. Up to ``scoring`` seconds are spent on novelty scores
    that are missing. Raises PalaceError for a damaged drawer.
    """
    if scoring and not palace.unready and _lacking(_candidates(palace, wing)):
        refresh(palace, scoring)
    identity = read_identity(settings.home, palace.salt)
    essentials = _essentials(palace, wing, settings.recency_tau_days, budget)
    return composed(identity, essentials, wing, budget, palace.salt)


def composed(
    identity: Identity, essentials: Essentials, wing: str | None, budget: int, salt: bytes
) -> WakeUp:
    """Write as much of L0 and L1 as the budget has room for."""
    writer = _Writer(identity, essentials, wing, budget, salt)
    text, shown = longest(writer.text, len(essentials.items), budget)
    return WakeUp(
        text,
        count(text),
        wing,
        tuple(one.id for one in essentials.items[:shown]),
        len(essentials.items) - shown,
        writer.degraded,
        essentials.pending,
    )


def _candidates(palace: Palace, wing: str | None) -> list[Candidate]:
    with palace.ledger.read() as cx:
        return candidates(cx, wing)


def _lacking(found: Sequence[Candidate]) -> int:
    return sum(one.novelty is None for one in found)


def _essentials(palace: Palace, wing: str | None, tau_days: float, budget: int) -> Essentials:
    now = palace.ledger.clock()
    with palace.ledger.read() as cx:
        found = candidates(cx, wing)
        ranking = ranked(found, now, tau_days)
        pins = [r.candidate for r in ranking if r.candidate.pinned_at is not None]
        pins.sort(key=lambda one: -(one.pinned_at or 0))
        pins = list({one.sha256: one for one in reversed(pins)}.values())[::-1]
        rest = [r for r in ranking if r.candidate.pinned_at is None][:MOST_RANKED]
        read = drawers_by_id(cx, [one.id for one in (*pins, *(r.candidate for r in rest))])
        texts = {id_: served(drawer) for id_, drawer in read.items()}
        nearness = Nearness(cx, [*pins, *(r.candidate for r in rest)], texts)
        items = [*pins]
        telling = [r for r in rest if tells(r.candidate, texts[r.candidate.id])]
        items += islice(chosen(telling, nearness, pins), max(0, MOST_SHOWN - len(pins)))
        mind = section(cx, wing, budget, palace.salt, now, count) if has_mind(cx) else ""
        return Essentials(items, len(pins), read, _pending(found), mind)


def _pending(found: Sequence[Candidate]) -> tuple[str, ...]:
    """Say what the ranking had to do without; a few drawers that came last count for nothing."""
    lacking = _lacking(found)
    if lacking <= max(FEW, MAY_LACK * len(found)):
        return ()
    which = "no" if lacking == len(found) else f"{len(found) - lacking} of {len(found)}"
    return (f"{which} drawers that were ranked have a novelty score: `castle repair --backfill-novelty`",)


class _Writer:
    """Writes the text with more or fewer of the essentials in it."""

    def __init__(
        self, identity: Identity, essentials: Essentials, wing: str | None, budget: int, salt: bytes
    ) -> None:
        self._essentials = essentials
        self._wing = wing
        self._salt = salt
        self._lines: dict[str, str] = {}
        whole = identity.text or identity.hint
        self._identity = cut(whole, int(OF_IDENTITY * budget))
        # What only the user can mend; how the ranking went is no concern of an agent that begins.
        self._reasons = [identity.reason] if identity.reason else []
        if self._identity != whole:
            self._reasons.append(f"{identity.path} is too long to be shown whole")
        self.degraded = tuple(self._reasons)

    def text(self, shown: int) -> str:
        """Return the text with the first ``shown`` of the essentials."""
        parts = (self._identity, self._essentials.mind, self._l1(shown), self._end(shown))
        return "\n\n".join(part for part in parts if part)

    def _l1(self, shown: int) -> str:
        wing = self._wing
        if not self._essentials.items:
            where = (
                "in this palace yet" if wing is None else f"in wing {self._name(wing)}: `castle status` lists"
            )
            return f"Nothing is filed {where}" + ("." if wing is None else " the wings.")
        lines = [f"Essentials of {'all wings' if wing is None else f'wing {self._name(wing)}'}"]
        pins = self._essentials.items[: min(shown, self._essentials.pins)]
        if pins:
            lines.append("Pinned")
            lines += [self._line(one) for one in pins]
        rooms: dict[tuple[str, str], list[Candidate]] = {}
        for one in self._essentials.items[self._essentials.pins : shown]:
            rooms.setdefault(one.place, []).append(one)
        for (of, room), inside in sorted(rooms.items()):
            lines.append(self._name(room) if wing is not None else f"{self._name(of)} / {self._name(room)}")
            lines += [self._line(one) for one in inside]
        return "\n".join(lines)

    def _line(self, one: Candidate) -> str:
        """Return a drawer's line; as it is wanted again and again, it is made once."""
        if one.id not in self._lines:
            self._lines[one.id] = self._written(one)
        return self._lines[one.id]

    def _written(self, one: Candidate) -> str:
        drawer = self._essentials.drawers[one.id]
        about = [f"{self._name(one.wing)} / {self._name(one.room)}" if one.pinned_at is not None else ""]
        about += [day(one.authored_at), self._name(drawer.speaker or drawer.role)]
        said = cut(snippet(served(drawer), SHORT), OF_SNIPPET)
        name = mask_secrets(name_of(one.path), self._salt)
        named = ", ".join(part for part in about if part)
        return f"- {named}{': ' if named else ''}{said} ({name})"

    def _end(self, shown: int) -> str:
        pins = self._essentials.pins
        counts = (
            (max(0, pins - shown), "pinned"),
            (len(self._essentials.items) - max(pins, shown), "of the next best"),
        )
        left = ", ".join(f"{number} {what}" for number, what in counts if number)
        lines = [f"Left out for want of room: {left}."] if left else []
        lines += [f"Note: {snippet(reason, SHORT)}" for reason in self._reasons]
        return "\n".join([*lines, MORE] if self._essentials.items else lines)

    def _name(self, name: str) -> str:
        return mask_secrets(snippet(name, MOST_NAME), self._salt)
