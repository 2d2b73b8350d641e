"""The English words that the measures look for.

Nouns and keywords are matched as whole words, as they stand here and with the ending of a plural or of the
third person. Verbs are matched by their stem, since they come in more forms than that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LONGEST_KNOWN = 64
_MOST_KNOWN = 1 << 15


def inflected(listing: str) -> dict[str, str]:
    """Return each form of the listed words with the word it is a form of."""
    return {form: word for word in listing.split() for form in (word, _third(word))}


def _third(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"


COORDINATING = frozenset("and or but nor yet so".split())
SUBORDINATING = frozenset(
    "because since as if when while after before unless until though although whereas wherever".split()
)
NEGATIONS = frozenset("not no never neither nor nothing nowhere none".split())
CONDITIONS = frozenset("if when unless provided assuming".split())
PRONOUNS = frozenset("this that it these those they them".split())
BE = frozenset("am is are was were be been being".split())
STRONG_MODALS = ("must", "shall")
WEAK_MODALS = ("may", "might", "could", "would")
NEGATED_MODALS = frozenset("must shall should may might could would will can".split())

STATED_ACTORS = frozenset(
    inflected(
        "user system application administrator customer client operator manager developer tester service"
        " module component database server api interface browser device agent"
    )
)
NO_ACTORS = frozenset("time only also first last next then".split())
"""Words that stand before a modal verb without acting."""

STATED_STEMS = tuple(
    (
        "accept access activat add alert allow apply approv archiv assign authentic authoriz "
        " calculat cancel chang check clos collect comput config confirm connect"
        " creat decrypt delet deny detect disabl display download edit enabl"
        " encrypt ensur execut export fetch filter format generat handl hide highlight identif"
        " install limit load log maintain manag modif monitor move notif open"
        " perform prevent print process provid publish receiv record redirect reject remov render"
        " report reset respond restor retriev return save search select send set show store submit"
        " support synchron track transmit trigger updat upload validat verif"
    ).split()
)
"""Beginnings of verbs that say what is done, in a stated requirement."""

ROLE_STEMS = (
    "accept allow approv authentic authoriz calculat chang check comput configur creat delet detect"
    " disabl display download enabl encrypt execut export fetch filter generat handl modif monitor notif"
    " prevent process provid receiv record reject remov render respond retriev return save search send"
    " show store submit support track transmit updat validat verif"
).split()
"""What a word contains that says what is done, in the analysis of roles."""

FILLERS = frozenset(
    "the and but for nor yet not any all are was were been being has have had its his her their our your"
    " this that these those they them from into onto with within without upon over under than then when"
    " where while which who whom whose what how why can may might must shall should will would could also"
    " only very too such each both either neither some more most other per via about after before between"
    " until unless because since though although".split()
)
"""Words of three letters or more that are no object."""

ACTORS = inflected(
    "user admin system customer client operator manager developer tester application service module"
    " component interface database server"
)
OBJECTS = inflected(
    "data information record entry item element file document report form template message notification"
    " alert email request user account profile session credential input output response result value"
)
TRIGGERS = frozenset("if when unless given after before upon provided assuming whenever".split())
OBSERVABLES = frozenset(
    inflected(
        "display show render present visualize hide highlight enable disable return output respond reply"
        " emit send transmit notify alert store save persist record log write update modify change set"
        " status code message error warning response"
    )
) | frozenset("becomes transitions active inactive enabled disabled".split())
ERRORS = frozenset(
    inflected("error fail failure exception invalid reject timeout expire unless")
) | frozenset("rejected denied expired".split())
SOFT = frozenset(
    "fast slow quick responsive intuitive easy simple secure robust reliable stable scalable flexible"
    " maintainable efficient optimal appropriate reasonable adequate".split()
)
SOFT_PHRASES = (" user friendly ", " high quality ")


_VOWELS = re.compile("[aeiouy]+")


class _Known(dict[str, T]):
    """What was found about words; endless words, and ever more of them, are not kept."""

    def __init__(self, look: Callable[[str], T]) -> None:
        self._look = look

    def __missing__(self, word: str) -> T:
        found = self._look(word)
        if len(word) <= _LONGEST_KNOWN and len(self) < _MOST_KNOWN:
            self[word] = found
        return found


def _syllables(word: str) -> int:
    return max(1, len(_VOWELS.findall(word)) - word.endswith("e"))


is_stated_action = _Known(lambda word: word.startswith(STATED_STEMS)).__getitem__
"""Whether a word in lower case begins with the stem of an action verb."""

is_action = _Known(lambda word: any(stem in word for stem in ROLE_STEMS)).__getitem__
"""Whether a word in lower case contains the stem of an action verb."""

syllables = _Known(_syllables).__getitem__
"""How many groups of the vowels a, e, i, o, u, y a word in lower case has, less a final e; at least 1."""
