"""The method: operators, what they may result in, how a dialogue can end, and the nine lenses.

A lens is one order of the same six operators, which follow DEFINE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

POLICY = "2026-09-24"
"""The version of the rules in this package, kept in every trace."""

MAX_REVISIONS = 1
MOST_TURNS = 14
"""What the longest dialogue takes: seven operators, one revision, six operators again."""
DEFAULT_TURNS = 7


class Operator(StrEnum):
    """A kind of question."""

    DEFINE = "DEFINE"
    DISTINGUISH = "DISTINGUISH"
    CAUSE_OR_CRITERION = "CAUSE_OR_CRITERION"
    DIVIDE = "DIVIDE"
    COUNTEREXAMPLE = "COUNTEREXAMPLE"
    FOLLOW_CONSEQUENCE = "FOLLOW_CONSEQUENCE"
    TEST_OPPOSITE = "TEST_OPPOSITE"
    REVISE = "REVISE"


class Verdict(StrEnum):
    """How the specification bears on an answer."""

    SUPPORTED = "SUPPORTED"
    PARTIAL = "PARTIAL"
    SILENT = "SILENT"
    CONTRADICTED = "CONTRADICTED"


class Result(StrEnum):
    """What a question came to."""

    ESTABLISHED = "ESTABLISHED"
    NOT_FOUND = "NOT_FOUND"
    CONSISTENT = "CONSISTENT"
    EXCLUDED = "EXCLUDED"
    REVISED = "REVISED"
    INCOMPLETE = "INCOMPLETE"
    UNKNOWN = "UNKNOWN"
    CONFLICT = "CONFLICT"
    FOUND = "FOUND"
    POSSIBLE = "POSSIBLE"


class AnswerType(StrEnum):
    """The kind of an answer."""

    DEFINITION = "definition"
    EXAMPLE = "example"
    CRITERION = "criterion"
    CONSEQUENCE = "consequence"
    DISTINCTION = "distinction"
    CASE_SPLIT = "case-split"
    REVISION = "revision"
    NONE = "none"


class Terminal(StrEnum):
    """How a dialogue ended."""

    RESOLVED = "RESOLVED"
    APORIA_UNDEFINED = "APORIA_UNDEFINED"
    APORIA_UNDERDETERMINED = "APORIA_UNDERDETERMINED"
    APORIA_CONTRADICTED = "APORIA_CONTRADICTED"
    BOUNDED_STOP = "BOUNDED_STOP"


SUCCESS: Mapping[Operator, Result] = MappingProxyType(
    {
        Operator.DEFINE: Result.ESTABLISHED,
        Operator.DISTINGUISH: Result.ESTABLISHED,
        Operator.CAUSE_OR_CRITERION: Result.ESTABLISHED,
        Operator.DIVIDE: Result.ESTABLISHED,
        Operator.COUNTEREXAMPLE: Result.NOT_FOUND,
        Operator.FOLLOW_CONSEQUENCE: Result.CONSISTENT,
        Operator.TEST_OPPOSITE: Result.EXCLUDED,
        Operator.REVISE: Result.REVISED,
    }
)
"""The result by which each operator succeeds."""

WITNESSED = frozenset({Result.FOUND, Result.CONFLICT, Result.POSSIBLE})
"""Results that need a witness: a situation in which two readings part."""

CLAIMING = frozenset({Operator.DEFINE, Operator.REVISE})
"""The operators whose answer is the claim that the others examine."""

CLARIFIES: Mapping[Operator, Operator] = MappingProxyType(
    {
        Operator.DEFINE: Operator.DISTINGUISH,
        Operator.DISTINGUISH: Operator.CAUSE_OR_CRITERION,
        Operator.CAUSE_OR_CRITERION: Operator.DIVIDE,
        Operator.DIVIDE: Operator.DISTINGUISH,
        Operator.COUNTEREXAMPLE: Operator.DIVIDE,
        Operator.FOLLOW_CONSEQUENCE: Operator.CAUSE_OR_CRITERION,
        Operator.TEST_OPPOSITE: Operator.DISTINGUISH,
        Operator.REVISE: Operator.DISTINGUISH,
    }
)
"""What is asked next after an answer in part, unless it was asked about this claim already."""

DIMENSIONS: Mapping[Operator, str] = MappingProxyType(
    {
        Operator.DEFINE: "definition",
        Operator.DISTINGUISH: "distinction",
        Operator.CAUSE_OR_CRITERION: "criterion",
        Operator.DIVIDE: "division",
        Operator.COUNTEREXAMPLE: "counterexample",
        Operator.FOLLOW_CONSEQUENCE: "consequence",
        Operator.TEST_OPPOSITE: "opposite",
    }
)
"""The dimension of the depth profile that each operator examines."""


def results_of(operator: Operator) -> Mapping[Result, frozenset[Verdict]]:
    """Return every result that an operator can have, each with the verdicts that go with it."""
    found = {
        SUCCESS[operator]: frozenset({Verdict.SUPPORTED}),
        Result.INCOMPLETE: frozenset({Verdict.PARTIAL}),
        Result.UNKNOWN: frozenset({Verdict.SILENT}),
        Result.CONFLICT: frozenset({Verdict.CONTRADICTED}),
    }
    any_but_silent = frozenset(Verdict) - {Verdict.SILENT}
    if operator is Operator.COUNTEREXAMPLE:
        found[Result.FOUND] = any_but_silent
    if operator is Operator.TEST_OPPOSITE:
        found[Result.POSSIBLE] = any_but_silent
    return found


@dataclass(frozen=True, slots=True)
class Lens:
    """An order of questions: ``path`` is what follows DEFINE, ``focus`` what every question keeps in view."""

    name: str
    path: tuple[Operator, ...]
    focus: str


_LETTERS = {
    "D": Operator.DISTINGUISH,
    "C": Operator.CAUSE_OR_CRITERION,
    "V": Operator.DIVIDE,
    "X": Operator.COUNTEREXAMPLE,
    "F": Operator.FOLLOW_CONSEQUENCE,
    "O": Operator.TEST_OPPOSITE,
}


def _lens(name: str, letters: str, focus: str) -> Lens:
    return Lens(name, tuple(_LETTERS[letter] for letter in letters), focus)


LENSES: Mapping[str, Lens] = MappingProxyType(
    {
        lens.name: lens
        for lens in (
            _lens(
                "euthyphro",
                "DCVXFO",
                "a general definition rather than examples of it, and one that does not lead in a circle",
            ),
            _lens(
                "meno",
                "CDXVFO",
                "how a correct instance would be recognised by somebody who does not know the answer yet",
            ),
            _lens("parmenides", "FOVDCX", "what follows if the claim holds, and what follows if it does not"),
            _lens(
                "cratylus",
                "DOCVXF",
                "whether each name means one thing: one word for two things, two words for one",
            ),
            _lens(
                "theaetetus",
                "CFDXVO",
                "whether the account explains or only repeats; what is asserted, inferred, assumed",
            ),
            _lens(
                "sophist", "VDOCXF", "a division by criteria: look-alikes, cases that overlap, cases left out"
            ),
            _lens(
                "gorgias",
                "FCXVDO",
                "what sounds convincing as against a commitment that is justified and can be checked",
            ),
            _lens(
                "republic",
                "DVCXFO",
                "roles and parts as against the whole: what one can do, may do, and has to do",
            ),
            _lens(
                "philebus",
                "CVODXF",
                "limits, proportions, units and what is traded for what; numbers only where they are written",
            ),
        )
    }
)
"""The nine lenses by name."""
