"""What the mind holds, in numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select

from castle.clock import to_iso
from castle.mind.consolidation import cycle
from castle.mind.preferences import learning
from castle.mind.reflection import reflecting
from castle.mind.replay import pool
from castle.mind.scheduler import background
from castle.mind.working import ENDANGERED, attention
from castle.store.mind_edges import sizes
from castle.store.mind_episodes import count, is_episode
from castle.store.mind_index import waiting
from castle.store.mind_ingest import count_queued, refused
from castle.store.mind_suggestions import suggestions
from castle.store.mind_tables import (
    mem_conditions,
    mem_episodes,
    mem_facts,
    mem_leases,
    mem_procedures,
)
from castle.store.mind_values import FACT_BOUNDS, SKILL_BOUNDS, lifecycle
from castle.store.mind_working import count_sessions, items
from castle.store.schema import SCHEMA_VERSION, drawers

if TYPE_CHECKING:
    from castle.llm.base import Provider
    from castle.llm.budget import Budget
    from castle.store.palace import Palace

MOST_SUGGESTED = 5


def status(palace: Palace, budget: Budget, provider: Provider | None) -> dict[str, Any]:
    """Return the counts of every layer and part; ``health`` is degraded for each of the ``reasons``.

    ``provider`` is the language model that somebody asked for, ``budget`` how often it may be asked.
    """
    now = palace.ledger.clock()
    reasons = [palace.unready] if palace.unready else []
    with palace.ledger.read() as cx:
        pending = waiting(cx, palace.identity.identity)
        nodes, edges = sizes(cx)
        sessions, going = count_sessions(cx)
        unfiled, why = refused(cx)
        report: dict[str, Any] = {
            "layers": {
                "working": _working(cx, now),
                "episodic": _episodic(cx),
                "semantic": _semantic(cx),
                "procedural": _procedural(cx),
            },
            "vector_index": {
                "dimension": palace.identity.dim,
                "backend": "numpy",
                "embedder": palace.identity.identity,
                "db_path": str(palace.ledger.path),
                "embed_model_ready": palace.embedder_loaded and not palace.unready,
                "pending_embeddings": pending,
            },
            "consolidation": cycle.status(cx),
            "graph": {"node_count": nodes, "edge_count": edges},
            "suggestions": [asdict(one) for one in suggestions(cx, now, limit=MOST_SUGGESTED)],
            "creative_pool": pool.status(cx),
            "reflection": reflecting.status(cx),
            "preferences": learning.status(cx),
            "sessions": {"known": sessions, "going_on": going},
            "ingest": count_queued(cx),
            "background": background(cx),
            "leases": {
                row.name: to_iso(row.expires_at)
                for row in cx.execute(select(mem_leases).where(mem_leases.c.expires_at > now))
            },
            "schema": SCHEMA_VERSION,
        }
    if pending and not palace.unready and palace.embedder_loaded:
        reasons.append(f"{pending} things have no vector yet")
    if unfiled:
        reasons.append(f"{unfiled} events of hosts could not be filed and are tried again: {why}")
    for name, told in report["background"].items():
        if told.get("error"):
            reasons.append(f"the background job {name} failed: {told['error']}")
    if palace.ledger.read_only:
        reasons.append("the palace is read-only")
    if provider is not None and (missing := provider.available()):
        reasons.append(missing)
    report["llm"] = {"configured": provider is not None, **budget.status()}
    return {**report, "health": "degraded" if reasons else "healthy", "reasons": reasons}


def _working(cx: Connection, now: int) -> dict[str, Any]:
    values = [attention(item, now) for item in items(cx)]
    return {
        "entry_count": len(values),
        "avg_attention": round(sum(values) / len(values), 4) if values else 0.0,
        "preheated": sum(value < ENDANGERED for value in values),
    }


def _episodic(cx: Connection) -> dict[str, Any]:
    oldest = cx.execute(
        select(func.min(drawers.c.authored_at))
        .select_from(drawers.outerjoin(mem_episodes, mem_episodes.c.drawer == drawers.c.rid))
        .where(is_episode())
    ).scalar()
    return {
        "entry_count": count(cx),
        "oldest_at": None if oldest is None else to_iso(oldest),
        "dim": count(cx, states=("dim",)),
        "cold": count(cx, states=("cold",)),
        "expired": _count(cx, mem_episodes, mem_episodes.c.invalidated_at.is_not(None)),
    }


def _semantic(cx: Connection) -> dict[str, Any]:
    standing = mem_facts.c.invalidated_at.is_(None)
    query = select(mem_facts.c.confidence).where(standing, mem_facts.c.state != "cold")
    values = list(cx.execute(query).scalars())
    conditions = _count(cx, mem_conditions, mem_conditions.c.owner_kind == "fact")
    return {
        "entry_count": len(values),
        "avg_confidence": round(sum(values) / len(values), 4) if values else 0.0,
        "by_lifecycle": _stages(values, FACT_BOUNDS),
        "with_falsifiable_conditions": conditions,
        "expired": _count(cx, mem_facts, mem_facts.c.invalidated_at.is_not(None)),
        "cold": _count(cx, mem_facts, mem_facts.c.state == "cold"),
    }


def _procedural(cx: Connection) -> dict[str, Any]:
    standing = (mem_procedures.c.invalidated_at.is_(None), mem_procedures.c.state != "cold")
    values = list(cx.execute(select(mem_procedures.c.weight).where(*standing)).scalars())
    return {
        "entry_count": len(values),
        "avg_activation_weight": round(sum(values) / len(values), 4) if values else 0.0,
        "by_lifecycle": _stages(values, SKILL_BOUNDS),
        "with_conditions": _count(cx, mem_procedures, *standing, mem_procedures.c.trigger != ""),
    }


def _stages(values: list[float], bounds: tuple[float, float]) -> dict[str, int]:
    found = {"plastic": 0, "semi_stable": 0, "locked": 0}
    for value in values:
        found[lifecycle(value, bounds)] += 1
    return found


def _count(cx: Connection, table: Any, *conditions: Any) -> int:
    return int(cx.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one())
