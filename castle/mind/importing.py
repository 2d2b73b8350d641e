"""Taking over a database of the memory that Castle's mind follows: a SQLite file with a table for each layer.

What was experienced or stated becomes drawers, what was derived becomes things of the mind that name their
sources. Ids of before are remembered, so the same database again adds nothing, and callers may go on using
them. The database is opened to be read only; its vectors are of another embedder and are left where they are.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, insert

from castle.errors import CastleError, PalaceError, UsageError
from castle.mind.conditions.verifying import attach, check_expression
from castle.mind.consolidation.patterns import says_nothing
from castle.mind.given import shown
from castle.mind.import_rows import (
    Row,
    count_of,
    json_of,
    list_of,
    moment_of,
    number_of,
    object_of,
    public,
    text_of,
    written_at,
)
from castle.mind.saving import origin_of
from castle.store.ledger import to_json
from castle.store.mind_edges import add_edge
from castle.store.mind_episodes import ASSERTION, describe, set_scores, set_valence
from castle.store.mind_facts import add_fact, clamp
from castle.store.mind_index import index
from castle.store.mind_ingest import of_turn
from castle.store.mind_procedures import add_procedure, set_counts
from castle.store.mind_rows import add_alias, aliased, new_id, norm_hash
from castle.store.mind_state import expire, set_state
from castle.store.mind_tables import mem_hypotheses, mem_preferences, mem_reflections
from castle.store.mind_values import RELATIONS, Origin, Source

if TYPE_CHECKING:
    from castle.mind.saving import Saver
    from castle.store.palace import Palace

WING = "imported-cellmem"
NEEDED = ("episodic_memory", "semantic_memory", "procedural_memory")
_STATUSES = ("pending", "confirmed", "rejected", "promoted")


@dataclass(slots=True)
class Imported:
    """What came: how many of each kind were added and were known, and what could not be taken over."""

    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)


def import_database(palace: Palace, saver: Saver, path: Path, *, actor: str, wing: str = WING) -> Imported:
    """Take over everything that a database holds; raises UsageError where it is none of these."""
    if not path.is_file():
        raise UsageError(f"there is no database at {path}")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as old:
            old.row_factory = sqlite3.Row
            old.text_factory = lambda raw: raw.decode(errors="replace")
            there = {name for (name,) in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not set(NEEDED) <= there:
                raise UsageError(f"{path} has no tables {', '.join(NEEDED)}: it is no such database")
            return _Import(palace, saver, old, there, actor, wing).run()
    except sqlite3.DatabaseError as error:
        raise UsageError(f"{path} cannot be read as a database: {error}") from error


class _Import:
    """One run."""

    def __init__(
        self,
        palace: Palace,
        saver: Saver,
        old: sqlite3.Connection,
        there: set[str],
        actor: str,
        wing: str,
    ) -> None:
        self._palace = palace
        self._saver = saver
        self._old = old
        self._there = there
        self._actor = actor
        self._wing = wing
        self._told = Imported()

    def run(self) -> Imported:
        """Take the tables over, those first that others name."""
        steps = (
            ("episodic_memory", self._episode),
            ("cold_storage", self._cold),
            ("semantic_memory", self._fact),
            ("procedural_memory", self._procedure),
            ("creative_pool", self._hypothesis),
            ("preference_candidates", self._preference),
            ("graph_edges", self._edge),
        )
        for table, step in steps:
            for row in self._rows(table):
                row = self._shown(row)
                try:
                    step(row)
                except PalaceError:
                    raise
                except (CastleError, ValueError, TypeError, KeyError) as error:
                    self._told.dropped[table] += 1
                    self._told.warnings.append(f"{table} {row.get('id') or row.get('source_id')}: {error}")
        working = sum(1 for _ in self._rows("working_memory"))
        if working:
            self._told.dropped["working_memory"] += working
            self._told.warnings.append(f"{working} working items were of sessions that are over")
        return self._told

    def _rows(self, table: str) -> Iterator[dict[str, Any]]:
        if table in self._there:
            for row in self._old.execute(f'SELECT * FROM "{table}"'):
                yield dict(row)

    def _shown(self, row: Row) -> dict[str, Any]:
        """Mask the secrets of a row, but for what is filed word for word."""
        exact = ("content", "template_content")
        return {
            k: v if k in exact or isinstance(v, bytes) else shown(v, self._palace.salt)
            for k, v in row.items()
        }

    def _known(self, kind: str, alias: str) -> bool:
        with self._palace.ledger.read() as cx:
            known = aliased(cx, alias) is not None
        self._told.known[kind] += known
        return known

    def _came(self, cx: Connection, counted: str, kind: str, id_: str, *aliases: str | None) -> None:
        for alias in aliases:
            if alias:
                add_alias(cx, alias, kind, id_)
        self._told.added[counted] += 1

    def _episode(self, row: Row) -> None:
        metadata = object_of(row, "metadata_json")
        if metadata.get("reflection") or metadata.get("meta_knowledge"):
            self._reflection(row, metadata)
        elif not self._known("episodes", row["id"]) and not self._said(row, metadata):
            self._file(row, metadata)

    def _said(self, row: Row, metadata: Mapping[str, Any]) -> bool:
        """Whether a row is a piece of a turn that was mined word for word; its id then stands for that."""
        session, turn = str(row.get("session_id") or ""), str(metadata.get("turn_id") or "")
        if not session or not turn or metadata.get("chunk_index") is None:
            return False
        with self._palace.ledger.write() as cx:
            held = of_turn(cx, session, turn)
            if held is not None:
                add_alias(cx, row["id"], "drawer", held)
                self._told.known["episodes"] += 1
        return held is not None

    def _cold(self, row: Row) -> None:
        if self._known("episodes", row["id"]):
            return
        self._file(row, {}, cold=True)

    def _file(self, row: Row, metadata: Mapping[str, Any], *, cold: bool = False) -> None:
        added = self._saver.file(text_of(row, "content"), "episodes", self._wing, authored_at=written_at(row))
        now = self._palace.ledger.clock()
        times = {name: row[name] for name in ("created_at", "event_at", "compressed_at") if row.get(name)}
        with self._palace.ledger.write() as cx:
            for id_ in added.ids:
                describe(
                    cx,
                    id_,
                    now,
                    session=row.get("session_id") or "",
                    task=row.get("task_id") or "",
                    origin="import",
                    was_in_wm=bool(row.get("was_in_wm")),
                    tags=list_of(row, "tags_json"),
                    metadata={**public(metadata), **times},
                )
                felt = number_of(row, "valence", 0.0)
                if felt:
                    set_valence(cx, id_, felt, 1.0, "import", actor=self._actor, now=now)
                score = number_of(row, "consolidation_score", number_of(row, "score_at_archive", 0.0))
                if score:
                    set_scores(cx, {id_: (score, 0)}, now)
            if cold:
                reason = f"cold since {row['compressed_at']}"
                set_state(cx, "drawer", added.id, "cold", reason=reason, actor=self._actor, now=now)
            self._ended(cx, row, "drawer", added.id, now)
            self._came(cx, "episodes", "drawer", added.id, row["id"], row.get("original_id"))

    def _reflection(self, row: Row, metadata: Mapping[str, Any]) -> None:
        if self._known("reflections", row["id"]):
            return
        id_, now = new_id("reflection"), self._palace.ledger.clock()
        text = shown(text_of(row, "content"), self._palace.salt)
        with self._palace.ledger.write() as cx:
            cx.execute(
                insert(mem_reflections).values(
                    id=id_,
                    task="",
                    outcome=str(metadata.get("outcome") or ""),
                    text=text,
                    dimensions_json="[]",
                    analysis_json=to_json(metadata.get("analysis") or {}),
                    proposals_json="[]",
                    origin="import",
                    unsupported=True,
                    wing=self._wing,
                    created_at=moment_of(row.get("created_at"), now),
                )
            )
            index(cx, "reflection", id_, text)
            self._came(cx, "reflections", "reflection", id_, row["id"])

    def _fact(self, row: Row) -> None:
        if self._known("facts", row["id"]):
            return
        metadata = object_of(row, "metadata_json")
        derived, statement = origin_of(text_of(row, "content"))
        if derived == "pattern" and says_nothing(statement):
            self._told.dropped["facts"] += 1
            self._told.warnings.append(f"fact {row['id']}: a pattern that says nothing")
            return
        seeded: Origin = "seed" if metadata.get("source") == "seed_config" else "import"
        drawer = None
        if derived is None:
            drawer = self._saver.file(row["content"], "facts", self._wing, authored_at=written_at(row)).id
        with self._palace.ledger.write() as cx:
            now = self._palace.ledger.clock()
            if drawer is not None:
                describe(cx, drawer, now, origin=ASSERTION)
            fact = add_fact(
                cx,
                shown(statement, self._palace.salt),
                confidence=clamp(number_of(row, "confidence", 0.0)),
                origin=derived or seeded,
                actor=self._actor,
                now=now,
                drawer=drawer,
                wing=self._wing,
                sources=self._sources(cx, list_of(row, "source_refs_json")),
                tags=list_of(row, "tags_json"),
                metadata={**public(metadata), "created_at": row.get("created_at")},
            )
            self._came(cx, "facts", "fact", fact.id, row["id"])
            condition = object_of(row, "falsifiable_condition")
            if condition:
                self._attach(cx, fact.id, condition, now)
            self._ended(cx, row, "fact", fact.id, now)

    def _attach(self, cx: Connection, fact: str, condition: Mapping[str, Any], now: int) -> None:
        try:
            check_expression(condition)
            attach(self._palace, cx, "fact", fact, condition, self._wing, now)
        except CastleError as error:
            self._told.dropped["conditions"] += 1
            self._told.warnings.append(f"condition of {fact}: {error}")

    def _procedure(self, row: Row) -> None:
        if self._known("procedures", row["id"]):
            return
        text = text_of(row, "template_content")
        added = self._saver.file(text, "procedures", self._wing, authored_at=written_at(row))
        with self._palace.ledger.write() as cx:
            now = self._palace.ledger.clock()
            describe(cx, added.id, now, origin=ASSERTION)
            found = add_procedure(
                cx,
                shown(text, self._palace.salt),
                origin="import",
                actor=self._actor,
                now=now,
                trigger=shown(row["trigger_condition"] or "", self._palace.salt),
                task_type=row["task_type"] or "",
                weight=number_of(row, "activation_weight", 0.5),
                drawer=added.id,
                wing=self._wing,
                sources=self._sources(cx, list_of(row, "source_episode_ids")),
                tags=list_of(row, "tags_json"),
                metadata={**public(object_of(row, "metadata_json")), "created_at": row.get("created_at")},
            )
            set_counts(cx, found.id, count_of(row, "success_count"), count_of(row, "failure_count"))
            self._came(cx, "procedures", "procedure", found.id, row["id"])

    def _hypothesis(self, row: Row) -> None:
        if self._known("hypotheses", row["id"]):
            return
        id_, now = new_id("hypothesis"), self._palace.ledger.clock()
        text = shown(text_of(row, "hypothesis_text"), self._palace.salt)
        pair = json_of(row.get("concept_pair"))
        status = row["status"] if row["status"] in _STATUSES else "pending"
        with self._palace.ledger.write() as cx:
            sources = self._sources(cx, list_of(row, "source_seed_ids"))
            cx.execute(
                insert(mem_hypotheses).values(
                    id=id_,
                    text=text,
                    rationale=str(pair.get("rationale", "")) if isinstance(pair, dict) else "",
                    confidence=clamp(number_of(row, "confidence", 0.2)),
                    status=status,
                    origin="import",
                    wing=self._wing,
                    push_count=count_of(row, "push_count"),
                    ignore_count=count_of(row, "ignore_count"),
                    stability_count=count_of(row, "stability_count"),
                    cycles_json="[]",
                    seeds_json=to_json([source.id for source in sources]),
                    nodes_json=to_json(list_of(row, "source_node_ids")),
                    pair_json=to_json(pair if pair is not None else {}),
                    topics_json=to_json(list_of(row, "topic_tags")),
                    metadata_json=to_json(object_of(row, "metadata_json")),
                    created_at=moment_of(row.get("created_at"), now),
                    updated_at=now,
                )
            )
            index(cx, "hypothesis", id_, text)
            self._came(cx, "hypotheses", "hypothesis", id_, row["id"])

    def _preference(self, row: Row) -> None:
        text = shown(text_of(row, "preference_text"), self._palace.salt)
        if self._known("preferences", row["id"]):
            return
        now = self._palace.ledger.clock()
        with self._palace.ledger.write() as cx:
            same = aliased(cx, f"preference:{norm_hash(text)}")
            if same is not None:
                add_alias(cx, row["id"], *same)
                self._told.known["preferences"] += 1
                return
            id_ = new_id("preference")
            cx.execute(
                insert(mem_preferences).values(
                    id=id_,
                    text=text,
                    type=row["preference_type"] or "general",
                    polarity=1,
                    confidence=clamp(number_of(row, "confidence", 0.3)),
                    signal_strength=number_of(row, "signal_strength", 0.0),
                    status=row["status"] if row["status"] in _STATUSES else "pending",
                    trigger=row["trigger_context"] or "",
                    origin="import",
                    wing=self._wing,
                    norm_hash=norm_hash(text),
                    conflicts_json="[]",
                    push_count=count_of(row, "push_count"),
                    ignore_count=count_of(row, "ignore_count"),
                    metadata_json=to_json(object_of(row, "metadata_json")),
                    created_at=moment_of(row.get("created_at"), now),
                    updated_at=now,
                )
            )
            index(cx, "preference", id_, text)
            alias = f"preference:{norm_hash(text)}"
            self._came(cx, "preferences", "preference", id_, row["id"], alias)

    def _edge(self, row: Row) -> None:
        alias = f"edge:{row['source_id']}:{row['target_id']}:{row['relation_type']}"
        if self._known("edges", alias):
            return
        now = self._palace.ledger.clock()
        with self._palace.ledger.write() as cx:
            ends = [aliased(cx, row[name]) for name in ("source_id", "target_id")]
            source, target = ends
            if source is None or target is None or row["relation_type"] not in RELATIONS:
                self._told.dropped["edges"] += 1
                why = "one end is not known" if None in ends else "there is no such relation"
                self._told.warnings.append(f"{alias}: {why}")
                return
            weight = clamp(number_of(row, "weight", 0.0), -1.0, 1.0)
            add_edge(cx, source, target, row["relation_type"], weight, origin="import", now=now)
            self._came(cx, "edges", "edge", alias, alias)

    def _ended(self, cx: Connection, row: Row, kind: str, id_: str, now: int) -> None:
        if row.get("invalidated_at"):
            reason = str(object_of(row, "metadata_json").get("expire_reason") or row["invalidated_at"])
            expire(cx, kind, id_, reason=f"had expired: {reason}", actor=self._actor, now=now)

    def _sources(self, cx: Connection, ids: list[Any]) -> list[Source]:
        known = [aliased(cx, str(id_)) for id_ in ids]
        return [Source(kind, id_) for kind, id_ in filter(None, known)]
