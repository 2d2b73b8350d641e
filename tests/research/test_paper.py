from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from research.info_theory import figures, judging, paper, results, tables
from research.info_theory.relations import SURPRISE_PAIRS

ALLOWED = {"SHA-256"}
_FENCED = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|https?://\S+", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return results.read(results.RESULTS)


@pytest.mark.parametrize("template", paper.TEXTS, ids=lambda path: path.name)
def test_a_text_is_what_its_template_and_the_results_make(template: Path, record: dict[str, Any]) -> None:
    written = paper.TEXTS[template].read_text(encoding="utf-8")
    assert written == paper.render(template.read_text(encoding="utf-8"), record)


@pytest.mark.parametrize("template", paper.TEXTS, ids=lambda path: path.name)
def test_no_number_is_written_into_a_template(template: Path) -> None:
    text = _FENCED.sub("", paper.MARK.sub("", template.read_text(encoding="utf-8")))
    for allowed in ALLOWED:
        text = text.replace(allowed, "")
    assert re.findall(r"\S*\d\S*", text) == []


def test_tables_are_those_of_the_results(record: dict[str, Any]) -> None:
    for name, table in tables.TABLES.items():
        rows = table(record)
        assert len({len(row) for row in rows}) == 1
        with (results.RESULTS / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file)) == rows
        latex = (results.RESULTS / "tables" / f"{name}.tex").read_text(encoding="utf-8")
        assert latex == tables.latex(rows)


def test_the_results_hold_both_question_sets_and_every_test_is_adjusted(record: dict[str, Any]) -> None:
    assert set(record["datasets"]) == {"locomo", "longmemeval"}
    for entry in record["tests"].values():
        assert entry["p"] <= entry["adjusted"] <= 1
        assert entry["stands"] == (entry["adjusted"] <= record["q"])
    assert record["gate"] == record["datasets"]["longmemeval"]["downstream-eval"]["gate"]


def test_every_figure_is_there_in_both_formats_and_small(record: dict[str, Any]) -> None:
    kinds = [*figures._PER_DATA, "surprisal"]
    names = [f"{kind}-{name}" for kind in kinds for name in record["datasets"]] + ["downstream"]
    for name in names:
        for ending in ("png", "svg"):
            path = paper.ROOT / "docs" / "figures" / f"{name}.{ending}"
            assert 2_000 < path.stat().st_size < 300_000


def test_special_characters_in_latex_and_values_in_percent() -> None:
    assert "10 \\% \\& a\\_b" in tables.latex([["x"], ["10 % & a_b"]])
    assert paper.render("{{a/b|%.1f}} and {{a/b}}", {"a": {"b": 0.25}}) == "25.0 and 0.25"
    with pytest.raises(KeyError):
        paper.render("{{a/c}}", {"a": {"b": 1}})


def test_differences_are_found_where_they_are() -> None:
    old = {"a": [1.0, None], "b": {"c": 100.0}}
    assert results.differences(old, {"a": [1.0, None], "b": {"c": 100.00001}}, 1e-6) == []
    assert results.differences(old, {"a": [1.1, None], "b": {}}, 1e-6) == [
        "/a/0: 1.0 and 1.1",
        "/b/c: 100.0 and None",
    ]


def test_only_what_both_runs_have_is_compared(record: dict[str, Any]) -> None:
    both = results.comparable(record, ["locomo", "longmemeval"], ["locomo", "longmemeval"])
    assert set(both["tests"]) == set(record["tests"])
    assert both["gate"] == record["gate"]
    one = results.comparable(record, ["locomo"], [])
    assert set(one["datasets"]) == {"locomo"}
    assert not set(one["datasets"]["locomo"]["correlations"]) & set(SURPRISE_PAIRS)
    assert not any(name.endswith((",C", ",S")) for name in one["tests"])
    assert not one["gate"]["open"]
    assert results.numbers(one) < results.numbers(both)


def test_without_judgements_the_texts_say_so(record: dict[str, Any]) -> None:
    bare = {**record, "checks": [], "datasets": {}}
    for name, found in record["datasets"].items():
        pairs = {pair: one for pair, one in found["correlations"].items() if pair not in SURPRISE_PAIRS}
        none = judging.skipped("no model was asked")
        bare["datasets"][name] = {**found, "correlations": pairs, "llm-surprise": none}
    assert paper.render("{{say:surprise}}", bare).startswith("On locomo not computed, no model was asked.")
    assert len(tables.surprise(bare)) == 1
    assert paper.render("{{say:checks}}", bare) == "None was made on these results yet."


@pytest.mark.extras
def test_figures_are_drawn_from_the_results_alone(record: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = figures.draw(record, results.read(results.RESULTS, "plots.json"), tmp_path)
    assert len(drawn) == 18
    assert all(path.stat().st_size > 2_000 for path in drawn)
