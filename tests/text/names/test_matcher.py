from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.text.names.locales import ambiguous_words
from castle.text.names.matcher import Matcher, Name
from castle.text.names.near import nearly
from castle.text.names.scripts import WORD, fold, word_set


def matcher(*names: str, codes: tuple[str, ...] = ("en",), person: bool = True) -> Matcher:
    doubtful = ambiguous_words(codes)
    return Matcher([Name(name.lower(), name, person, fold(name) in doubtful) for name in names], codes)


def found(text: str, *names: str, codes: tuple[str, ...] = ("en",), person: bool = True) -> list[str]:
    return [match.text for match in matcher(*names, codes=codes, person=person).find(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Will said he would come", ["Will"]),
        ("I told Will about it", ["Will"]),
        ("Thanks, Will!", ["Will"]),
        ("Will: I am late", ["Will"]),
        ("Will:\nI am late", []),
        ("on monday Will's car broke", ["Will"]),
        ("yesterday Grace came by", ["Grace"]),
        ("Grace Hopper wrote the compiler", ["Grace"]),
        ("Dr. Rose will see you", ["Rose"]),
        ("I met May yesterday", ["May"]),
        ("May said no", ["May"]),
        ("Will you come", []),
        ("Will the tests pass?", []),
        ("Will Marta come?", []),
        ("It will rain", []),
        ("The Will of the people", []),
        ("by the grace of God", []),
        ("We moved in May", []),
        ("May 5 is fine", []),
        ("May I come in?", []),
        ("since May it works", []),
        ("A Rose is a rose", []),
    ],
)
def test_a_name_that_is_a_word_needs_evidence(text: str, names: list[str]) -> None:
    assert found(text, "Will", "Grace", "Rose", "May") == names


@pytest.mark.parametrize(
    ("code", "text", "names"),
    [
        ("de", "Wolf sagte, er komme.", ["Wolf"]),
        ("de", "Ich war mit Wolf im Kino.", ["Wolf"]),
        ("de", "Der Wolf kam näher.", []),
        ("de", "Dann kam Wolf und Hund.", []),
        ("fr", "Pierre a demandé, puis répondit Pierre", ["Pierre"]),
        ("fr", "une Pierre tombale", []),
        ("es", "Luz dijo que sí. La Luz era clara.", ["Luz"]),
        ("pt-br", "Rosa disse que vem. A Rosa dos ventos.", ["Rosa"]),
        ("it", "Bianca rispose. Viola disse di no.", ["Viola"]),
        ("ru", "Вера сказала, что придёт. Наша Вера крепка.", ["Вера"]),
    ],
)
def test_a_doubtful_name_in_other_languages(code: str, text: str, names: list[str]) -> None:
    assert found(text, "Wolf", "Pierre", "Luz", "Rosa", "Viola", "Вера", codes=(code,)) == names


def test_names_are_whole_words() -> None:
    assert found("Marta, Martas Martan Marta's MARTA", "Marta") == ["Marta", "Marta", "MARTA"]
    assert found("Ann Anna xAnn Ann2 Ann_x", "Ann") == ["Ann", "Ann"]


def test_a_person_of_one_word_is_written_with_a_capital_except_in_queries() -> None:
    names = matcher("Marta", "Marta Ruiz")
    assert [m.text for m in names.find("marta and marta ruiz")] == ["marta ruiz"]
    assert [m.text for m in names.find("what did marta say", any_case=True)] == ["marta"]
    assert [m.text for m in matcher("Will").find("what will happen", any_case=True)] == []


def test_a_longer_name_holds_the_shorter_one() -> None:
    matches = matcher("Marta", "Marta Ruiz").find("I saw Marta Ruiz.")
    assert [(m.entity, m.text) for m in matches] == [("marta ruiz", "Marta Ruiz"), ("marta", "Marta")]


def test_words_of_a_name_stand_together() -> None:
    text = "Marta\nRuiz, Marta-Ruiz, Marta. Ruiz, Marta and Ruiz, Marta  Ruiz"
    assert found(text, "Marta Ruiz") == ["Marta\nRuiz", "Marta-Ruiz", "Marta. Ruiz", "Marta  Ruiz"]
    assert found("the garden_shop, Garden Shop and garden-shops", "garden-shop", person=False) == [
        "garden_shop",
        "Garden Shop",
    ]


def test_accents_and_composition_do_not_count() -> None:
    assert found("Zoe Zoé ZOE\u0301 Zoes", "Zoé") == ["Zoe", "Zoé", "ZOE\u0301"]
    assert found("Артём Артем", "Артём") == ["Артём", "Артем"]


@pytest.mark.parametrize(
    ("name", "written"),
    [("Michael", "Micheal"), ("Catherine", "Cathrine"), ("Hoffmann", "Hoffman"), ("Fatima", "Fatyma")],
)
def test_long_names_are_found_with_a_slip(name: str, written: str) -> None:
    (match,) = matcher(name).find(f"I asked {written} today")
    assert (match.entity, match.text, match.exact) == (name.lower(), written, False)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Martha", "Marta"),
        ("Marta", "Martha"),
        ("Max", "May"),
        ("Iz", "Is"),
        ("Martin", "Martina"),
        ("Andrea", "Andreas"),
        ("Harris", "Parris"),
        ("Michael", "Michelle"),
    ],
)
def test_other_names_are_not_slips(name: str, written: str) -> None:
    assert found(f"I asked {written} today", name) == []


def test_a_known_name_is_nobodys_slip() -> None:
    matches = matcher("Marlene", "Marlena").find("We met Marlena")
    assert [(m.entity, m.exact) for m in matches] == [("marlena", True)]


def test_projects_have_no_slips() -> None:
    assert found("the Lanturn is out", "Lantern", person=False) == []


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("李明", "昨天李明来了，李明亮没有。", ["李明", "李明"]),
        ("アンナ", "アンナさんとアンナカ、ハンナ", ["アンナ"]),
        ("田中", "田中さんは田中先生", ["田中", "田中"]),
        ("김민수", "김민수는 김민수씨가 김민수의원 왕김민수", ["김민수", "김민수"]),
        ("सुनीता", "सुनीता ने कहा, सुनीताराम नहीं", ["सुनीता"]),
        ("Наташа", "Я видел Наташу с Наташей, наташа", ["Наташу", "Наташей"]),
        ("ジョン・スミス", "彼はジョン・スミスです", ["ジョン・スミス"]),
    ],
)
def test_each_script_has_its_word_boundaries(name: str, text: str, names: list[str]) -> None:
    assert found(text, name) == names


def test_a_longer_name_in_han_hides_the_shorter() -> None:
    matches = matcher("李明", "李明亮").find("李明亮来了，李明也来了")
    assert [m.entity for m in matches] == ["李明亮", "李明"]


def test_a_doubtful_name_in_han_needs_a_title_or_a_verb() -> None:
    assert found("高兴地说", "高兴", codes=("zh-cn",)) == []
    assert found("高兴先生来了", "高兴", codes=("zh-cn",)) == ["高兴"]


def test_a_project_named_like_a_word_needs_its_kind_beside_it() -> None:
    assert found("open the `willow` file", "willow", person=False) == ["willow"]
    assert found("the Willow project", "Willow", person=False) == ["Willow"]
    assert found("a willow by the river", "willow", person=False) == []


_TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from("MartaRuizWil '’-_.:\n李明亮アンナ김민수はНаташу\u0301"), st.characters()
    )
)
_NAMES = ("Marta", "Marta Ruiz", "Will", "Michael", "李明", "アンナ", "김민수", "Наташа", "सुनीता", "O'Brien")


@given(_TEXT, st.booleans())
def test_any_text_is_read_and_what_is_found_are_whole_words(text: str, any_case: bool) -> None:
    for match in matcher(*_NAMES).find(text, any_case=any_case):
        assert text[match.start : match.end] == match.text
        if re.search("[A-Za-zА-Яа-я]", match.text):
            words = [word.span() for word in WORD.finditer(text)]
            assert match.start in [start for start, _ in words]
            assert match.end in [end for _, end in words]


@given(st.text(min_size=1, max_size=30))
def test_any_name_is_found_in_itself_or_not_looked_for(name: str) -> None:
    known = Matcher([Name("x", name, True)])
    for match in known.find(f"{name} {name}", any_case=True):
        assert match.entity == "x"


@given(st.text(alphabet="abc", min_size=5, max_size=9), st.text(alphabet="abc", min_size=5, max_size=9))
def test_the_index_of_slips_finds_what_comparing_finds(name: str, written: str) -> None:
    texts = [m.exact for m in Matcher([Name("x", name.capitalize(), True)]).find(written.capitalize())]
    assert texts == ([True] if name == written else [False] if nearly(name, written) else [])


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_quick_way_to_the_words_of_ascii_text_is_right(text: str) -> None:
    assert word_set(text) == set(WORD.findall(text))
