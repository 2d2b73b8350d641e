"""A palace goes over from the built-in model to the one for many languages, with the real weights of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from castle import Castle

pytestmark = pytest.mark.extras

NOTES = {
    "garden.md": "The roses behind the wall are planted in early spring, before the last frost.\n",
    "cellar.md": "The key to the cellar lies under the third stone beside the door.\n",
    "bread.md": "The bakery at the harbour opens at six and sells rye bread on Fridays only.\n",
    "train.md": "The last train to the coast leaves at midnight from platform two.\n",
    "weather.md": "Strong wind is expected in the port tomorrow, boats stay at anchor.\n",
    "vectors.md": "We decided to store the vectors in one file for each room of the house.\n",
}
QUESTIONS = {
    "Wo liegt der Schlüssel zum Keller?": "cellar.md",
    "Где ключ от подвала?": "cellar.md",
    "地下室的钥匙在哪里？": "cellar.md",
    "¿Cuándo sale el último tren a la costa?": "train.md",
    "Wann werden die Rosen gepflanzt?": "garden.md",
    "Завтра в порту ожидается сильный ветер?": "weather.md",
    "面包店几点开门？": "bread.md",
}


def nearest(castle: Castle, question: str) -> str:
    hits = castle.search(question, limit=1, mode="fast").hits
    return Path(hits[0].address.path).name if hits else ""


def answered(castle: Castle) -> int:
    return sum(nearest(castle, question) == name for question, name in QUESTIONS.items())


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for name, text in NOTES.items():
        (tmp_path / "notes" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "notes" / name).write_text(text, encoding="utf-8")
    return tmp_path / "notes"


def test_from_the_built_in_model_to_that_for_many_languages(tmp_path: Path, notes: Path) -> None:
    with Castle(tmp_path / "palace") as castle:
        castle.mine(notes)
        assert castle.status().embedder == "builtin"
        assert nearest(castle, "Where is the key to the cellar?") == "cellar.md"
        before = answered(castle)
        report = castle.reindex(embedder="multilingual", embedder_dim=384)
        assert (report.done.after.name, report.notes) == ("multilingual", ())
        assert answered(castle) == len(QUESTIONS) > before
        assert nearest(castle, "Where is the key to the cellar?") == "cellar.md"
        assert {finding.status for finding in castle.verify()} == {"ok"}
    with Castle(tmp_path / "palace") as castle:
        assert castle.status().embedder == "multilingual"
        assert answered(castle) == len(QUESTIONS)


def test_a_palace_made_with_it(tmp_path: Path, notes: Path) -> None:
    with Castle(tmp_path / "palace", embedder="multilingual") as castle:
        castle.mine(notes)
        assert answered(castle) == len(QUESTIONS)
