"""Reflection: thinking about how something went, along four dimensions.

    failure   effect attribution: which earlier episodes went the same way, and what they share
    strategy  how well procedures do
    gaps      whether what was needed is known, and whether it was called to mind
    process   what to change: procedures and facts that rest on the episodes which show the cause

What is found is kept as a reflection, which cites its episodes and is no episode itself. The changes are
proposals, made only with ``apply``; then each has its evidence, and facts that are firmly believed resist. No
language model is needed: with one, the cause is its reading of the episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from castle.clock import to_iso
from castle.errors import CastleError, UsageError
from castle.llm.base import LlmError, Provider
from castle.mind.models import usable
from castle.mind.nearby import (
    Near,
    distance_for,
    embed_waiting,
    nearest_episodes,
    nearest_facts,
    telling,
    vector_of,
)
from castle.mind.reflection.attribution import Attribution, by_model, by_signs
from castle.mind.reflection.strategies import evaluate
from castle.store.mind_cycles import recalled_since
from castle.store.mind_facts import change_confidence, get_fact
from castle.store.mind_procedures import FLOOR, change_weight, get_procedure
from castle.store.mind_reflections import add_reflection, count_reflections, recent_reflections
from castle.store.mind_rows import resting_on
from castle.store.mind_values import Episode, Source
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    from castle.store.palace import Palace

DIMENSIONS = ("failure", "strategy", "gaps", "process")
KEYS = {
    "failure": "effect_attribution",
    "strategy": "strategy_effectiveness",
    "gaps": "knowledge_gaps",
    "process": "result_processing",
}
OUTCOMES = ("failure", "partial", "success")
NEAREST_EPISODES, NEAREST_FACTS = 10, 10
MISSING_BEYOND, RETRIEVAL_WITHIN = 0.5, 0.3
STEP = 0.05
WEAKENED_ABOVE = 0.3
MOST_CHANGES = 3
SHOWN_CHARS = 200
RECALL_SECONDS = 86_400
"""Seconds in which a recall counts as one for the task."""
WITHOUT_MODEL = "causes and gaps are found by shared signs and words"


def reflect(
    palace: Palace,
    task_description: str,
    *,
    outcome: str = "failure",
    dimensions: str = "failure",
    apply: bool = False,
    llm: Provider | None = None,
    wing: str | None = None,
    actor: str,
) -> dict[str, Any]:
    """Reflect on a task and return what was found.

    ``outcome`` is failure, partial or success; ``dimensions`` names one or several of failure, strategy, gaps
    and process, joined by commas, or all. For ``failure`` alone the answer holds ``analysis``, otherwise
    ``dimensions`` and ``overall_assessment``; always ``reflection_id`` and ``notes``. Raises UsageError.
    """
    task = " ".join(task_description.split())
    if not task:
        raise UsageError("the task is empty: say what was to be done")
    if outcome not in OUTCOMES:
        raise UsageError(f"outcome {outcome!r} is none of {', '.join(OUTCOMES)}")
    wanted = _wanted(dimensions)
    run = _Run(palace, mask_secrets(task, palace.salt), outcome, apply, llm, wing, actor)
    return run.go(wanted)


def status(cx: Connection) -> dict[str, Any]:
    """Return how many reflections there are, and the last ones."""
    total, applied = count_reflections(cx)
    recent = [
        {"id": one.id, "task": one.task[:SHOWN_CHARS], "outcome": one.outcome, "at": to_iso(one.created_at)}
        for one in recent_reflections(cx)
    ]
    told = {"dimensions": len(DIMENSIONS), "total": total, "applied": applied}
    return {**told, "recent_count": len(recent), "recent": recent}


class _Run:
    """One reflection on its way."""

    def __init__(
        self,
        palace: Palace,
        task: str,
        outcome: str,
        apply: bool,
        llm: Provider | None,
        wing: str | None,
        actor: str,
    ) -> None:
        self.palace = palace
        self.task = task
        self.outcome = outcome
        self.apply = apply
        self.wing = wing
        self.actor = actor
        self.now = palace.ledger.clock()
        self.llm, self.notes = usable(llm, palace, "reflection", WITHOUT_MODEL)
        self.episodes: list[Episode] = []
        self.attribution: Attribution | None = None
        self.gap = ""

    def go(self, wanted: Sequence[str]) -> dict[str, Any]:
        """Go through the dimensions that are wanted; one that fails does not stop the others."""
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            "failure": self._attribute,
            "strategy": self._strategies,
            "gaps": self._gaps,
            "process": self._process,
        }
        needed = [name for name in DIMENSIONS if name in wanted or "process" in wanted and name != "strategy"]
        found: dict[str, dict[str, Any]] = {}
        failed: list[str] = []
        for name in needed:
            try:
                found[KEYS[name]] = parts[name]()
            except CastleError as error:
                failed.append(name)
                found[KEYS[name]] = {"status": "error", "error": str(error)}
        proposals = found.get(KEYS["process"], {})
        shown = {KEYS[name]: found[KEYS[name]] for name in wanted}
        id_ = self._keep(wanted, found, proposals)
        told: dict[str, Any] = {"reflection_id": id_, "outcome": self.outcome, "notes": self.notes}
        if tuple(wanted) == ("failure",):
            if failed:
                raise CastleError(str(found[KEYS["failure"]]["error"]))
            return {**told, "analysis": found[KEYS["failure"]]}
        if "result_processing" in shown and self.attribution is not None and self.attribution.root_cause:
            shown["result_processing"] = {**shown["result_processing"], "meta_knowledge_id": id_}
        whole = "completed" if not failed else f"partial: {len(failed)} dimensions failed: {failed}"
        return {**told, "dimensions": shown, "overall_assessment": whole}

    def _attribute(self) -> dict[str, Any]:
        self.episodes = nearest_episodes(self.palace, self.task, NEAREST_EPISODES, self.now, self.wing)
        success = self.outcome == "success"
        found = by_signs(self.task, self.episodes, success=success)
        if self.llm is not None:
            try:
                found = by_model(self.task, self.outcome, self.episodes, self.llm)
            except LlmError as error:
                self.notes.append(f"the cause was found by shared signs: {error}")
        if not found.root_cause:
            self.notes.append("no earlier episode tells of a cause")
        self.attribution = found
        return {**found.as_dict(), "episodes_considered": [one.id for one in self.episodes]}

    def _strategies(self) -> dict[str, Any]:
        with self.palace.ledger.read() as cx:
            return evaluate(self.palace, cx, self.wing)

    def _gaps(self) -> dict[str, Any]:
        vector = vector_of(self.palace, self.task) if embed_waiting(self.palace) else None
        with self.palace.ledger.read() as cx:
            near = nearest_facts(self.palace, cx, self.task, vector, NEAREST_FACTS, self.wing)
            far, close = (distance_for(self.palace, cx, d) for d in (MISSING_BEYOND, RETRIEVAL_WITHIN))
            recalled = recalled_since(cx, self.now - RECALL_SECONDS * 1_000_000)
        self.gap = _gap(near, far, close, recalled)
        existing = [
            {
                "id": one.fact.id,
                "content": one.fact.statement[:SHOWN_CHARS],
                "distance": round(one.distance, 4),
                "recalled": one.fact.id in recalled,
            }
            for one in near[:3]
        ]
        return {
            "gap_type": self.gap,
            "suggested_knowledge": self._suggested(near, far),
            "existing_in_semantic": existing,
            "method": "words" if vector is None else "meaning",
        }

    def _suggested(self, near: Sequence[Near], far: float) -> dict[str, Any] | None:
        """Return what ought to be known, as a model names it or by the words that no fact holds."""
        if self.gap != "missing":
            return None
        known = {word for one in near if one.distance <= far for word in telling(one.fact.statement)}
        lacking = [word for word in telling(self.task) if word not in known]
        told: dict[str, Any] = {"words": lacking[:10], "method": "words"}
        if self.llm is None:
            return told
        try:
            return {**told, **_topic(self.task, [one.fact.statement for one in near[:5]], self.llm)}
        except LlmError as error:
            self.notes.append(f"what is missing was found by words: {error}")
            return told

    def _process(self) -> dict[str, Any]:
        """Propose to trust those things less that rest on the episodes which show a cause of failure."""
        told: dict[str, Any] = {"applied": False, "procedural_updates": [], "semantic_adjustments": []}
        told["meta_knowledge_id"] = None
        cause = self.attribution
        if self.outcome == "success" or cause is None or not (cause.root_cause and cause.evidence):
            return told
        with self.palace.ledger.read() as cx:
            resting: dict[tuple[str, str], list[str]] = {}
            for kind, id_, drawer in sorted(resting_on(cx, "drawer", cause.evidence)):
                resting.setdefault((kind, id_), []).append(drawer)
            updates = [
                _weaker_skill(cx, id_, by) for (kind, id_), by in resting.items() if kind == "procedure"
            ]
            # Facts that were not there to be used are no reason of a failure.
            beliefs = {} if self.gap == "missing" else resting
            doubts = [_weaker_fact(cx, id_, by) for (kind, id_), by in beliefs.items() if kind == "fact"]
        told["procedural_updates"] = [one for one in updates if one is not None][:MOST_CHANGES]
        told["semantic_adjustments"] = [one for one in doubts if one is not None][:MOST_CHANGES]
        return told

    def _keep(self, wanted: Sequence[str], found: Mapping[str, Any], proposals: dict[str, Any]) -> str:
        """Keep the reflection, and make the changes if that is wanted; one transaction."""
        evidence = self.attribution.evidence if self.attribution is not None else ()
        by_id = {one.id: one for one in self.episodes}
        shown = [by_id[id_] for id_ in evidence if id_ in by_id]
        sources = [Source("drawer", one.id, session=one.session) for one in shown]
        suggested = [*proposals.get("procedural_updates", ()), *proposals.get("semantic_adjustments", ())]
        applied = self.apply and bool(suggested)
        with self.palace.ledger.write() as cx:
            if applied:
                for one in proposals["procedural_updates"]:
                    self._change_weight(cx, one)
                for one in proposals["semantic_adjustments"]:
                    self._change_confidence(cx, one)
                proposals["applied"] = True
            return add_reflection(
                cx,
                task=self.task,
                outcome=self.outcome,
                text=self._text(),
                dimensions=wanted,
                analysis=found,
                proposals=suggested,
                sources=sources,
                wing=self.wing,
                applied=applied,
                now=self.now,
            )

    def _change_weight(self, cx: Connection, one: dict[str, Any]) -> None:
        one["to"] = change_weight(
            cx, one["id"], one["to"], reason=self._reason(), actor=self.actor, now=self.now,
            evidence=one["evidence"],
        )  # fmt: skip
        one["applied"] = True

    def _change_confidence(self, cx: Connection, one: dict[str, Any]) -> None:
        one["to"] = change_confidence(
            cx, one["id"], -STEP, reason=self._reason(), actor=self.actor, now=self.now,
            evidence=one["evidence"],
        )  # fmt: skip
        one["applied"] = one["to"] != one["from"]

    def _reason(self) -> str:
        return f"reflection on a {self.outcome}: {self.task[:SHOWN_CHARS]}"

    def _text(self) -> str:
        lines = [f"Task ({self.outcome}): {self.task}"]
        if self.attribution is not None and self.attribution.root_cause:
            lines.append(f"Cause: {self.attribution.root_cause}")
            lines += [f"Factor: {factor}" for factor in self.attribution.contributing_factors]
            if self.attribution.missed_signal:
                lines.append(f"Missed: {self.attribution.missed_signal}")
        if self.gap:
            lines.append(f"Knowledge: {self.gap}")
        return "\n".join(lines)


def _wanted(dimensions: str) -> list[str]:
    given = [name.strip() for name in dimensions.split(",") if name.strip()]
    unknown = [name for name in given if name not in (*DIMENSIONS, "all")]
    if unknown or not given:
        raise UsageError(f"dimensions {dimensions!r}: name one or more of {', '.join(DIMENSIONS)}, or all")
    return [name for name in DIMENSIONS if name in given or "all" in given]


def _gap(near: Sequence[Near], far: float, close: float, recalled: set[str]) -> str:
    """Return missing, retrieval (known, and not called to mind), or none."""
    if not near or near[0].distance > far:
        return "missing"
    known = [one for one in near if one.distance < close]
    if known and not any(one.fact.id in recalled for one in known):
        return "retrieval"
    return "none"


def _topic(task: str, known: Sequence[str], provider: Provider) -> dict[str, Any]:
    from pydantic import BaseModel, Field

    from castle.llm.asking import ask

    class Topic(BaseModel):
        knowledge_domain: str = Field(max_length=100)
        specific_topic: str = Field(max_length=200)

    instructions = (
        "Somebody failed at the task and did not know enough. Name in a few words the domain and the topic "
        "that they should learn about, apart from what the known statements say."
    )
    answer = ask(provider, instructions, Topic, {"task": task, "known": list(known)})
    return {**answer.model_dump(), "method": "model"}


def _weaker_skill(cx: Connection, id_: str, evidence: Sequence[str]) -> dict[str, Any] | None:
    held = get_procedure(cx, id_)
    wanted = max(held.weight - STEP, FLOOR)
    if held.expired or wanted == held.weight:
        return None
    return {"id": id_, "from": held.weight, "to": wanted, "evidence": list(evidence), "applied": False}


def _weaker_fact(cx: Connection, id_: str, evidence: Sequence[str]) -> dict[str, Any] | None:
    held = get_fact(cx, id_)
    # A pattern only says what happened, and what went wrong did happen.
    if held.expired or held.confidence <= WEAKENED_ABOVE or held.origin == "pattern":
        return None
    wanted = held.confidence - STEP
    return {"id": id_, "from": held.confidence, "to": wanted, "evidence": list(evidence), "applied": False}
