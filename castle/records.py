"""The values that cross module borders.

Times are integers, microseconds since the epoch in UTC (see ``castle.clock``). Offsets into text count
characters of the decoded text, half-open. Ids are lower-case hex.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["current", "superseded", "forgotten"]
Severity = Literal["ok", "failed", "not checked"]

HIDDEN_KINDS = ("tool", "thinking", "injected", "subagent")
"""Kinds that a search leaves out unless they are asked for."""

KINDS = ("file", "note", "diary", "message", *HIDDEN_KINDS)
"""What a drawer can be: a piece of a file, a note, a diary entry, or a part of a conversation."""

ROLES = ("user", "assistant", "system", "tool")
"""Who can have said a message."""


@dataclass(frozen=True, slots=True)
class SealedSpan:
    """A secret inside a drawer: characters ``[start, end)``, its kind, and a tag to tell two apart."""

    start: int
    end: int
    kind: str
    tag: str

    @property
    def mask(self) -> str:
        """What is shown in its place."""
        return f"«secret:{self.kind}#{self.tag}»"


@dataclass(frozen=True, slots=True)
class Chunk:
    """An exact slice of a source's text, before it is filed.

    ``start`` and ``end`` are offsets in the text of the whole source, ``first_line`` and ``last_line`` count
    from 1. ``headings`` is the path of headings or definitions the slice stands under, outermost first.
    """

    text: str
    start: int
    end: int
    first_line: int
    last_line: int
    headings: tuple[str, ...] = ()
    sealed: tuple[SealedSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawer:
    """One verbatim record as the ledger holds it. ``text`` is exact; show ``served_text(drawer)`` instead.

    ``raw`` holds the bytes wherever UTF-8 of ``text`` does not give them back, else None.
    """

    id: str
    seq: int
    source: str
    wing: str
    room: str
    hall: str
    kind: str
    role: str
    speaker: str
    message_id: str
    text: str
    raw: bytes | None
    sha256: str
    sealed: tuple[SealedSpan, ...]
    context: str
    authored_at: int
    filed_at: int
    added_by: str
    state: State
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search or listing is limited to. ``since`` is inclusive, ``until`` exclusive, in microseconds.

    ``kinds`` empty means the ordinary kinds. ``history`` adds superseded drawers; ``as_of`` asks for the
    drawers that were current at that time. ``source`` is a source key or a path.
    """

    wing: str | None = None
    room: str | None = None
    role: str | None = None
    source: str | None = None
    since: int | None = None
    until: int | None = None
    kinds: tuple[str, ...] = ()
    history: bool = False
    as_of: int | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a drawer stands in its source: path, character offsets, lines counted from 1."""

    path: str
    start: int
    end: int
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class StageScore:
    """Rank (from 1) and raw score that one recall or ranking stage gave."""

    rank: int
    score: float


SPARSE: Mapping[str, bool] = {"sparse": True}
"""Of a field that is shown only where it holds something."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the mind holds of a drawer: of the episode it is, or of the fact or procedure stated in it.

    ``id`` is that memory's. Its state is active, dim or cold; it has expired where ``invalidated_at`` is set.
    """

    id: str
    memory_type: str
    state: str
    pinned: bool
    invalidated_at: int | None = None
    consolidation_score: float | None = None
    confidence: float | None = None
    lifecycle: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer to a search; ``text`` is served text, ``copies`` are other drawers with equal text.

    Where hits are messages or sessions, it is the best drawer of one, and ``parts`` are its other drawers
    that were found. ``stages`` holds rank and score in every list and after every stage that ranked it.
    ``memory`` is what the mind holds of it, where that was asked for.
    """

    id: str
    text: str
    score: float
    wing: str
    room: str
    kind: str
    role: str
    speaker: str
    message_id: str
    source: str
    address: Address
    authored_at: int
    filed_at: int
    state: State
    copies: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    stages: Mapping[str, StageScore] = field(default_factory=dict)
    matched: tuple[str, ...] = ()
    boosts: Mapping[str, float] = field(default_factory=dict)
    entity_match: bool = False
    soar_tags: tuple[str, ...] = ()
    soar_boost: float = 1.0
    score_pre_soar: float | None = None
    quality_score: float | None = None
    quality_tier: str | None = None
    quality_boost: float = 1.0
    score_pre_quality: float | None = None
    memory: Remembered | None = field(default=None, metadata=SPARSE)


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """What the LLM judge did: whether it changed the order of its ``n`` candidates, or the ``error``."""

    reordered: bool
    n: int
    model: str
    elapsed_s: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class StageReport:
    """What one stage did: ``status`` is ``ran`` or ``skipped: reason``; ``seconds`` of wall time.

    ``model_seconds`` of them were spent in a model.
    """

    name: str
    status: str
    seconds: float
    candidates: int
    model_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to one query.

    ``behind`` counts drawers that could not be considered at all; ``degraded`` lists every guarantee that was
    not in force, in words for the user. ``confident`` is false when no hit is likely to answer the query.
    ``ranked`` counts what was found in all, in the unit ``by``; ``cursor`` asks for the next page, None when
    there is none, and ``here`` for this one. ``read_as`` says how the question was
    understood, ``hidden`` how many drawers were found and left out because they are cold or expired.
    """

    query: str
    hits: tuple[Hit, ...]
    stages: tuple[StageReport, ...]
    behind: int
    degraded: tuple[str, ...]
    mode: str = "max"
    by: str = "drawer"
    confident: bool = True
    ranked: int = 0
    cursor: str | None = None
    here: str = ""
    judge_status: JudgeStatus | None = None
    read_as: tuple[str, ...] = ()
    hidden: Mapping[str, int] = field(default_factory=dict, metadata=SPARSE)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was not filed, and why."""

    path: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of ``castle verify``."""

    check: str
    status: Severity
    detail: str = ""
