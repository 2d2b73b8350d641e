from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from castle.errors import NotFoundError, UsageError
from castle.store.reviews import MANIFEST, run_folders
from castle.sue.processes import began, runs
from castle.sue.runs import (
    SPECIFICATION,
    STATE,
    TRACE,
    RunError,
    check,
    claim,
    find,
    load,
    write_json,
)
from castle.sue.status import LISTED, QUEUED_SECONDS, SILENT_SECONDS, last, standing
from castle.sue.worker import main, work
from tests.sue.conftest import Required
from tests.sue.scripted import DECISION, REQUIREMENTS, REVIEW, Script, in_time

SECOND = 1_000_000


def state(run: Path, **more: Any) -> None:
    write_json(run / STATE, {**json.loads((run / STATE).read_text("utf-8")), **more})


def now_of(run: Path) -> int:
    return standing(run, 0).created_at


def test_a_run_is_private_and_holds_exact_snapshots(required: Required) -> None:
    run = required.run()
    plan, specification, manifest = load(run)
    assert run == required.castle.root / "sue" / "runs" / run.name
    assert [(run / f"source-00{n}.txt").read_text("utf-8") for n in (1, 2, 3)] == list(REQUIREMENTS)
    assert [source["drawer_id"] for source in manifest["sources"]] == list(required.ids)
    assert (manifest["kind"], manifest["max_provider_attempts"]) == ("derived_requirement_review", 28)
    assert (plan.decision, plan.lens, len(specification.lines)) == (DECISION, "euthyphro", 8)
    for path in (run, run.parent, run.parent.parent, run / "calls"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in run.iterdir():
        assert path.is_dir() or stat.S_IMODE(path.stat().st_mode) == 0o600
    assert standing(run, now_of(run)).status == "queued"


@pytest.mark.parametrize("name", ["source-002.txt", SPECIFICATION, MANIFEST])
def test_what_was_changed_is_not_sent(required: Required, name: str) -> None:
    run = required.run()
    content = (run / name).read_bytes()
    (run / name).write_bytes(content.replace(b"deleted", b"delayed"))
    if name == MANIFEST:
        (run / name).write_bytes(content.replace(b'"byte_start": ', b'"byte_start": 1'))
    script = Script()
    assert not work(run, script)
    assert script.prompts == []
    found = standing(run, now_of(run))
    assert found.status == "failed"
    assert "changed after the review was made" in found.why


def test_a_review_of_three_requirements_from_its_beginning_to_its_report(required: Required) -> None:
    castle = required.castle
    before = {id_: castle.get(id_)[0] for id_ in required.ids}
    counted = castle.status().drawers
    run = required.run()
    script = Script(*REVIEW)
    assert work(run, script)
    assert script.left == 0
    found = standing(run, now_of(run))
    assert (found.status, found.terminal_state, found.turns) == ("completed", "RESOLVED", 12)
    trace = json.loads((run / TRACE).read_text("utf-8"))
    assert (trace["schema"], trace["policy"], len(trace["turns"])) == (2, "2026-09-24", 12)
    assert [call["outcome"] for call in trace["calls"]] == ["rejected", *["accepted"] * 12]
    assert trace["source_links"]["6"]["drawer_id"] == required.ids[1]
    assert trace["source_links"]["6"]["drawer_line"] == 2
    assert sorted(path.name for path in (run / "calls").iterdir())[:3] == [
        "001-1.json",
        "001-2.json",
        "002-1.json",
    ]
    report = (run / "report.md").read_text("utf-8")
    for turn in trace["turns"]:
        for item in turn["evidence"]:
            link = trace["source_links"][str(item["line"])]
            assert f"[line {item['line']}](#{link['drawer_id']})" in report
    for id_ in required.ids:
        assert f"### {id_}\n" in report
    # What was derived is nowhere else: no drawer more, none changed, nothing to be found.
    assert {id_: castle.get(id_)[0] for id_ in required.ids} == before
    assert castle.status().drawers == counted
    assert all(hit.id in required.ids for hit in castle.search("blacked out invoice remembered").hits)


def test_nothing_is_played_twice(required: Required) -> None:
    run = required.run()
    assert claim(run)
    script = Script()
    assert not work(run, script)
    main([str(run)])
    assert script.prompts == []
    assert not (run / TRACE).exists()


def test_a_failure_leaves_what_there_was(required: Required) -> None:
    run = required.run()
    assert not work(run, Script(*REVIEW[:3], in_time(), in_time()))
    found = standing(run, now_of(run))
    assert (found.status, found.turns, found.terminal_state) == ("failed", 2, "")
    assert found.why == "question 3, CAUSE_OR_CRITERION: the model did not answer within 1 s"
    report = Path(found.report).read_text("utf-8")
    assert "**Failed** after 2 of 14 turns" in report
    assert "## Dialogue" in report


def test_an_error_of_its_own_is_told_too(required: Required) -> None:
    run = required.run()
    with pytest.raises(ZeroDivisionError):
        work(run, Script(ZeroDivisionError("oops")))
    assert standing(run, now_of(run)).why == "ZeroDivisionError: oops"


def test_a_run_that_is_purged_meanwhile_is_not_written_again(required: Required) -> None:
    run = required.run()

    def ask(system: str, prompt: str, schema: object) -> str:
        required.castle.purge(required.ids[0], reason="a test")
        return "{}"

    with pytest.raises(FileNotFoundError):
        work(run, ask)
    assert not run.exists()
    with pytest.raises(SystemExit):
        main([str(run)])


def test_what_cannot_be_true_any_more_is_told_as_interrupted(required: Required) -> None:
    run = required.run()
    begun = now_of(run)
    late = begun + int(QUEUED_SECONDS + 2) * SECOND
    assert (standing(run, late).status, standing(run, late).why) == (
        "interrupted",
        "no worker began within 90 s",
    )
    assert claim(run)
    assert standing(run, late).why == "its worker began and wrote nothing within 90 s"
    me = {"status": "running", "pid": os.getpid(), "host": os.uname().nodename}
    state(run, **me, began=began(os.getpid()))
    assert standing(run, begun).status == "running"
    # Its number is given to another process by now.
    state(run, began="1")
    gone = standing(run, begun)
    assert (gone.status, gone.why) == (
        "interrupted",
        f"its worker, process {os.getpid()}, has ended without finishing",
    )
    # All attempts together are over.
    state(run, began=began(os.getpid()))
    late = begun + int(28 * (5 + 15) + 90 + 2) * SECOND
    assert "longer than all its attempts" in standing(run, late).why
    # On another machine only its heartbeat tells.
    state(run, host="elsewhere", began="1")
    assert standing(run, begun + 10 * SECOND).status == "running"
    assert "no sign of life" in standing(run, begun + int(SILENT_SECONDS + 10) * SECOND).why
    # What has ended stays as it ended.
    state(run, status="completed")
    assert standing(run, late).status == "completed"
    (run / STATE).write_text("{", "utf-8")
    with pytest.raises(RunError, match="cannot be read"):
        standing(run, begun)


def test_processes_are_known_by_their_beginning() -> None:
    mine = began(os.getpid())
    assert runs(os.getpid(), mine) is True
    assert runs(os.getpid(), f"{mine}0") is False
    assert runs(os.getpid(), "") is None
    assert began(2**22 + 1) == ""
    assert runs(2**22 + 1, "") is False


def test_runs_are_found_by_their_beginning_and_listed_latest_first(required: Required) -> None:
    root = required.castle.root
    made = [required.run() for _ in range(LISTED + 1)]
    listed = last(root, now_of(made[0]))
    assert [one.id for one in listed] == [run.name for run in reversed(made)][:LISTED]
    assert find(root, made[3].name[:12]) == made[3]
    with pytest.raises(NotFoundError, match="no review"):
        find(root, "f" * 32 if made[3].name[0] != "f" else "0" * 32)
    with pytest.raises(UsageError, match="no id of a review"):
        find(root, "../../x")
    assert len(run_folders(root)) == LISTED + 1
    assert run_folders(root / "nowhere") == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"drawers": []}, "1 to 20 drawers"),
        ({"drawers": ["a", "a"]}, "each once"),
        ({"drawers": [str(n) for n in range(21)]}, "1 to 20 drawers"),
        ({"drawers": ["a" * 513]}, "512 characters"),
        ({"decision": " "}, "1 to 4,000 characters"),
        ({"decision": "x" * 4001}, "1 to 4,000 characters"),
        ({"lens": "laches"}, "none of euthyphro"),
        ({"max_turns": 15}, "from 1 to 14"),
        ({"timeout": 301}, "from 1 to 300"),
    ],
)
def test_what_cannot_be_a_run_is_refused(given: dict[str, Any], reason: str) -> None:
    known: dict[str, Any] = {
        "drawers": ["a"],
        "decision": "d",
        "lens": "meno",
        "max_turns": 7,
        "timeout": 120,
    }
    with pytest.raises(UsageError, match=reason):
        check(**{**known, **given})


def test_a_run_of_another_version_is_not_read(required: Required) -> None:
    run = required.run()
    plan, *_ = load(run)
    assert replace(plan, lens="meno") != plan
    manifest = json.loads((run / MANIFEST).read_text("utf-8"))
    write_json(run / MANIFEST, {**manifest, "schema_version": 2})
    with pytest.raises(RunError, match="another version"):
        load(run)
