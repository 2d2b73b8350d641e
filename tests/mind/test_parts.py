"""The small parts: feelings by rules, separation of patterns, the index of words, thresholds, leases."""

from __future__ import annotations

import numpy as np
import pytest

from castle.mind.emotion import score
from castle.mind.fusing import Fusion
from castle.mind.separation import dense, project
from castle.mind.thresholds import calibrate, calibrated
from castle.store.mind_edges import activate, add_edge, faded
from castle.store.mind_index import by_words, index, unindex
from castle.store.mind_rows import kind_of, lease, new_id, release
from castle.store.palace import Palace

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("The report has nine pages", 0.0, 0.0),
        ("I love this, it works!", 0.5, 1.0),
        ("not bad!", 0.2, 1.0),
        ("This is NOT good!!", -1.0, -0.4),
        ("URGENT ERROR", -1.0, -0.3),
        ("ALL CAPITALS AND NOTHING ELSE!", 0.0, 0.0),
        ("😡 it broke again 👎", -1.0, -0.5),
        ("das ist kaputt", -1.0, -0.2),
    ],
)
def test_a_text_feels_like_what_it_says(text: str, low: float, high: float) -> None:
    valence, confidence = score(text)
    assert low <= valence <= high
    assert 0.3 <= confidence <= 0.8


@pytest.mark.parametrize(("cosine", "after"), [(0.99, 0.90), (0.93, 0.71), (0.85, 0.56), (0.5, 0.20)])
def test_what_is_near_comes_apart(cosine: float, after: float) -> None:
    drawn = np.random.default_rng(1)
    found = []
    for _ in range(60):
        one, other = drawn.standard_normal((2, 384))
        one /= np.linalg.norm(one)
        other -= (other @ one) * one
        other /= np.linalg.norm(other)
        near = cosine * one + np.sqrt(1 - cosine**2) * other
        pair = [dense(project(vector.astype(np.float32))) for vector in (one, near)]
        found.append(float(pair[0] @ pair[1]))
    assert np.mean(found) == pytest.approx(after, abs=0.04)
    assert len(project(one.astype(np.float32))) == 408


def test_words_are_found_whatever_their_form_and_script(palace: Palace) -> None:
    texts = {"a": "Debugging the ferries", "b": "検索エンジン", "c": "Größere Häuser für alle und die Stadt"}
    with palace.ledger.write() as cx:
        for id_, text in texts.items():
            index(cx, "fact", id_, text)
        for query, wanted in (
            ("ferry", "a"),
            ("debug the", "a"),
            ("検索", "b"),
            ("haus", "c"),
            ("HÄUSER!", "c"),
        ):
            assert [match.id for match in by_words(cx, query, ("fact",), 5)] == [wanted], query
        assert by_words(cx, "- : * \" ' ()", ("fact",), 5) == []
        assert by_words(cx, "ferry", ("procedure",), 5) == []
        index(cx, "fact", "a", "Something else")
        unindex(cx, "fact", "b")
        assert by_words(cx, "ferry 検索", ("fact",), 5) == []


def test_an_edge_fades_when_it_is_not_used_and_activation_takes_the_strongest_way(palace: Palace) -> None:
    assert faded(0.8, 0, 7 * DAY) == 0.8
    assert faded(0.8, 0, 37 * DAY) == pytest.approx(0.8 / np.e)
    with palace.ledger.write() as cx:
        for source, target, weight in (("a", "b", 1.0), ("b", "c", 1.0), ("a", "d", -0.9), ("c", "e", 1.0)):
            add_edge(cx, ("fact", source), ("fact", target), "causes", weight, origin="user", now=0)
        reached = activate(cx, {("fact", "a"): 1.0}, 0)
    assert reached == {("fact", "b"): pytest.approx(0.3), ("fact", "c"): pytest.approx(0.09)}


def test_thresholds_are_those_of_the_embedder(palace: Palace) -> None:
    with palace.ledger.write() as cx:
        assert calibrated(cx, "e/1", 0.65) == 0.65
        calibrate(cx, "e/1", [(0.65, 0.8), (0.95, 0.99)])
        assert calibrated(cx, "e/1", 0.65) == pytest.approx(0.8)
        assert calibrated(cx, "e/1", 0.8) == pytest.approx(0.895)
        assert calibrated(cx, "e/2", 0.8) == 0.8


def test_work_is_one_process_at_a_time(palace: Palace) -> None:
    with palace.ledger.write() as cx:
        assert lease(cx, "consolidate", "a", 10, 0)
        assert not lease(cx, "consolidate", "b", 10, 9_000_000)
        assert lease(cx, "consolidate", "a", 10, 9_000_000)
        assert lease(cx, "consolidate", "b", 10, 20_000_000)
        release(cx, "consolidate", "b")
        assert lease(cx, "consolidate", "c", 10, 20_000_000)


def test_ids_say_what_they_are_of() -> None:
    assert kind_of(new_id("fact")) == "fact"
    assert kind_of(new_id("working")) == "working"
    assert kind_of("fct_12") is None
    assert kind_of("0123456789abcdef") is None


def test_ranks_of_layers_become_one_and_what_is_far_counts_less() -> None:
    fusion = Fusion()
    fusion.add("layer", ("fact", "far"), 1, 0.0, (), 0.1)
    fusion.add("layer", ("procedure", "near"), 1, 0.0, ("a",), 0.9)
    fusion.add("layer", ("working", "old"), 1, 0.0, ("a",), 0.9)
    ranked = fusion.ranked({"old": 0.1}, 1)
    assert [one.key[1] for one in ranked] == ["near", "far", "old"]
    fusion.move(("fact", "far"), ("procedure", "near"))
    assert [one.key[1] for one in fusion.ranked({"old": 0.1}, 1)] == ["near", "old"]
