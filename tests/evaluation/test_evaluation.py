"""Probes, what becomes of them, and what is kept."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import NotFoundError, UsageError
from castle.evaluation import Probe, draw, measure, past
from castle.evaluation.history import FILE_NAME, MOST, keep
from castle.evaluation.topics import TOPICS
from castle.records import SearchResult
from tests.conftest import TurnedClock

SENTENCES = (
    "The harbour master closed the northern gate before the storm reached the old village.",
    "My sister planted seventeen tomato seedlings along the southern wall of her balcony.",
    "We moved the billing service to another region because the latency was far too high.",
    "The ferry company raised its winter prices although fewer passengers travelled there.",
)


@pytest.fixture
def castle(tmp_path: Path, clock: TurnedClock) -> Iterator[Castle]:
    with Castle(tmp_path / "palace", embedder="fake", clock=clock) as opened:
        for number, sentence in enumerate(SENTENCES):
            opened.add(sentence, wing="even" if number % 2 == 0 else "odd", room="notes")
        yield opened


def test_the_same_seed_draws_the_same_probes(castle: Castle) -> None:
    palace = castle._palace()
    first, absent = draw(palace, 10, 42)
    assert draw(palace, 10, 42)[0] == first
    assert list(draw(palace, 10, 42)[1]) == list(absent)
    assert [draw(palace, 10, seed)[0] for seed in range(5)].count(first) < 5
    assert [probe.kind for probe in first] == ["sentence", "words", "sentence", "words"]
    assert len(draw(palace, 2, 42)[0]) == 2


def test_a_probe_lacks_what_is_rarest_in_its_drawer(castle: Castle) -> None:
    listed = {drawer.id: drawer.text for drawer in castle.list_drawers().drawers}
    for probe in draw(castle._palace(), 10, 1)[0]:
        said = set(listed[probe.drawer].lower().rstrip(".").split())
        asked = set(probe.question.lower().replace(".", "").split())
        assert asked < said
        assert len(asked) == 4 if probe.kind == "words" else len(asked) >= len(said) // 2


def test_a_wing_limits_the_probes(castle: Castle) -> None:
    odd = {drawer.id for drawer in castle.list_drawers(wing="odd").drawers}
    assert {probe.drawer for probe in draw(castle._palace(), 10, 1, "odd")[0]} == odd


def test_words_without_spaces_are_asked_by_their_beginning(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.add("港口在星期日关闭因为工人们都要休息。", wing="w", room="r")
        ((probe,), _) = draw(castle._palace(), 5, 1)
        assert probe.question == "港口在星期日关闭因为工人"


def test_secrets_are_in_no_question(tmp_path: Path) -> None:
    key = "AKIA" + "IOSFODNN7" + "EXAMPLE"
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.add(
            f"The deployment account uses {key} for every nightly backup job here.", wing="w", room="r"
        )
        probes, _ = draw(castle._palace(), 5, 1)
        assert probes
        assert not any(word in probe.question for probe in probes for word in (key, "secret", "«"))


def answering(castle: Castle) -> Callable[[str], SearchResult]:
    return lambda question: castle.search(question, mode="fast")


def test_shares_are_counted_over_probes(castle: Castle) -> None:
    first, second = (drawer.id for drawer in castle.list_drawers().drawers[:2])
    probes = [
        Probe("sentence", "harbour master northern gate storm", first),
        Probe("words", "harbour gate", "no such drawer"),
        Probe("words", "tomato seedlings balcony", second),
    ]
    found = measure(
        probes, [Probe("absent", "harpsichord tuning", topic=("harpsichord",))], answering(castle)
    )
    assert (found.probes, found.absent) == (3, 1)
    assert (found.r1, found.r5) == (0.6667, 0.6667)
    assert {part.kind: (part.probes, part.r5) for part in found.parts} == {
        "sentence": (1, 1.0),
        "words": (2, 0.5),
    }
    assert [missed.drawer for missed in found.missed] == ["no such drawer"]


def test_a_topic_that_is_there_is_not_absent(castle: Castle) -> None:
    probes = [Probe("words", "harbour gate", "x"), Probe("words", "tomato", "y")]
    topics = [
        Probe("absent", "when was the ferry company named", topic=("ferry", "company")),
        Probe("absent", "xylophone mallets", topic=("xylophone", "mallets")),
    ]
    assert measure(probes, topics[:1], answering(castle)).absent == 0
    assert measure(probes, topics, answering(castle)).absent == 1


def test_topics_differ() -> None:
    assert len(set(TOPICS)) == len(TOPICS) > 70


def test_numbers_are_kept_and_compared(castle: Castle) -> None:
    first = castle.eval(probes=4, mode="fast")
    assert first.before is None
    assert first.kept.drawers == 4
    assert castle.eval(probes=4, seed=7, mode="fast").before is None
    again = castle.eval(probes=4, mode="fast")
    assert again.before == first.kept
    assert (again.found.r1, again.found.missed) == (first.found.r1, first.found.missed)
    assert [entry.seed for entry in castle.eval_history()] == [42, 7, 42]
    path = castle.root / FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any(word in path.read_text(encoding="utf-8") for word in ("harbour", "tomato"))


def test_a_damaged_line_of_the_history_is_passed_over(castle: Castle) -> None:
    kept = castle.eval(probes=1, mode="fast").kept
    path = castle.root / FILE_NAME
    path.write_bytes(b'{"at": 1}\n\xff\n' + path.read_bytes() + b'{"at"')
    assert past(castle.root) == (kept,)


def test_of_a_long_history_the_oldest_go(castle: Castle) -> None:
    kept = castle.eval(probes=1, mode="fast").kept
    path = castle.root / FILE_NAME
    path.write_bytes(path.read_bytes() * (2 * MOST))
    keep(castle.root, kept)
    assert len(past(castle.root)) == MOST


def test_an_evaluation_changes_no_drawer(castle: Castle) -> None:
    before = castle._palace().ledger.value("seq")
    castle.eval(probes=4, mode="fast")
    assert castle._palace().ledger.value("seq") == before


def test_numbers_that_cannot_be_kept_are_shown(castle: Castle) -> None:
    (castle.root / FILE_NAME).mkdir()
    done = castle.eval(probes=1, mode="fast")
    assert done.found.probes == 1
    assert done.unkept.startswith("the numbers were not kept: ")


def test_nothing_to_ask_is_said(castle: Castle) -> None:
    with pytest.raises(NotFoundError, match="wing nowhere holds no drawer"):
        castle.eval(wing="nowhere")
    with pytest.raises(UsageError, match="probes 0 is not between 1 and 1000"):
        castle.eval(probes=0)


def test_what_is_kept_is_one_line_of_json(castle: Castle) -> None:
    castle.eval(probes=2, mode="fast")
    (line,) = (castle.root / FILE_NAME).read_text(encoding="utf-8").splitlines()
    assert set(json.loads(line)) >= {"at", "version", "r1", "r5", "false_confidence", "drawers"}
