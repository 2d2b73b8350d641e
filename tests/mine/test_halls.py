import pytest

from castle.mine.halls import HALL_KEYWORDS, hall_for


def test_the_halls() -> None:
    assert list(HALL_KEYWORDS) == [
        "emotions",
        "consciousness",
        "memory",
        "technical",
        "identity",
        "family",
        "creative",
    ]
    assert all(8 <= len(set(words)) <= 20 for words in HALL_KEYWORDS.values())


@pytest.mark.parametrize(
    ("text", "hall"),
    [
        ("The server has a bug: the database returns an error.", "technical"),
        ("My mother and my brother came to the wedding.", "family"),
        ("I am so happy and grateful, no longer worried.", "emotions"),
        ("A poem is a song without a melody.", "creative"),
        ("Do you remember? I forgot.", "memory"),
        ("", "general"),
        ("Latest sonic artefact", "general"),
        ("bug bug bug bug. happy, sad", "emotions"),
        (" " * 3000 + "server", "general"),
        ("She asked who I am.", "identity"),
    ],
)
def test_distinct_whole_words_decide(text: str, hall: str) -> None:
    assert hall_for(text) == hall


def test_other_keywords() -> None:
    assert hall_for("Der Fehler", {"technik": ["fehler"], "rest": []}) == "technik"
    assert hall_for("anything", {}) == "general"
