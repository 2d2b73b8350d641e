from __future__ import annotations

import pytest
from sqlalchemy import func, select

from castle.errors import NotFoundError, UsageError
from castle.records import Scope
from castle.store.entities import Entities
from castle.store.ledger import Ledger
from castle.store.palace import Palace
from castle.store.places import forget, rename_wing
from castle.store.reading import listed
from castle.store.tunnel_tables import tunnels as table
from castle.store.tunnel_values import Spot, parse_spot
from castle.store.tunnels import Tunnels, shared_topics
from tests.store.filer import file

PLACES = ("app/backend", "app/docs", "site/docs", "site/design", "home/garden", "home/design", "far/away")


@pytest.fixture
def ledger(palace: Palace) -> Ledger:
    for number, place in enumerate(PLACES):
        spot = parse_spot(place)
        file(palace.ledger, [f"text of {place}\n"], path=f"{number}.md", wing=spot.wing, room=spot.room)
    return palace.ledger


@pytest.fixture
def ways(ledger: Ledger) -> Tunnels:
    return Tunnels(ledger, actor="me")


def drawer_in(ledger: Ledger, wing: str, room: str) -> str:
    with ledger.read() as cx:
        return listed(cx, Scope(wing=wing, room=room), 1, 0)[1][0].id


A, B = Spot("app", "backend"), Spot("home", "garden")


def test_a_tunnel_is_made_listed_and_followed_from_both_ends(ways: Tunnels) -> None:
    made = ways.create(A, B, label="same idea")
    assert ways.made() == [made]
    assert (made.source, made.target, made.label, made.updated_at) == (A, B, "same idea", None)
    (out,) = ways.follow(A)
    (back,) = ways.follow(B)
    assert (out.direction, out.wing, out.room, out.label) == ("outgoing", "home", "garden", "same idea")
    assert (back.direction, back.wing, back.room) == ("incoming", "app", "backend")


def test_making_it_again_in_either_direction_changes_it_and_keeps_its_id_and_birth(
    ways: Tunnels, ledger: Ledger
) -> None:
    first = ways.create(A, B, label="one")
    again = ways.create(B, A, label="two")
    assert (again.id, again.created_at, again.label) == (first.id, first.created_at, "two")
    assert again.updated_at is not None
    assert ways.made() == [again]
    assert ways.create(B, A, label="two") == again
    with ledger.read() as cx:
        assert [row.label for row in cx.execute(select(table).order_by(table.c.rid))] == ["one", "two"]


def test_a_deleted_tunnel_stays_recorded_and_comes_back(ways: Tunnels, ledger: Ledger) -> None:
    first = ways.create(A, B, label="one")
    assert ways.delete(first.id[:8]) == first
    assert ways.made() == []
    assert ways.follow(A) == []
    with ledger.read() as cx:
        (row,) = cx.execute(select(table))
    assert (row.ended_by, row.ended_at > row.created_at) == ("me", True)
    with pytest.raises(NotFoundError, match="tunnels list"):
        ways.delete(first.id)
    back = ways.create(A, B, label="one")
    assert (back.id, back.created_at) == (first.id, first.created_at)


def test_what_is_not_there_cannot_be_an_end(ways: Tunnels, ledger: Ledger) -> None:
    with pytest.raises(NotFoundError, match="backend"):
        ways.create(Spot("app", "backendd"), B)
    with pytest.raises(NotFoundError, match="no wing nowhere"):
        ways.create(A, Spot("nowhere", "x"))
    with pytest.raises(UsageError, match="itself"):
        ways.create(A, A)
    with pytest.raises(UsageError, match="stands in home/garden"):
        ways.create(A, B, source_drawer=drawer_in(ledger, "home", "garden"))
    assert ways.made() == []


def test_a_preview_is_served_while_its_drawer_is_current(ways: Tunnels, ledger: Ledger) -> None:
    there = drawer_in(ledger, "home", "garden")
    ways.create(A, B, target_drawer=there)
    (way,) = ways.follow(A)
    assert (way.drawer, way.preview) == (there, "text of home/garden\n")
    assert ways.follow(B)[0].preview == ""
    forget(ledger, id_=there, actor="test")
    assert ways.follow(A)[0].preview == ""


def test_tunnels_follow_a_wing_that_is_renamed(ways: Tunnels, ledger: Ledger) -> None:
    first = ways.create(A, B)
    rename_wing(ledger, "home", "house")
    (after,) = ways.made(wing="house")
    assert (after.id, after.target) == (first.id, Spot("house", "garden"))
    assert ways.made(wing="home") == [after]
    assert ways.follow(Spot("home", "garden")) == ways.follow(Spot("house", "garden")) != []
    assert ways.create(Spot("house", "garden"), A).id == first.id
    file(ledger, ["new"], path="new.md", wing="kept", room="garden")
    rename_wing(ledger, "kept", "home")
    assert ways.follow(Spot("home", "garden"))[0].kind == "same room"
    other = ways.create(A, Spot("home", "garden"))
    assert other.id != first.id
    assert len(ways.made()) == 2


def test_merging_wings_keeps_both_tunnels(ways: Tunnels, ledger: Ledger) -> None:
    ways.create(A, Spot("site", "design"))
    ways.create(A, Spot("home", "design"))
    rename_wing(ledger, "home", "site", merge=True)
    assert len(ways.made()) == 2
    ways.create(A, Spot("site", "design"), label="new")
    assert sorted(tunnel.label for tunnel in ways.made()) == ["", "new"]


def test_rooms_of_the_same_name_are_tunnels_without_being_made(ways: Tunnels, ledger: Ledger) -> None:
    file(ledger, ["g"], path="g1.md", wing="app", room="general")
    file(ledger, ["h"], path="g2.md", wing="site", room="general")
    found = ways.find()
    assert [(room.room, room.wings) for room in found.rooms] == [
        ("design", ("home", "site")),
        ("docs", ("app", "site")),
    ]
    assert [room.room for room in ways.find(wing_a="site", wing_b="app").rooms] == ["docs"]
    assert [room.room for room in ways.find(wing_a="home").rooms] == ["design"]
    assert [(w.kind, w.wing) for w in ways.follow(Spot("app", "docs"))] == [("same room", "site")]
    ways.create(A, B)
    assert [t.source for t in ways.find(wing_b="home").made] == [A]
    assert ways.find().total == 3


def test_lists_are_cut_and_the_total_is_exact(ways: Tunnels, ledger: Ledger) -> None:
    for number in range(60):
        for wing in ("app", "site"):
            file(ledger, ["x"], path=f"{wing}{number}.md", wing=wing, room=f"room{number}")
    found = ways.find()
    assert (len(found.rooms), found.total) == (50, 62)
    walked = ways.traverse("backend", max_hops=1)
    assert (len(walked.steps), walked.total) == (50, 61)


def test_topics_that_wings_share() -> None:
    found = shared_topics({"a": ["GraphQL", "tea "], "b": ["graphql"], "c": ["Tea", " "], "d": ["tea"]})
    assert [(topic.topic, topic.wings) for topic in found] == [
        ("tea", ("a", "c", "d")),
        ("graphql", ("a", "b")),
    ]


def test_shared_topics_are_among_what_is_found(ways: Tunnels) -> None:
    topics = {"app": ["Roses"], "home": ["roses"], "site": ["x"]}
    assert [t.wings for t in ways.find(topics_by_wing=topics).topics] == [("app", "home")]
    assert ways.find(wing_a="site", topics_by_wing=topics).topics == ()


def test_topics_come_from_the_registry_when_none_are_given(ways: Tunnels, ledger: Ledger) -> None:
    file(ledger, ["Much about Kubernetes here"], path="k1.md", wing="app", room="ops")
    file(ledger, ["Kubernetes again"], path="k2.md", wing="site", room="notes")
    registry = Entities(ledger)
    registry.add("Kubernetes", "topic")
    assert [(t.topic, t.wings) for t in ways.find().topics] == [("kubernetes", ("app", "site"))]
    forget(ledger, source="k2.md", actor="test")
    assert ways.find().topics == ()


def test_traversing_goes_through_shared_wings(ways: Tunnels) -> None:
    found = ways.traverse("backend", max_hops=3)
    assert [(step.hop, step.room, step.via) for step in found.steps] == [
        (1, "docs", ("app",)),
        (2, "design", ("site",)),
        (3, "garden", ("home",)),
    ]
    assert ways.traverse("backend", max_hops=1).total == 1


def test_traversing_goes_through_tunnels_made_by_hand(ways: Tunnels) -> None:
    ways.create(A, Spot("far", "away"))
    found = ways.traverse("backend", max_hops=1)
    assert [(step.room, step.via) for step in found.steps] == [
        ("docs", ("app",)),
        ("away", ("tunnel from backend",)),
    ]


def test_a_graph_is_never_older_than_the_palace(ways: Tunnels, ledger: Ledger) -> None:
    assert ways.traverse("away").total == 0
    file(ledger, ["new"], path="new.md", wing="far", room="shore")
    assert ways.traverse("away").total == 1
    forget(ledger, source="new.md", actor="test")
    assert ways.traverse("away").total == 0


def test_a_room_to_start_from_must_be_there(ways: Tunnels) -> None:
    with pytest.raises(NotFoundError, match="perhaps backend"):
        ways.traverse("bakend")
    with pytest.raises(UsageError, match="between 1 and 10"):
        ways.traverse("backend", max_hops=11)


def test_statistics(ways: Tunnels) -> None:
    ways.create(A, B)
    found = ways.stats()
    assert (found.total_rooms, found.tunnel_rooms, found.total_edges, found.made) == (5, 2, 2, 1)
    assert found.rooms_per_wing == {"app": 2, "far": 1, "home": 2, "site": 2}
    assert [room.room for room in found.top_tunnels] == ["design", "docs"]


def test_an_empty_palace_has_empty_statistics(tmp_path_factory: pytest.TempPathFactory) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("x") / "p", create=True)
    assert Tunnels(ledger, actor="me").stats().total_rooms == 0
    assert Tunnels(ledger, actor="me").find().total == 0
    with ledger.read() as cx:
        assert cx.execute(select(func.count()).select_from(table)).scalar() == 0


@pytest.mark.parametrize("text", ["app", "", "app/", "/docs", "a/b/c", "app/../x"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UsageError):
        parse_spot(text)
