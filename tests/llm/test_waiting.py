from __future__ import annotations

import pytest

from castle.llm.waiting import RETRY_S, Probes, in_background


def test_work_beside_gives_its_value_or_its_error() -> None:
    assert in_background(lambda: 7).result(60) == 7

    def fails() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_background(fails).result(60)


def test_what_is_there_is_asked_once_and_what_is_missing_again_after_a_while() -> None:
    now = 100.0
    probes = Probes(lambda: now)
    answers: list[str | None] = ["gone", None, "gone again"]
    asked = 0

    def probe() -> str | None:
        nonlocal asked
        asked += 1
        return answers[asked - 1]

    assert probes.ask("a", probe) == "gone"
    now += RETRY_S - 1
    assert probes.ask("a", probe) == "gone"
    assert asked == 1
    now += 1
    assert probes.ask("a", probe) is None
    now += 1_000_000
    assert probes.ask("a", probe) is None
    assert asked == 2
    probes.rest("a", "it fell over")
    assert probes.ask("a", probe) == "it fell over"
    now += RETRY_S
    assert probes.ask("a", probe) == "gone again"
    assert probes.ask("b", lambda: None) is None
