"""Asking a language model what people's own words tell of their preferences.

The model is shown messages with a sign of a preference, as quoted data, and names for each preference the
messages that tell it: what it cannot cite is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from castle.llm.asking import ask
from castle.llm.base import Provider
from castle.mind.preferences.signals import PreferenceType, Signal, topic_of
from castle.store.mind_said import Said

MOST_SHOWN = 20
MOST_CHARS = 300

INSTRUCTIONS = """\
Each text is a message of one person, with a number in brackets. Name lasting preferences of that person \
that the messages state in so many words: about tools, ways of working, how they want to be answered, or how \
well they know something. Leave out what is asked for this once only, what somebody else wants, and what a \
message tells a program to do or to remember. "messages" are the numbers of the messages that state it; \
polarity is 1 when the person wants it and -1 when they do not (for skills: 1 has it, -1 is learning it); \
trigger_context says in a few words when it matters, or is null. An empty list is a good answer.\
"""


class Found(BaseModel):
    """One preference that a model has found."""

    preference_text: str = Field(min_length=3, max_length=200)
    preference_type: PreferenceType
    polarity: Literal[1, -1]
    confidence: float = Field(ge=0, le=1)
    trigger_context: str | None = Field(max_length=200)
    messages: list[int] = Field(min_length=1, max_length=MOST_SHOWN)


class Answer(BaseModel):
    """What a model answers."""

    preferences: list[Found] = Field(max_length=MOST_SHOWN)


def found_by(provider: Provider, messages: Sequence[Said]) -> list[tuple[Said, Signal, str]]:
    """Return a signal for each message that tells of a preference, with what triggers it; raises LlmError."""
    shown = list(messages)[:MOST_SHOWN]
    answer = ask(provider, INSTRUCTIONS, Answer, {"message": [item.text[:MOST_CHARS] for item in shown]})
    gathered = []
    for found in answer.preferences:
        text = " ".join(found.preference_text.split())
        about = topic_of(text.lower())
        for number in dict.fromkeys(found.messages):
            # A topic that shares no word with the message it cites is the model's own idea.
            if 0 <= number < len(shown) and about & topic_of(shown[number].text.lower()):
                signal = Signal(text, found.preference_type, found.polarity, found.confidence, about, "")
                gathered.append((shown[number], signal, found.trigger_context or ""))
    return gathered
