"""What is too much, or cannot be stored, is refused in one clear line and leaves nothing behind."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from castle.errors import PalaceError, UsageError
from castle.mind import MemorySystem
from castle.mind.mind import Mind
from castle.store.mind_index import embed_missing, waiting
from castle.store.mind_texts import MOST_EMBEDDED
from castle.store.palace import Palace
from tests.cli.conftest import Run, run  # noqa: F401
from tests.mind.conftest import Save


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"field": "a", "operator": "==", "value": "1"}
    for _ in range(depth):
        found = {"not": found}
    return found


def test_a_condition_that_is_nested_too_deep_is_a_usage_error(
    mind: Mind,
    save: Save,
    run: Run,  # noqa: F811
) -> None:
    for depth in (50, 3_000):
        with pytest.raises(UsageError, match="nested"):
            save("The sky is green", "semantic", falsifiable_condition=nested(depth))
        with pytest.raises(UsageError, match="nested"):
            mind.inject_preference("I prefer tea", falsifiable_condition=nested(depth))
    deep = '{"not":' * 3_000 + "{}" + "}" * 3_000
    done = run("memory", "save", "x", "-t", "semantic", "-o", f"falsifiable_condition={deep}")
    assert (done.code, done.err.count("\n"), "nested" in done.err) == (2, 1, True)
    assert mind.recall("sky green").memories == ()


@pytest.mark.parametrize("value", [{1, 2}, b"x", object(), float("nan"), {"a": [float("inf")]}])
def test_metadata_is_what_json_can_hold(tmp_path: Path, value: object) -> None:
    with MemorySystem(tmp_path / "m.db", embedding_model_name="fake", background=False) as ms:
        for kind in ("episodic", "semantic", "procedural", "working"):
            done = ms.save("A text", kind, metadata={"value": value})
            assert done["status"] == "error"
            assert "metadata" in done["error"]
        assert ms.recall("text")["data"] == []
        circle: dict[str, Any] = {}
        circle["self"] = circle
        assert "nested" in ms.save("A text", metadata=circle)["error"]


def test_names_of_sessions_and_tasks_are_bounded(mind: Mind, save: Save) -> None:
    for name in ("session_id", "task_id", "agent"):
        with pytest.raises(UsageError, match=f"{name} has 100,000 characters, 500 are the most"):
            save("A text", **{name: "x" * 100_000})
    with pytest.raises(UsageError, match="a tag has 501"):
        save("A text", tags=["x" * 501])
    assert mind.recall("text").memories == ()
    assert save("A text", session_id="x" * 500).session_id == "x" * 500
    with pytest.raises(UsageError, match="session_id has"):
        mind.session_end("x" * 501)


def test_a_wrong_entry_of_a_seed_file_is_told_with_file_and_number(
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    seeds = tmp_path / "seeds.json"
    seeds.write_text(json.dumps({"seed_knowledge": [{"content": "Oak lasts"}, "Ash burns", 7]}), "utf-8")
    done = run("memory", "seed", str(seeds))
    assert (done.code, done.out) == (3, "1 added, 0 updated, 0 unchanged\n")
    lines = done.err.splitlines()
    assert [line.split(": it is")[0] for line in lines] == [f"{seeds}: entry 2", f"{seeds}: entry 3"]
    seeds.write_text('{"seeds": []}', "utf-8")
    wrong = run("memory", "seed", str(seeds))
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert str(seeds) in wrong.err


def test_the_default_of_confidence_is_said(run: Run, save: Save) -> None:  # noqa: F811
    assert save("Nobody said how sure", "semantic").confidence == 0.0
    assert "0 if not given" in " ".join(run("memory", "save", "--help").out.split())


def test_a_cycle_on_a_palace_that_cannot_be_written_says_so(mind: Mind, save: Save, palace: Palace) -> None:
    save("One thing that happened")
    palace.ledger.read_only = True
    with pytest.raises(PalaceError) as told:
        mind.consolidate()
    assert f"the palace at {palace.root} is read-only" in str(told.value)
    assert "lock" not in str(told.value)
    assert mind.consolidate(dry_run=True)["dry_run"] is True


def lacking(palace: Palace) -> int:
    with palace.ledger.read() as cx:
        return waiting(cx, palace.identity.identity)


class Reading:
    """Counts the characters that an embedder is given at a time."""

    def __init__(self, palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
        embedder = palace.space.embedder
        self.given: list[int] = []
        made = embedder.embed_documents

        def embed(texts: Any) -> Any:
            self.given.append(sum(map(len, texts)))
            return made(texts)

        monkeypatch.setattr(embedder, "embed_documents", embed)


def test_a_large_text_is_embedded_by_its_beginning_when_it_is_saved_and_later(
    mind: Mind, save: Save, palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(palace, monkeypatch)
    text = "\n\n".join(f"Lantern {n} hangs in the harbour of {n * 7}." for n in range(2_000))
    assert save(text, "semantic").content == text
    assert reading.given == [MOST_EMBEDDED]
    embed_missing(palace)
    assert reading.given == [MOST_EMBEDDED, MOST_EMBEDDED]
    assert mind.recall("lantern harbour 1999").memories[0].content == text


def test_a_backlog_is_embedded_in_steps_and_goes_on_where_it_stopped(
    mind: Mind, save: Save, palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        save(f"Fact {number}: " + "the lantern hangs there. " * 400, "working", session_id=str(number))
    told: list[tuple[int, int]] = []
    reading = Reading(palace, monkeypatch)
    first = embed_missing(palace, seconds=0.0, progress=lambda done, total: told.append((done, total)))
    assert (0 < first < 12, lacking(palace), told) == (True, 12 - first, [(first, 12)])
    assert max(reading.given) <= 40_000

    def stopped(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_missing(palace, progress=stopped)
    assert lacking(palace) < 12 - first
    embed_missing(palace)
    assert lacking(palace) == 0


def test_a_replay_says_what_it_did_not_come_to(
    mind: Mind, save: Save, palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ = palace.space.embedder
    for number in range(12):
        save(f"Fact {number}: " + f"the lantern {number} hangs there. " * 400, "semantic")
    monkeypatch.setattr("castle.mind.nearby.embed_missing", partial(embed_missing, limit=2))
    phases: list[tuple[str, int, int]] = []
    told = mind.replay(progress=lambda *at: phases.append(at))
    assert ("embedding", 2, 2) in phases
    assert any("10 memories have no vector yet: the next run goes on" in line for line in told["notes"])
