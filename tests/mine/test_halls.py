import pytest

from castle.config.halls import HALL_KEYWORDS
from castle.mine.halls import hall_for


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
    every = [word for words in HALL_KEYWORDS.values() for word in words]
    assert len(every) == len(set(every))
    assert all(word == word.casefold() for word in every)


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
    ],
)
def test_distinct_whole_words_decide(text: str, hall: str) -> None:
    assert hall_for(text, HALL_KEYWORDS) == hall


def test_other_keywords() -> None:
    assert hall_for("Der Fehler", {"technik": ["fehler"], "rest": []}) == "technik"
    assert hall_for("She asked who I am.", {"identity": ["who i am", "persona"]}) == "identity"
    assert hall_for("मैं हिन्दी बोलता हूँ", {"a": ["हिन्द"], "b": ["हिन्दी"]}) == "b"
    assert hall_for("anything", {}) == "general"
