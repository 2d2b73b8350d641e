"""Structure: whether statements are single, complete, active, clear and binding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from castle.text.understanding import lexicon
from castle.text.understanding.metric import STRUCTURE, Metric
from castle.text.understanding.requirements import Requirement

_NAMED_ACTOR = re.compile(r" (?:the|an?) (\w{3,}) (?:shall|must|should|will|can|may)(?= )")


def structure(requirements: Sequence[Requirement]) -> list[Metric]:
    """Return shares of the statements in [0, 1]; without statements there is nothing to credit.

    ``modal_strength`` weighs *must* and *shall* 1, *should* 0.6, *may*, *might*, *could* and *would* 0.3; it
    is 0.5 where none of them stands.
    """
    total = len(requirements)
    single = sum(lexicon.COORDINATING.isdisjoint(each.words) for each in requirements)
    complete = sum(map(_is_complete, requirements))
    passive = sum(map(_is_passive, requirements))
    unclear = sum(not lexicon.PRONOUNS.isdisjoint(each.words) for each in requirements)
    strength = _modal_strength(requirements)
    metric = STRUCTURE.metric
    return [
        metric("atomicity_score", 0.30, _share(single, total), _share(single, total)),
        metric("completeness_score", 0.30, _share(complete, total), _share(complete, total)),
        metric("passive_voice_ratio", 0.15, _share(passive, total), _share(total - passive, total)),
        metric("ambiguous_pronoun_ratio", 0.10, _share(unclear, total), _share(total - unclear, total)),
        metric("modal_strength", 0.15, strength, strength),
    ]


def _share(part: int, total: int) -> float:
    return part / total if total else 0.0


def _is_complete(requirement: Requirement) -> bool:
    """Tell whether somebody does something to something."""
    words = requirement.words
    verb = next((at for at, word in enumerate(words) if lexicon.is_stated_action(word)), None)
    if verb is None or not _has_actor(requirement):
        return False
    return any(len(word) > 2 and word not in lexicon.FILLERS for word in words[verb + 1 :])


def _has_actor(requirement: Requirement) -> bool:
    if not lexicon.STATED_ACTORS.isdisjoint(requirement.words):
        return True
    return any(name not in lexicon.NO_ACTORS for name in _NAMED_ACTOR.findall(requirement.spoken))


def _is_passive(requirement: Requirement) -> bool:
    """Tell whether a form of *be* goes with *by*, or comes right before a word in *-ed* or *-en*."""
    words = requirement.words
    if lexicon.BE.isdisjoint(words):
        return False
    return " by " in requirement.spoken or any(
        word in lexicon.BE and following.endswith(("ed", "en"))
        for word, following in zip(words, words[1:], strict=False)
    )


def _modal_strength(requirements: Sequence[Requirement]) -> float:
    counts = Counter(word for each in requirements for word in each.words)
    strong = sum(counts[word] for word in lexicon.STRONG_MODALS)
    weak = sum(counts[word] for word in lexicon.WEAK_MODALS)
    total = strong + counts["should"] + weak
    return (strong + 0.6 * counts["should"] + 0.3 * weak) / total if total else 0.5
