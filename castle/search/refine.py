"""Stages 3 to 6: what reads the best candidates one by one, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from castle.clock import to_iso
from castle.errors import CastleError, UnreadableError
from castle.models.base import Comparer
from castle.records import Drawer, JudgeStatus
from castle.search.candidates import Candidate, boosted
from castle.search.candidates import ranked as stamped
from castle.search.fusion import among_kin, favoured
from castle.search.options import MODES, MOST_READ, Options
from castle.search.question import Question
from castle.search.retention import STAGE as RETENTION
from castle.search.run import Run, StageUnavailable, model_time
from castle.store.reading import served
from castle.text.sanitize import served_query
from castle.text.served import mask_secrets
from castle.text.words import words

if TYPE_CHECKING:
    from castle.llm.base import Provider
    from castle.models.base import CrossEncoder
    from castle.search.soar import ReadyRules


NO_FACTORS: Mapping[str, float] = {}
FAIR_SHARE = 0.4
"""Of the words of a question; below it nothing is taken for an answer where no model reads."""
NOTHING = "nothing was found"
"""Why a stage was left out that would have had nothing to read."""
TIMELY = 0.5
"""The fit from which a drawer counts as being of the time that is asked for."""


@dataclass(frozen=True, slots=True)
class Engines:
    """What the later stages work with, each made when it is first needed; None where it is switched off.

    A judge that the user named has to be there; without one that is only the default nothing is amiss.
    """

    encoder: Callable[[], CrossEncoder] | None = None
    judge: Callable[[], Provider] | None = None
    soar: Callable[[], ReadyRules] | None = None
    judge_is_named: bool = False
    encoder_name: str = ""


def prepare(options: Options, engines: Engines) -> None:
    """Let what takes a while to start do so beside the rest; what cannot will say so in its stage."""
    if engines.soar is not None and "soar" in MODES[options.mode]:
        with suppress(CastleError):
            engines.soar().prepare()


class Refiner:
    """The later stages of one search."""

    def __init__(
        self,
        question: Question,
        drawers: Mapping[str, Drawer],
        options: Options,
        engines: Engines,
        run: Run,
        spoken: Mapping[str, Mapping[str, float]],
        around: Mapping[str, Mapping[str, float]],
        salt: bytes = b"",
        retention: Mapping[str, float] = NO_FACTORS,
    ) -> None:
        self.confident = True
        self.judge_status: JudgeStatus | None = None
        self.together: dict[str, float] = {}
        """How well what was read of each session answers the question as one text, in log odds, by source."""
        self._question = question
        self._drawers = drawers
        self._options = options
        self._engines = engines
        self._run = run
        self._now = question.now
        self._spoken = spoken
        self._around = around
        self._salt = salt
        self._retention = retention
        self._first = True

    def refine(self, fused: Sequence[Candidate], size: int, needed: int, *, judged: bool) -> list[Candidate]:
        """Put the best candidates through the stages, a block at a time until ``needed`` have been.

        A block has ``size`` candidates, more where they are short. Where sessions are asked for, the best
        drawer of each of the first ``size`` of them is read before any other.

        What is left follows in the order it came in. The judge reads the first block only, and only when
        ``judged``.
        """
        done: list[Candidate] = []
        rest = list(fused)
        while not done or (rest and len(done) < needed):
            block, rest = self._parted(rest, size)
            done += _below(self._block(block, first=not done, judged=judged), done)
            if not fused:
                break
        return [*done, *_below(rest, done)]

    def _parted(self, rest: Sequence[Candidate], size: int) -> tuple[list[Candidate], list[Candidate]]:
        """Part the candidates into those that are read together and the others, both in their order."""
        left = size * self._options.rerank_characters
        chosen: set[str] = set()
        for candidate in self._firsts(rest, size)[: max(size, MOST_READ)]:
            left -= len(self._drawers[candidate.id].text)
            if len(chosen) >= size and left < 0:
                break
            chosen.add(candidate.id)
        return [c for c in rest if c.id in chosen], [c for c in rest if c.id not in chosen]

    def _firsts(self, rest: Sequence[Candidate], size: int) -> Sequence[Candidate]:
        """Put the best drawer of each of the first ``size`` sessions first, where sessions are read."""
        if self._options.by != "session" or self._engines.encoder is None:
            return rest
        best: dict[str, Candidate] = {}
        for candidate in rest:
            best.setdefault(self._drawers[candidate.id].source, candidate)
        first = {candidate.id for candidate in list(best.values())[:size]}
        return sorted(rest, key=lambda candidate: candidate.id not in first)

    def _block(self, block: list[Candidate], *, first: bool, judged: bool) -> list[Candidate]:
        self._first = first
        ranked = self._stage("cross-encoder", self._reread, block)
        for name, work in (("judge", self._judge), ("soar", self._soar), ("quality", self._quality)):
            if name not in MODES[self._options.mode]:
                self._run.skip(name, f"mode {self._options.mode}", len(ranked))
            elif name == "judge" and not (first and judged):
                self._run.skip(name, "only the first candidates are judged", len(ranked))
            else:
                ranked = self._stage(name, work, ranked)
        if self._retention:
            ranked = self._stage(RETENTION, lambda given: boosted(given, self._retention, RETENTION), ranked)
        return ranked

    def _stage(
        self,
        name: str,
        work: Callable[[Sequence[Candidate]], Sequence[Candidate]],
        given: Sequence[Candidate],
    ) -> list[Candidate]:
        """Run a stage; one that has nothing to do has not shown that it could do it."""
        if not given:
            self._run.skip(name, NOTHING)
            return []
        return self._run.stage(name, lambda: work(given), given)

    def _reread(self, given: Sequence[Candidate]) -> Sequence[Candidate]:
        from castle.search.rerank import confident, rerank

        if self._engines.encoder is None:
            raise StageUnavailable("it is switched off (reranker: off)")
        encoder = self._engines.encoder()
        if encoder.reason and self._first:
            self._run.degraded.append(f"cross-encoder: {encoder.reason}")
        texts = {id_: self._with_context(id_, text) for id_, text in self._texts(given).items()}
        subject = self._question.subject or self._question.text
        try:
            with model_time():
                sessions = self._options.by == "session"
                ranked = rerank(subject, given, texts, encoder, len(given), compared=not sessions)
                if sessions and isinstance(encoder, Comparer):
                    self.together |= self._gathered(subject, texts, encoder)
        except UnreadableError as error:
            if self._first:
                self.confident = _shares(self._question.query, given)
            raise StageUnavailable(str(error)) from error
        if self._first:
            self.confident = confident(ranked, encoder) or self._timely(given)
        kin = {c.id: self._drawers[c.id].source for c in ranked}
        ranked = among_kin(ranked, self._around, self._options.weights, kin)
        if self._spoken:
            ranked = favoured(ranked, self._spoken, self._options.weights)
        return stamped(ranked, "evidence")

    def _gathered(self, subject: str, texts: Mapping[str, str], encoder: Comparer) -> dict[str, float]:
        """Compare what was read of each session, as one text."""
        groups: dict[str, list[str]] = {}
        for id_, text in texts.items():
            groups.setdefault(self._drawers[id_].source, []).append(text)
        odds = encoder.compare(subject, list(groups.values()))
        return dict(zip(groups, map(float, odds), strict=True))

    def _timely(self, given: Sequence[Candidate]) -> bool:
        """Whether a question asks for a time and for little else, and something is from that time."""
        fits = self._spoken.get("times", {})
        return self._question.vague and any(fits.get(c.id, 0.0) >= TIMELY for c in given)

    def _judge(self, given: Sequence[Candidate]) -> Sequence[Candidate]:
        from castle.llm.base import LlmError
        from castle.search.judge import judge

        if self._engines.judge is None:
            raise StageUnavailable("it is switched off")
        if len(given) < 2:
            raise StageUnavailable("there is nothing to order")
        provider = self._engines.judge()
        reason = provider.available()
        if reason:
            raise LlmError(reason) if self._engines.judge_is_named else StageUnavailable(reason)
        with model_time():
            ordered, status = judge(
                self._asked(),
                given,
                {candidate.id: self._told(candidate.id) for candidate in given},
                provider,
                self._options.judge_top_n,
            )
        self.judge_status = status
        if status.error:
            raise LlmError(status.error)
        return ordered

    def _soar(self, given: Sequence[Candidate]) -> Sequence[Candidate]:
        from castle.search.soar import WORKING_MEMORY, SoarContext, SoarFacts, project_of_environment, soar

        if self._engines.soar is None:
            raise StageUnavailable("it is switched off")
        if len(given) > WORKING_MEMORY:
            self._run.degraded.append(f"soar: the first {WORKING_MEMORY} of {len(given)} candidates are seen")
        facts = {}
        for candidate in given:
            drawer = self._drawers[candidate.id]
            facts[candidate.id] = SoarFacts(
                drawer.id,
                drawer.wing,
                drawer.room,
                drawer.authored_at,
                candidate.entity_match,
                candidate.score,
            )
        context = SoarContext(project_of_environment(), self._question.query, self._now)
        return soar(given, facts, context, self._engines.soar(), self._options.strength("soar"))

    def _quality(self, given: Sequence[Candidate]) -> Sequence[Candidate]:
        from castle.search.quality import quality

        return quality(
            given,
            self._texts(given),
            self._options.quality,
            self._options.strength("quality"),
            self._run.degraded.append,
        )

    def _asked(self) -> str:
        """Return the question as a language model is given it, with its day where it speaks of times."""
        asked = served_query(self._question.query, self._salt)
        return f"{asked} (asked on {to_iso(self._now)[:10]})" if self._question.times else asked

    def _told(self, id_: str) -> str:
        """Return a text with who said it and on what day."""
        drawer = self._drawers[id_]
        who = mask_secrets(drawer.speaker or drawer.role, self._salt)
        about = [
            part for part in (to_iso(drawer.authored_at)[:10] if drawer.authored_at else "", who) if part
        ]
        return f"({', '.join(about)}) {served(drawer)}" if about else served(drawer)

    def _with_context(self, id_: str, text: str) -> str:
        """Return a text with what it stands under, as embedders are given it."""
        context = self._drawers[id_].context
        return f"{context}\n{text}" if context else text

    def _texts(self, given: Sequence[Candidate]) -> dict[str, str]:
        return {candidate.id: served(self._drawers[candidate.id]) for candidate in given}


def _shares(query: str, given: Sequence[Candidate]) -> bool:
    """Whether one of the candidates has a fair share of the words of a query that no model could read."""
    asked = set(words(query))
    return any(len(asked.intersection(c.matched)) >= FAIR_SHARE * len(asked) for c in given)


def _below(ranked: Sequence[Candidate], done: Sequence[Candidate]) -> list[Candidate]:
    """Cap the scores of what follows at the last score of what is done."""
    if not done:
        return list(ranked)
    ceiling = done[-1].score
    return [c if c.score <= ceiling else c.but(score=ceiling) for c in ranked]
