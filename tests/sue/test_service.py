"""Reviews as ``Castle`` begins them: in a process of their own, and with nothing secret in them."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from castle import Castle, config
from castle.errors import NotFoundError, PalaceBusyError, PalaceError, RefusedError, UsageError
from castle.service.reviewing import Reviewing
from castle.store.reviews import run_folders
from castle.sue.method import Operator, Result
from castle.sue.runs import STATE
from castle.sue.status import Review
from tests.llm.servers import Reply, Request, said_by_ollama, serving
from tests.sue.conftest import Required
from tests.sue.scripted import DECISION, REVIEW, said

NO_WORKER = "castle.sue.processes.start"


def one(found: Review | list[Review]) -> Review:
    assert isinstance(found, Review)
    return found


def in_force(castle: Castle, endpoint: str | None = None) -> None:
    castle.settings = config.load(
        {"palace_path": str(castle.root), **({} if endpoint is None else {"llm_endpoint": endpoint})}
    )


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin runs without a worker."""
    monkeypatch.setattr(NO_WORKER, lambda run: 0)


def test_a_worker_of_its_own_leads_a_review_to_its_report(
    required: Required, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [text if isinstance(text, str) else json.dumps(text) for text in REVIEW]
    with serving(lambda request: Reply(said_by_ollama(answers.pop(0)))) as server:
        monkeypatch.setenv("CASTLE_LLM_ENDPOINT", server.url)
        in_force(required.castle)
        found = required.castle.sue_review(
            [id_[:10] for id_ in required.ids], DECISION, max_turns=14, wait=True
        )
    log = (Path(found.directory) / "worker.log").read_text("utf-8")
    assert (found.status, found.terminal_state, found.why, log) == (
        "completed",
        "RESOLVED",
        "every dimension was examined, and nothing is open",
        "",
    )
    assert (found.drawers, found.external, found.place) == (tuple(required.ids), False, server.url)
    report = required.castle.sue_report(found.id[:8])
    assert report.startswith("# Review of requirements: euthyphro\n")
    assert one(required.castle.sue_status(found.id)) == found
    assert required.castle.sue_status() == [found]


@pytest.mark.skipif(os.name != "posix", reason="sessions and signals of POSIX")
def test_a_worker_that_is_killed_is_told_as_interrupted(
    required: Required, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, over = threading.Event(), threading.Event()

    def answer(request: Request) -> Reply:
        asked.set()
        over.wait(60)
        return Reply(hang_up=True)

    with serving(answer) as server:
        monkeypatch.setenv("CASTLE_LLM_ENDPOINT", server.url)
        in_force(required.castle)
        begun = required.castle.sue_review(required.ids, DECISION)
        assert begun.status in ("queued", "running")
        assert asked.wait(60)
        state = json.loads((Path(begun.directory) / STATE).read_text("utf-8"))
        assert one(required.castle.sue_status(begun.id)).status == "running"
        # A session of its own: the terminal can go.
        assert os.getsid(state["pid"]) == state["pid"] != os.getsid(0)
        os.kill(state["pid"], signal.SIGKILL)
        deadline = time.monotonic() + 30
        while (found := one(required.castle.sue_status(begun.id))).status == "running":
            assert time.monotonic() < deadline
        over.set()
    assert (found.status, found.turns) == ("interrupted", 0)
    assert "has ended without finishing" in found.why
    # It is told, not written: what stands there is what the worker last knew.
    assert json.loads((Path(begun.directory) / STATE).read_text("utf-8"))["status"] == "running"
    with pytest.raises(NotFoundError, match="is interrupted"):
        required.castle.sue_report(begun.id)


@pytest.mark.usefixtures("idle")
def test_no_secret_reaches_a_snapshot_or_a_prompt(required: Required) -> None:
    castle = required.castle
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    id_ = castle.add(f"R4. The token is {secret} for now.\n", wing="billing", room="keys").id
    begun = castle.sue_review([id_], f"Is {secret} to be used?")
    run = Path(begun.directory)
    files = {path.name: path.read_text("utf-8") for path in run.iterdir() if path.is_file()}
    assert {"source-001.txt", "specification.txt", "manifest.json"} <= files.keys()
    assert not any(secret in text for text in files.values())
    assert "R4. The token is «secret:github_token#" in files["source-001.txt"]
    assert begun.decision.startswith("Is «secret:")
    assert json.loads(files["manifest.json"])["sources"][0]["metadata"]["secrets_masked"] == 1


@pytest.mark.usefixtures("idle")
def test_what_cannot_be_reviewed_is_refused_and_leaves_nothing(
    required: Required, monkeypatch: pytest.MonkeyPatch
) -> None:
    castle, (first, second, _) = required.castle, required.ids
    castle.forget(second)
    refused: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (UsageError, "named twice", lambda: castle.sue_review([first, first[:12]], "d")),
        (RefusedError, "castle restore", lambda: castle.sue_review([second], "d")),
        (NotFoundError, "no drawer", lambda: castle.sue_review(["f" * 24], "d")),
        (UsageError, "none of ollama", lambda: castle.sue_review([first], "d", provider="llama")),
        (UsageError, "lens", lambda: castle.sue_review([first], "d", lens="laches")),
        (NotFoundError, "no review", lambda: castle.sue_status("f" * 32)),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
    monkeypatch.setattr("castle.store.reviews._PATIENCE_SECONDS", 0.0)
    lock = castle._palace().lock("purge")
    assert lock.try_acquire()
    with pytest.raises(PalaceBusyError, match="a purge is at work"):
        castle.sue_review([first], "d")
    lock.release()
    monkeypatch.setattr("castle.sue.specification.MOST_BYTES", 100)
    with pytest.raises(UsageError, match="narrow the scope"):
        castle.sue_review([first], "d")
    assert run_folders(castle.root) == []


def test_a_worker_that_cannot_be_started_leaves_a_run_that_says_so(
    required: Required, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(run: Path) -> int:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(NO_WORKER, start)
    with pytest.raises(PalaceError, match="cannot be started"):
        required.castle.sue_review(required.ids, DECISION)
    (found,) = required.castle.sue_status()  # type: ignore[misc]
    assert (found.status, found.why) == ("failed", "its worker cannot be started: Cannot allocate memory")


def test_on_a_full_disk_the_reason_is_told(required: Required, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(NO_WORKER, full)
    monkeypatch.setattr("castle.sue.runs.fail", full)
    with pytest.raises(PalaceError, match="cannot be started: No space left on device"):
        required.castle.sue_review(required.ids, DECISION)
    (found,) = required.castle.sue_status()  # type: ignore[misc]
    assert found.status == "queued"
    ledger = required.castle._palace().ledger
    monkeypatch.setattr(ledger, "unwritable", lambda: "the disk of the palace is full")
    with pytest.raises(RefusedError, match="the disk of the palace is full: no review can be written"):
        required.castle.sue_review(required.ids, DECISION)
    assert len(run_folders(required.castle.root)) == 1


def test_settings_that_lead_elsewhere_by_now_are_not_followed(
    required: Required, monkeypatch: pytest.MonkeyPatch
) -> None:
    from castle.sue.worker import work

    with serving(Reply(said_by_ollama(json.dumps(said(Operator.DEFINE, Result.UNKNOWN))))) as server:
        monkeypatch.setattr(NO_WORKER, lambda run: 0)
        in_force(required.castle)
        begun = required.castle.sue_review(required.ids, DECISION)
        monkeypatch.setenv("CASTLE_LLM_ENDPOINT", server.url)
        assert not work(Path(begun.directory))
        assert server.requests == []
    assert "the settings lead to" in one(required.castle.sue_status(begun.id)).why


def test_it_is_a_part_of_castle() -> None:
    assert issubclass(Castle, Reviewing)
