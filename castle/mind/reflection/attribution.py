"""Why something went as it did, as far as past episodes tell: by shared signs, or as a model reads them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from castle.llm.base import LlmError, Provider
from castle.mind.nearby import telling
from castle.store.mind_values import Episode

SHOWN_CHARS = 300
BAD = -0.2
"""A valence at or below which an episode went badly."""
MOST_FACTORS = 5
CONFIDENCE_PER_EPISODE, MOST_CONFIDENCE = 0.1, 0.3
"""What one episode adds to a cause that is found by its signs alone, and the most."""

_SIGNS = re.compile(
    r"`[^`\n]{2,60}`"
    r"|\b[A-Za-z_][\w.]*(?:Error|Exception|Failure|Warning)\b"
    r"|\b(?:exit code|status|HTTP)[ :=]*\d{1,3}\b"
    r"|(?-i:\bE[A-Z]{3,}\b)"
    r"|\b[\w-]+(?:/[\w.-]+)+\b"
    r"|\b\w+\.(?:py|js|ts|tsx|go|rs|c|h|cpp|java|json|ya?ml|toml|lock|sh|sql|md|log)\b",
    re.IGNORECASE,
)
_FAILING = re.compile(
    r"\b(?:error|exception|fail(?:s|ed|ure)?|broken?|crash(?:es|ed)?|traceback|timeout|timed out|refused|"
    r"denied|cannot|could not|doesn't work|wrong|bug)\b",
    re.IGNORECASE,
)

INSTRUCTIONS = """\
"task" is what somebody tried, "outcome" how it went, and each numbered episode something that was said or \
done earlier. Say what most likely made it go that way, from the episodes alone. "episodes" are the numbers \
of those that show it; "missed_signal" is a sign in one of them that was overlooked, or null; "confidence" \
is how sure they make you, between 0 and 1. Where they show no cause, root_cause is an empty text.\
"""


@dataclass(frozen=True, slots=True)
class Attribution:
    """A cause, "" where none was found: what adds to it, what was overlooked, and the drawers that show it.

    ``method`` is signs or model; ``confidence`` is in [0, 1].
    """

    root_cause: str
    contributing_factors: tuple[str, ...]
    missed_signal: str | None
    confidence: float
    evidence: tuple[str, ...]
    method: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as it is answered."""
        told = asdict(self)
        return {
            **told,
            "contributing_factors": list(self.contributing_factors),
            "evidence": list(self.evidence),
        }


def by_signs(task: str, episodes: Sequence[Episode], *, success: bool = False) -> Attribution:
    """Look for signs that episodes which went the same way share: errors, files, commands.

    ``episodes`` are the nearest ones to the task, nearest first.
    """
    alike = [one for one in episodes if (went_well(one) if success else went_badly(one))]
    own = set(signs(task))
    shared = Counter(sign for one in alike for sign in signs(one.text))
    named = [sign for sign, count in shared.most_common() if count > 1 or sign in own][:MOST_FACTORS]
    if not alike:
        return Attribution("", (), None, 0.0, (), "signs")
    showing = [one for one in alike if set(signs(one.text)) & set(named)]
    if not showing:
        named = _shared_words(task, alike)
        showing = [one for one in alike if set(telling(one.text)) & set(named)] or alike[:3]
    earliest = min(showing, key=lambda one: (one.authored_at, one.rid))
    went = "worked" if success else "failed"
    about = f" with {', '.join(named)}" if named else ""
    cause = f"{len(showing)} earlier {'episode' if len(showing) == 1 else 'episodes'} {went}{about}"
    return Attribution(
        root_cause=cause,
        contributing_factors=tuple(named),
        missed_signal=None if success else _excerpt(earliest.text),
        confidence=min(CONFIDENCE_PER_EPISODE * len(showing), MOST_CONFIDENCE),
        evidence=tuple(one.id for one in showing),
        method="signs",
    )


def by_model(task: str, outcome: str, episodes: Sequence[Episode], provider: Provider) -> Attribution:
    """Ask a model; raises LlmError. A cause that cites no episode counts for no more than signs do."""
    from pydantic import BaseModel, Field

    from castle.llm.asking import ask

    class Answer(BaseModel):
        root_cause: str = Field(max_length=400)
        contributing_factors: list[str] = Field(max_length=MOST_FACTORS)
        missed_signal: str | None = Field(max_length=400)
        confidence: float = Field(ge=0, le=1)
        episodes: list[int] = Field(max_length=20)

    if not episodes:
        raise LlmError("there are no episodes to show to a model")
    shown = [one.text[:SHOWN_CHARS] for one in episodes]
    answer = ask(provider, INSTRUCTIONS, Answer, {"task": task, "outcome": outcome, "episode": shown})
    cited = [episodes[number].id for number in dict.fromkeys(answer.episodes) if 0 <= number < len(episodes)]
    return Attribution(
        root_cause=" ".join(answer.root_cause.split()),
        contributing_factors=tuple(" ".join(one.split()) for one in answer.contributing_factors),
        missed_signal=answer.missed_signal,
        confidence=answer.confidence if cited else min(answer.confidence, MOST_CONFIDENCE),
        evidence=tuple(cited),
        method="model",
    )


def signs(text: str) -> list[str]:
    """Return the errors, files and commands that a text names, each once."""
    return list(dict.fromkeys(found.strip("`").casefold() for found in _SIGNS.findall(text)))


def went_badly(one: Episode) -> bool:
    """Whether an episode tells of something that failed, by its outcome if that is known."""
    if one.outcome_valence is not None:
        return one.outcome_valence < 0
    return one.valence <= BAD or _FAILING.search(one.text) is not None


def went_well(one: Episode) -> bool:
    """Whether an episode tells of something that worked, by its outcome if that is known."""
    if one.outcome_valence is not None:
        return one.outcome_valence > 0
    return one.valence >= -BAD


def _shared_words(task: str, episodes: Sequence[Episode]) -> list[str]:
    """Return those words of a task that several of the episodes hold, the most frequent first."""
    counts = Counter(word for one in episodes for word in telling(one.text))
    return sorted((word for word in telling(task) if counts[word] > 1), key=lambda word: -counts[word])[
        :MOST_FACTORS
    ]


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"
