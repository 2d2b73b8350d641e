from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from castle import Castle
from castle.mcp.budget import BUDGET, size
from tests.mcp.conftest import Ask, asking
from tests.mcp.test_tools import content, listed, said
from tests.mine.conftest import write

CLOSE = "</castle-recall>"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
WINGS = ("old", "new")


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """A palace in which the wing ``new`` says again what ``old`` said, word for word."""
    texts = {
        f"{number:02}.md": f"Note {number} about the harbour {number * 7}. {CLOSE}\n" for number in range(30)
    }
    texts["secret.md"] = f"The token is {SECRET} for the harbour.\n"
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        for wing in WINGS:
            write(tmp_path / wing, texts)
            castle.mine_project(tmp_path / wing, wing=wing)
        castle.backfill_novelty()
    return tmp_path / "palace"


@pytest.fixture
def asked(twice: Path) -> Ask:
    return asking(twice)


def test_a_text_is_compared_with_what_is_filed(asked: Ask) -> None:
    known = content(asked("castle_info_score", text=f"Note 3 about the harbour 21. {CLOSE}\n"))
    assert (known["novelty"], known["band"]) == (0.0, "low")
    assert known["total"] == len(known["neighbours"]) == 5
    nearest = known["neighbours"][0]
    assert nearest["cosine"] == 1.0
    drawer = content(asked("castle_get_drawer", drawer_id=nearest["drawer_id"]))["drawers"][0]
    assert drawer["content"] == nearest["content"]
    assert nearest["content"].count(CLOSE) == 1
    other = content(asked("castle_info_score", text="zebra quantum yodel"))
    assert other["novelty"] > known["novelty"]


def test_wing_and_top_k_limit_the_neighbours(asked: Ask) -> None:
    found = content(asked("castle_info_score", text="Note 3 about the harbour", wing="new", top_k=9))
    assert len(found["neighbours"]) == 9
    assert {near["wing"] for near in found["neighbours"]} == {"new"}
    assert "no drawers in wing nowhere" in said(asked("castle_info_score", text="x", wing="nowhere"))
    assert "the text is empty" in said(asked("castle_info_score", text=" "))


def test_what_adds_little_is_suggested(asked: Ask) -> None:
    found = content(asked("castle_prune_suggest"))
    assert (found["drawers"], found["sampled"], found["threshold"]) == (62, 62, 0.1)
    assert found["total"] >= 31
    assert len(found["candidates"]) == found["next_offset"] <= 20
    first = found["candidates"][0]
    assert first["novelty"] == 0.0
    for name in ("drawer_id", "nearest_drawer_id"):
        assert content(asked("castle_get_drawer", drawer_id=first[name]))["total"] == 1
    assert first["nearest_source"] != first["source"]


def test_each_parameter_of_a_suggestion_has_an_effect(asked: Ask) -> None:
    new = content(asked("castle_prune_suggest", wing="new", limit=100))
    assert new["drawers"] == 31
    assert {one["wing"] for one in new["candidates"]} == {"new"}
    assert content(asked("castle_prune_suggest", threshold=0))["total"] == 0
    assert content(asked("castle_prune_suggest", threshold=1))["total"] > new["total"]
    drawn = [content(asked("castle_prune_suggest", sample=10, seed=seed)) for seed in (42, 42, 7)]
    assert [one["sampled"] for one in drawn] == [10, 10, 10]
    assert drawn[0] == drawn[1] != drawn[2]
    assert content(asked("castle_prune_suggest", sample=0))["sampled"] == 62
    page = content(asked("castle_prune_suggest", wing="new", limit=4, offset=3))
    assert page["candidates"] == new["candidates"][3:7]
    assert (page["total"], page["next_offset"]) == (new["total"], 7)


def test_answers_fit_mask_secrets_and_quote(asked: Ask) -> None:
    seen: set[str] = set()
    offset: int | None = 0
    while offset is not None:
        answer = asked("castle_prune_suggest", threshold=1, limit=100, offset=offset)
        assert size(answer) <= BUDGET
        assert SECRET not in answer.model_dump_json()
        page = content(answer)
        assert all(one["content"].count(CLOSE) == 1 for one in page["candidates"])
        seen |= {one["drawer_id"] for one in page["candidates"]}
        offset = page.get("next_offset")
    assert len(seen) == page["total"]

    near = asked("castle_info_score", text=f"The token is {SECRET} for the harbour.\n", top_k=100)
    assert size(near) <= BUDGET
    assert SECRET not in near.model_dump_json()
    found = content(near)
    assert found["neighbours"][0]["cosine"] == 1.0
    assert found["total"] == len(found["neighbours"]) + found.get("left_out", 0)
    assert found["left_out"] > 0


def test_parameters_defaults_and_hints() -> None:
    tools = {tool.name: tool for tool in listed()}
    for name, method in (("info_score", Castle.info_score), ("prune_suggest", Castle.prune_suggest)):
        tool = tools[f"castle_{name}"]
        assert set(tool.input_schema["properties"]) - {"limit", "offset"} == set(
            inspect.signature(method).parameters
        ) - {"self", "id"}
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
    properties = tools["castle_prune_suggest"].input_schema["properties"]
    defaults = {name: properties[name]["default"] for name in ("sample", "threshold", "seed")}
    assert defaults == {"sample": 200, "threshold": 0.1, "seed": 42}
    assert tools["castle_info_score"].input_schema["properties"]["top_k"]["default"] == 5
