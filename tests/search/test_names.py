"""Which entities a question names, and which it only seems to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.search.names import Named, named_in, one_off
from castle.store.entities import Entities
from castle.store.graph import Graph
from castle.store.palace import Palace


@pytest.fixture
def known(palace: Palace) -> Palace:
    registry = Entities(palace.ledger, actor="test")
    registry.add("Caroline Smith", "person", aliases=["Caro"])
    registry.add("Pat", "person")
    registry.add("Jolene", "person")
    registry.add("May", "person")
    registry.add("Lighthouse", "project")
    registry.add("gpt-41", "topic")
    registry.add("田中", "person")
    graph = Graph(palace.ledger, actor="test")
    graph.add("Lighthouse", "uses", "node.js")
    graph.add("Lighthouse", "status", "done")
    graph.add("Lighthouse", "lies_in", "New South Wales")
    return palace


def named(palace: Palace, text: str) -> dict[str, tuple[str, int]]:
    with palace.ledger.read() as cx:
        return {name.entity: (name.phrase, name.distance) for name in named_in(cx, text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what does caroline smith do", {"caroline_smith": ("caroline smith", 0)}),
        ("Caro's plan", {"caroline_smith": ("Caro", 0)}),
        ("is (Carolin Smith) there?", {"caroline_smith": ("Carolin Smith", 1)}),
        ("Jolen said", {"jolene": ("Jolen", 1)}),
        ("jolenne said", {"jolene": ("jolenne", 1)}),
        ("the lighthous", {"lighthouse": ("lighthous", 1)}),
        ("the cat sat on Pit", {}),
        ("pat the dog", {}),
        ("what did Pat say", {"pat": ("Pat", 0)}),
        ("Kolene", {}),
        ("gpt-42", {}),
        ("gpt-41", {"gpt-41": ("gpt-41", 0)}),
        ("may I ask", {}),
        ("what did May say", {"may": ("May", 0)}),
        ("does it use node.js?", {"node.js": ("node.js", 0)}),
        ("in new south wales", {"new_south_wales": ("new south wales", 0)}),
        ("what have we done", {}),
        ("田中さんは何を言いましたか", {"田中": ("田中", 0)}),
        ("Jolene or Jolen?", {"jolene": ("Jolene", 0)}),
        ("", {}),
    ],
)
def test_names_in_a_question(known: Palace, text: str, expected: dict[str, tuple[str, int]]) -> None:
    assert named(known, text) == expected


def test_names_come_with_all_their_forms_in_the_order_of_the_text(known: Palace) -> None:
    with known.ledger.read() as cx:
        found = named_in(cx, "Did Jolene meet Caro?")
    assert found == [
        Named("jolene", ("Jolene",), "Jolene"),
        Named("caroline_smith", ("Caroline Smith", "Caro"), "Caro"),
    ]


def test_forgotten_and_new_names_are_noticed(known: Palace) -> None:
    registry = Entities(known.ledger, actor="test")
    registry.forget("Jolene")
    assert named(known, "Jolene and Jolen") == {}
    registry.add("Jolene", "person")
    assert named(known, "Jolen") == {"jolene": ("Jolen", 1)}


def test_a_palace_without_names(palace: Palace) -> None:
    assert named(palace, "Caroline") == {}


@given(st.text(max_size=400))
def test_any_text_will_do(text: str) -> None:
    assert not one_off(text, text)
    longer = text + "x"
    assert one_off(longer, text) == one_off(text, longer) == (len(text) > 0)


@pytest.mark.parametrize(
    ("name", "written", "near"),
    [
        ("martin", "martyn", True),
        ("martin", "martn", True),
        ("martin", "martinn", True),
        ("martin", "nartin", False),
        ("martin", "marvyn", False),
        ("martin", "amrtin", False),
        ("py310", "py311", False),
        ("py31", "py311", False),
    ],
)
def test_one_wrong_letter(name: str, written: str, near: bool) -> None:
    assert one_off(name, written) == near
