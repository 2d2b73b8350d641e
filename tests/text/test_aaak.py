from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.errors import UsageError
from castle.text.aaak import (
    Dialect,
    Head,
    Line,
    aaak_spec,
    code_map,
    emotion_code,
    estimate_tokens,
    exact_tokens,
    read_line,
    write_line,
)
from castle.text.aaak_words import EMOTIONS, FLAG_SIGNS
from castle.text.zettel import Document, Link, Zettel, parse, write

TEXT = (
    "We decided in the meeting with Maria and Tomas to move the schema to GraphQL, because clients need "
    "fewer calls. The GraphQL schema replaces REST. Tomas deploys it."
)


def test_a_text_becomes_entities_topics_sentence_emotions_and_flags() -> None:
    dialect = Dialect({"Maria": "MAR", "Tomas": "TOM"})
    line = dialect.line(TEXT)
    assert line.entities == ("MAR", "TOM")
    assert line.topics[0] == "graphql"
    assert line.sentence.startswith("We decided in the meeting")
    assert len(line.sentence) <= 55
    assert line.emotions == ("determ",)
    assert line.flags == ("DECISION", "TECHNICAL")
    assert (
        dialect.encode("Tomas chose Postgres")
        == '0:TOM|tomas_postgres_chose|"Tomas chose Postgres"||DECISION'
    )


def test_names_without_a_code_give_their_first_letters_and_the_first_word_is_no_name() -> None:
    assert Dialect().line("Yesterday Alice met Bob and Alice at The Harbour").entities == (
        "ALI",
        "BOB",
        "HAR",
    )
    assert Dialect(skip_names=frozenset({"bob"})).line("met Bob and Eve").entities == ("EVE",)
    assert Dialect().line("nobody at all").entities == ("???",)


def test_names_are_whole_words_in_any_case() -> None:
    dialect = Dialect({"Max": "MAX"})
    assert dialect.line("a maximum is not him").entities == ("???",)
    assert dialect.line("so MAX said").entities == ("MAX",)


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("", ("misc",)),
        ("we did it", ("misc",)),
        ("tea tea tea coffee coffee milk milk milk milk water", ("milk", "tea", "coffee")),
        ("the load_balancer and tea tea", ("load-balancer", "tea")),
    ],
)
def test_topics(text: str, topics: tuple[str, ...]) -> None:
    assert Dialect().line(text).topics == topics


def test_the_head_says_question_mark_for_what_is_not_known() -> None:
    text = Dialect().encode("Some longer text here", Head("myapp", "backend", "2026-05-02", ""))
    assert text.split("\n")[0] == "myapp|backend|2026-05-02|?"
    assert read_line(text)[0] == Head("myapp", "backend", "2026-05-02", "")


def test_a_short_text_is_its_own_key_sentence_and_a_long_one_is_cut() -> None:
    assert Dialect().line("ok").sentence == "ok"
    long = Dialect().line("word " * 60).sentence
    assert long.endswith("…")
    assert len(long) <= 55


@given(st.text())
def test_any_text_has_a_line_that_reads_back_and_is_always_the_same(text: str) -> None:
    dialect = Dialect({"Ann": "ANN"})
    encoded = dialect.encode(text, Head(text, "", text, text))
    assert encoded == Dialect({"Ann": "ANN"}).encode(text, Head(text, "", text, text))
    head, line = read_line(encoded)
    assert head is not None
    assert write_line(line) == encoded.split("\n")[1]
    assert 1 <= len(line.entities) <= 3
    assert len(line.topics) <= 3
    assert len(line.emotions) <= 3
    assert len(line.flags) <= 3
    assert len(line.sentence) <= 55


@pytest.mark.parametrize("text", ["", "nothing", "0:A|b|c", "x\ny\n0:A|b|c|d|e", "a|b\n0:A|b|c|d|e"])
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no AAAK"):
        read_line(text)


def test_a_line_in_pieces() -> None:
    line = Line(("A", "B"), ("x", "y"), "said", ("joy",), ("CORE",))
    assert write_line(line) == '0:A+B|x_y|"said"|joy|CORE'
    assert read_line(write_line(line)) == (None, line)


def test_codes_are_unique_and_do_not_depend_on_the_order() -> None:
    names = ["Mark", "Maria", "Martha", "Bo", "李明", "42"]
    codes = code_map(names)
    assert codes == code_map(reversed(names))
    assert len(set(codes.values())) == len(names)
    assert (codes["Maria"], codes["Mark"], codes["Bo"], codes["李明"]) == ("MAR", "MAR2", "BO", "李明")


def test_codes_of_emotions() -> None:
    assert [emotion_code(name) for name in ("Joy", "anxiety", "anx", "melancholy")] == [
        "joy",
        "anx",
        "anx",
        "mela",
    ]


def test_token_counts() -> None:
    assert estimate_tokens("one two three four") == 5
    assert estimate_tokens("") == 0
    assert exact_tokens("unbelievable stuff") > 0


def test_the_text_for_agents_names_every_code_and_says_that_it_is_lossy() -> None:
    spec = aaak_spec()
    assert "lossy" in spec
    words = set(spec.replace(".", " ").replace(",", " ").split())
    assert set(EMOTIONS.values()) <= words
    assert set(FLAG_SIGNS) | {"SENSITIVE", "GENESIS"} <= words


entry = st.text(min_size=1, max_size=8)
entries = st.lists(entry, max_size=3).map(tuple)
zettels = st.builds(
    Zettel,
    id=entry,
    entities=entries,
    topics=entries,
    quote=st.text(max_size=20),
    weight=st.floats(allow_nan=False),
    emotions=entries,
    flags=entries,
)
documents = st.builds(
    Document,
    number=st.text(max_size=6),
    entities=entries,
    date=st.text(max_size=10),
    title=st.text(max_size=20),
    arc=entries,
    zettels=st.lists(zettels, max_size=4).map(tuple),
    links=st.lists(st.builds(Link, entry, entry, st.text(max_size=9)), max_size=3).map(tuple),
)


@given(documents)
def test_documents_come_back_as_they_were(document: Document) -> None:
    assert parse(write(document)) == document


def test_a_document_looks_as_the_text_for_agents_says() -> None:
    document = Document(
        "7",
        ("ALI", "BOB"),
        "2026-05-02",
        "auth notes",
        ("doubt", "relief"),
        (Zettel("z1", ("ALI",), ("login", "token"), "we keep it", 0.9, ("joy",), ("CORE",)),),
        (Link("z1", "z2", "same cause"),),
    )
    assert write(document).split("\n") == [
        "7|ALI+BOB|2026-05-02|auth notes",
        "ARC:doubt->relief",
        'z1:ALI|login_token|"we keep it"|0.9|joy|CORE',
        "T:z1<->z2|same cause",
    ]


@given(st.text())
def test_reading_any_text_gives_a_document_or_names_the_line(text: str) -> None:
    try:
        document = parse(text)
    except UsageError as error:
        assert "line" in str(error)
    else:
        if not any(math.isnan(zettel.weight) for zettel in document.zettels):
            assert parse(write(document)) == document
