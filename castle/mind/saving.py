"""Saving: what somebody states is filed as a drawer, word for word, and then kept in mind.

No model is needed and none is loaded. Both happen in one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from castle.errors import UsageError
from castle.mind.conditions.verifying import attach, check_expression
from castle.mind.emotion import score
from castle.mind.given import Given, shown
from castle.mind.objects import Memory, memory_of
from castle.mind.preferences import learning
from castle.mind.thresholds import DUPLICATE, calibrated
from castle.mind.working import let_go, to_evict
from castle.mine.formats.base import exact_bytes
from castle.mine.notes import add as add_note
from castle.store.mind_episodes import ASSERTION, describe, get_episode, set_outcome, set_valence
from castle.store.mind_facts import add_fact, facts, link_triple
from castle.store.mind_index import by_vector
from castle.store.mind_ingest import holding, queued_by_id
from castle.store.mind_procedures import add_procedure
from castle.store.mind_rows import resolve
from castle.store.mind_state import set_state
from castle.store.mind_texts import MOST_EMBEDDED
from castle.store.mind_values import Origin, Source, Working
from castle.store.mind_working import add_item, begin_session
from castle.store.projection import legal_text

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from castle.mine.notes import Added, Halls
    from castle.store.palace import Palace

TYPES = ("working", "episodic", "semantic", "procedural")
_EVERYWHERE = ("metadata", "tags", "wing", "room", "session_id", "agent")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "working": (*_EVERYWHERE, "base_priority"),
    "episodic": (*_EVERYWHERE, "task_id", "valence", "outcome_valence", "was_in_wm", "role"),
    "semantic": (
        *_EVERYWHERE,
        "confidence",
        "falsifiable_condition",
        "source_references",
        "triple_ids",
        "everywhere",
    ),
    "procedural": (
        *_EVERYWHERE,
        "trigger_condition",
        "task_type",
        "source_episode_ids",
        "variant_of",
        "everywhere",
    ),
}
"""The options that a save of each type has."""
DEFAULT_SESSION = "default"
_NAMED_PARTS = 8


@dataclass(frozen=True, slots=True)
class Saved:
    """What was saved: the memory, whether it was there before, and what may not be meant."""

    memory: Memory
    reinforced: bool = False
    notes: tuple[str, ...] = ()


class Saver:
    """Saves into one palace, for one actor."""

    def __init__(self, palace: Palace, *, halls: Halls, actor: str, wing: str) -> None:
        self._palace = palace
        self._halls = halls
        self._actor = actor
        self._wing = wing

    def save(self, content: str, memory_type: str, options: Mapping[str, Any]) -> Saved:
        """Keep a text in one of the four layers; raises UsageError for an unknown type or option.

        Everything but working items is filed, in the wing and room that the options name.
        """
        if memory_type not in TYPES:
            raise UsageError(f"memory_type {memory_type!r} is none of {', '.join(TYPES)}")
        given = {name: value for name, value in options.items() if value is not None}
        unknown = [name for name in given if name not in OPTIONS[memory_type]]
        if unknown:
            raise UsageError(
                f"memory_type {memory_type} has no option {', '.join(map(repr, unknown))}: it has "
                f"{', '.join(OPTIONS[memory_type])}"
            )
        if not isinstance(content, str) or not content.strip():
            raise UsageError("the text is empty: give the exact words that are to be kept")
        return getattr(self, f"_{memory_type}")(content, Given(given, self._palace.salt))  # type: ignore[no-any-return]

    def file(
        self,
        content: str,
        room: str,
        wing: str | None = None,
        also: Callable[[Connection, Added], None] | None = None,
        authored_at: int | None = None,
    ) -> Added:
        """File a text word for word, and write what belongs to it in the same transaction.

        The same text in the same place is filed once.
        """
        return add_note(
            self._palace,
            content,
            wing=wing or self._wing,
            room=room,
            source_file="memory_save",
            added_by=self._actor,
            halls=self._halls,
            authored_at=authored_at,
            also=also,
        )

    def _working(self, content: str, given: Given) -> Saved:
        palace, now = self._palace, self._palace.ledger.clock()
        priority = given.number("base_priority", 1.0, 0.0, 1.0)
        session = given.text("session_id") or DEFAULT_SESSION
        wing = given.text("wing") or self._wing
        with palace.ledger.write() as cx:
            leaving = to_evict(cx, now)
        notes: list[str] = []
        used = [item for item in leaving if item.was_referenced]
        if used:
            filed = self.put_away(used, "no room in working memory")
            notes.append(f"to make room, what was used is filed: {', '.join(filed)}")
        with palace.ledger.write() as cx:
            rest = to_evict(cx, now)
            let_go(cx, rest, reason="no room in working memory", actor=self._actor, now=now)
            begin_session(cx, session, now, wing=wing)
            item = add_item(
                cx,
                legal_text(content),
                session=session,
                salt=palace.salt,
                now=now,
                agent=given.text("agent"),
                wing=wing,
                base_priority=1.0 if priority is None else priority,
                tags=given.tags,
                metadata=given.metadata,
            )
            found = memory_of(cx, "working", item.id, palace.salt, now)
        if rest:
            notes.append(f"to make room, {len(rest)} items of the least attention were let go of")
        return Saved(found, notes=tuple(notes))

    def put_away(self, leaving: Sequence[Working], reason: str) -> list[str]:
        """File items of working memory as episodes, each while it is taken out; returns their drawers.

        What stands in a transcript that was filed is not filed again.
        """
        filed: list[str] = []
        for item in leaving:
            held = self._linked(item, reason)
            if held is not None:
                filed += held
                continue

            def also(cx: Connection, added: Added, item: Working = item) -> None:
                now = self._palace.ledger.clock()
                values: dict[str, Any] = {"session": item.session, "origin": "working", "was_in_wm": True}
                for id_ in added.ids:
                    describe(cx, id_, now, tags=list(item.tags), metadata=dict(item.metadata), **values)
                let_go(cx, [item], reason=f"{reason}: filed as {added.id}", actor=self._actor, now=now)

            filed += self.file(item.content, "episodes", item.wing or None, also).ids
        return filed

    def _linked(self, item: Working, reason: str) -> list[str] | None:
        """Let go of an item that a transcript tells, and return its drawers; None where none does."""
        digest = hashlib.sha256(exact_bytes(item.content)).digest()
        with self._palace.ledger.write() as cx:
            event = queued_by_id(cx, [str(item.metadata.get("event", ""))])
            told = next(iter(event.values()), None)
            known = told.drawer if told is not None else item.metadata.get("drawer")
            held = [str(known)] if known else holding(cx, item.session, [digest])
            if not held and (told is None or told.state != "covered"):
                return None
            now = self._palace.ledger.clock()
            for id_ in held:
                describe(cx, id_, now, was_in_wm=True)
            where = f"stands in {held[0]}" if held else "its transcript tells it"
            let_go(cx, [item], reason=f"{reason}: {where}", actor=self._actor, now=now)
        return held

    def _episodic(self, content: str, given: Given) -> Saved:
        palace = self._palace
        valence = given.number("valence", None, -1.0, 1.0)
        outcome = given.number("outcome_valence", None, -1.0, 1.0)
        felt, sure = score(content) if valence is None else (valence, 1.0)
        session = given.text("session_id")
        found: list[Memory] = []

        def also(cx: Connection, added: Added) -> None:
            now = palace.ledger.clock()
            for id_ in added.ids:
                self._describe(cx, id_, given, now, again=bool(added.reason))
                by = "rules" if valence is None else "user"
                set_valence(cx, id_, felt, sure, by, actor=self._actor, now=now)
                if outcome is not None:
                    set_outcome(cx, id_, outcome, reason="said so", actor=self._actor, now=now)
            if session:
                begin_session(cx, session, now, wing=added.wing)
            learning.detect(palace, cx, added.id, content, given.text("role") or "user", felt, now)
            found.append(memory_of(cx, "drawer", added.id, palace.salt, now))

        added = self.file(content, given.text("room") or "episodes", given.text("wing") or None, also)
        return Saved(found[0], reinforced=bool(added.reason), notes=_parts(added))

    def _describe(self, cx: Connection, id_: str, given: Given, now: int, *, again: bool) -> None:
        """Note what was said beside an episode; of one that was there before, what was not said stays."""
        values: dict[str, Any] = {
            "session": given.text("session_id"),
            "task": given.text("task_id"),
            "was_in_wm": bool(given.get("was_in_wm", False)),
            "tags": given.tags,
            "metadata": given.metadata,
        }
        if again:
            values = {name: value for name, value in values.items() if value}
            set_state(cx, "drawer", id_, "active", reason="said again", actor=self._actor, now=now)
        describe(cx, id_, now, origin="user", **values)

    def _semantic(self, content: str, given: Given) -> Saved:
        palace = self._palace
        confidence = given.number("confidence", 0.0, 0.0, 1.0) or 0.0
        condition = given.get("falsifiable_condition")
        if condition is not None:
            check_expression(condition)
        session = given.text("session_id")
        sources = self._sources(given.names("source_references"), session)
        statement = shown(content, palace.salt)
        near = self._near(statement, None if given.get("everywhere") else given.text("wing") or self._wing)
        found: list[tuple[Memory, bool]] = []

        def also(cx: Connection, added: Added) -> None:
            now = palace.ledger.clock()
            wing = None if given.get("everywhere") else added.wing
            _assert(cx, added, now)
            fact = add_fact(
                cx,
                statement,
                confidence=confidence,
                origin="user",
                actor=self._actor,
                now=now,
                drawer=added.id,
                wing=wing,
                sources=[*sources, *_witnesses(added, session)],
                tags=given.tags,
                metadata=given.metadata,
                near=near,
            )
            if condition is not None:
                attach(palace, cx, "fact", fact.id, condition, wing, now)
            for triple in given.names("triple_ids"):
                link_triple(cx, fact.id, triple)
            found.append((memory_of(cx, "fact", fact.id, palace.salt, now), fact.created_at != now))

        added = self.file(content, given.text("room") or "facts", given.text("wing") or None, also)
        return Saved(found[0][0], reinforced=found[0][1], notes=_parts(added))

    def _procedural(self, content: str, given: Given) -> Saved:
        palace = self._palace
        session = given.text("session_id")
        sources = self._sources(given.names("source_episode_ids"), session)
        trigger = given.text("trigger_condition")
        variant = given.text("variant_of")
        task_type = given.text("task_type")
        found: list[tuple[Memory, bool]] = []

        def also(cx: Connection, added: Added) -> None:
            now = palace.ledger.clock()
            _assert(cx, added, now)
            procedure = add_procedure(
                cx,
                shown(content, palace.salt),
                origin="user",
                actor=self._actor,
                now=now,
                trigger=trigger,
                task_type=task_type,
                variant_of=resolve(cx, variant)[1] if variant else None,
                drawer=added.id,
                wing=None if given.get("everywhere") else added.wing,
                sources=[*sources, *_witnesses(added, session)],
                tags=given.tags,
                metadata=given.metadata,
            )
            memory = memory_of(cx, "procedure", procedure.id, palace.salt, now)
            found.append((memory, procedure.created_at != now))

        added = self.file(content, given.text("room") or "procedures", given.text("wing") or None, also)
        return Saved(found[0][0], reinforced=found[0][1], notes=_parts(added))

    def _sources(self, names: list[str], session: str) -> list[Source]:
        """Return what somebody named as sources; raises NotFoundError for what there is not."""
        found = []
        with self._palace.ledger.read() as cx:
            for name in names:
                kind, id_ = resolve(cx, name)
                own = get_episode(cx, id_).session if kind == "drawer" else ""
                found.append(Source(kind, id_, session=own or session))
        return found

    def _near(self, statement: str, wing: str | None) -> str | None:
        """Return the fact that says as much in other words, by meaning; None while no embedder is loaded."""
        palace = self._palace
        if palace.unready or not palace.embedder_loaded:
            return None
        vector = palace.embedder.embed_documents([statement[:MOST_EMBEDDED]])[0]
        with palace.ledger.read() as cx:
            least = calibrated(cx, palace.identity.identity, DUPLICATE)
            close = [m.id for m in by_vector(palace, cx, vector, ("fact",), 5) if m.score >= least]
            held = {fact.id for fact in facts(cx, ids=close) if fact.wing == wing}
        return next((id_ for id_ in close if id_ in held), None)


def origin_of(prefixed: str) -> tuple[Origin | None, str]:
    """Return which derivation a text of before names at its beginning, and the text without that."""
    known: tuple[tuple[str, Origin], ...] = (
        ("[Pattern]", "pattern"),
        ("[Insight]", "insight"),
        ("[User Preference]", "preference"),
    )
    for mark, origin in known:
        if prefixed.startswith(mark):
            return origin, prefixed[len(mark) :].strip()
    return None, prefixed


def _witnesses(added: Added, session: str) -> list[Source]:
    """Return what a statement adds to what speaks for it: further drawers of its own, and its session."""
    own = session or f"note:{added.id}"
    told = [Source("session", session, session=own)] if session else []
    return [*told, *(Source("drawer", id_, session=own) for id_ in added.ids[1:])]


def _assert(cx: Connection, added: Added, now: int) -> None:
    """Mark drawers as where something was stated: what is remembered of them is the statement."""
    for id_ in added.ids:
        describe(cx, id_, now, origin=ASSERTION)


def _parts(added: Added) -> tuple[str, ...]:
    if len(added.ids) == 1:
        return ()
    named = ", ".join(added.ids[:_NAMED_PARTS])
    more = ", ..." if len(added.ids) > _NAMED_PARTS else ""
    return (f"filed in {len(added.ids)} drawers, which joined are the text: {named}{more}",)
