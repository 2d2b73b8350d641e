"""Patterns: what several episodes have in common, reviewed before it is believed.

A cluster of episodes becomes a proposal: its members, its medoid as the example, and a statement. A review
accepts it or not: a language model where there is one, otherwise a rule, that it comes from two occasions at
least and is more than small talk. What is accepted becomes a fact of origin ``pattern`` that cites its
members. A cluster that holds much of an earlier pattern is that pattern again: new members speak for it once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection

from castle.llm.base import LlmError, Provider
from castle.store.mind_facts import add_fact, change_confidence, facts, get_fact
from castle.store.mind_index import drawer_vectors
from castle.store.mind_rows import cite, get_meta, resting_on, set_meta, sources_of
from castle.store.mind_values import Episode, Source
from castle.text.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

INITIAL = 0.35
REVIEWED = (0.2, 0.7)
"""Bounds of the confidence that a review may give, and the most that a pattern reaches by itself."""
REINFORCEMENT = 0.05
OVERLAP = 0.6
"""The Jaccard index of two clusters, or the share of the smaller one in it, from which they are the same."""
OCCASIONS = 2
TELLING_WORDS = 3
SHOWN, SHOWN_CHARS = 5, 200
STATEMENT_CHARS = 300
LABEL_WORDS = 10
REJECTED_KEPT = 500
MOST = 10_000
"""Patterns of a wing that a new one is compared with."""
MOST_REVIEWED = 20
"""Proposals of a cycle that a model is asked about; the rule decides about others."""
PREFIX = "Recurring: "

_REJECTED = "patterns.rejected"
_COURTESY = frozenset(
    "absolutely awesome bye congrats congratulations cool definitely good great hello hey hi nice no ok okay "
    "please sorry sure thank thanks welcome wow yeah yep yes you danke hallo ja nein tschüss merci bonjour "
    "salut gracias hola ciao grazie obrigado 谢谢 ありがとう".split()
)
"""Words with which small talk begins."""

INSTRUCTIONS = """\
The texts are episodes that were said or written at different times and look alike. Say whether they show \
something that recurs and is worth knowing: a habit, a recurring problem, a fact that comes up again and \
again. Small talk and thanks are none. "label" states it in at most ten words, using only what the texts \
say; "confidence" is how sure the texts make you, between 0 and 1.\
"""

Decision = Literal["new", "again", "known", "rejected"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a cluster of episodes may show.

    ``decision``: new ones are written, ``again`` adds evidence to the pattern ``fact``, ``known`` adds
    nothing, ``rejected`` has a ``reason``. ``method`` is who reviewed it, a rule or a model.
    """

    key: str
    wing: str
    members: tuple[str, ...]
    sources: tuple[Source, ...]
    example: str
    statement: str
    confidence: float = INITIAL
    decision: Decision = "new"
    reason: str = ""
    method: str = "rule"
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Examples:
    """The patterns of a wing with the vectors of their examples; near is what has a cosine of ``least``."""

    facts: Sequence[str]
    vectors: NDArray[np.float32]
    least: float

    def nearest(self, vector: NDArray[np.float32]) -> str | None:
        """Return the pattern whose example is nearest, None where none is near."""
        if not len(self.facts):
            return None
        cosines = self.vectors @ vector
        place = int(cosines.argmax())
        return self.facts[place] if cosines[place] >= self.least else None


def examples(palace: Palace, cx: Connection, wing: str, least: float) -> Examples | None:
    """Return what the patterns of a wing are about, None while there are none."""
    import numpy as np

    held = facts(cx, origins=("pattern",), wing=wing, include_expired=True, include_cold=True, limit=MOST)
    named = {fact.id: str(fact.metadata.get("example", "")) for fact in held}
    found = drawer_vectors(palace, cx, list(named.values()))
    known = [id_ for id_, example in named.items() if example in found]
    return Examples(known, np.stack([found[named[id_]] for id_ in known]), least) if known else None


def propose(
    cx: Connection,
    episodes: Sequence[Episode],
    vectors: NDArray[np.float32],
    parts: Sequence[Sequence[int]],
    earlier: Examples | None = None,
) -> list[Proposal]:
    """Return a proposal for each cluster, given as places in ``episodes``, as the rule sees it.

    A cluster whose medoid is near to the example of an earlier pattern would have been one with its members.
    """
    from castle.mind.consolidation.clusters import medoid

    refused = _rejected(cx)
    found = []
    for part in parts:
        members = [episodes[place] for place in part]
        middle = part[medoid(vectors[list(part)])]
        example = episodes[middle]
        ids = tuple(sorted(member.id for member in members))
        proposal = Proposal(
            key=cluster_key(ids),
            wing=example.wing,
            members=ids,
            sources=tuple(
                Source("drawer", member.id, session=member.session or member.id) for member in members
            ),
            example=example.id,
            statement=PREFIX + _excerpt(example.text),
        )
        said = [example.text, *(member.text for member in members if member is not example)]
        near = None if earlier is None else earlier.nearest(vectors[middle])
        found.append(_placed(cx, proposal, refused, said, near))
    return found


def says_nothing(statement: str) -> bool:
    """Whether no word stands behind what every pattern begins with."""
    return not any(map(str.isalnum, statement.strip().removeprefix(PREFIX.strip())))


def review(
    proposals: Sequence[Proposal], texts: Mapping[str, str], provider: Provider
) -> tuple[list[Proposal], list[str]]:
    """Ask a model about new proposals; returns all of them, and notes about what could not be asked.

    A proposal that cannot be reviewed stays as the rule left it.
    """
    done: list[Proposal] = []
    notes: list[str] = []
    asked = 0
    for proposal in proposals:
        if proposal.decision != "new" or notes or asked >= MOST_REVIEWED:
            done.append(proposal)
            continue
        asked += 1
        try:
            done.append(_reviewed(proposal, texts, provider))
        except LlmError as error:
            notes.append(f"patterns were reviewed by rule: {error}")
            done.append(proposal)
    return done, notes


def write(cx: Connection, proposals: Sequence[Proposal], *, actor: str, now: int) -> list[Proposal]:
    """Believe what was accepted, and remember what a model rejected; returns them with their facts."""
    written = []
    refused = _rejected(cx)
    for proposal in proposals:
        if proposal.decision == "new" and says_nothing(proposal.statement):
            written.append(replace(proposal, decision="rejected", reason="it says nothing"))
        elif proposal.decision == "new":
            written.append(_believe(cx, proposal, actor, now))
        elif proposal.decision == "again":
            written.append(_strengthen(cx, proposal, actor, now))
        else:
            written.append(proposal)
        if proposal.decision == "rejected" and proposal.method == "model":
            refused[proposal.key] = list(proposal.members)
    kept = dict(list(refused.items())[-REJECTED_KEPT:])
    if kept:
        set_meta(cx, _REJECTED, json.dumps(kept))
    return written


def cluster_key(ids: Sequence[str]) -> str:
    """Return the key of a cluster: a hash of its members, whatever their order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode("utf-8")).hexdigest()[:16]


def overlaps(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two clusters are one and the same, grown or shrunk."""
    here, there = set(one), set(other)
    common = len(here & there)
    if not common:
        return False
    return common / len(here | there) >= OVERLAP or common / min(len(here), len(there)) >= OVERLAP


def _placed(
    cx: Connection,
    proposal: Proposal,
    refused: Mapping[str, Sequence[str]],
    said: Sequence[str],
    near: str | None,
) -> Proposal:
    """Say whether a proposal is known, was rejected before, or passes the rule; ``said`` begins with it.

    ``near`` is an earlier pattern about the same.
    """
    known = _earlier(cx, proposal) or (None if near is None else (near, _cited(cx, near)))
    if known is not None:
        fact, cited = known
        fresh = set(proposal.members) - cited
        held = get_fact(cx, fact)
        closed = held.expired or held.state == "cold" or not fresh
        return replace(proposal, decision="known" if closed else "again", fact=fact)
    if any(overlaps(proposal.members, members) for members in refused.values()):
        return replace(proposal, decision="rejected", reason="a model rejected it before", method="before")
    occasions = len({source.session for source in proposal.sources})
    if occasions < OCCASIONS:
        return replace(proposal, decision="rejected", reason="all of it is from one occasion")
    return replace(proposal, decision="rejected", reason=reason) if (reason := _dull(said)) else proposal


def _dull(said: Sequence[str]) -> str:
    """Return why texts say too little to be a pattern, "" where they do not."""
    if len({word for word in words(said[0]) if len(word) > 3}) < TELLING_WORDS:
        return "it says too little"
    openings = [next(iter(words(text)), "") for text in said]
    return "it is courtesy" if 2 * sum(word in _COURTESY for word in openings) > len(openings) else ""


def _earlier(cx: Connection, proposal: Proposal) -> tuple[str, set[str]] | None:
    """Return the earlier pattern that a cluster is, and the drawers that it cites."""
    by_fact: dict[str, set[str]] = {}
    for kind, owner, source in resting_on(cx, "drawer", proposal.members):
        if kind == "fact":
            by_fact.setdefault(owner, set()).add(source)
    ranked = sorted(by_fact, key=lambda fact: (-len(by_fact[fact]), fact))
    for fact in ranked:
        if get_fact(cx, fact).origin == "pattern":
            cited = _cited(cx, fact)
            if overlaps(proposal.members, sorted(cited)):
                return fact, cited
    return None


def _cited(cx: Connection, fact: str) -> set[str]:
    return {source.id for source in sources_of(cx, "fact", fact) if source.kind == "drawer"}


def _reviewed(proposal: Proposal, texts: Mapping[str, str], provider: Provider) -> Proposal:
    from pydantic import BaseModel, Field

    from castle.llm.asking import ask

    class Review(BaseModel):
        is_pattern: bool
        label: str = Field(max_length=200)
        confidence: float = Field(ge=0, le=1)

    shown = [texts[id_][:SHOWN_CHARS] for id_ in _first(proposal) if id_ in texts]
    answer = ask(provider, INSTRUCTIONS, Review, {"episode": shown})
    label = " ".join(answer.label.split()[:LABEL_WORDS])
    if not answer.is_pattern or says_nothing(label):
        return replace(proposal, decision="rejected", reason="the model sees no pattern", method="model")
    confidence = min(max(answer.confidence, REVIEWED[0]), REVIEWED[1])
    return replace(proposal, statement=label, confidence=confidence, method="model")


def _first(proposal: Proposal) -> list[str]:
    return [proposal.example, *(id_ for id_ in proposal.members if id_ != proposal.example)][:SHOWN]


def _believe(cx: Connection, proposal: Proposal, actor: str, now: int) -> Proposal:
    fact = add_fact(
        cx,
        proposal.statement,
        confidence=proposal.confidence,
        origin="pattern",
        actor=actor,
        now=now,
        wing=proposal.wing,
        sources=proposal.sources,
        tags=("pattern",),
        metadata={
            "pattern_cluster_id": proposal.key,
            "episode_count": len(proposal.members),
            "detection_method": "dbscan",
            "example": proposal.example,
            "reviewed_by": proposal.method,
        },
    )
    return replace(proposal, fact=fact.id)


def _strengthen(cx: Connection, proposal: Proposal, actor: str, now: int) -> Proposal:
    """Cite the new members of a pattern, and believe it a little more, once for all of them."""
    fresh = cite(cx, "fact", proposal.fact, proposal.sources, now)
    room = REVIEWED[1] - get_fact(cx, proposal.fact).confidence
    if fresh and room > 0:
        change_confidence(
            cx,
            proposal.fact,
            min(REINFORCEMENT, room),
            reason="the pattern was seen again",
            actor=actor,
            now=now,
            evidence=[source.id for source in fresh],
        )
    return proposal


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= STATEMENT_CHARS else line[: STATEMENT_CHARS - 1] + "…"


def _rejected(cx: Connection) -> dict[str, list[str]]:
    stored: dict[str, list[str]] = json.loads(get_meta(cx, _REJECTED) or "{}")
    return stored
