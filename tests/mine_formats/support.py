"""What the tests of the formats share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from castle.mine.formats import (
    Broken,
    Checkpoint,
    Event,
    Message,
    NoMessage,
    SessionInfo,
    Transcript,
    Unread,
    open_container,
)


def transcripts(path: Path) -> list[Transcript]:
    with open_container(path) as found:
        return [one for one in found if isinstance(one, Transcript)]


def unread(path: Path) -> list[Unread]:
    with open_container(path) as found:
        return [one for one in found if isinstance(one, Unread)]


def events_of(path: Path) -> list[Event]:
    events: list[Event] = []
    with open_container(path) as found:
        for one in found:
            if isinstance(one, Transcript):
                events.extend(one.read())
    return events


def messages_of(events: Iterable[Event]) -> list[Message]:
    return [event for event in events if isinstance(event, Message)]


def broken_of(events: Iterable[Event]) -> list[Broken]:
    return [event for event in events if isinstance(event, Broken)]


def silent_of(events: Iterable[Event]) -> Counter[str]:
    return Counter(event.what for event in events if isinstance(event, NoMessage))


def sessions_of(events: Iterable[Event]) -> set[str]:
    return {event.id for event in events if isinstance(event, SessionInfo)}


def kinds_of(events: Iterable[Event]) -> dict[str, int]:
    return dict(Counter(message.kind for message in messages_of(events)))


def wholes(messages: Sequence[Message]) -> list[str]:
    """Join the slices of each text again."""
    texts: list[str] = []
    for message in messages:
        if message.id == message.whole:
            texts.append(message.text)
        else:
            texts[-1] += message.text
    return texts


def without_checkpoints(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, Checkpoint)]
