"""What all tables of the mind share: ids, names of old, history, sources, numbers of the whole, leases."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from sqlalchemy import Connection, delete, insert, select, update

from castle.errors import NotFoundError, UsageError
from castle.store.ledger import to_json
from castle.store.mind_tables import (
    mem_aliases,
    mem_facts,
    mem_history,
    mem_hypotheses,
    mem_leases,
    mem_meta,
    mem_preferences,
    mem_procedures,
    mem_reflections,
    mem_sources,
    mem_working,
)
from castle.store.mind_values import Change, Fact, Kind, Procedure, Source
from castle.store.reading import full_id

PREFIXES: Mapping[str, Kind] = {
    "fct": "fact",
    "prc": "procedure",
    "hyp": "hypothesis",
    "prf": "preference",
    "rfl": "reflection",
    "wm": "working",
}

TABLES = {
    "fact": mem_facts,
    "procedure": mem_procedures,
    "hypothesis": mem_hypotheses,
    "preference": mem_preferences,
    "reflection": mem_reflections,
    "working": mem_working,
}
"""Where each kind of thing of the mind has its row; drawers have theirs in the archive."""

Stated = Literal["fact", "procedure"]
"""What is told from other things of its kind by its words."""

_ID = re.compile(r"([a-z]+)_[0-9a-f]{16}")


def has_mind(cx: Connection) -> bool:
    """Whether the palace has the tables: one that is read-only may be older than they are."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'mem_facts'"
    return cx.exec_driver_sql(query).first() is not None


def new_id(kind: Kind) -> str:
    """Return a fresh id: the prefix of the kind and 16 hexadecimal digits."""
    prefix = next(prefix for prefix, known in PREFIXES.items() if known == kind)
    return f"{prefix}_{secrets.token_hex(8)}"


def kind_of(id_: str) -> Kind | None:
    """Return the kind that an id names by its prefix, None for any other id."""
    match = _ID.fullmatch(id_)
    return PREFIXES.get(match[1]) if match else None


def standing(cx: Connection, kind: Stated, digest: str, wing: str | None) -> str | None:
    """Return the fact or procedure of a wing with these words that still holds, the oldest of several."""
    table = TABLES[kind]
    query = select(table.c.id).where(
        table.c.norm_hash == digest, table.c.wing.is_not_distinct_from(wing), table.c.invalidated_at.is_(None)
    )
    found: str | None = cx.execute(query.order_by(table.c.created_at).limit(1)).scalar()
    return found


def said_again(
    cx: Connection,
    kind: Stated,
    found: Fact | Procedure,
    tags: Sequence[str],
    metadata: Mapping[str, object] | None,
    *,
    actor: str,
    now: int,
) -> None:
    """Take over what a second statement brings, and call what was put away back to mind."""
    table = TABLES[kind]
    values = {
        "tags_json": to_json(list(dict.fromkeys((*found.tags, *tags)))),
        "metadata_json": to_json({**found.metadata, **(metadata or {})}),
        "state": "active",
    }
    if found.state != "active":
        note_change(
            cx, kind, found.id, "state", found.state, "active", reason="said again", actor=actor, now=now
        )
    cx.execute(update(table).where(table.c.id == found.id).values(**values))


def resolve(cx: Connection, given: str) -> tuple[Kind, str]:
    """Return the kind and the id that a user means: of the mind, of a drawer, or one from before an import.

    Raises NotFoundError when there is no such thing, UsageError for what can be no id.
    """
    text = given.strip().lower()
    if not text:
        raise UsageError("the id is empty: `castle memory recall` shows ids")
    kind = kind_of(text)
    if kind is not None:
        table = TABLES[kind]
        if cx.execute(select(table.c.id).where(table.c.id == text)).first() is not None:
            return kind, text
    row = cx.execute(select(mem_aliases).where(mem_aliases.c.alias == given.strip())).first()
    if row is not None:
        return row.kind, row.id
    if kind is not None:
        raise NotFoundError(f"the mind holds no {kind} {given}: `castle memory recall` shows ids")
    try:
        return "drawer", full_id(cx, text)
    except UsageError as error:
        raise NotFoundError(f"the mind holds nothing called {given[:80]!r}: {error}") from error


def add_alias(cx: Connection, alias: str, kind: str, id_: str) -> None:
    """Remember the id that something had before it was imported."""
    values = {"alias": alias, "kind": kind, "id": id_}
    cx.execute(insert(mem_aliases).prefix_with("OR REPLACE").values(**values))


def aliased(cx: Connection, alias: str) -> tuple[str, str] | None:
    """Return the kind and id that an old id stands for, None where it is not known."""
    row = cx.execute(select(mem_aliases).where(mem_aliases.c.alias == alias)).first()
    return None if row is None else (row.kind, row.id)


def norm_hash(text: str) -> str:
    """Return the hash of what a text says whatever its case, blanks and end: SHA-256 in hex."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = " ".join(plain.split()).rstrip(" .!")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def note_change(
    cx: Connection,
    kind: str,
    id_: str,
    what: str,
    old: object,
    new: object,
    *,
    reason: str,
    actor: str,
    now: int,
    evidence: Iterable[str] = (),
) -> None:
    """Write one row of history."""
    cx.execute(
        insert(mem_history).values(
            kind=kind,
            id=id_,
            what=what,
            old=_shown(old),
            new=_shown(new),
            reason=reason,
            actor=actor,
            evidence_json=to_json(list(evidence)),
            at=now,
        )
    )


def history(cx: Connection, kind: str, id_: str) -> list[Change]:
    """Return every change of a thing, the oldest first."""
    query = select(mem_history).where(mem_history.c.kind == kind, mem_history.c.id == id_)
    return [
        Change(
            r.kind, r.id, r.what, r.old, r.new, r.reason, r.actor, tuple(json.loads(r.evidence_json)), r.at
        )
        for r in cx.execute(query.order_by(mem_history.c.rid))
    ]


def cite(cx: Connection, kind: str, id_: str, sources: Iterable[Source], now: int) -> list[Source]:
    """Note what something rests on; return those sources that it did not rest on before."""
    known = {(s.kind, s.id, s.role) for s in sources_of(cx, kind, id_)}
    fresh = list({(s.kind, s.id, s.role): s for s in sources if (s.kind, s.id, s.role) not in known}.values())
    rows = [
        {
            "owner_kind": kind,
            "owner_id": id_,
            "source_kind": source.kind,
            "source_id": source.id,
            "role": source.role,
            "weight": source.weight,
            "session": source.session,
            "at": now,
        }
        for source in fresh
    ]
    if rows:
        cx.execute(insert(mem_sources), rows)
    return fresh


def sources_of(cx: Connection, kind: str, id_: str) -> list[Source]:
    """Return what something rests on, in the order in which it was noted."""
    query = select(mem_sources).where(mem_sources.c.owner_kind == kind, mem_sources.c.owner_id == id_)
    return [
        Source(row.source_kind, row.source_id, row.role, row.weight, row.session)
        for row in cx.execute(query.order_by(mem_sources.c.at, mem_sources.c.source_id))
    ]


def resting_on(cx: Connection, kind: str, ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (owner kind, owner id, source id) for everything that rests on these."""
    query = select(mem_sources.c.owner_kind, mem_sources.c.owner_id, mem_sources.c.source_id)
    found = cx.execute(query.where(mem_sources.c.source_kind == kind, mem_sources.c.source_id.in_(ids)))
    return [(owner, id_, source) for owner, id_, source in found]


def get_meta(cx: Connection, key: str) -> str | None:
    """Return one number of the mind as a whole, None where there is none."""
    value: str | None = cx.execute(select(mem_meta.c.value).where(mem_meta.c.key == key)).scalar()
    return value


def set_meta(cx: Connection, key: str, value: str) -> None:
    """Set one number of the mind as a whole."""
    cx.execute(insert(mem_meta).prefix_with("OR REPLACE").values(key=key, value=value))


def new_holder() -> str:
    """Return a name under which this process may hold leases; who holds one can be told to have ended."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def lease(cx: Connection, name: str, holder: str, seconds: float, now: int) -> bool:
    """Take or keep a piece of background work for some seconds; false while another one has it.

    One whose process has ended on this machine, killed or not, has it no more.
    """
    until = now + int(seconds * 1e6)
    row = cx.execute(select(mem_leases).where(mem_leases.c.name == name)).first()
    if row is None:
        cx.execute(insert(mem_leases).values(name=name, holder=holder, expires_at=until))
        return True
    if row.holder != holder and row.expires_at > now and not _ended(row.holder):
        return False
    cx.execute(update(mem_leases).where(mem_leases.c.name == name).values(holder=holder, expires_at=until))
    return True


def _ended(holder: str) -> bool:
    host, _, process = holder.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname() or not process.isdecimal() or sys.platform == "win32":
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is somebody else's, or no number of a process
        pass
    return False


def release(cx: Connection, name: str, holder: str) -> None:
    """Give a piece of background work back."""
    cx.execute(delete(mem_leases).where(mem_leases.c.name == name, mem_leases.c.holder == holder))


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
