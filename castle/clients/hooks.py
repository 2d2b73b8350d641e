"""Castle's hooks in a host's file: added, taken out again, and seen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from castle.clients import edit, merge
from castle.clients.changes import Change, Outcome, Step, remainder, restoring, writing
from castle.clients.events import EVENTS, command
from castle.clients.files import UserFile
from castle.clients.jsonc import Item, Node, found
from castle.clients.merge import Json
from castle.clients.program import is_program
from castle.errors import ConfigError, RefusedError

KEY = "hooks"
PROGRAM = "castle-hook"


@dataclass(frozen=True, slots=True)
class Handler:
    """One of Castle's hooks in a file: its event, the number of its group, and its own in there."""

    event: str
    place: int
    index: int
    group: Item
    item: Item
    value: object

    @property
    def alone(self) -> bool:
        """Whether its group holds nothing of anybody else's."""
        handlers = self.group.node.member(KEY)
        return handlers is not None and all(_is_own(item.node) for item in handlers.node.items)


def adding(host: str, file: UserFile, program: str, palace: str) -> Step:
    """Return the step that puts the hooks of a host into its file; ``program`` and ``palace`` are quoted.

    Castle's hooks that are there already are replaced where they differ. Raises ConfigError for a file that
    is no JSON, RefusedError for one whose hooks are not lists of groups.
    """
    opened = _opened(file)
    there = list(handlers(opened))
    wanted = [(event.event, event.group(command(program, event, host, palace))) for event in EVENTS[host]]
    if _told(there) == _told(handlers(_made(wanted, file))):
        return Step(Change("hooks", file.path, "unchanged"))
    changed = _without_all(opened, None) if there else opened
    for event, group in wanted:
        changed = merge.with_element(changed, (KEY, event), group)
    merge.confirmed(opened, changed, _is_group)
    outcome: Outcome = "replaced" if there else "added"
    return writing(file, changed.text, "hooks", outcome, own=bool(there))


def _told(there: Iterable[Handler]) -> list[str]:
    return sorted(json.dumps([one.event, one.value], sort_keys=True) for one in there)


def _made(groups: list[tuple[str, dict[str, object]]], file: UserFile) -> Json:
    """Return a file that holds nothing but these groups."""
    text = json.dumps({KEY: {event: [group] for event, group in groups}})
    return Json(text, file.path, relaxed=False)


def removing(file: UserFile, *, below: Path | None) -> Step:
    """Return the step that takes all of Castle's hooks out of a file."""
    opened = _opened(file)
    if not any(handlers(opened)):
        return Step(Change("hooks", file.path, "absent"))
    before = _stripped(file)
    left = merge.confirmed(opened, _without_all(opened, before), _is_group).text
    return restoring(file, remainder(file, left), "hooks", below=below)


def installed(file: UserFile) -> tuple[str, ...]:
    """Return the events of Castle's hooks in a file, each once, in the order of the file."""
    return tuple(dict.fromkeys(handler.event for handler in handlers(_opened(file))))


def handlers(file: Json) -> Iterator[Handler]:
    """Yield Castle's hooks in the order of the file."""
    events = found(file.root, (KEY,))
    for event in events.items if events is not None and events.kind == "object" else ():
        for place, group in enumerate(event.node.items if event.node.kind == "array" else ()):
            inner = group.node.member(KEY)
            items = inner.node.items if inner is not None and inner.node.kind == "array" else ()
            for index, item in enumerate(items):
                if _is_own(item.node) and event.key is not None:
                    yield Handler(event.key, place, index, group, item, item.node.value())


def _is_own(node: Node) -> bool:
    line = node.member("command")
    return line is not None and is_program(line.node.scalar, PROGRAM)


def _is_group(key: str, value: object) -> bool:
    """Say whether a part is a hook of Castle's, or a group that holds no other."""
    if not isinstance(value, dict):
        return False
    inner = value.get(KEY)
    if isinstance(inner, list) and inner:
        return all(_is_group("", one) for one in inner)
    return is_program(value.get("command"), PROGRAM)


def _opened(file: UserFile) -> Json:
    return merge.opened(file.text, file.path, relaxed=False)


def _without_all(file: Json, before: Json | None) -> Json:
    """Take every hook of Castle's out, one by one, with the groups and lists that only they filled."""
    while (one := next(handlers(file), None)) is not None:
        if one.alone:
            file = merge.without(file, (KEY, one.event), one.group, before)
        else:
            inner = one.group.node.member(KEY)
            assert inner is not None
            file = file.changed(edit.without_item(file.text, inner.node, one.item))
    return file


def _stripped(file: UserFile) -> Json | None:
    """Return the copy of the file without hooks of Castle's; None when it is of no use."""
    if file.before is None:
        return None
    try:
        return _without_all(merge.opened(file.before, file.backup, relaxed=False), None)
    except (RefusedError, ConfigError):
        return None
