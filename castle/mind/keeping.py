"""Forgetting and calling back: what the mind does not want to see for now, and what it must not lose.

Forgetting changes what the mind sees, never the archive: the search of the palace finds an episode whatever
its state. Every step has its reason and can be taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, and_, select

from castle.clock import to_iso
from castle.errors import RefusedError
from castle.mind.objects import Memory, memory_of
from castle.mind.working import let_go
from castle.store.mind_index import by_words
from castle.store.mind_rows import TABLES, history, resolve
from castle.store.mind_state import expire, set_pinned, set_state, state_of, unexpire
from castle.store.mind_tables import mem_episodes
from castle.store.mind_working import get_item
from castle.store.schema import drawers
from castle.text.words import words

if TYPE_CHECKING:
    from castle.store.palace import Palace

Action = Literal["archived", "expired", "removed", "unchanged", "restored", "pinned", "unpinned"]


@dataclass(frozen=True, slots=True)
class Kept:
    """What was done with a memory, and its state since."""

    action: Action
    id: str
    kind: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cold:
    """One page of what is cold, the last that went first."""

    total: int
    offset: int
    memories: tuple[Memory, ...]


class Keeper:
    """Forgets, restores and pins in one palace."""

    def __init__(self, palace: Palace, actor: str) -> None:
        self._palace = palace
        self._actor = actor

    def forget(self, id_: str, *, reason: str = "", expired: bool = False, force: bool = False) -> Kept:
        """Put a memory into cold storage, or note that it holds no longer.

        A pinned one, and a fact that is locked, are refused without ``force``; that something expired is
        always noted. Of a working item nothing is left but its history.
        """
        now = self._palace.ledger.clock()
        with self._palace.ledger.write() as cx:
            kind, full = resolve(cx, id_)
            if kind == "working":
                let_go(cx, [get_item(cx, full)], reason=reason or "forgotten", actor=self._actor, now=now)
                return Kept("removed", full, kind, "", reason)
            if expired:
                done = expire(cx, kind, full, reason=reason, actor=self._actor, now=now)
            else:
                if not force:
                    self._refuse(cx, kind, full)
                done = set_state(cx, kind, full, "cold", reason=reason, actor=self._actor, now=now)
            action: Action = ("expired" if expired else "archived") if done else "unchanged"
            return Kept(action, full, kind, state_of(cx, kind, full)[0], reason)

    def restore(self, id_: str, *, reason: str = "") -> Kept:
        """Call a memory back from cold storage, or note that it holds after all."""
        now = self._palace.ledger.clock()
        with self._palace.ledger.write() as cx:
            kind, full = resolve(cx, id_)
            warm = set_state(cx, kind, full, "active", reason=reason, actor=self._actor, now=now)
            holds = unexpire(cx, kind, full, reason=reason, actor=self._actor, now=now)
            return Kept("restored" if warm or holds else "unchanged", full, kind, "active", reason)

    def pin(self, id_: str, pinned: bool = True, *, reason: str = "") -> Kept:
        """Pin a memory, so that it is never forgotten by itself, or let go of it."""
        now = self._palace.ledger.clock()
        with self._palace.ledger.write() as cx:
            kind, full = resolve(cx, id_)
            done = set_pinned(cx, kind, full, pinned, reason=reason, actor=self._actor, now=now)
            action: Action = ("pinned" if pinned else "unpinned") if done else "unchanged"
            return Kept(action, full, kind, state_of(cx, kind, full)[0], reason)

    def cold(self, query: str = "", *, limit: int = 20, offset: int = 0) -> Cold:
        """List what is in cold storage; with a query that which holds one of its words."""
        palace, now = self._palace, self._palace.ledger.clock()
        with palace.ledger.read() as cx:
            keys = self._cold_keys(cx)
            if query.strip():
                keys = self._holding(cx, keys, query, now)
            shown = keys[offset : offset + limit]
            found = tuple(memory_of(cx, kind, id_, palace.salt, now) for kind, id_ in shown)
        return Cold(len(keys), offset, found)

    def get(self, id_: str) -> tuple[Memory, list[dict[str, Any]]]:
        """Return a memory and its history, the oldest change first."""
        palace = self._palace
        with palace.ledger.read() as cx:
            kind, full = resolve(cx, id_)
            found = memory_of(cx, kind, full, palace.salt, palace.ledger.clock())
            told = [
                {
                    "what": change.what,
                    "old": _when(change.what, change.old),
                    "new": _when(change.what, change.new),
                    "reason": change.reason,
                    "actor": change.actor,
                    "evidence": list(change.evidence),
                    "at": to_iso(change.at),
                }
                for change in history(cx, kind, full)
            ]
        return found, told

    def _refuse(self, cx: Connection, kind: str, id_: str) -> None:
        found = memory_of(cx, kind, id_, self._palace.salt, self._palace.ledger.clock())
        if found.pinned:
            raise RefusedError(f"{id_} is pinned: let go of it first, `castle memory pin --off {id_}`")
        if kind == "fact" and found.lifecycle == "locked":
            raise RefusedError(
                f"{id_} is a locked fact, believed with {found.confidence:.2f}: forget it with force, or say "
                "with expire that it holds no longer"
            )

    def _cold_keys(self, cx: Connection) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        joined = mem_episodes.join(drawers, drawers.c.rid == mem_episodes.c.drawer)
        episodes = (
            select(drawers.c.id)
            .select_from(joined)
            .where(and_(mem_episodes.c.state == "cold", drawers.c.state == "current"))
        )
        found += [("drawer", id_) for id_ in cx.execute(episodes.order_by(drawers.c.rid.desc())).scalars()]
        for kind in ("fact", "procedure"):
            table = TABLES[kind]
            query = select(table.c.id).where(table.c.state == "cold").order_by(table.c.updated_at.desc())
            found += [(kind, id_) for id_ in cx.execute(query).scalars()]
        return found

    def _holding(
        self, cx: Connection, keys: list[tuple[str, str]], query: str, now: int
    ) -> list[tuple[str, str]]:
        wanted = set(words(query))
        said = {(m.kind, m.id) for m in by_words(cx, query, ("fact", "procedure"), len(keys) + 1)}

        def holds(key: tuple[str, str]) -> bool:
            if key[0] != "drawer":
                return key in said
            content = memory_of(cx, *key, self._palace.salt, now).content
            return bool(wanted & set(words(content)))

        return [key for key in keys if holds(key)]


def _when(what: str, value: str) -> str:
    """Return a value of the history as it may be shown: when something expired, as a time."""
    return to_iso(int(value)) if what == "expired" and value.isdigit() else value
