"""Seed knowledge: facts from a JSON file, each believed once however often the file is read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from castle.errors import NotFoundError, UsageError
from castle.mind.conditions.verifying import attach, check_expression
from castle.mind.given import shown
from castle.store.mind_episodes import ASSERTION, describe
from castle.store.mind_facts import add_fact, change_confidence, get_fact, set_statement
from castle.store.mind_rows import add_alias, aliased, history, norm_hash, resolve
from castle.store.mind_values import Source

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from castle.mind.saving import Saver
    from castle.mine.notes import Added
    from castle.store.palace import Palace

FILE_SAYS = "the seed file says so"


class Entry(BaseModel):
    """One fact of a seed file."""

    model_config = ConfigDict(extra="forbid")

    content: str = Field(min_length=1)
    id: str = ""
    confidence: float = Field(0.5, ge=0, le=1)
    falsifiable_condition: dict[str, Any] | None = None
    source_references: list[str] = []
    source: str = "seed_config"
    tags: list[str] = []


class SeedFile(BaseModel):
    """A seed file."""

    seed_knowledge: list[Any]


@dataclass(frozen=True, slots=True)
class Seeded:
    """What a seed file brought: new facts, changed ones, known ones, and entries that are wrong."""

    added: int
    updated: int
    unchanged: int
    warnings: tuple[str, ...] = ()


def read_seed(path: Path) -> object:
    """Return what a seed file holds; raises UsageError where it cannot be read or is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from error


def seed(saver: Saver, palace: Palace, knowledge: object, *, actor: str, name: str = "") -> Seeded:
    """Believe the facts of a seed file; one with an ``id``, or the same words, is the one of before.

    Raises UsageError for what is no seed file; a wrong entry is left out and told, with the ``name`` of the
    file.
    """
    file = f"{name}: " if name else ""
    try:
        entries = SeedFile.model_validate(knowledge).seed_knowledge
    except ValidationError as error:
        raise UsageError(
            f'{file}a seed file is {{"seed_knowledge": [{{"content": "…", "confidence": 0.5}}, …]}}: '
            f"{_told(error)}"
        ) from error
    counts = {"added": 0, "updated": 0, "unchanged": 0}
    warnings = []
    for number, raw in enumerate(entries, start=1):
        try:
            if not isinstance(raw, dict):
                raise UsageError('it is no object such as {"content": "…", "confidence": 0.5}')
            counts[_one(saver, palace, Entry.model_validate(raw), actor)] += 1
        except ValidationError as error:
            warnings.append(f"{file}entry {number}: {_told(error)}")
        except (UsageError, NotFoundError) as error:
            warnings.append(f"{file}entry {number}: {error}")
    return Seeded(**counts, warnings=tuple(warnings))


def _one(saver: Saver, palace: Palace, entry: Entry, actor: str) -> str:
    if entry.falsifiable_condition is not None:
        check_expression(entry.falsifiable_condition)
    statement = shown(entry.content, palace.salt)
    alias = f"seed:{entry.id or norm_hash(entry.content)}"
    done: list[str] = []

    def also(cx: Connection, added: Added) -> None:
        now = palace.ledger.clock()
        describe(cx, added.id, now, origin=ASSERTION)
        known = aliased(cx, alias)
        if known is not None:
            done.append(_renewed(cx, known[1], statement, entry.confidence, added.id, actor, now))
            return
        fact = add_fact(
            cx,
            statement,
            confidence=entry.confidence,
            origin="seed",
            actor=actor,
            now=now,
            drawer=added.id,
            wing=added.wing,
            sources=[Source(*resolve(cx, id_)) for id_ in entry.source_references],
            tags=shown(entry.tags, palace.salt),
            metadata={"source": shown(entry.source, palace.salt)},
        )
        add_alias(cx, alias, "fact", fact.id)
        if entry.falsifiable_condition is not None:
            attach(palace, cx, "fact", fact.id, entry.falsifiable_condition, added.wing, now)
        done.append("added" if fact.created_at == now else "unchanged")

    saver.file(entry.content, "facts", also=also)
    return done[0]


def _renewed(
    cx: Connection, id_: str, statement: str, confidence: float, drawer: str, actor: str, now: int
) -> str:
    """Bring a fact of before to what the file says now; how sure it became meanwhile is left alone."""
    fact = get_fact(cx, id_)
    reason, done = FILE_SAYS, "unchanged"
    said = [
        float(change.new)
        for change in history(cx, "fact", id_)
        if change.what == "confidence" and change.reason in (FILE_SAYS, "origin seed")
    ]
    same = bool(said) and math.isclose(said[-1], confidence, abs_tol=1e-6)
    if fact.statement != statement:
        set_statement(cx, id_, statement, reason=reason, actor=actor, now=now, drawer=drawer)
        done = "updated"
    if confidence > fact.confidence and not same:
        change_confidence(cx, id_, confidence - fact.confidence, reason=reason, actor=actor, now=now)
        done = "updated"
    return done


def _told(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
