from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.mind.preferences.cues import languages as known
from castle.mind.preferences.signals import opposed, signals
from castle.text.names.locales import languages


def test_there_are_cues_for_every_language_that_names_are_noticed_in() -> None:
    assert sorted(known()) == languages()


@pytest.mark.parametrize(
    ("text", "type_", "polarity"),
    [
        ("I prefer docker for this.", "tool_choice", 1),
        ("Please don't use docker here", "tool_choice", -1),
        ("I usually squash before pushing", "workflow", 1),
        ("I hate long answers", "communication_style", -1),
        ("I'm new to rust", "skill_level", -1),
        ("Ich mag Docker nicht", "tool_choice", -1),
        ("Bitte verwende immer Docker", "tool_choice", 1),
        ("Prefiero docker para esto", "tool_choice", 1),
        ("No uses docker aquí", "tool_choice", -1),
        ("Je préfère docker", "tool_choice", 1),
        ("N’utilise jamais docker", "tool_choice", -1),
        ("Mi piace docker", "tool_choice", 1),
        ("Non mi piace docker", "tool_choice", -1),
        ("Eu prefiro docker", "tool_choice", 1),
        ("Não gosto de docker", "tool_choice", -1),
        ("Мне нравится docker", "tool_choice", 1),
        ("Мне не нравится docker", "tool_choice", -1),
        ("मुझे पसंद है docker", "tool_choice", 1),
        ("मुझे पसंद नहीं docker", "tool_choice", -1),
        ("dockerが好きです", "tool_choice", 1),
        ("dockerは使わないでください", "tool_choice", -1),
        ("docker를 좋아합니다", "tool_choice", 1),
        ("docker 사용하지 마세요", "tool_choice", -1),
        ("我更喜欢 docker", "tool_choice", 1),
        ("我不喜欢 docker", "tool_choice", -1),
    ],
)
def test_each_language_says_for_and_against(text: str, type_: str, polarity: int) -> None:
    (found,) = signals(text)
    assert (found.type, found.polarity) == (type_, polarity)
    assert found.text == text.replace("’", "'")


@pytest.mark.parametrize(
    "text",
    [
        "What do you like about docker?",
        "This is another notebook about learning pipelines, explained in an advanced way.",
        "It works like docker does.",
        "> I prefer docker",
        "```\nI prefer docker\n```",
        "$ echo I prefer docker",
        "<note>I prefer docker</note>",
        "I prefer " + "docker " * 60,
        "I like it",
        "I love these ideas!",
        "I like the sound of that hotel.",
        "Mir gefällt das, ich mag diese Idee",
        "",
    ],
)
def test_what_is_no_sign_of_a_preference(text: str) -> None:
    assert signals(text) == []


def test_two_clauses_are_two_signs() -> None:
    against, for_ = signals("I don't like tabs, I prefer spaces.")
    assert (against.text, against.polarity, against.topic) == ("I don't like tabs", -1, frozenset({"tabs"}))
    assert (for_.text, for_.polarity, for_.topic) == ("I prefer spaces.", 1, frozenset({"spaces"}))


def test_feeling_strengthens_from_a_third_on() -> None:
    strengths = [signals("I prefer docker", valence)[0].strength for valence in (0.2, -0.5, 1.0)]
    assert strengths == pytest.approx([0.5, 0.65, 0.8])


def test_the_user_is_spoken_of_only_in_what_is_filed_on_purpose() -> None:
    text = "User prefers docker over podman."
    assert signals(text) == []
    assert signals(text, reported=True)[0].polarity == 1


def test_what_excludes_each_other() -> None:
    assert opposed(frozenset({"short", "answers"}), frozenset({"detailed", "answers"}))
    assert not opposed(frozenset({"short"}), frozenset({"short", "long"}))


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at(text: str) -> None:
    for found in signals(text, reported=True):
        assert found.text
        assert found.topic
