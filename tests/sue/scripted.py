"""Answers that keep every rule, made to order, and a whole review of three requirements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from castle.llm.base import UnansweredError
from castle.sue.dialogue import Dialogue
from castle.sue.method import CLAIMING, SUCCESS, WITNESSED, Operator, Result, Verdict, results_of
from castle.sue.schema import Schema

REQUIREMENTS = (
    "R1. The service keeps every invoice for ten years.\nAn invoice is kept as it was sent.\n",
    "R2. A customer may ask that personal data be deleted.\nThe service deletes it within 30 days.\n",
    "R3. Deletion covers every copy, except those that the law requires to be kept.\n",
)
DECISION = "May the service delete an invoice when its customer asks that personal data be deleted?"

# The specification of these three: boundaries are lines 1, 4 and 7.
LINES = {
    2: "R1. The service keeps every invoice for ten years.",
    3: "An invoice is kept as it was sent.",
    5: "R2. A customer may ask that personal data be deleted.",
    6: "The service deletes it within 30 days.",
    8: "R3. Deletion covers every copy, except those that the law requires to be kept.",
}


def said(
    operator: Operator,
    result: Result | None = None,
    *,
    lines: Mapping[int, str] | None = None,
    turns: Sequence[int] = (),
    **other: Any,
) -> dict[str, Any]:
    """Return an answer to an operator; without a result, the one by which it succeeds.

    ``lines`` are cited whole; ``turns`` are those that a revision addresses; ``other`` replaces fields.
    """
    result = result or SUCCESS[operator]
    verdict = sorted(results_of(operator)[result])[0]
    silent = verdict is Verdict.SILENT
    cited = {} if silent else dict(lines or {2: LINES[2]})
    kinds = {Operator.DEFINE: "definition", Operator.REVISE: "revision"}
    numbers = list(cited)
    witness = {
        "situation": "A customer asks for the deletion of an invoice.",
        "reading_a": "It is kept.",
        "reading_b": "It is deleted.",
        "why_incompatible": "It cannot be both.",
        "lines_a": numbers[:1],
        "lines_b": numbers[-1:],
    }
    premise = {"statement": "The lines say so.", "kind": "inferred", "evidence_lines": numbers}
    revises = operator is Operator.REVISE and not silent
    return {
        "answer": f"An answer to {operator}.",
        "verdict": str(verdict),
        "answer_type": "none" if silent else kinds.get(operator, "criterion"),
        "evidence_lines": numbers,
        "evidence": [{"line": line, "quote": text} for line, text in cited.items()],
        "premises": [] if silent else [premise],
        "claim": f"Claim of {operator}." if operator in CLAIMING and not silent else "",
        "test_result": str(result),
        "witness": witness if result in WITNESSED else None,
        "open_questions": [],
        "addresses": list(turns) if revises else [],
        "revision_reason": "A counterexample stood against it." if revises else "",
        **other,
    }


class Script:
    """Answers in the order in which they are given, and what was asked."""

    def __init__(self, *answers: str | Mapping[str, Any] | Exception) -> None:
        self._answers = list(answers)
        self.prompts: list[str] = []
        self.schemas: list[Schema] = []

    def __call__(self, system: str, prompt: str, schema: Schema) -> str:
        self.prompts.append(prompt)
        self.schemas.append(schema)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps(answer)

    @property
    def left(self) -> int:
        return len(self._answers)


def in_time() -> UnansweredError:
    return UnansweredError("the model did not answer within 1 s")


def turns_of(dialogue: Dialogue) -> list[int]:
    return [turn.number for turn in dialogue.about_claim]


def _quote(*numbers: int) -> dict[int, str]:
    return {number: LINES[number] for number in numbers}


def _premise(kind: str, statement: str, *lines: int) -> dict[str, Any]:
    return {"kind": kind, "statement": statement, "evidence_lines": list(lines)}


DEFINE = said(
    Operator.DEFINE,
    lines=_quote(5, 6),
    answer="What a customer asks to have deleted is deleted within 30 days, invoices included.",
    claim="The service deletes an invoice within 30 days when its customer asks for deletion.",
    premises=[
        _premise("stated", "A customer may ask that personal data be deleted", 5),
        _premise("inferred", "An invoice holds personal data of its customer.", 5),
    ],
)

REVIEW: tuple[Mapping[str, Any] | str, ...] = (
    # A quote that does not stand in its line: the question is asked once more.
    {**DEFINE, "evidence": [{"line": 5, "quote": "R2: a customer may ask"}, {"line": 6, "quote": LINES[6]}]},
    f"Here is my answer:\n```json\n{json.dumps(DEFINE, indent=1)}\n```",
    said(
        Operator.DISTINGUISH,
        lines=_quote(2, 5),
        answer="Deleting personal data is one thing, deleting the document that holds it another.",
        answer_type="distinction",
        premises=[_premise("stated", "keeps every invoice", 2), _premise("inferred", "Data, not files.", 5)],
    ),
    said(
        Operator.CAUSE_OR_CRITERION,
        lines=_quote(5),
        answer="A case falls under the claim when the customer has asked.",
        premises=[_premise("stated", "A customer may ask", 5)],
    ),
    said(
        Operator.DIVIDE,
        lines=_quote(2, 8),
        answer="Invoices up to ten years old, and older ones.",
        answer_type="case-split",
        premises=[_premise("stated", "for ten years", 2)],
    ),
    said(
        Operator.COUNTEREXAMPLE,
        Result.FOUND,
        lines=_quote(2, 6, 8),
        answer="An invoice of last year: the law has it kept, and the claim has it deleted.",
        answer_type="example",
        premises=[_premise("stated", "except those that the law requires to be kept", 8)],
        witness={
            "situation": "The customer of an invoice of last year asks for deletion.",
            "reading_a": "The invoice is kept for ten years.",
            "reading_b": "The invoice is deleted within 30 days.",
            "why_incompatible": "A document cannot be kept and deleted.",
            "lines_a": [2, 8],
            "lines_b": [6],
        },
    ),
    said(
        Operator.REVISE,
        lines=_quote(2, 6, 8),
        turns=(1, 2, 3, 4, 5),
        answer="Invoices are excepted while they have to be kept.",
        claim="On request the service deletes personal data within 30 days, but no invoice in its ten years.",
        revision_reason="R3 excepts what the law has kept, and R1 says for how long that is.",
        premises=[_premise("inferred", "R1 is such a law for invoices.", 2, 8)],
    ),
    said(
        Operator.DISTINGUISH,
        lines=_quote(8),
        answer_type="distinction",
        answer="A copy that is kept by law, and one that is kept out of habit.",
        premises=[_premise("stated", "the law requires to be kept", 8)],
    ),
    said(
        Operator.CAUSE_OR_CRITERION,
        lines=_quote(2, 8),
        answer="The age of the invoice decides: ten years.",
        premises=[_premise("stated", "ten years", 2)],
    ),
    said(
        Operator.DIVIDE,
        lines=_quote(2, 6),
        answer_type="case-split",
        answer="Up to ten years it is kept; after that a request is followed within 30 days.",
        premises=[_premise("stated", "within 30 days", 6), _premise("stated", "ten years", 2)],
    ),
    said(
        Operator.COUNTEREXAMPLE,
        lines=_quote(2, 3, 8),
        answer_type="example",
        answer="An invoice with the name blacked out would not be as it was sent: R1 leaves no room for it.",
        premises=[_premise("stated", "as it was sent", 3)],
    ),
    said(
        Operator.FOLLOW_CONSEQUENCE,
        lines=_quote(6, 8),
        answer_type="consequence",
        answer="A request has to be remembered until the invoice is ten years old.",
        premises=[_premise("inferred", "The request does not lapse.", 6, 8)],
    ),
    said(
        Operator.TEST_OPPOSITE,
        lines=_quote(2),
        answer_type="consequence",
        answer="If an invoice could be deleted in its ten years, R1 would be broken.",
        premises=[_premise("stated", "keeps every invoice for ten years", 2)],
    ),
)
"""A whole review under the lens euthyphro: one answer is refused, one claim revised, and all is settled."""
