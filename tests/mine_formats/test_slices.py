from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from castle.mine.formats import RECALL_CLOSE, RECALL_OPEN, Attachment, Message, exact_bytes, recall_block
from castle.mine.formats.base import Kind, Role
from castle.mine.formats.claude_code import INJECTED
from castle.mine.formats.codex import INJECTED as CODEX
from castle.mine.formats.slices import Injected, Piece, cut, messages

MARKS = [
    "<system-reminder>",
    "</system-reminder>",
    "<command-args>",
    "</command-args>",
    "<private>",
    "</PRIVATE>",
    "</private>",
    RECALL_OPEN,
    RECALL_CLOSE,
    "Stop hook feedback:",
    "words",
    " ",
    "\n",
    "\x00",
    "\ud800",
    "İ",
]


def parts(
    text: str, role: Role = "user", kind: Kind = "message", injected: Injected = INJECTED
) -> list[tuple[str, str]]:
    return [(text[low:high], what) for low, high, what in cut(text, role, kind, injected)]


def test_a_reminder_after_words() -> None:
    text = "fix it\n<system-reminder>\nbe careful\n</system-reminder>\n"
    assert parts(text) == [
        ("fix it\n", "message"),
        ("<system-reminder>\nbe careful\n</system-reminder>\n", "injected"),
    ]


def test_words_between_two_reminders() -> None:
    one = "<system-reminder>a</system-reminder>"
    assert parts(f"{one} yes {one}") == [(one, "injected"), (" yes ", "message"), (one, "injected")]


def test_arguments_of_a_command_are_the_users_words() -> None:
    text = "<command-name>/review</command-name>\n<command-args>the parser</command-args>"
    assert parts(text) == [
        ("<command-name>/review</command-name>\n<command-args>", "injected"),
        ("the parser", "message"),
        ("</command-args>", "injected"),
    ]
    assert parts("<command-name>/x</command-name><command-args></command-args>")[0][1] == "injected"


def test_an_unclosed_tag_is_words() -> None:
    text = "what does <system-reminder> mean?"
    assert parts(text) == [(text, "message")]


def test_what_the_model_writes_is_never_cut() -> None:
    text = "I saw <system-reminder>this</system-reminder> and <private>that</private>"
    assert parts(text, "assistant") == [(text, "message")]


def test_private_blocks_of_a_user() -> None:
    assert parts("a <Private>secret</private> b") == [
        ("a ", "message"),
        ("<Private>secret</private>", "private"),
        (" b", "message"),
    ]
    # A letter whose lower case is longer does not shift what is found.
    assert parts("İ<private>x</private>")[1] == ("<private>x</private>", "private")


def test_private_inside_host_text_stays_private() -> None:
    text = "<system-reminder>x<private>y</private></system-reminder>"
    assert [kind for _, kind in parts(text)] == ["injected", "private", "injected"]


def test_recalled_blocks_are_known_wherever_they_come_back() -> None:
    block = recall_block(f"old words {RECALL_CLOSE} more")
    assert block.count(RECALL_CLOSE) == 1
    wrapped = f"<system-reminder>hook: {block}</system-reminder>"
    assert [kind for _, kind in parts(f"hi\n{wrapped}")] == ["message", "injected", "recalled", "injected"]
    assert [kind for _, kind in parts(f"found {block}", "tool", "tool")] == ["tool", "recalled"]


def test_recalled_blocks_inside_json_are_known_too() -> None:
    text = json.dumps({"text": recall_block("old words")})
    assert [kind for _, kind in parts(text, "tool", "tool")] == ["tool", "recalled", "tool"]


def test_a_recalled_block_that_the_host_cut_off() -> None:
    assert parts(f"found {RECALL_OPEN} old wo", "tool", "tool")[1] == (f"{RECALL_OPEN} old wo", "recalled")
    cut_off = f"<system-reminder>{RECALL_OPEN} old</system-reminder>"
    assert [kind for _, kind in parts(f"{cut_off} new")] == ["injected", "recalled", "message"]
    typed = f"the mark is {RECALL_OPEN} in Castle"
    assert parts(typed) == [(typed, "message")]


def test_whole_texts_of_the_host() -> None:
    for text in ("[Request interrupted by user]", "Stop hook feedback:\n- tests fail"):
        assert parts(text) == [(text, "injected")]


def test_a_preamble_of_the_host() -> None:
    text = "# Context from my IDE setup:\n\n## Open tabs\n\n## My request for Codex:\nfix it"
    assert parts(text, injected=CODEX) == [
        ("# Context from my IDE setup:\n\n## Open tabs\n\n## My request for Codex:\n", "injected"),
        ("fix it", "message"),
    ]


@given(
    st.lists(st.sampled_from(MARKS), max_size=14).map("".join),
    st.sampled_from(["message", "tool", "injected"]),
)
def test_slices_are_a_partition(text: str, kind: Kind) -> None:
    slices = cut(text, "user", kind, INJECTED)
    assert "".join(text[low:high] for low, high, _ in slices) == text
    position = 0
    for low, high, _ in slices:
        assert low == position < high
        position = high
    assert all(first[2] != second[2] for first, second in zip(slices, slices[1:], strict=False))


@given(st.text(alphabet=st.characters(), max_size=20), st.binary(max_size=20))
def test_exact_bytes(text: str, data: bytes) -> None:
    assert exact_bytes(text).decode("utf-8", "surrogatepass") == text
    assert exact_bytes(data.decode("utf-8", "surrogateescape"), escaped=True) == data


def test_many_unclosed_tags_take_linear_steps() -> None:
    text = "<system-reminder>" * 200_000
    assert cut(text, "user", "message", INJECTED) == [(0, len(text), "message")]


def test_ids_and_attachments_of_a_record() -> None:
    record = Message("s", "u1", "u1", "p", "user", "message", "")
    image = Attachment("", "image/png", b"x")
    pieces = [
        Piece("", "<system-reminder>r</system-reminder>"),
        Piece("b1", "", attachments=(image,)),
        Piece("b2", "look <system-reminder>r</system-reminder>"),
    ]
    found = list(messages(record, pieces, INJECTED))
    assert [(one.id, one.whole, one.kind) for one in found] == [
        ("u1", "u1", "injected"),
        ("u1#b2", "u1#b2", "message"),
        ("u1#b2@5", "u1#b2", "injected"),
    ]
    assert [one.attachments for one in found] == [(), (image,), ()]
    alone = list(messages(record, pieces[1:2], INJECTED))
    assert [(one.id, one.text, one.attachments) for one in alone] == [("u1#b1", "", (image,))]
