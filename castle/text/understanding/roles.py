"""Who does what to what, when, and with which outcome, in one statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from castle.text.understanding import lexicon
from castle.text.understanding.requirements import Requirement

_NAMED_ACTOR = re.compile(r" the (\w+) (?:shall|must|should|will|can)(?= )")
_OUTCOME = re.compile(
    r" (?:(?:returns?|displays?|shows?|generates?|sends?|stores?|becomes?) \w"
    r"|(?:transition|change)s? to |results? in )"
)
_IN_CASE = " in case "


@dataclass(frozen=True, slots=True)
class Roles:
    """What plays a part in a statement.

    ``actors`` and ``objects`` are words in the singular. ``conditions`` has one entry for each kind of
    condition found: whether a guard, a further word, follows it. ``triggered`` leaves *on* out, which is a
    condition only for behaviour.
    """

    actors: frozenset[str]
    objects: frozenset[str]
    acts: bool
    outcome: bool
    triggered: bool
    conditions: tuple[bool, ...]
    observable: bool
    error: bool


def roles(requirement: Requirement) -> Roles:
    """Find the parts by the words alone: the same on every machine."""
    words, spoken = requirement.words, requirement.spoken
    conditions = _conditions(words, spoken)
    named = (lexicon.ACTORS.get(name, name) for name in _NAMED_ACTOR.findall(spoken))
    return Roles(
        actors=frozenset((*filter(None, map(lexicon.ACTORS.get, words)), *named)),
        objects=frozenset(filter(None, map(lexicon.OBJECTS.get, words))),
        acts=any(map(lexicon.is_action, words)),
        outcome=_OUTCOME.search(spoken) is not None,
        triggered=bool(conditions.keys() - {"on"}),
        conditions=tuple(conditions.values()),
        observable=not lexicon.OBSERVABLES.isdisjoint(words) or " moves to " in spoken,
        error=not lexicon.ERRORS.isdisjoint(words) or " if not " in spoken,
    )


def _conditions(words: Sequence[str], spoken: str) -> dict[str, bool]:
    """Return the kinds of condition in the words, and whether a further word follows one of each."""
    found = {kind: words.index(kind) + 1 < len(words) for kind in lexicon.TRIGGERS.intersection(words)}
    at = spoken.find(_IN_CASE)
    if at >= 0:
        found["in case"] = at + len(_IN_CASE) < len(spoken)
    if " on " in spoken:
        after = [second for first, second in pairwise((*words, "")) if first == "on" and second != "the"]
        if after:
            found["on"] = any(after)
    return found
