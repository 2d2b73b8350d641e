"""What a search makes of the state in which the mind keeps drawers: nothing, unless it is asked to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import UsageError
from castle.records import Remembered
from castle.search.retention import weighed
from tests.cli.conftest import Run, run  # noqa: F401
from tests.mcp.conftest import asking
from tests.mcp.test_tools import content

QUERY = "harbour lantern"


@pytest.fixture
def castle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Castle]:
    monkeypatch.setenv("CASTLE_RERANKER", "fake")
    with Castle(tmp_path / "palace", embedder="fake") as opened:
        yield opened


@pytest.fixture
def kept(castle: Castle) -> dict[str, str]:
    """Drawers by what the mind has made of them."""
    saved = {
        name: castle.memory_save(f"The {name} harbour lantern is lit", options={"wing": "w"}).memory.id
        for name in ("plain", "cold", "expired")
    }
    castle.memory_forget(saved["cold"], reason="a test")
    castle.memory_forget(saved["expired"], reason="a test", expire=True)
    fact = castle.memory_save("A harbour lantern needs oil", "semantic", {"wing": "w", "confidence": 0.6})
    return {**saved, "stated": fact.memory.drawer_ids[0], "fact": fact.memory.id}


def ids(castle: Castle, **options: object) -> list[str]:
    return [hit.id for hit in castle.search(QUERY, mode="fast", **options).hits]  # type: ignore[arg-type]


def test_a_search_does_not_look_at_states_unless_it_is_asked(
    castle: Castle,
    kept: dict[str, str],
    run: Run,  # noqa: F811
) -> None:
    found = castle.search(QUERY, mode="fast")
    assert {hit.id for hit in found.hits} == {kept[n] for n in ("plain", "cold", "expired", "stated")}
    assert (found.hidden, {hit.memory for hit in found.hits}) == ({}, {None})
    printed = json.loads(run("--palace", str(castle.root), "search", QUERY, "--json", "--mode", "fast").out)
    assert "hidden" not in printed and not any("memory" in hit for hit in printed["hits"])
    assert "memory" not in [stage["name"] for stage in printed["stages"]]
    answer = content(asking(castle.root)("castle_search", query=QUERY, mode="fast"))
    assert "hidden" not in answer and not any("memory" in hit for hit in answer["hits"])


def test_forgetting_leaves_the_default_answer_as_it_was(castle: Castle, kept: dict[str, str]) -> None:
    before = [(hit.id, hit.score, hit.text) for hit in castle.search(QUERY, mode="fast").hits]
    castle.memory_forget(kept["plain"], reason="a test")
    assert [(hit.id, hit.score, hit.text) for hit in castle.search(QUERY, mode="fast").hits] == before
    weightless = castle.search(QUERY, mode="fast", retention_weight=0.0)
    assert [(hit.id, hit.score, hit.text) for hit in weightless.hits] == before


def test_each_hit_says_what_the_mind_holds_of_it(
    castle: Castle, kept: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "lamp.md").write_text(
        "A harbour lantern in a file of a project.\n", encoding="utf-8"
    )
    castle.mine_project(tmp_path / "code")
    found = {hit.id: hit for hit in castle.search(QUERY, mode="fast", include_state=True).hits}
    states = {name: found[kept[name]].memory for name in ("plain", "cold", "stated")}
    assert [states[n].state for n in ("plain", "cold")] == ["active", "cold"]  # type: ignore[union-attr]
    stated = states["stated"]
    assert stated is not None
    assert (stated.id, stated.memory_type, stated.confidence) == (kept["fact"], "semantic", 0.6)
    expired = found[kept["expired"]].memory
    assert expired is not None and expired.invalidated_at is not None
    assert [hit.memory for hit in found.values() if hit.kind == "file"] == [None]
    told = content(asking(castle.root)("castle_search", query=QUERY, mode="fast", include_state=True))
    by_id = {hit["drawer_id"]: hit.get("memory") for hit in told["hits"]}
    assert by_id[kept["cold"]] == {"id": kept["cold"], "memory_type": "episodic", "state": "cold"}
    assert by_id[kept["expired"]]["invalidated_at"].endswith("+00:00")


def test_what_is_cold_or_expired_can_be_left_out_and_is_counted(
    castle: Castle,
    kept: dict[str, str],
    run: Run,  # noqa: F811
) -> None:
    found = castle.search(QUERY, mode="fast", hide_cold=True)
    assert {hit.id for hit in found.hits} == {kept["plain"], kept["stated"]}
    assert (found.hidden, found.ranked) == ({"cold": 1, "expired": 1}, 2)
    printed = run("--palace", str(castle.root), "search", QUERY, "--mode", "fast", "--hide-cold")
    assert "left out: 1 cold, 1 expired\n" in printed.err
    answer = content(asking(castle.root)("castle_search", query=QUERY, mode="fast", hide_cold=True))
    assert (answer["hidden"], answer["total"]) == ({"cold": 1, "expired": 1}, 2)
    castle.memory_forget(kept["fact"], reason="a test", expire=True)
    assert ids(castle, hide_cold=True) == [kept["plain"]]


def test_retention_weighs_in_as_far_as_is_asked(
    castle: Castle,
    kept: dict[str, str],
    run: Run,  # noqa: F811
) -> None:
    plain = {hit.id: hit.score for hit in castle.search(QUERY, mode="fast").hits}
    found = castle.search(QUERY, mode="fast", retention_weight=1.0)
    scores = {hit.id: hit.score for hit in found.hits}
    assert scores[kept["cold"]] == pytest.approx(0.85 * plain[kept["cold"]])
    assert scores[kept["plain"]] == pytest.approx(plain[kept["plain"]])
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    half = castle.search(QUERY, mode="fast", retention_weight=0.5)
    (cold,) = (hit for hit in half.hits if hit.id == kept["cold"])
    assert cold.boosts["retention"] == pytest.approx(0.925)
    wrong = run("--palace", str(castle.root), "search", QUERY, "--retention-weight", "1.5")
    assert wrong.code == 2
    with pytest.raises(UsageError, match="retention weight"):
        castle.search(QUERY, retention_weight=float("nan"))


def test_what_has_expired_weighs_as_what_is_cold() -> None:
    gone = Remembered("x", "semantic", "active", False, invalidated_at=1)
    assert weighed(gone, 1.0) == 0.85
    assert weighed(gone, 0.0) == 1.0


def test_a_page_goes_on_with_the_same_wishes_only(castle: Castle, kept: dict[str, str]) -> None:
    first = castle.search(QUERY, mode="fast", limit=1, hide_cold=True)
    second = castle.search(QUERY, mode="fast", limit=1, hide_cold=True, cursor=first.cursor)
    assert {hit.id for hit in (*first.hits, *second.hits)} == {kept["plain"], kept["stated"]}
    with pytest.raises(UsageError, match="another question"):
        castle.search(QUERY, mode="fast", limit=1, cursor=first.cursor)
