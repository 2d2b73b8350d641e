"""What a search by words finds in many languages and scripts, and by whole and part of identifiers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from castle.records import Scope
from castle.store import lexicon as module
from castle.store.lexicon import Lexicon
from castle.store.projection import Watermark
from tests.store.rows import make_row

TEXTS = {
    "de": "Die alten Häuser in München sind sehr schön und wir haben sie gesehen",
    "es": "Las canciones que escuchamos en la playa son bonitas",
    "fr": "Les chevaux du roi sont dans les maisons rouges",
    "it": "Le università italiane sono una cosa che mi piace e i ragazzi",
    "pt": "As ações da empresa não foram discutidas com uma pessoa",
    "ru": "Мы обсуждали базы данных и новые книги",
    "hi": "लड़कों ने किताबें पढ़ीं",
    "en": "The houses of the city were full of animals, on which one took notes",
    "ja": "東京の天気を検索する",
    "th": "ภาษาไทยไม่มีช่องว่าง",
    "ko": "한국어 문서를 검색했다",
    "zh": "我们昨天决定更换数据库",
    "code": (
        "parse_json_file in castle/text/words.py raised E0425 and ENOENT, then 0x80004005 from "
        "HTTPServerError; see getUserName, node.js, v1.2.3 and C++"
    ),
}
IDS = {make_row(number, name).id: name for number, name in enumerate(TEXTS)}


@pytest.fixture(scope="module")
def lexicon() -> Iterator[Lexicon]:
    made = Lexicon(None)
    rows = [make_row(number, text, title="") for number, text in enumerate(TEXTS.values())]
    made.apply(rows, Watermark("e", len(rows)))
    yield made


def best(lexicon: Lexicon, query: str) -> str | None:
    matches = lexicon.search(query, Scope(), 3)
    return IDS[matches[0].id] if matches else None


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("Haus", "de"), ("Münchens", "de"), ("munchen", "de"),
        ("canción", "es"), ("cancion", "es"), ("escuchar", "es"),
        ("cheval", "fr"), ("maison rouge", "fr"),
        ("ragazzo", "it"), ("universita italiana", "it"),
        ("ação", "pt"), ("empresas", "pt"),
        ("книга", "ru"), ("базе", "ru"),
        ("किताब", "hi"), ("लड़का", "hi"),
        ("house", "en"), ("animal", "en"), ("noted", "en"),
        ("検索", "ja"), ("天気", "ja"), ("ภาษา", "th"), ("문서", "ko"), ("검색", "ko"), ("数据库", "zh"),
    ],
)  # fmt: skip
def test_other_forms_of_a_word_are_found(lexicon: Lexicon, query: str, name: str) -> None:
    assert best(lexicon, query) == name


@pytest.mark.parametrize(
    "query",
    [
        "parse_json_file", "json file", "parseJsonFile", "castle/text/words.py", "words.py", "E0425", "e0425",
        "0425", "ENOENT", "0x80004005", "80004005", "HTTPServerError", "http server", "getusername",
        "user name", "node.js", "v1.2.3", "1.2.3", "C++", '"getUserName"',
    ],
)  # fmt: skip
def test_identifiers_are_found_whole_and_by_part(lexicon: Lexicon, query: str) -> None:
    assert best(lexicon, query) == "code"


def test_a_stem_is_kept_to_the_texts_of_its_language(lexicon: Lexicon) -> None:
    # Spanish would stem "notes" to "not", French "one" to "on".
    assert [IDS[m.id] for m in lexicon.search("not", Scope(), 5)] == []
    assert [IDS[m.id] for m in lexicon.search("hausen", Scope(), 5)] == ["de"]


def test_matched_words_are_those_of_the_query(lexicon: Lexicon) -> None:
    (match,) = lexicon.search("Haus Schlösser München", Scope(), 5)
    assert match.matched == ("haus", "munchen")


def test_a_word_counts_once_by_its_best_term() -> None:
    lexicon = Lexicon(None)
    german = "Der Hafen ist nicht weit und wir haben den docker gesehen"
    rows = [
        make_row(1, german, title=""),
        make_row(2, "docker is not far off, one can see it there", title=""),
    ]
    lexicon.apply(rows, Watermark("e", 2))
    scores = {m.id: m.score for m in lexicon.search("docker", Scope(), 5)}
    assert scores[rows[0].id] <= scores[rows[1].id]


def test_an_index_of_another_format_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("older") / "lexicon"
    Lexicon(place).apply([make_row(1)], Watermark("e", 1))
    assert Lexicon(place).watermark() == Watermark("e", 1)
    monkeypatch.setattr(module, "FORMAT", 0)
    assert Lexicon(place).watermark() is None
