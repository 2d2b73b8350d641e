"""Drawers of hidden kinds are found by the exact words that a query quotes, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from castle.models.fake import FakeEmbedder
from castle.records import Scope, SearchResult
from castle.search import recall
from castle.search.options import Options
from castle.search.pipeline import search
from castle.store.palace import Palace
from castle.store.places import forget
from tests.store.filer import file

CURRENT = Scope()
USUAL = Options(catch_up_ms=20_000)
NO_CATCH_UP = Options(catch_up_ms=0)


def ask(
    palace: Palace, query: str, scope: Scope = CURRENT, limit: int = 10, options: Options = USUAL
) -> SearchResult:
    return search(palace, query, scope, limit, options)


def found(result: SearchResult) -> dict[str, str]:
    return {hit.text: hit.kind for hit in result.hits}


@pytest.fixture
def talk(palace: Palace) -> Palace:
    """Messages of every kind that all share the words of the phrase."""
    file(palace.ledger, ["we saw that the ships wait at berth nine"], path="m.md", kind="message")
    file(palace.ledger, ["$ ls harbour\nthe ship waits at berth nine\n"], path="t.md", kind="tool")
    file(palace.ledger, ["maybe the ship waits at berth nine or ten"], path="k.md", kind="thinking")
    file(palace.ledger, ["reminder: the ship waits at berth nine"], path="i.md", kind="injected")
    file(palace.ledger, ["subagent: the ship waits at berth nine"], path="s.md", kind="subagent")
    file(palace.ledger, ["the ships waited at berth nine; at berth the ship waits"], path="u.md", kind="tool")
    return palace


def test_quoted_words_find_tool_output_and_thinking(talk: Palace) -> None:
    result = ask(talk, '"the ship waits at berth nine"')
    assert found(result) == {
        "we saw that the ships wait at berth nine": "message",
        "$ ls harbour\nthe ship waits at berth nine\n": "tool",
        "maybe the ship waits at berth nine or ten": "thinking",
    }
    stage = next(report for report in result.stages if report.name == "exact words")
    assert (stage.status, stage.candidates) == ("ran", 2)
    assert result.degraded == ()


def test_without_quotation_marks_they_stay_hidden(talk: Palace) -> None:
    result = ask(talk, "the ship waits at berth nine")
    assert set(found(result).values()) == {"message"}
    assert "exact words" not in {report.name for report in result.stages}


@pytest.mark.parametrize("query", ['"berth nine the ship"', '"ship wait at berth"', 'harbour ""', '"..."'])
def test_words_in_another_order_or_form_are_no_phrase(talk: Palace, query: str) -> None:
    assert "tool" not in found(ask(talk, query)).values()


def test_the_words_beside_the_phrase_do_not_matter(talk: Palace) -> None:
    assert "tool" in found(ask(talk, 'what did "SHIP waits, at berth" mean in march')).values()
    assert "tool" in found(ask(talk, "„ls harbour“ oder “nothing like it”")).values()


def test_a_single_quoted_word_is_a_phrase(palace: Palace) -> None:
    file(palace.ledger, ["error in harbour_master.py: ECONNREFUSED"], kind="tool")
    assert found(ask(palace, '"ECONNREFUSED"')) == {"error in harbour_master.py: ECONNREFUSED": "tool"}
    assert found(ask(palace, '"harbour_master.py"')) != {}
    assert found(ask(palace, "ECONNREFUSED")) == {}


def test_kinds_that_are_asked_for_are_all_there_is(talk: Palace) -> None:
    query = '"the ship waits at berth nine"'
    assert set(found(ask(talk, query, Scope(kinds=("message",)))).values()) == {"message"}
    assert set(found(ask(talk, query, Scope(kinds=("injected",)))).values()) == {"injected"}
    result = ask(talk, query, Scope(kinds=("tool",)))
    assert set(found(result).values()) == {"tool"}
    assert len(result.hits) == 2
    assert "exact words" not in {report.name for report in result.stages}


def test_the_scope_holds_for_them(palace: Palace) -> None:
    text = "the ship waits"
    file(palace.ledger, [f"{text} one"], path="1.md", kind="tool", wing="a", room="x", authored_at=100)
    file(palace.ledger, [f"{text} two"], path="2.md", kind="tool", wing="a", room="y", authored_at=200)
    file(palace.ledger, [f"{text} three"], path="3.md", kind="tool", wing="b", room="x", authored_at=300)
    query = f'"{text}"'
    assert set(found(ask(palace, query))) == {f"{text} one", f"{text} two", f"{text} three"}
    assert set(found(ask(palace, query, Scope(wing="a", room="y")))) == {f"{text} two"}
    assert set(found(ask(palace, query, Scope(since=100, until=200)))) == {f"{text} one"}
    assert set(found(ask(palace, query, Scope(source="file:3.md")))) == {f"{text} three"}
    assert found(ask(palace, query, Scope(role="user"))) == {}
    between = palace.ledger.clock()
    file(palace.ledger, ["gone"], path="1.md", kind="tool", wing="a", room="x", base=1)
    forget(palace.ledger, source="2.md", actor="me")
    assert set(found(ask(palace, query))) == {f"{text} three"}
    assert set(found(ask(palace, query, Scope(history=True)))) == {f"{text} one", f"{text} three"}
    assert set(found(ask(palace, query, Scope(as_of=between)))) == {f"{text} one", f"{text} three"}


def test_equal_texts_are_folded_and_hidden_ones_are_no_copies_of_a_message(palace: Palace) -> None:
    for number in range(3):
        file(palace.ledger, ["the ship waits"], path=f"{number}.md", kind="tool")
    (hit,) = ask(palace, '"ship waits"').hits
    assert len(hit.copies) == 2
    file(palace.ledger, ["the ship waits"], path="injected.md", kind="injected")
    (hit,) = ask(palace, '"ship waits"').hits
    assert len(hit.copies) == 2


def test_what_no_index_holds_is_found_too(palace: Palace) -> None:
    file(palace.ledger, ["an old ship waits"], path="1.md", kind="tool")
    ask(palace, "ship")
    file(palace.ledger, ["a new ship waits"], path="2.md", kind="tool")
    assert len(ask(palace, '"ship waits"', options=NO_CATCH_UP).hits) == 2


def test_hidden_drawers_that_could_not_be_looked_at_are_counted(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "UNPROJECTED_LIMIT", 5)
    file(palace.ledger, [f"ship waits {n}" for n in range(12)], kind="tool")
    result = ask(palace, '"ship waits"', limit=50, options=NO_CATCH_UP)
    assert len(result.hits) == 5
    assert result.behind == 7
    assert any("7 drawers" in reason for reason in result.degraded)


def test_a_damaged_index_leaves_the_ledger(palace: Palace) -> None:
    file(palace.ledger, ["the ship waits"], kind="tool")
    ask(palace, "ship")
    palace.lexicon.close()
    for damaged in Path(palace.root / "lexicon").rglob("*"):
        if damaged.is_file():
            damaged.write_bytes(b"\x00\x01")
    result = ask(palace, '"ship waits"', options=NO_CATCH_UP)
    assert found(result) == {"the ship waits": "tool"}
    assert result.degraded


def test_meaning_alone_brings_no_hidden_drawer(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    file(palace.ledger, ["the ship waits", "nothing at all"], kind="tool")
    asked: list[str] = []
    original = FakeEmbedder.embed_query

    def spy(self: FakeEmbedder, text: str) -> object:
        asked.append(text)
        return original(self, text)

    monkeypatch.setattr(FakeEmbedder, "embed_query", spy)
    (hit,) = ask(palace, '"ship waits"').hits
    assert (hit.stages.keys() & {"dense", "lexical"}, len(asked)) == ({"lexical"}, 1)
