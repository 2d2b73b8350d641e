"""What every transcript format speaks: events, messages, and the protocol of a format.

A format turns one transcript into a stream of events and decides nothing about filing:

``SessionInfo``   what is known about a session; may come again, later non-empty fields win
``SessionTitle``  a title for the session that holds a given message (which may stand in another file)
``Message``       one message, or an exact slice of one
``Withdrawn``     that message and all after it in the session are no longer shown
``Broken``        a record that cannot be read, with the reason: it must reach the user's report
``NoMessage``     a record that is read and holds nothing that anybody said (progress, snapshots, counters)
``Pending``       bytes at the end that wait for the rest of their line
``Checkpoint``    everything before ``offset`` has been delivered: read again with this offset and state

Reassembly: the slices of one text follow each other in the stream, the first with ``id == whole``; joined
they are the text of the export, character for character. ``(session, id)`` depends only on the record that
the slice was cut from, so that a second reading gives the same ids. When a file repeats an id with equal text
it is the same message; with another text it is a later version, or a record that was written anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["user", "assistant", "system", "tool"]

Kind: TypeAlias = Literal[
    "message", "thinking", "tool", "injected", "subagent", "attachment", "queued", "private", "recalled"
]
"""What a slice is.

``message`` somebody's words · ``thinking`` the model's reasoning · ``tool`` a call or its output ·
``injected`` text of the host, not of a person · ``subagent`` a message between agents · ``attachment`` text
taken from an attached file · ``queued`` typed while the model worked, usually repeated as a message ·
``private`` marked by its author: count it, never store it · ``recalled`` what Castle itself had injected:
count it, never file it again.
"""

_RECALL_TAG = "castle-recall"
RECALL_OPEN = f'<{_RECALL_TAG} v="1">'
RECALL_CLOSE = f"</{_RECALL_TAG}>"

HEAD_BYTES = 65536
"""How many bytes of a file ``Format.detect`` is given."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file or image that belongs to a message; ``data`` is None when the export only refers to it."""

    name: str
    media_type: str
    data: bytes | None = None
    ref: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript or an exact slice of one.

    ``id`` names the slice, ``whole`` the text it was cut from (equal when it was not cut); ``parent`` is the
    native id of the record this one answers. The first block of a record has the record's native id, others
    add ``#block``; a slice that does not start at 0 adds ``@start``.

    ``text`` is the string as decoded and may hold NUL and lone surrogates; ``exact_bytes`` gives its bytes.
    It is empty only where a record has nothing but attachments. JSON values (tool calls) are written as JSON.
    ``escaped`` says that the record was not valid UTF-8 and its stray bytes stand as U+DC80 to U+DCFF.
    ``timestamp`` counts microseconds since the epoch in UTC. ``shown`` is False on branches that the export
    does not show.
    """

    session: str
    id: str
    whole: str
    parent: str
    role: Role
    kind: Kind
    text: str
    speaker: str = ""
    timestamp: int | None = None
    tool: str = ""
    shown: bool = True
    thread: str = ""
    attachments: tuple[Attachment, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a transcript says about a session; empty is unknown; ``parent`` is the session it serves."""

    id: str
    title: str = ""
    cwd: str = ""
    git_branch: str = ""
    project: str = ""
    started_at: int | None = None
    parent: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionTitle:
    """A title for the session in which the record ``message`` stands; the file need not hold that session."""

    message: str
    title: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The user went back: the record ``message`` and what followed it are no longer shown."""

    session: str
    message: str


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that cannot be read; ``position`` counts ``unit``s of ``where`` from 1, 0 being all of it."""

    position: int
    reason: str
    unit: Literal["line", "item", "file"] = "line"
    where: str = ""


@dataclass(frozen=True, slots=True)
class NoMessage:
    """A record without a message; ``what`` names its type."""

    position: int
    what: str


@dataclass(frozen=True, slots=True)
class Pending:
    """An unfinished line of ``size`` bytes at ``offset``, left for the next reading."""

    position: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Reading may go on from ``offset`` with ``state`` (a small JSON object) as if it had not stopped."""

    offset: int
    state: Mapping[str, object]


Event: TypeAlias = (
    SessionInfo | SessionTitle | Message | Withdrawn | Broken | NoMessage | Pending | Checkpoint
)


class Box(Protocol):
    """A file, folder or zip that transcripts are read from, in place."""

    path: Path

    def names(self) -> Sequence[str]:
        """List the readable files inside, sorted, with ``/`` between folders."""

    def open(self, name: str) -> IO[bytes]:
        """Open one of them; raises one of ``READ_ERRORS``."""

    def local(self, name: str) -> Path | None:
        """Return where it lies on disk, or None inside a zip."""

    def address(self, name: str) -> str:
        """Return what to call it in a report."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One thing that a format can read: a file, or the root of a folder that is one export."""

    box: Box
    name: str
    format: Format

    @property
    def address(self) -> str:
        """What to call it in a report."""
        return self.box.address(self.name)

    @property
    def stem(self) -> str:
        """The file name without its last suffix."""
        base = self.name.rsplit("/", 1)[-1] or self.box.path.name
        return base.rsplit(".", 1)[0] or base

    def open(self) -> IO[bytes]:
        """Open the file for reading from its start."""
        return self.box.open(self.name)

    def read(self, from_offset: int = 0, state: Mapping[str, object] | None = None) -> Iterator[Event]:
        """Read its events; see ``Format.read``."""
        return self.format.read(self, from_offset, state)


class Format(Protocol):
    """One kind of transcript.

    ``incremental``: reading may continue from a Checkpoint; other formats ignore offset and state.
    ``certain``: ``detect`` is proof; False where ordinary text may look the same.
    ``global_sessions``: session ids mean the same everywhere; False where they are only unique in their file,
    so that a source key needs the file's place too (an empty session id means the file itself).
    """

    name: str
    incremental: bool
    certain: bool
    global_sessions: bool

    def detect(self, name: str, head: bytes) -> bool:
        """Tell from a file's first ``HEAD_BYTES``, and only in doubt from its name, whether it is one."""

    def roots(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Map each export that is a whole folder to the files it is made of (empty: one file each).

        A key is the name by which ``read`` knows the export again.
        """

    def read(
        self, transcript: Transcript, from_offset: int = 0, state: Mapping[str, object] | None = None
    ) -> Iterator[Event]:
        """Stream the events of a transcript; never raises for what stands in the file."""


def exact_bytes(text: str, *, escaped: bool = False) -> bytes:
    r"""Return the bytes of a message's text as they stood in the export.

    Lone surrogates become their three-byte form; with ``escaped`` U+DC80 to U+DCFF become the single bytes
    they stand for. (In a record that has both stray bytes and JSON escapes from ``\udc80`` to ``\udcff``
    the two cannot be told apart.)
    """
    if not escaped:
        return text.encode("utf-8", "surrogatepass")
    return b"".join(
        bytes([ord(char) - 0xDC00]) if "\udc80" <= char <= "\udcff" else char.encode("utf-8", "surrogatepass")
        for char in text
    )
