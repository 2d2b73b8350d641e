from __future__ import annotations

import re
from pathlib import Path

import pytest

from castle.config import keys, load
from castle.config.docs import EXAMPLE, PAGE, example, page

ROOT = Path(__file__).parents[2]
HELP = "run: python -m castle.config.docs"


def test_the_example_is_up_to_date() -> None:
    assert (ROOT / EXAMPLE).read_text(encoding="utf-8") == example(), HELP


def test_the_page_is_up_to_date() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page(text) == text, HELP


def test_a_page_without_a_place_for_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no lines"):
        page("# Configuration\n")


def test_the_example_sets_nothing_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "castle.yaml").write_text(example(), encoding="utf-8")
    assert not load(home=tmp_path, env={}).origins


def test_the_example_without_its_marks_says_the_defaults(tmp_path: Path) -> None:
    text = re.sub(r"^#(?! \S)", "", example(), flags=re.MULTILINE)
    (tmp_path / "castle.yaml").write_text(text, encoding="utf-8")
    settings = load(home=tmp_path, env={"HOME": "/home/somebody"})
    assert set(settings.origins) == set(keys())
    for name, key in keys().items():
        expected = Path("/home/somebody/.castle/palace") if name == "palace_path" else key.default
        assert settings.value(name) == expected
