from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.text.words import LONGEST, phrases, words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The quick brown Fox.", "the quick brown fox"),
        ("snake_case", "snake_case snake case"),
        ("camelCase", "camelcase camel case"),
        ("HTTPServer2", "httpserver2 http server 2"),
        ("parseJSON", "parsejson parse json"),
        ("os.path_join", "os.path_join os path_join path join"),
        ("castle/text/words.py", "castle/text/words.py castle text words.py words py"),
        ("a/b", "a/b a b"),
        ("20.04", "20.04 20 04"),
        ("v1.2.3", "v1.2.3 1.2.3 1 2 3"),
        ("E1234", "e1234 1234"),
        ("ERR_FOO-12", "err_foo-12 err_foo err foo 12"),
        ("pre-edit", "pre-edit preedit pre edit"),
        ("2023-05-08", "2023-05-08 2023 05 08"),
        ("memory:safe", "memory:safe memory safe"),
        ("ada@example.com", "ada@example.com ada example.com example com"),
        ("__init__", "__init__ init"),
        ("C++ and C#", "c++ c and c#"),
        ("don't CAN'T", "dont cant"),
        ("Caroline's we're I'll", "caroline we i"),
        ("O'Brien", "o'brien obrien o brien"),
        ('foo AND (bar* OR "baz) NOT ^x', "foo and bar or baz not x"),
    ],
)
def test_latin(text: str, tokens: str) -> None:
    assert words(text) == tokens.split()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("für Müller, naïve Ærø Łódź", "fur muller naive aero lodz"),
        ("Straße STRASSE", "strasse strasse"),
        ("e\u0301te\u0301 x\u0302", "ete x"),
        ("İstanbul", "istanbul"),
        ("don’t l’homme", "dont l'homme lhomme l homme"),
        ("ＡＢＣ ﬁnd", "abc find"),
        ("getÜberName2", "getubername2 get uber name 2"),
        ("йод Ёлка МОСКВА", "йод ёлка москва"),
        ("Άλφα ΣΊΣΥΦΟΣ", "άλφα σίσυφοσ"),
        ("हिन्दी में", "हिन्दी में"),
        ("שלום עולם", "שלום עולם"),
        ("検索エ", "検 検索 索 索エ エ"),
        ("用Python写", "用 python 写"),
        ("서울에서 집", "서 서울 울 울에 에 에서 서 집"),
        ("ｱｲ", "ア アイ イ"),
        ("ครับ", "ครั รับ"),
        ("👍🏽 👍 ✅❤️", "👍 👍 ✅ ❤"),
        ("👨‍👩‍👧🇩🇪🇫🇷", "👨\u200d👩\u200d👧 🇩🇪 🇫🇷"),
    ],
)
def test_other_scripts(text: str, tokens: str) -> None:
    assert words(text) == tokens.split()


@pytest.mark.parametrize(
    "text", ["", " \n", "\x00", "\ud800", "...", "___", "\u0301", "\ufe0f", "🏽" * 3, "'", '"', "-_-"]
)
def test_odd_texts(text: str) -> None:
    assert all(words(text) or [""]) or not words(text)


@pytest.mark.parametrize("letter", ["a", "é", "ж", "1", "\u0e01", "字", "_", "a_", "a.", "aB"])
def test_long_runs_are_bounded_and_not_lost(letter: str) -> None:
    text = letter * 10_000
    tokens = words(text)
    assert all(0 < len(token) <= LONGEST for token in tokens)
    assert bool(tokens) == (letter != "_")
    assert words(f"see {text} there") == ["see", *tokens, "there"]
    assert set(words(text[:-1] + "b")) != set(tokens)


def test_a_phrase_is_a_run_of_tokens() -> None:
    text = words("Set the os.path_join value in HTTPServer2, 東京検索 and Ärger don't stop.")
    for phrase in (
        "set the",
        "os.path_join value in",
        "path_join",
        "京検索",
        "arger don’t stop",
        "in httpserver2"[:2],
    ):
        tokens = words(phrase)
        assert any(text[at : at + len(tokens)] == tokens for at in range(len(text)))


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.text(),
        st.lists(st.sampled_from(list("aB1_-./:'’é字ก\u0301👍🏽\u200d \ud800\x00")), max_size=40).map(
            "".join
        ),
    )
)
def test_tokens_are_bounded_folded_and_the_same_each_time(text: str) -> None:
    tokens = words(text)
    assert tokens == words(text)
    for token in tokens:
        assert 0 < len(token) <= LONGEST
        assert not any(char.isspace() for char in token)
        assert token == unicodedata.normalize("NFKC", token)
        if token.isascii():
            assert token == token.lower()


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_letters_and_digits_are_never_lost(text: str) -> None:
    letters = unicodedata.normalize("NFKC", text).replace(
        "\u02bc", "'"
    )  # an apostrophe, though a letter to Unicode
    assert bool(words(text)) or not any(char.isalnum() for char in letters)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_texts_apart_have_the_tokens_of_both(left: str, right: str) -> None:
    assert words(f"{left} \n {right}") == words(left) + words(right)


@given(st.text(max_size=30))
def test_case_and_form_do_not_matter_to_whole_words(text: str) -> None:
    word = "".join(char for char in text if char.isalpha() and char.isascii())
    assert words(word.upper()) == words(word.lower())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('say "hello world" and "x"', ["hello world", "x"]),
        ("“a b” „c d“ 「検索」『本』 «e f»", ["a b", "c d", "検索", "本", "e f"]),
        ('an unbalanced " here', []),
        ('"" " "', []),
        ("don't 'quote' this", []),
    ],
)
def test_phrases(query: str, expected: list[str]) -> None:
    assert phrases(query) == expected
