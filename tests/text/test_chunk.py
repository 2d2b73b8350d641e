from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.records import Chunk
from castle.text.chunk import Chunker, chunks
from castle.text.secrets import find_secrets
from castle.text.served import served_text
from castle.text.wordpiece import count_many
from tests.text import samples

SALT = b"salt"
NAMES = ("a.txt", "a.md", "a.py", "a.rst", "a.js", "a.rb", "a.toml", "a.log", "README")


def cut(text: str, name: str = "a.md", *, max_chars: int = 800, max_tokens: int = 222) -> list[Chunk]:
    return list(
        chunks([text], name=name, salt=SALT, count=samples.count, max_chars=max_chars, max_tokens=max_tokens)
    )


def texts(text: str, name: str) -> list[str]:
    return [chunk.text for chunk in cut(text, name)]


_SIGNS = list("  \t\n\n\n\r.!?#=-`@(){}:;,aAbB0_\"'/*")
_SIGNS += [
    "\r\n",
    "。",
    "\u0301",
    "\u200d",
    "👍",
    "🏽",
    "🇩",
    "字",
    "한",
    "é",
    "\u2028",
    "\ud83d",
    "\ude00",
    "\x00",
]
anything = st.lists(st.one_of(st.sampled_from(_SIGNS), st.characters()), max_size=600).map("".join)
lines = st.lists(
    st.sampled_from(
        [
            "# One",
            "## Two",
            "Title",
            "=====",
            "---",
            "def a():",
            "class B:",
            "    def c(self):",
            "@d",
            "# note",
            "```",
            "",
        ]
        + [
            "function f() {",
            "}",
            "/* note */",
            "text of some length. And more of it!",
            "a" * 90,
            "x = 1",
            "    y = 2",
        ]
    ),
    max_size=60,
).flatmap(lambda rows: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda end: end.join(rows)))


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(anything, lines),
    st.sampled_from(NAMES),
    st.integers(2, 60),
    st.integers(1, 30),
)
def test_the_chunks_are_the_text(text: str, name: str, max_chars: int, max_tokens: int) -> None:
    found = cut(text, name, max_chars=max_chars, max_tokens=max_tokens)
    assert "".join(chunk.text for chunk in found) == text
    at = 0
    for chunk in found:
        assert chunk.text
        assert len(chunk.text) <= max_chars
        assert len(chunk.text) == 1 or chunk.text == "\r\n" or samples.count([chunk.text])[0] <= max_tokens
        assert (chunk.start, chunk.end) == (at, at + len(chunk.text))
        assert chunk.first_line == text.count("\n", 0, chunk.start) + 1
        assert chunk.last_line == text.count("\n", 0, chunk.end - 1) + 1
        assert not (chunk.text.endswith("\r") and text[chunk.end : chunk.end + 1] == "\n")
        assert len(chunk.headings) <= 4
        assert all(len(heading) <= 80 for heading in chunk.headings)
        assert samples.count([" › ".join(chunk.headings)])[0] <= 30
        at = chunk.end


@settings(max_examples=200, deadline=None)
@given(st.one_of(anything, lines), st.sampled_from(NAMES), st.randoms(use_true_random=False))
def test_how_the_text_arrives_does_not_matter(text: str, name: str, draw: random.Random) -> None:
    def small(parts: Sequence[str]) -> list[Chunk]:
        return list(chunks(parts, name=name, salt=SALT, count=samples.count, max_chars=40, max_tokens=12))

    assert small([text]) == small(list(samples.blocks(text, draw))) == small(list(text))


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.py"])
@pytest.mark.parametrize("seed", [1, 2])
def test_how_a_large_text_arrives_does_not_matter(name: str, seed: int) -> None:
    draw = random.Random(seed)
    paragraph = " ".join(samples.sentence(draw) for _ in range(400))
    run = "".join(draw.choice("abcdef0123456789") for _ in range(70_000))
    text = samples.document(draw, 60_000) + paragraph + "\n" + run + "\r\n" + samples.module(draw, 60) + run
    whole = cut(text, name)
    parts = list(chunks(samples.blocks(text, draw), name=name, salt=SALT, count=samples.count))
    assert parts == whole
    assert "".join(chunk.text for chunk in whole) == text


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "\n" * 300_000,
        "\r\n" * 150_000,
        "\r" * 100_000,
        " " * 300_000,
        "a\n" * 50_000,
        "word " * 60_000,
        "e" + "\u0301" * 100_000,
        "字" * 100_000,
        "🇩🇪" * 30_000,
        "- " * 100_000,
        "#" * 100_000,
        "# \n" * 30_000,
        "```\n" * 30_000,
        "@a\n" * 30_000 + "def f(): pass\n",
        ("word and more words here, " * 480)[:12_000] + "\n\n",
        "." * 100_000,
        ". " * 100_000,
    ],
    ids=lambda text: repr(text[:8]),
)
@pytest.mark.parametrize("name", ["a.md", "a.py"])
def test_odd_texts_are_cut_within_the_limits(text: str, name: str) -> None:
    calls: list[int] = []

    def counted(parts: Sequence[str]) -> list[int]:
        calls.append(sum(map(len, parts)))
        return samples.count(parts)

    found = list(chunks([text], name=name, salt=SALT, count=counted))
    assert "".join(chunk.text for chunk in found) == text
    assert all(len(chunk.text) <= 800 and samples.count([chunk.text])[0] <= 222 for chunk in found)
    assert sum(calls) <= 8 * len(text) + 1_000
    assert all(len(chunk.text) >= 100 for chunk in found[:-1])


def kept(before: str, after: str, name: str) -> float:
    """The share of the chunks of the first text that the second has too."""
    old, new = Counter(texts(before, name)), Counter(texts(after, name))
    return (old & new).total() / old.total()


def document(draw: random.Random) -> str:
    return samples.document(draw, 200_000)


def log(draw: random.Random) -> str:
    return samples.log(draw, 5_000)


def module(draw: random.Random) -> str:
    return samples.module(draw, 400)


def one_line(draw: random.Random) -> str:
    return " ".join(samples.sentence(draw) for _ in range(2_500))


def unbroken(draw: random.Random) -> str:
    return "".join(draw.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(200_000))


def wrapped(draw: random.Random) -> str:
    return "".join(samples.sentence(draw) + "\n" for _ in range(2_500))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (document, "a.md"),
        (log, "a.log"),
        (module, "a.py"),
        (one_line, "a.txt"),
        (unbroken, "a.txt"),
        (wrapped, "a.txt"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("place", [0.01, 0.5, 0.9])
def test_an_insertion_changes_few_chunks(
    make: Callable[[random.Random], str], name: str, seed: int, place: float
) -> None:
    draw = random.Random(seed)
    text = make(draw)
    at = text.index("\n", int(len(text) * place)) + 1 if "\n" in text else int(len(text) * place)
    inserted = samples.log(draw, 1) if name == "a.log" else samples.paragraph(draw)
    assert kept(text, text[:at] + inserted + text[at:], name) >= 0.9
    assert kept(text, text[:at] + text[at + 700 :], name) >= 0.9


def test_appending_changes_the_last_chunks_only() -> None:
    text = samples.log(random.Random(1), 1_000)
    old, new = texts(text, "a.log"), texts(text + samples.log(random.Random(2), 50), "a.log")
    assert new[: len(old) - 3] == old[:-3]


def test_a_section_begins_a_chunk_and_keeps_its_heading() -> None:
    body = "Some words about it. " * 20
    text = f"# Guide\n\n{body}\n\n## Install\n\n{body}\n\n## Use\n\n{body}\n"
    found = cut(text)
    assert [chunk.text.splitlines()[0] for chunk in found] == ["# Guide", "## Install", "## Use"]
    assert [chunk.headings for chunk in found] == [("Guide",), ("Guide", "Install"), ("Guide", "Use")]


def test_small_sections_share_a_chunk() -> None:
    text = "".join(f"## Part {n}\n\nA short text.\n\n" for n in range(8))
    assert len(cut(text)) == 1


def test_headings_in_fences_are_none() -> None:
    body = "word " * 150
    text = f"# Real\n\n```sh\n# not one\n```\n\n{body}\n\n{body}\n"
    assert {chunk.headings for chunk in cut(text)} == {("Real",)}


def test_underlined_headings() -> None:
    body = "word " * 150
    assert [c.headings for c in cut(f"Top\n===\n\n{body}\n\nSub\n---\n\n{body}\n")] == [
        ("Top",),
        ("Top", "Sub"),
    ]
    rest = f"=====\nTitle\n=====\n\n{body}\n\nPart\n----\n\n{body}\n"
    assert [c.headings for c in cut(rest, "a.rst")] == [("Title",), ("Title", "Part")]


def test_a_definition_begins_with_its_comment_and_decorators() -> None:
    body = "".join(f"    value = call_{n}(value)\n" for n in range(22))
    second = f"# About the second.\n@wrapped(\n    1,\n)\ndef second():\n{body}"
    text = f"import os\n\n\ndef first():\n{body}\n\n{second}"
    found = cut(text, "a.py")
    assert any(chunk.text.startswith("# About the second.\n@wrapped(") for chunk in found)
    assert found[-1].headings == ("second",)


def test_methods_stand_under_their_class() -> None:
    body = "".join(f"        value = call_{n}(value)\n" for n in range(18))
    text = (
        "class Castle:\n"
        + "".join(f"    def part_{n}(self):\n{body}\n" for n in range(3))
        + "\nOTHER = 1\n"
        + "# word\n" * 90
    )
    paths = [chunk.headings for chunk in cut(text, "a.py")]
    assert ("Castle", "part_1") in paths
    assert paths[-1] == ()


@pytest.mark.parametrize(
    ("name", "line", "title"),
    [
        ("a.js", "export default async function load(a, b) {", "load"),
        ("a.ts", "export const load = async (a: string) => {", "load"),
        ("a.java", "public final class Tower extends Castle {", "Tower"),
        ("a.go", "func (t *Tower) Build(n int) error {", "Build"),
        ("a.rs", "pub(crate) async fn build<T>(n: u32) -> T {", "build"),
        ("a.rs", "impl<T> Display for Tower<T> {", "Display for Tower"),
        ("a.c", "static int build(int n) {", "build"),
        ("a.cpp", "void Tower::build(int n) const {", "Tower::build"),
        ("a.rb", "class Tower < Castle", "Tower"),
        ("a.sh", "build_tower() {", "build_tower"),
        ("a.toml", "[tool.tower]", "tool.tower"),
        ("a.org", "* Tower", "Tower"),
    ],
)
def test_definitions_of_other_languages(name: str, line: str, title: str) -> None:
    body = "".join(f"    value = {n} + value * {n}\n" for n in range(20))
    found = cut(f"{body}\n{line}\n{body}", name)
    assert found[-1].text.startswith(line)
    assert found[-1].headings == (title,)


@pytest.mark.parametrize(
    "line", ["if (a) {", "} else if (b) {", "for (;;) {", "return call(a) {", "while (call(a)) {"]
)
def test_control_is_no_definition(line: str) -> None:
    body = "".join(f"    value = {n} + value * {n};\n" for n in range(30))
    assert {chunk.headings for chunk in cut(f"{body}\n{line}\n{body}", "a.js")} == {()}


def test_sentences_of_a_long_line_stay_whole() -> None:
    text = " ".join(samples.sentence(random.Random(n)) for n in range(60))
    assert all(chunk.text.endswith(". ") for chunk in cut(text)[:-1])
    chinese = "这是一个比较长的测试句子，里面有标点。" * 60
    assert all(chunk.text.endswith("。") for chunk in cut(chinese)[:-1])


def test_marks_stay_with_their_letters() -> None:
    text = "e\u0301👍🏽👨\u200d👩\u200d👧" * 2_000
    for chunk in cut(text)[1:]:
        assert chunk.text[0] in "e👍👨"


def test_a_lone_carriage_return_ends_no_line_but_may_end_a_chunk() -> None:
    found = cut("some words on a line\r" * 100, "a.txt")
    assert len(found) > 1
    assert all(chunk.text.endswith("\r") and chunk.last_line == 1 for chunk in found)


KEY = "-----BEGIN " + "RSA PRIVATE KEY-----\n"
KEY_END = "-----END " + "RSA PRIVATE KEY-----\n"


def key_block(size: int) -> str:
    draw = random.Random(5)
    rows = (
        "".join(draw.choice("ABCDEFabcdef0123456789+/") for _ in range(64)) + "\n" for _ in range(size // 65)
    )
    return KEY + "".join(rows) + KEY_END


@pytest.mark.parametrize("size", [3_000, 30_000])
def test_a_key_is_sealed_in_every_chunk_it_reaches(size: int) -> None:
    block = key_block(size)
    found = cut(f"Before it.\n\n{block}\nAfter it.\n", "a.txt")
    served = "".join(served_text(chunk.text, chunk.sealed) for chunk in found)
    assert sum(bool(chunk.sealed) for chunk in found) > 3
    assert len({span.tag for chunk in found for span in chunk.sealed}) == 1
    assert served.startswith("Before it.")
    assert served.endswith("\nAfter it.\n")
    assert not any(row in served for row in block.split("\n") if row)


def test_an_endless_key_is_sealed_as_far_as_a_block_reaches() -> None:
    text = key_block(200_000)
    sealed = sum(span.end - span.start for chunk in cut(text, "a.txt") for span in chunk.sealed)
    assert 60_000 < sealed <= 65_536


def test_sealed_spans_are_those_of_the_whole_text() -> None:
    draw = random.Random(3)
    token = "gh" + "p_" + "A1b2C3d4E5" * 4
    parts = [
        samples.document(draw, 30_000) + f"token {token}{n % 10}\n\n" + key_block(2_000) for n in range(25)
    ]
    text = "".join(parts)
    whole = [(span.start, span.end, span.tag) for span in find_secrets(text, SALT)]
    assert len(whole) == 50
    joined: list[tuple[int, int, str]] = []
    for chunk in chunks(samples.blocks(text, draw), name="a.md", salt=SALT, count=samples.count):
        for span in chunk.sealed:
            start, end = chunk.start + span.start, chunk.start + span.end
            if joined and joined[-1][1] == start and joined[-1][2] == span.tag:
                start = joined.pop()[0]
            joined.append((start, end, span.tag))
    assert joined == whole


def test_what_is_served_of_a_chunk_fits_as_well() -> None:
    text = "".join(f"DB_PASSWORD=a1{n}x\n" for n in range(1_000, 1_200))
    found = cut(text, "a.env")
    assert sum(len(chunk.sealed) for chunk in found) == 200
    for chunk in found:
        assert samples.count([served_text(chunk.text, chunk.sealed)])[0] <= 222


def test_secrets_in_headings_are_masked() -> None:
    token = "gh" + "p_" + "A1b2C3d4E5" * 4
    found = cut(f"# Token {token} of ours\n\n" + "word " * 400)
    assert len(found) > 1
    for chunk in found:
        assert chunk.headings[0].startswith("Token «secret:github_token#")
        assert token[8:] not in chunk.headings[0]


def test_long_paths_lose_their_outermost_headings() -> None:
    titles = [f"{'#' * n} Level {n} {'of the tower ' * 2}" for n in range(1, 7)]
    found = cut("\n\n".join(titles) + "\n\n" + "word " * 400)
    assert found[-1].headings[-1].startswith("Level 6")
    assert len(found[-1].headings) < 4


@settings(max_examples=200, deadline=None)
@given(st.one_of(anything, lines), st.integers(2, 80), st.integers(3, 30))
def test_chunks_hold_no_more_word_pieces_than_allowed(text: str, max_chars: int, max_tokens: int) -> None:
    found = list(chunks([text], name="a.md", salt=SALT, max_chars=max_chars, max_tokens=max_tokens))
    assert "".join(chunk.text for chunk in found) == text
    for chunk in found:
        assert len(chunk.text) == 1 or count_many([chunk.text])[0] <= max_tokens


@pytest.mark.parametrize(
    "unit",
    [
        "안녕하세요 세계 ",
        "这是一个测试，没有空格。",
        "สวัสดีครับ",
        "internationalization",
        "0x3F5A",
        "été ",
        "👍🏽",
        "[SEP] [CLS]x",
    ],
)
def test_word_pieces_of_dense_texts(unit: str) -> None:
    text = unit * 2_000
    found = list(chunks([text], name="a.txt", salt=SALT))
    assert "".join(chunk.text for chunk in found) == text
    assert max(count_many([chunk.text for chunk in found])) <= 222


def test_limits_must_leave_room() -> None:
    with pytest.raises(ValueError, match="at least"):
        Chunker(name="a", salt=SALT, count=samples.count, max_chars=1)


def test_memory_holds_no_more_than_a_window() -> None:
    chunker = Chunker(name="a.log", salt=SALT, count=samples.count)
    draw = random.Random(1)
    held = 0
    taken = 0
    for _ in range(15):
        block = samples.log(draw, 3_000)
        taken += len(block)
        given_out = sum(len(chunk.text) for chunk in chunker.feed(block))
        held += len(block) - given_out
        assert held < 700_000
    assert taken > 2_000_000
