"""``castle search`` and ``castle why`` as they are typed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from castle.cli.hits import stages_line
from castle.cli.searching import unknown_place
from castle.records import SearchResult, StageReport
from castle.store.reading import PlaceCount
from tests.cli.conftest import Run
from tests.mine.conftest import FILES, write

Ask = Callable[..., tuple[str, str]]


@pytest.fixture
def ask(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("CASTLE_RERANKER", "fake")
    monkeypatch.setenv("CASTLE_SML_DISABLED", "1")
    project = tmp_path / "shop"
    project.mkdir()
    write(project, FILES)
    assert run("--palace", str(tmp_path / "palace"), "mine", str(project)).code == 0

    def call(*arguments: str, code: int = 0) -> tuple[str, str]:
        outcome = run("--palace", str(tmp_path / "palace"), *arguments)
        assert outcome.code == code, outcome.err
        return outcome.out, outcome.err

    return call


def test_an_answer_says_what_ran_and_what_did_not(ask: Ask) -> None:
    out, err = ask("search", "graphql", "--mode", "standard")
    assert "GraphQL" in out
    ran = r"mode standard: .*fusion, signals, cross-encoder, quality; without judge, soar$"
    assert re.search(ran, err, re.M)
    _, explained = ask("search", "graphql", "--mode", "standard", "--explain")
    assert "; without judge, soar (mode standard)" in explained


def test_what_the_cross_encoder_keeps_is_counted(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "palace" / "tokens.db").write_bytes(b"x" * 5000)
    assert json.loads(ask("status", "--json")[0])["cache_bytes"] == 5000


def test_modes_are_named(ask: Ask) -> None:
    _, err = ask("search", "graphql", "--mode", "faster", code=2)
    assert "fast" in err


def test_the_way_of_a_hit_through_the_stages(ask: Ask) -> None:
    out, _ = ask("search", "graphql", "--explain", "--mode", "standard", "-n", "1")
    for stage in ("dense", "lexical", "fusion", "recency", "cross-encoder", "quality"):
        assert re.search(rf"^{stage} +\d+ +[\d.]+", out, re.MULTILINE), stage
    assert "matched words: graphql" in out


def test_pages(ask: Ask) -> None:
    seen: list[str] = []
    cursor: list[str] = []
    for _ in range(50):
        out, _ = ask("search", "the", "-n", "2", "--json", "--mode", "fast", *cursor)
        found = json.loads(out)
        seen += [hit["id"] for hit in found["hits"]]
        if found["cursor"] is None:
            break
        cursor = ["--cursor", found["cursor"]]
    assert len(seen) == len(set(seen)) == found["ranked"]
    _, err = ask("search", "other", "--cursor", "nonsense", code=2)
    assert "cursor" in err


def test_one_hit_for_a_source(ask: Ask) -> None:
    found = json.loads(ask("search", "the", "--by", "session", "--json")[0])
    sources = [hit["source"] for hit in found["hits"]]
    assert len(sources) == len(set(sources))
    assert found["by"] == "session"


def test_why_a_drawer_is_not_there(ask: Ask) -> None:
    hits = json.loads(ask("search", "graphql", "-n", "50", "--json")[0])["hits"]
    last = hits[-1]["id"]
    out, _ = ask("why", "graphql", "--drawer", last, "-n", "1")
    assert f"{last}: candidate {len(hits)} of {len(hits)}, beyond the limit" in out
    out, _ = ask("why", "graphql", "--drawer", last, "--wing", "nowhere")
    assert "it is outside of what was searched: wing shop" in out
    found = json.loads(ask("why", "graphql", "--drawer", last, "--json")[0])
    assert found["fate"]["rank"] == len(hits)
    _, err = ask("why", "graphql", "--drawer", "ffffffff", code=1)
    assert "no drawer ffffffff" in err


def test_a_time_that_is_none_is_one_line(ask: Ask) -> None:
    _, err = ask("search", "graphql", "--now", "yesterday", code=2)
    assert "now 'yesterday' is no ISO date or time" in err


def test_times_the_wrong_way_round_are_one_line(run: Run, project: Path) -> None:
    run("mine", str(project))
    span = ("--since", "2026-05-02", "--until", "2026-05-01")
    done = run("search", "harbour", *span)
    assert (done.code, done.out) == (2, "")
    assert done.err == "castle: since is not before until: nothing lies between them\n"
    assert run("search", "harbour", "--since", "2026-05-01", "--until", "2026-05-01").code == 0


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [("--kind", "foo", "file, note, diary"), ("--role", "bot", "user, assistant")],
)
def test_an_unknown_kind_or_role_is_refused(run: Run, option: str, value: str, known: str) -> None:
    done = run("search", "oars", option, value)
    assert done.code == 2
    assert f"{option.lstrip('-')} '{value}' is none of {known}" in done.err


def test_what_is_optional_and_absent_is_named_and_explained_only_when_asked(ask: Ask) -> None:
    _, err = ask("search", "graphql", "--mode", "max")
    (line,) = (line for line in err.splitlines() if line.startswith("mode max"))
    assert line.endswith("without judge, soar")
    _, explained = ask("search", "graphql", "--mode", "max", "--explain")
    assert "soar (Soar is switched off by CASTLE_SML_DISABLED)" in explained


def test_an_empty_answer_claims_no_stage_that_had_nothing_to_read(ask: Ask) -> None:
    _, err = ask("search", "graphql", "--mode", "max", "--wing", "nosuch")
    assert "fusion, signals; without cross-encoder, judge, soar, quality" in err


def test_an_empty_palace_lacks_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("mine", str(tmp_path / "empty")).code == 0
    found = run("search", "harbour", "--by", "session")
    assert (found.code, found.out) == (0, "")
    assert "nothing is filed yet: castle mine PATH" in found.err and "degraded" not in found.err


def test_the_blocks_of_a_long_page_are_told_as_one() -> None:
    reports = [StageReport(name, "ran", 0.004, 20) for name in ("lexical", *3 * ["cross-encoder"])]
    reports += 3 * [StageReport("judge", "skipped: it is switched off", 0.0, 20)]
    result = SearchResult("query", (), tuple(reports), 0, (), mode="max")
    assert stages_line(result) == "mode max: lexical, cross-encoder; without judge"
    explained = "mode max, ms: lexical 4 · cross-encoder 12; without judge (it is switched off)"
    assert stages_line(result, explain=True) == explained


def test_an_unknown_place_is_told_with_those_whose_names_are_near() -> None:
    def place(wing: str) -> PlaceCount:
        return PlaceCount(wing, "general", 1, 0, 0)

    few = [place("garden"), place("shop")]
    assert unknown_place(few, "shop") == ""
    assert unknown_place(few, "gardn") == "there is no wing gardn; there are: garden, shop"
    assert unknown_place(few, "shop", "attic") == "there is no room attic; there are: general"
    assert unknown_place([], "shop") == "nothing is filed yet: castle mine PATH"
    many = [place("garden"), *(place(f"x{number:03}") for number in range(50))]
    assert unknown_place(many, "gardn") == "there is no wing gardn; near it are: garden"
    assert unknown_place(many, "ooo").endswith("x018 and 31 more (`castle status`)")
