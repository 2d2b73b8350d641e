from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.clock import parse_iso
from castle.records import Drawer
from castle.search.question import ask
from castle.search.signals import signals
from castle.search.voice import OVERHEARD, asks_advice, voice_of, voiced

NOW = parse_iso("2026-05-20T12:00:00")


def drawer(id_: str, role: str) -> Drawer:
    return Drawer(
        id=id_, seq=1, source="s", wing="w", room="r", hall="h", kind="message", role=role, speaker="",
        message_id="", text="the harbour", raw=None, sha256="", sealed=(), context="",
        authored_at=NOW, filed_at=0, added_by="", state="current",
    )  # fmt: skip


TALK = {"said": drawer("said", "user"), "answer": drawer("answer", "assistant"), "file": drawer("file", "")}


@pytest.mark.parametrize(
    "query",
    [
        "What did you recommend for the leaking tap?",
        "You gave me a list of bakeries. Which one was by the river?",
        "What was the third item on your list?",
        "In our previous chat about sailing, which knot came first?",
        "You'd suggested a way to wax the skis, how was it?",
        "Was hast du mir für den Garten empfohlen?",
        "¿Qué restaurante me recomendaste?",
        "Qu'est-ce que tu m'as conseillé pour le jardin ?",
        "Quel vin m'as-tu recommandé ?",
        "Was sagtest du über den Wein?",
        "Welche Vorschläge hast du gemacht?",
        "What did Claude suggest for the roof?",
        "Which shoes were you recommending?",
        "What lock was recommended to me?",
    ],
)
def test_a_question_about_an_answer(query: str) -> None:
    assert voice_of(query) == "assistant"
    assert not asks_advice(query)


@pytest.mark.parametrize(
    "query",
    [
        "Any tips for keeping the kitchen clean?",
        "What should I cook on Friday?",
        "Can you recommend a book about whales?",
        "I need some ideas for the balcony",
        "Suggest a hotel in Lisbon",
        "How could we spend the weekend?",
        "Kannst du mir ein Buch empfehlen?",
        "¿Puedes recomendar un hotel en Lisboa?",
        "Que devrais-je cuisiner ce soir ?",
        "Irgendwelche Tipps für den Balkon",
        "As-tu des conseils pour mon genou ?",
        "¿Tienes algún consejo para la rodilla?",
        "advice for my knee",
    ],
)
def test_a_question_for_advice(query: str) -> None:
    assert asks_advice(query)
    assert voice_of(query) == "own"


@pytest.mark.parametrize(
    ("query", "voice"),
    [
        ("How much did I pay for my bicycle?", "own"),
        ("Wo habe ich mein Rad gekauft?", "own"),
        ("¿Dónde compré mi bicicleta?", "own"),
        ("Où ai-je acheté mon vélo ?", "own"),
        ("¿Dónde aparqué el coche?", "own"),
        ("¿Qué hice el lunes?", "own"),
        ("¿Qué dijo Julia el mes pasado?", None),
        ("the meeting on Mon", None),
        ("How many trips have I told you about?", "own"),
        ("When did Ana move to Lisbon?", None),
        ("How did I fix the flaky test?", None),
        ("Warum habe ich mein Konto gesperrt?", None),
        ("the long pier", None),
        ("", None),
    ],
)
def test_whose_words(query: str, voice: str | None) -> None:
    assert voice_of(query) == voice
    assert not asks_advice(query)


def test_answers_are_scored_by_whose_words_are_asked_for() -> None:
    assert voiced("assistant", TALK) == {"answer": 1.0}
    assert voiced("own", TALK) == {"said": 1.0, "answer": OVERHEARD, "file": 1.0}
    assert voiced(None, TALK) == {}


def test_where_all_have_one_voice_it_tells_nothing() -> None:
    assert voiced("own", {"said": TALK["said"], "file": TALK["file"]}) == {}
    assert voiced("assistant", {"answer": TALK["answer"]}) == {}


def test_the_voice_is_a_signal() -> None:
    assert signals(ask("What did you suggest?", NOW), TALK)["voice"] == {"answer": 1.0}
    assert "voice" not in signals(replace(ask("What did you suggest?", NOW), voice=None), TALK)


def test_advice_speaks_of_days_to_come() -> None:
    assert ask("What did I wear on Saturday?", NOW).times
    assert not ask("What should I wear on Saturday?", NOW).times


@given(st.text(max_size=300))
def test_any_text_can_be_asked(query: str) -> None:
    assert not (asks_advice(query) and voice_of(query) == "assistant")


@pytest.mark.parametrize("unit", ["what ", "you had ", "du ", "tu as ", "give me some ", "what is the ", "'"])
def test_a_long_text_takes_linear_time(unit: str) -> None:
    def took(times: int) -> float:
        started = time.process_time()
        voice_of(unit * times)
        asks_advice(unit * times)
        return time.process_time() - started

    took(1000)
    assert took(40_000) < 40 * max(took(4000), 0.005)
