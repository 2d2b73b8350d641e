"""Tunnels and halls join as associations do; beliefs against the graph raise suggestions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import UsageError
from castle.store.mind_edges import neighbours
from castle.store.tunnel_values import Spot
from tests.cli.conftest import Run, run  # noqa: F401
from tests.mcp.conftest import asking


@pytest.fixture
def castle(tmp_path: Path) -> Iterator[Castle]:
    with Castle(tmp_path / "palace", embedder="fake") as opened:
        yield opened


def joined(castle: Castle, kind: str, id_: str) -> dict[tuple[str, str], tuple[float, str]]:
    palace = castle._palace()
    with palace.ledger.read() as cx:
        found = neighbours(cx, kind, id_, palace.ledger.clock())
    return {(edge.kind, edge.id): (edge.weight, edge.origin) for edge in found}


def test_tunnels_join_rooms_and_the_drawers_they_name(castle: Castle) -> None:
    boat = castle.add("The boat has a leak", wing="sea", room="boats").id
    pump = castle.add("How a bilge is drained", wing="shed", room="pumps").id
    other = castle.add("A pump of brass", wing="shed", room="pumps").id
    castle.add("A boat of paper", wing="toys", room="boats")
    castle.tunnels.create(Spot("sea", "boats"), Spot("shed", "pumps"), target_drawer=pump)
    assert joined(castle, "drawer", boat) == {
        ("room", "shed/pumps"): (0.4, "tunnel"),
        ("drawer", pump): (0.4, "tunnel"),
    }
    assert joined(castle, "drawer", other) == {("room", "sea/boats"): (0.4, "tunnel")}
    assert joined(castle, "room", "sea/boats") == {
        ("room", "shed/pumps"): (0.4, "tunnel"),
        ("drawer", pump): (0.4, "tunnel"),
        ("room", "toys/boats"): (0.4, "tunnel"),
    }
    assert [(e.kind, e.id) for e in castle.memory_related(boat)] == [("drawer", pump), ("room", "shed/pumps")]
    castle.forget(pump)
    assert ("drawer", pump) not in joined(castle, "drawer", boat)


def test_a_recall_along_associations_goes_through_tunnels(castle: Castle) -> None:
    for number in range(40):
        castle.add(f"The boat has leak {number}", wing="sea", room="boats")
    pump = castle.add("Draining takes an hour", wing="shed", room="pumps").id
    asked = {"strategy": "two_pass", "top_k": 5, "memory_type": "episodic"}
    assert pump not in [one.id for one in castle.memory_recall("boat leak", asked).memories]
    castle.tunnels.create(Spot("sea", "boats"), Spot("shed", "pumps"), target_drawer=pump)
    (led,) = (one for one in castle.memory_recall("boat leak", asked).memories if one.id == pump)
    assert "graph" in led.why


def test_halls_join_drawers_with_the_rooms_of_their_kind(castle: Castle) -> None:
    hall, words = next((h, w) for h, w in castle.settings.hall_keywords.items() if w)
    id_ = castle.add(f"We wrote about {words[0]} and {words[0]}", wing="w", room="desk").id
    castle.add(f"More of {words[0]}", wing="w", room="attic")
    assert joined(castle, "drawer", id_) == {("hall", f"w/{hall}"): (0.4, "hall")}
    assert joined(castle, "hall", f"w/{hall}") == {
        ("room", "w/desk"): (0.4, "hall"),
        ("room", "w/attic"): (0.4, "hall"),
    }
    assert joined(castle, "room", "w/desk") == {("hall", f"w/{hall}"): (0.4, "hall")}


def test_a_belief_that_contradicts_the_graph_raises_a_suggestion_and_changes_nothing(
    castle: Castle,
    run: Run,  # noqa: F811
) -> None:
    fact = castle.memory_save("Ann Lee has moved to Rome", "semantic", {"confidence": 0.8}).memory.id
    triple = castle.kg.add("Ann Lee", "lives_in", "Oslo").fact.id
    weak = castle.memory_associate(fact, triple, -0.2, "contradicts")
    assert "suggestions" not in weak
    assert castle.memory_recall("Ann moved Rome").suggestions == ()
    told = castle.memory_associate(fact, triple, -0.3, "contradicts")
    (raised,) = told["suggestions"]
    assert (raised["fact"], raised["triple"]) == (fact, triple)
    assert shlex.split(raised["command"]) == ["castle", "kg", "invalidate", "Ann Lee", "lives_in", "Oslo"]
    assert castle.kg.query("Ann Lee").facts[0].state == "current"
    (seen,) = castle.memory_recall("Ann moved Rome").suggestions
    assert seen.command == raised["command"]
    assert castle.memory_status()["suggestions"][0]["command"] == raised["command"]
    assert raised["command"] in castle.wake_up().text
    palace = ("--palace", str(castle.root))
    for command in (("recall", "Ann moved Rome"), ("status",)):
        assert raised["command"] in run(*palace, "memory", *command).err
    answer = asking(castle.root)("memory_recall", query="Ann moved Rome").structured_content or {}
    assert answer["suggestions"][0]["command"] == raised["command"]
    done = run(*palace, *shlex.split(raised["command"])[1:])
    assert done.code == 0, done.err
    assert castle.memory_recall("Ann moved Rome").suggestions == ()
    assert castle.memory_status()["suggestions"] == []


def test_what_is_believed_no_longer_suggests_nothing(castle: Castle, run: Run) -> None:  # noqa: F811
    fact = castle.memory_save("It is not so", "semantic").memory.id
    triple = castle.kg.add("-x", "is", "y").fact.id
    (raised,) = castle.memory_associate(triple, fact, -1.0, "contradicts")["suggestions"]
    assert run("--palace", str(castle.root), *shlex.split(raised["command"])[1:]).code == 0
    triple = castle.kg.add("x", "is", "z").fact.id
    castle.memory_associate(fact, triple, -1.0, "contradicts")
    castle.memory_forget(fact, expire=True)
    assert castle.memory_status()["suggestions"] == []
    with pytest.raises(UsageError, match="name a memory"):
        castle.memory_associate(triple, triple)


def test_get_shows_what_a_memory_is_joined_to(castle: Castle, run: Run) -> None:  # noqa: F811
    one = castle.memory_save("The mast is new").memory.id
    other = castle.memory_save("The sail is old").memory.id
    castle.memory_associate(one, other, 0.7)
    assert (
        f"associated_with drawer {other}: 0.7 (user)"
        in run("--palace", str(castle.root), "memory", "get", one).err
    )
    told = json.loads(run("--palace", str(castle.root), "memory", "get", one, "--json").out)
    assert [(edge["id"], edge["weight"]) for edge in told["related"]] == [(other, 0.7)]
    answer = asking(castle.root)("memory_get", memory_id=one).structured_content or {}
    assert answer["related"][0]["id"] == other
