from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from castle.clock import parse_iso
from castle.models.fake import FakeEmbedder
from castle.records import Scope, SearchResult
from castle.search import pipeline, recall
from castle.search.options import Options
from castle.search.pipeline import search
from castle.store import catchup
from castle.store.catchup import catch_up_lexicon, catch_up_vectors
from castle.store.palace import Palace
from castle.store.places import forget, rename_wing
from castle.store.verify import verify
from tests.store.filer import file

CURRENT = Scope()
USUAL = Options(catch_up_ms=20_000)
NO_CATCH_UP = Options(catch_up_ms=0)


def texts(result: SearchResult) -> list[str]:
    return [hit.text for hit in result.hits]


def ask(
    palace: Palace, query: str, scope: Scope = CURRENT, limit: int = 10, options: Options = USUAL
) -> SearchResult:
    return search(palace, query, scope, limit, options)


def test_a_search_reads_its_own_writes(palace: Palace) -> None:
    file(palace.ledger, ["the harbour is closed", "the lighthouse is open"])
    result = ask(palace, "harbour")
    assert texts(result)[0] == "the harbour is closed"
    assert result.degraded == ()
    ran = [report.name for report in result.stages if report.status == "ran"]
    assert ran == [
        "opening",
        "catch-up",
        "question",
        "dense",
        "lexical",
        "graph",
        "fusion",
        "signals",
        "recency",
        "quality",
    ]
    assert {"dense", "lexical", "fusion"} <= set(result.hits[0].stages)


def test_what_no_index_holds_is_matched_in_the_ledger(palace: Palace) -> None:
    file(palace.ledger, ["an old harbour"], path="old.md")
    catch_up_lexicon(palace)
    catch_up_vectors(palace)
    file(palace.ledger, ["a new harbour"], path="new.md")
    result = ask(palace, "harbour", options=NO_CATCH_UP)
    assert sorted(texts(result)) == ["a new harbour", "an old harbour"]
    assert any("no vector" in reason for reason in result.degraded)
    assert result.behind == 0


def test_what_another_process_makes_for_the_first_time_needs_no_repair(palace: Palace) -> None:
    file(palace.ledger, ["a new harbour"])
    locks = [palace.lock(name) for name in (palace.lexicon.name, palace.vectors.name)]
    assert all(lock.try_acquire() for lock in locks)
    result = ask(palace, "harbour")
    assert texts(result) == ["a new harbour"]
    assert not any("repair" in reason for reason in result.degraded)
    assert any("no vector" in reason for reason in result.degraded)
    for lock in locks:
        lock.release()
    result = ask(palace, "harbour", options=NO_CATCH_UP)
    assert any("castle repair" in reason for reason in result.degraded)


def test_more_than_can_be_matched_in_the_ledger_is_counted(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "UNPROJECTED_LIMIT", 5)
    file(palace.ledger, [f"harbour {n}" for n in range(12)])
    result = ask(palace, "harbour", limit=50, options=NO_CATCH_UP)
    assert len(result.hits) == 5
    assert result.behind == 7
    assert any("7 drawers" in reason for reason in result.degraded)


def test_the_scope_is_applied_before_the_limit(palace: Palace) -> None:
    for n in range(120):
        file(palace.ledger, [f"harbour harbour harbour {n}"], path=f"{n}.md", wing="loud")
    file(palace.ledger, ["one harbour among many other words and things"], path="q.md", wing="quiet")
    assert texts(ask(palace, "harbour", Scope(wing="quiet"), 3)) == [
        "one harbour among many other words and things"
    ]


def test_every_part_of_the_scope_counts(palace: Palace) -> None:
    file(palace.ledger, ["harbour one"], path="1.md", wing="a", room="x", authored_at=100)
    file(palace.ledger, ["harbour two"], path="2.md", wing="a", room="y", authored_at=200)
    file(palace.ledger, ["harbour three"], path="3.md", wing="b", room="x", authored_at=300, kind="tool")
    assert texts(ask(palace, "harbour", Scope(wing="a", room="y"))) == ["harbour two"]
    assert texts(ask(palace, "harbour", Scope(since=100, until=200))) == ["harbour one"]
    assert texts(ask(palace, "harbour", Scope(source="file:2.md"))) == ["harbour two"]
    assert texts(ask(palace, "harbour", Scope(kinds=("tool",)))) == ["harbour three"]
    assert sorted(texts(ask(palace, "harbour"))) == ["harbour one", "harbour two"]
    assert texts(ask(palace, "harbour", Scope(role="user"))) == []


def test_a_question_for_nothing_but_a_day_goes_by_the_day(palace: Palace) -> None:
    noon = parse_iso("2026-05-09T12:00:00")
    file(palace.ledger, ["the ferry leaves at nine"], path="9.md", authored_at=noon)
    for n in range(12):
        at = noon + (n + 3) * 86_400_000_000
        file(palace.ledger, [f"what did we talk about on and on, {n}"], path=f"{n + 12}.md", authored_at=at)
    for query in ("what did we talk about on 9 May", "what happened on 9 May", "9 May", "was war am 9. Mai"):
        result = ask(palace, query, limit=3, options=replace(USUAL, now=noon + 30 * 86_400_000_000))
        assert result.hits[0].text == "the ferry leaves at nine", query


def test_superseded_drawers_are_hidden_and_come_back_on_request(palace: Palace) -> None:
    file(palace.ledger, ["harbour fee is 5 crowns"])
    between = palace.ledger.clock()
    file(palace.ledger, ["harbour fee is 9 crowns"], base=1)
    assert texts(ask(palace, "harbour fee")) == ["harbour fee is 9 crowns"]
    history = ask(palace, "harbour fee", Scope(history=True))
    assert {hit.text: hit.state for hit in history.hits} == {
        "harbour fee is 5 crowns": "superseded",
        "harbour fee is 9 crowns": "current",
    }
    assert texts(ask(palace, "harbour fee", Scope(as_of=between))) == ["harbour fee is 5 crowns"]


def test_equal_texts_are_one_hit_with_its_copies(palace: Palace) -> None:
    for n in range(4):
        file(palace.ledger, ["the harbour is closed", f"other {n}"], path=f"{n}.md")
    hits = ask(palace, "harbour closed").hits
    assert [len(hit.copies) for hit in hits if hit.text == "the harbour is closed"] == [3]
    assert hits[0].id not in hits[0].copies


def test_what_was_just_forgotten_or_moved_is_so_before_any_index_knows(palace: Palace) -> None:
    file(palace.ledger, ["harbour one"], path="1.md", wing="old")
    file(palace.ledger, ["harbour two"], path="2.md", wing="other")
    ask(palace, "harbour")
    forget(palace.ledger, source="2.md", actor="me")
    rename_wing(palace.ledger, "old", "new")
    assert texts(ask(palace, "harbour", options=NO_CATCH_UP)) == ["harbour one"]
    assert texts(ask(palace, "harbour", Scope(wing="old"), options=NO_CATCH_UP)) == []
    assert texts(ask(palace, "harbour", Scope(wing="new"), options=NO_CATCH_UP)) == ["harbour one"]


def test_without_its_embedder_a_search_answers_from_words(tmp_path: Path, palace: Palace) -> None:
    file(palace.ledger, ["the harbour is closed"])
    other = Palace(palace.root, embedder="builtin")
    result = ask(other, "harbour")
    assert texts(result) == ["the harbour is closed"]
    assert any("castle config set embedder_model fake" in reason for reason in result.degraded)
    other.close()


def test_a_damaged_index_degrades_a_search_and_never_fails_it(palace: Palace) -> None:
    file(palace.ledger, ["the harbour is closed"])
    ask(palace, "harbour")
    palace.lexicon.close()
    palace.vectors.close()
    for directory in (palace.root / "lexicon", palace.vectors.directory):
        for damaged in directory.rglob("*"):
            if damaged.is_file():
                damaged.write_bytes(b"\x00\x01")
    result = ask(palace, "harbour", options=NO_CATCH_UP)
    assert texts(result) == ["the harbour is closed"]
    assert result.degraded
    mended = ask(palace, "harbour")
    assert texts(mended) == ["the harbour is closed"]


def test_vectors_of_a_rebuilt_table_are_those_of_the_first(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(palace.ledger, [f"harbour number {n}" for n in range(50)])
    catch_up_vectors(palace)
    ids = [hit.id for hit in ask(palace, "harbour number 7", limit=50).hits]
    before = palace.vectors.vectors_of(ids)
    palace.vectors.reset()
    monkeypatch.setattr(FakeEmbedder, "embed_documents", None)
    catch_up_vectors(palace)
    after = palace.vectors.vectors_of(ids)
    assert {id_: vector.tobytes() for id_, vector in before.items()} == {
        id_: vector.tobytes() for id_, vector in after.items()
    }


def test_an_index_of_another_time_is_built_again(palace: Palace) -> None:
    file(palace.ledger, ["the harbour is closed"])
    ask(palace, "harbour")
    with palace.ledger.write() as cx:
        cx.exec_driver_sql("UPDATE meta SET value = 'another' WHERE key = 'epoch'")
    assert catchup.behind(palace, palace.lexicon) == 1
    assert texts(ask(palace, "harbour")) == ["the harbour is closed"]
    assert catchup.behind(palace, palace.lexicon) == 0
    mark = palace.lexicon.watermark()
    assert mark is not None
    assert mark.epoch.startswith("another:")


def test_an_older_ledger_that_was_put_back_and_written_again_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "p"
    first = Palace(root, create=True, embedder="fake")
    file(first.ledger, ["apples one", "apples two"], path="a.md")
    ask(first, "apples")
    first.close()
    older = (root / "castle.db").read_bytes()
    second = Palace(root)
    file(second.ledger, ["bananas one", "bananas two"], path="b.md")
    ask(second, "bananas")
    second.close()
    (root / "castle.db").write_bytes(older)
    third = Palace(root)
    file(third.ledger, ["cherries one", "cherries two", "cherries three"], path="c.md")
    result = ask(third, "cherries one")
    assert texts(result)[0] == "cherries one"
    assert not any("bananas" in text for text in texts(result))
    assert {finding.status for finding in verify(third)} == {"ok"}
    third.close()


def test_both_ways_of_fusing_can_be_chosen(palace: Palace) -> None:
    file(palace.ledger, ["harbour one", "harbour two", "nothing"])
    by_rank = ask(palace, "harbour one", options=Options(fusion="rrf", catch_up_ms=20_000)).hits[0]
    by_score = ask(palace, "harbour one").hits[0]
    assert 1 / 61 < by_rank.stages["fusion"].score <= 2 / 61
    assert 0.5 < by_score.stages["fusion"].score <= 1.0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_any_text_is_a_legal_query(palace: Palace, query: str) -> None:
    if palace.ledger.head() == 0:
        file(palace.ledger, ["the harbour is closed"])
    assert len(ask(palace, query).hits) <= 1


@pytest.mark.parametrize(
    "query",
    [
        "foo AND",
        '"unbalanced',
        "a/b:c*?~^",
        "NOT (",
        "\x00\x01\x1b[31m",
        "x" * 10_000,
        "\ud800",
        "' OR 1=1 --",
    ],
)
def test_hostile_queries_are_words_like_others(palace: Palace, query: str) -> None:
    file(palace.ledger, ["the harbour is closed"])
    ask(palace, query)
    assert pipeline.search(palace, query, Scope(wing=query), 5, USUAL).hits == ()
