from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.errors import ConfigError
from castle.text.names.detect import classify, detect
from castle.text.names.locales import ambiguous_words, canonical, languages, locale, locales


def people(text: str, code: str = "en") -> list[str]:
    return [c.name for c in detect([text], [code]) if c.kind == "person"]


@pytest.mark.parametrize(
    ("code", "text", "names"),
    [
        (
            "en",
            "Marta said she likes it. Then Marta told us about her cat. Hi Marta, how are you?\n"
            "Redis is fast. We use Redis. Redis it is. The Garden. The Garden. The Garden.",
            ["Marta"],
        ),
        (
            "en",
            "Marta Ruiz said yes. Later Marta Ruiz asked him. Dear Marta Ruiz, thank you. "
            "Vincent van Gogh wrote letters. Vincent van Gogh told his brother. Dear Vincent van Gogh!",
            ["Marta Ruiz", "Vincent van Gogh"],
        ),
        (
            "de",
            "Anna sagte, sie kommt. Anna fragte ihn. Hallo Anna! Der Chef sagte nichts. Der Chef fragte "
            "ihn. Der Chef lachte. Die Besprechung war lang. Die Besprechung. Die Besprechung.",
            ["Anna"],
        ),
        ("fr", "Camille dit oui. Camille répondit à sa mère. Bonjour Camille, elle vient.", ["Camille"]),
        ("es", "Lucía dijo que sí. Hola Lucía. Lucía preguntó por su hermano. El Proyecto.", ["Lucía"]),
        ("pt-br", "Olá João! João disse que ele vem. João perguntou da sua casa.", ["João"]),
        ("it", "Ciao Giulia! Giulia disse che lei viene. Giulia rispose a lui.", ["Giulia"]),
        ("ru", "Привет, Наташа! Наташа сказала, что она придёт. Наташа спросила его.", ["Наташа"]),
        (
            "zh-CN",
            "王芳老师今天不来。王芳问：为什么？王芳表示同意。\n王芳：好的。高兴说高兴说高兴说",
            ["王芳"],
        ),
        (
            "ja",
            "田中さんは来ました。田中さんが言った。\n田中：はい。お母さん、お母さん、お母さん。",
            ["田中"],
        ),
        ("ko", "김민수 씨는 왔다. 김민수는 말했다. 김민수 씨가 갔다. 고객님 고객님 고객님이", ["김민수"]),
        ("hi", "सुनीता जी ने कहा। सुनीता ने पूछा। सुनीता जी आईं। उन्होंने कहा।", ["सुनीता"]),
    ],
)
def test_people_are_noticed_in_each_language(code: str, text: str, names: list[str]) -> None:
    assert people(text, code) == names


def test_a_project_is_noticed_by_versions_files_and_what_is_done_with_it() -> None:
    found = detect(["We deployed Lantern today. Lantern v2.1 is out, see Lantern.py for more."])
    assert [(c.name, c.kind) for c in found] == [("Lantern", "project")]
    assert found[0].confidence == 0.99


def test_a_common_word_or_a_technology_is_no_name() -> None:
    text = "Garden work. Garden said. Hi Garden. I like the garden, my garden and every garden. "
    assert detect([text]) == []
    assert detect(["Python said. Hi Python. Python told her. Python asked him."]) == []


def test_what_only_begins_sentences_is_no_name() -> None:
    assert people("Blimey, he did it. Blimey! She won. Blimey, they saw him. " * 5) == []
    assert people("He saw Toby. She fed Toby, and he walked Toby. They like Toby. He left Toby. " * 2) == [
        "Toby"
    ]


def test_two_mentions_are_not_enough() -> None:
    assert detect(["Marta said she likes it. Hi Marta!"]) == []


def test_names_may_be_spread_over_drawers_and_known_ones_are_left_out() -> None:
    texts = ["Marta said she likes it.", "Hi Marta!", "Marta told her story."]
    assert [c.name for c in detect(texts)] == ["Marta"]
    assert detect(texts, known=["marta"]) == []


def test_the_sample_bounds_what_is_scored_and_not_what_is_counted() -> None:
    texts = ["Marta said she likes it. Hi Marta!"] * 50
    (candidate,) = detect(texts, sample=2)
    assert (candidate.count, candidate.kind) == (100, "person")


def test_at_most_fifteen_people_are_returned() -> None:
    names = [f"{a}{b}ra" for a in "BDFGKL" for b in "aeiou"]
    texts = [f"{name} said she knows. {name} told him. Hi {name}!" for name in names]
    assert len([c for c in detect(texts) if c.kind == "person"]) == 15


@pytest.mark.parametrize(
    ("signals", "count", "kind", "confidence"),
    [
        ({"verb": 2, "address": 1}, 3, "person", 0.99),
        ({"pronoun": 5}, 10, "person", 0.99),
        ({"pronoun": 5}, 100, "uncertain", 0.4),
        ({"pronoun": 20}, 20, "person", 0.99),
        ({"pronoun": 20, "inside": 3}, 20, "uncertain", 0.4),
        ({"verb": 1}, 3, "uncertain", 0.4),
        ({"verb": 3, "pronoun": 3, "version": 2}, 9, "uncertain", 0.5),
        ({"verb": 3, "pronoun": 4, "version": 2}, 9, "person", 0.85),
        ({"version": 1, "file": 1}, 3, "project", 0.99),
        ({"action": 9}, 9, "uncertain", 0.5),
        ({}, 5, "uncertain", 0.1),
        ({}, 500, "uncertain", 0.4),
    ],
)
def test_scores(signals: dict[str, int], count: int, kind: str, confidence: float) -> None:
    inside = signals.pop("inside", count)
    found = classify(Counter(signals), count, inside)
    assert found[0] == kind
    assert found[1] == pytest.approx(confidence)


@given(st.lists(st.text(), max_size=3))
def test_any_text_is_read(texts: list[str]) -> None:
    for candidate in detect([*texts, *texts, *texts], languages()):
        assert 0 <= candidate.confidence <= 0.99


@given(
    st.lists(
        st.sampled_from(["Marta", "said", "she", "Hi", "\n", ": ", "van ", "O'", "-", ".", "王芳", "说"])
    )
)
def test_any_mixture_is_read(words: list[str]) -> None:
    text = " ".join(words)
    for candidate in detect([text], languages()):
        assert candidate.name in text


def test_every_language_has_what_its_names_need() -> None:
    assert languages() == ["de", "en", "es", "fr", "hi", "it", "ja", "ko", "pt-br", "ru", "zh-cn"]
    for code in languages():
        words = locale(code)
        assert words.code == code
        assert words.months and words.weekdays and words.stopwords and words.pronouns
        assert len(words.ambiguous) >= 55
        if words.style == "cased":
            assert words.person_verbs and words.greetings and words.honorifics and words.determiners
        else:
            assert words.honorifics_after and words.verbs_after


def test_codes_are_read_as_people_write_them() -> None:
    assert [canonical(code) for code in ("EN", "pt_BR", "pt", "zh", "zh-Hans", "de-AT", "zh-TW")] == [
        "en", "pt-br", "pt-br", "zh-cn", "zh-cn", "de", "zh-cn",
    ]  # fmt: skip
    assert len(locales(["en", "EN", "en-GB"])) == 1
    with pytest.raises(ConfigError, match="entity_languages: there is no data for 'xx', only for de, en"):
        locales(["xx"])


def test_months_and_weekdays_are_doubtful() -> None:
    assert {"may", "friday", "will", "grace", "ray"} <= ambiguous_words(("en",))
    assert "mai" in ambiguous_words(("en", "de"))
