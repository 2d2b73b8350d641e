"""Judging what episodes feel like, those that nobody has judged: by rules, a few of them by a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from castle.llm.base import LlmError, Provider
from castle.mind.emotion import score
from castle.store.mind_cycles import Columns, put_valences, texts

if TYPE_CHECKING:
    from castle.store.palace import Palace

BATCH = 2_000
JUDGED = 20
"""Episodes of one cycle that a model is shown, in one call."""
SURE = 0.3
"""Confidence from which the model's judgement is taken rather than that of the rules."""

INSTRUCTIONS = """\
Each text is an episode of somebody's work or talk, with a number in brackets. Judge what each feels like to \
the person: "valence" from -1 (very bad) over 0 (neutral) to 1 (very good), "confidence" between 0 and 1.\
"""


def judge(
    palace: Palace, episodes: Columns, now: int, *, llm: Provider | None = None, write: bool = True
) -> tuple[Columns, int, list[str]]:
    """Return the episodes with the valences that were missing, how many those were, and notes.

    Valences that somebody gave stay. Without ``write`` nothing is kept.
    """
    import numpy as np

    missing = np.flatnonzero(~episodes.felt)
    valence, felt = episodes.valence.copy(), episodes.felt.copy()
    notes: list[str] = []
    for start in range(0, len(missing), BATCH):
        places = missing[start : start + BATCH].tolist()
        with palace.ledger.read() as cx:
            said = texts(cx, [episodes.ids[place] for place in places])
        judged = {place: score(said[episodes.ids[place]]) for place in places if episodes.ids[place] in said}
        by_model: Mapping[int, tuple[float, float]] = {}
        if llm is not None and start + BATCH >= len(missing):
            shown = {place: said[episodes.ids[place]] for place in list(judged)[-JUDGED:]}
            by_model, told = _asked(shown, llm)
            notes += told
        rules = {place: found for place, found in judged.items() if place not in by_model}
        if write:
            with palace.ledger.write() as cx:
                for source, found in (("rules", rules), ("model", by_model)):
                    by_rid = {int(episodes.rid[place]): one for place, one in found.items()}
                    put_valences(cx, by_rid, source, now)
        for place, (value, _) in {**rules, **by_model}.items():
            valence[place], felt[place] = value, True
    return replace(episodes, valence=valence, felt=felt), len(missing), notes


def _asked(shown: Mapping[int, str], provider: Provider) -> tuple[dict[int, tuple[float, float]], list[str]]:
    from pydantic import BaseModel, Field

    from castle.llm.asking import ask

    class Judged(BaseModel):
        episode: int
        valence: float = Field(ge=-1, le=1)
        confidence: float = Field(ge=0, le=1)

    class Answer(BaseModel):
        episodes: list[Judged] = Field(max_length=JUDGED)

    if not shown:
        return {}, []
    places = list(shown)
    try:
        answer = ask(provider, INSTRUCTIONS, Answer, {"episode": [shown[place] for place in places]})
    except LlmError as error:
        return {}, [f"emotions were judged by rules alone: {error}"]
    return {
        places[one.episode]: (one.valence, one.confidence)
        for one in answer.episodes
        if 0 <= one.episode < len(places) and one.confidence >= SURE
    }, []
