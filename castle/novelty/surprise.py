"""Estimator C: how much a language model is surprised by a drawer, given the nearest earlier ones.

C is 10 - score, where the score from 1 to 10 says how well the text could have been foretold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from castle.llm.asking import ask
from castle.llm.base import Provider, held_to

PRIORS = 20
"""Earlier drawers that the model is shown."""

MOST_REASONING = 160
"""Characters to which a server is held: a small model would never come to an end. More is no fault."""

INSTRUCTIONS = """\
You judge how predictable a note is for somebody who knows some earlier notes of the same collection. \
"earlier" holds the earlier notes, "new" the note to judge. Give a score as a whole number from 1 to 10: \
1 means that nothing in the new note could have been foretold from the earlier ones, 10 that the earlier \
notes say all of it already. Judge what is said, not how it is worded. Give your reasoning in one sentence."""


class Rating(BaseModel):
    """The model's answer."""

    score: int = Field(ge=1, le=10)
    reasoning: str = Field(json_schema_extra={"maxLength": MOST_REASONING})


@dataclass(frozen=True, slots=True)
class Surprise:
    """One judgement: ``surprise`` in [0, 9], and why in the model's words."""

    surprise: int
    reasoning: str


def llm_surprise(provider: Provider, text: str, earlier: Sequence[str]) -> Surprise:
    """Ask how predictable ``text`` is given up to PRIORS earlier ones, the nearest first; raises LlmError.

    Texts must be served ones: they may leave the machine.
    """
    provider = held_to(provider, Rating.model_json_schema())
    rating = ask(provider, INSTRUCTIONS, Rating, {"earlier": list(earlier[:PRIORS]), "new": text})
    return Surprise(10 - rating.score, rating.reasoning)


def prompt_sha256() -> str:
    """Return the hash of all that is said to the model beside the texts."""
    said = INSTRUCTIONS + json.dumps(Rating.model_json_schema(), sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()
