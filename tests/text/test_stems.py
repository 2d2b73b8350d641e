from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.text.stems import languages_of, marked_stems, stems_anywhere
from castle.text.words import words


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Die alten Häuser sind sehr schön und wir haben sie gesehen", ["de"]),
        ("Las canciones que escuchamos con ella son muy bonitas y las cantamos", ["es"]),
        ("Les chevaux du roi sont dans les maisons rouges", ["fr"]),
        ("Le università italiane sono una cosa che mi piace", ["it"]),
        ("As ações da empresa não foram discutidas com uma pessoa", ["pt"]),
        ("The houses of the city were animals and cats", []),
        ("the die was cast in the war", []),
        ("Haus", []),
        ("en la playa que las canciones", ["es", "fr"]),
        ("def main(): return os.path.join(a, b)", []),
        ("", []),
    ],
)
def test_a_language_is_known_by_its_function_words(text: str, codes: list[str]) -> None:
    assert languages_of(words(text)) == codes


@pytest.mark.parametrize(
    ("one", "other", "code"),
    [
        ("Haus", "Häuser", "de"),
        ("Bücher", "Buch", "de"),
        ("canción", "canciones", "es"),
        ("maisons", "maison", "fr"),
        ("chevaux", "cheval", "fr"),
        ("ragazzo", "ragazzi", "it"),
        ("ação", "ações", "pt"),
        ("книга", "книгами", "ru"),
        ("ёлка", "елки", "ru"),
        ("किताब", "किताबें", "hi"),
        ("लड़का", "लड़कों", "hi"),
    ],
)
def test_forms_of_a_word_have_a_stem_in_common(one: str, other: str, code: str) -> None:
    stems = [
        {s for word in words(w) for s in stems_anywhere(word) if s.startswith(f"{code}#")}
        for w in (one, other)
    ]
    assert stems[0] == stems[1] != set()


def test_english_text_and_code_have_none() -> None:
    assert marked_stems(words("The houses of the city were seen by cats, os.path_join v1.2.3 E0425")) == []
    assert stems_anywhere("e0425") == stems_anywhere("os.path") == stems_anywhere("ab") == []
    assert stems_anywhere("検") == []


@given(st.text(max_size=80))
def test_stems_are_marked_and_those_of_a_text_are_found_by_its_words(text: str) -> None:
    tokens = words(text)
    asked = {stem for token in tokens for stem in stems_anywhere(token)}
    for stem in marked_stems(tokens):
        assert stem[:3] in ("de#", "es#", "fr#", "it#", "pt#", "ru#", "hi#")
        assert stem in asked
        assert not any(char.isspace() for char in stem)
