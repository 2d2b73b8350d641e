from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from castle.errors import PalaceError
from castle.store.catchup import catch_up_vectors
from castle.store.palace import Palace
from research.info_theory import __main__ as command
from research.info_theory import corpus, results
from research.info_theory.cache import Cache
from research.info_theory.study import STAGES, Plan, Study
from tests.llm.servers import Reply, said_by_openai, serving
from tests.novelty.test_surprise import Scripted
from tests.store.filer import file

WORDS = "anchor boat crane dock eel ferry gull harbour island jetty kelp lighthouse".split()


@pytest.fixture
def own_palace(palace: Palace) -> Path:
    """A palace with two wings of 90 drawers, and one drawer of a tool."""
    chosen = random.Random(1)
    for wing in ("sea", "land"):
        texts = [" ".join(chosen.choices(WORDS, k=5)) + "\n" for _ in range(90)]
        file(palace.ledger, texts, path=f"{wing}.md", wing=wing)
    file(palace.ledger, ["tool output\n"], path="tool", kind="tool")
    catch_up_vectors(palace)
    palace.close()
    return palace.root


def nothing(text: str) -> None:
    """Take no notice."""


def study(path: Path, tmp_path: Path) -> Study:
    return Study(corpus.own(path), Plan(resamples=20), Cache(tmp_path / "cache"), nothing)


def test_an_own_palace_goes_through_every_stage_and_comes_from_the_cache_again(
    own_palace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = study(own_palace, tmp_path)
    assert set(first.status().values()) == {"1 palaces", "0/1", "not yet"}
    found = first.run()
    assert found["describe"]["strata"] == {"land": 90, "sea": 90}
    assert found["describe"]["B"]["n"] == 170
    assert found["downstream-eval"] is None
    assert found["llm-surprise"]["reason"] == "no model was asked (the command surprise)"
    assert found["fit-decay"]["B"]["sea"]["bins"] == 9
    assert {"A by stratum", "B by stratum"} == set(found["heterogeneity"])
    assert found["correlations"]["A,B"]["n"] == 170
    assert -1 <= found["correlations"]["A,B"]["low"] <= found["correlations"]["A,B"]["rho"]
    for name in ("priors", "recon_residual", "nn_novelty", "units_of"):
        monkeypatch.setattr(f"research.info_theory.study.{name}", None)
    monkeypatch.setattr("research.info_theory.decay.decay", None)
    again = study(own_palace, tmp_path)
    assert json.dumps(again.run()) == json.dumps(found)
    assert set(again.status()) == {"snapshot", *STAGES[1:5], *STAGES[6:]}
    assert again.status()["recon-residual"] == "1/1"


@pytest.mark.parametrize("few", [1, 30])
def test_a_wing_may_be_too_small_for_a_curve_and_a_palace_for_a_study(
    palace: Palace, tmp_path: Path, few: int
) -> None:
    file(palace.ledger, [f"{word} ahoy\n" for word in WORDS[:4]], path="islet.md", wing="islet")
    catch_up_vectors(palace)
    with pytest.raises(PalaceError, match=r"too small to be studied: 0 drawers .* 10 are needed"):
        study(palace.root, tmp_path).run()
    rng = random.Random(1)
    file(palace.ledger, [" ".join(rng.choices(WORDS, k=5)) for _ in range(90)], path="sea.md", wing="sea")
    file(palace.ledger, [" ".join(rng.choices(WORDS, k=5)) for _ in range(few)], path="bay.md", wing="bay")
    catch_up_vectors(palace)
    own = study(palace.root, tmp_path)
    curves = own.run()["fit-decay"]["B"]
    assert curves["islet"] is None
    assert curves["bay"] is None
    assert set(own.plots()["curves"]) == {"bay", "islet", "sea"}


def test_what_a_model_said_is_taken_until_the_drawers_are_others(own_palace: Path, tmp_path: Path) -> None:
    answers = [json.dumps({"score": 1 + n % 10, "reasoning": ""}) for n in range(40)]
    judged = study(own_palace, tmp_path).judge(Scripted(*answers), 40)
    assert len(judged["judged"]["C"]) == 40
    found = study(own_palace, tmp_path).run()
    assert found["llm-surprise"] == judged
    assert found["correlations"]["A,C"]["n"] == 40
    assert study(own_palace, tmp_path).status()["llm-surprise"] == "there"
    opened = Palace(own_palace)
    file(opened.ledger, ["one more\n"], path="more.md", wing="sea")
    catch_up_vectors(opened)
    opened.close()
    told: list[str] = []
    again = Study(corpus.own(own_palace), Plan(resamples=20), Cache(tmp_path / "cache"), told.append).run()
    assert again["llm-surprise"]["judged"] == {}
    assert "A,C" not in again["correlations"]
    assert any("llm-surprise is skipped: other drawers were judged" in line for line in told)


def test_earlier_drawers_are_those_of_the_same_wing(own_palace: Path, tmp_path: Path) -> None:
    table = study(own_palace, tmp_path).table
    assert table.count.tolist() == [*range(90), *range(90)]
    assert table.a[0] == table.a[90] == 1


def test_a_session_without_a_value_has_no_mean(own_palace: Path, tmp_path: Path) -> None:
    made = study(own_palace, tmp_path)
    means = made.session_means(np.where(made.table.stratum == "sea", np.nan, 0.5))
    assert sorted(means[own_palace.name].values(), key=str) == [0.5, pytest.approx(np.nan, nan_ok=True)]


def test_one_command_writes_everything_and_a_second_finds_the_same(
    own_palace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "plan_of", lambda options: Plan(resamples=20))
    where = ["--palace", str(own_palace), "--cache", str(tmp_path / "cache")]
    out = ["--out", str(tmp_path / "out"), "--no-figures"]
    command.main(["run", *where, *out])
    record = results.read(tmp_path / "out")
    assert list(record["datasets"]) == [own_palace.name]
    assert {path.suffix for path in (tmp_path / "out" / "tables").iterdir()} == {".csv", ".tex"}
    assert record["checks"] == []
    command.main(["run", *where, *out, "--check", "--force", "--stage", "correlations"])
    (check,) = results.read(tmp_path / "out")["checks"]
    assert (check["data"], check["without"]) == ([own_palace.name], [own_palace.name])
    assert (check["computed"], check["reused"]) == (1, 6)
    command.main(["run", *where, *out])
    assert len(results.read(tmp_path / "out")["checks"]) == 1
    record["datasets"][own_palace.name]["describe"]["drawers"] = 7
    results.write(record, {}, tmp_path / "out")
    assert results.read(tmp_path / "out")["checks"] == []
    with pytest.raises(SystemExit, match="1 numbers differ"):
        command.main(["run", *where, *out, "--check"])
    assert "describe/drawers: 7 and 180" in capsys.readouterr().out
    command.main(["status", *where])
    assert "recon-residual   1/1" in capsys.readouterr().out
    command.main(["cost-estimate", *where, "--calls", "30"])
    assert "30 calls" in capsys.readouterr().out
    with serving(Reply(said_by_openai('{"score": 4, "reasoning": ""}'))) as server:
        model = ["--provider", "openai-compat", "--model", "m", "--endpoint", server.url]
        command.main(["surprise", *where, "--calls", "12", *model])
    told = capsys.readouterr().out
    assert "C 12 judged, 0 failed" in told
    assert "S 0 judged, 12 failed" in told
    monkeypatch.setattr("research.local_model.missing", lambda: "not installed: xllamacpp")
    with pytest.raises(SystemExit, match="not installed: xllamacpp; or name a model"):
        command.main(["surprise", *where])
    with pytest.raises(SystemExit, match="nothing to study"):
        command.main(["run"])
    with pytest.raises(SystemExit, match="there is no palace"):
        command.main(["pilot", "--palace", str(tmp_path)])


def test_a_pilot_takes_a_twentieth_of_many_palaces_and_the_beginning_of_few(tmp_path: Path) -> None:
    many = corpus.Dataset("own", {f"p{n}": tmp_path for n in range(40)})
    assert len(corpus.pilot(many, 0.05, 1).palaces) == 2
    assert corpus.pilot(many, 0.05, 1) == corpus.pilot(many, 0.05, 1)
    few = corpus.pilot(corpus.Dataset("own", {"p": tmp_path}), 0.05, 1)
    assert (len(few.palaces), few.first) == (1, corpus.LEAST_PILOT)


@pytest.mark.parametrize(
    ("dataset", "session", "expected"),
    [
        ("longmemeval", "answer_1_2", "evidence"),
        ("longmemeval", "ultrachat_9", "UltraChat"),
        ("longmemeval", "sharegpt_x_1", "ShareGPT"),
        ("longmemeval", "0afa6f05_1", "persona"),
        ("locomo", "session_1", "p"),
        ("mine", "session_1", "w"),
    ],
)
def test_strata(dataset: str, session: str, expected: str) -> None:
    assert corpus.stratum(dataset, "p", "w", session) == expected


def test_a_forced_stage_is_made_again_and_once_only(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    assert [Cache(tmp_path).table("s", {"k": 1}, make) for _ in range(2)] == [1, 1]
    forced = Cache(tmp_path, {"s"})
    assert [forced.table("s", {"k": 1}, make) for _ in range(2)] == [2, 2]
    assert Cache(tmp_path).table("s", {"k": 2}, make) == 3
