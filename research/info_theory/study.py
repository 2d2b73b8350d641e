"""The stages of the study, each from the results of those before it, each kept in the cache."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval.filing import Say
from castle.errors import PalaceError
from castle.llm.base import Provider
from castle.novelty import estimators
from castle.novelty.estimators import Priors, nn_novelty, priors, recon_residual
from castle.store.palace import Palace
from research.info_theory import decay, downstream, forgetting, judging, ranks, relations
from research.info_theory.cache import Arrays, Cache
from research.info_theory.corpus import Dataset, Loaded, load, units_of
from research.info_theory.ranks import Floats, Ints, Resamples, block_counts

STAGES = (
    "snapshot",
    "load",
    "neighbors",
    "nn-novelty",
    "recon-residual",
    "stratify",
    "llm-surprise",
    "downstream-eval",
    "fit-decay",
    "heterogeneity",
    "correlations",
)
LOW = 0.10
DRAWN = 2000
"""Drawers shown in a scatter plot."""
FEWEST_DRAWERS = 10
"""Drawers with B without which there is nothing to correlate."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where each kind of chance begins."""

    bootstrap: int = 42
    subsample: int = 43
    downstream_eval: int = 44
    pilot: int = 45


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided beforehand."""

    resamples: int = 1000
    neighbours: int = estimators.NEIGHBOURS
    fewest: int = estimators.FEWEST
    tikhonov: float = estimators.TIKHONOV
    seeds: Seeds = field(default_factory=Seeds)


@dataclass(frozen=True, slots=True)
class Table:
    """All drawers of a data set with their estimators; ``palace`` is a number, ``place`` that in it."""

    names: tuple[str, ...]
    palace: Ints
    place: Ints
    count: Ints
    a: Floats
    b: Floats
    chars: Ints
    session: NDArray[np.str_]
    role: NDArray[np.str_]
    stratum: NDArray[np.str_]
    text: NDArray[np.str_]


class Study:
    """One data set going through the stages."""

    def __init__(self, dataset: Dataset, plan: Plan, cache: Cache, say: Say) -> None:
        self.dataset = dataset
        self.plan = plan
        self._cache = cache
        self._say = say

    def run(self, last: str = STAGES[-1]) -> dict[str, Any]:
        """Run the stages up to ``last`` and return their results by name."""
        wanted = STAGES[: STAGES.index(last) + 1]
        found: dict[str, Any] = {}
        if "nn-novelty" in wanted:
            found["describe"] = self.describe()
        steps = {
            "llm-surprise": self.surprise,
            "downstream-eval": self.downstream,
            "fit-decay": self.decay,
            "heterogeneity": self.heterogeneity,
            "correlations": self.correlations,
        }
        for stage, step in steps.items():
            if stage in wanted:
                self._say(f"{self.dataset.name}: {stage}")
                found[stage] = step()
                if stage == "llm-surprise" and found[stage]["reason"]:
                    self._say(f"{self.dataset.name}: {stage} is skipped: {found[stage]['reason']}")
        return found

    def status(self) -> dict[str, str]:
        """Return for each stage how much of it the cache holds."""
        marks = [self._open(name).fingerprint for name in self.dataset.palaces]
        keys = {"load": {}, **{stage: self._settings(stage) for stage in STAGES[2:5]}}
        found = {"snapshot": f"{len(marks)} palaces"}
        for stage, settings in keys.items():
            held = sum(self._cache.holds(stage, {"palace": mark, **settings}) for mark in marks)
            found[stage] = f"{held}/{len(marks)}"
        for stage in STAGES[7:]:
            found[stage] = "there" if self._cache.holds(stage, self._key(stage, marks)) else "not yet"
        found[STAGES[6]] = "there" if self._cache.kept(STAGES[6], self.dataset.name) else "not yet"
        return found

    @cached_property
    def _embedder(self) -> str:
        palace = Palace(next(iter(self.dataset.palaces.values())))
        try:
            return palace.identity.identity
        finally:
            palace.close()

    # Each palace

    def _open(self, name: str) -> Loaded:
        palace = Palace(self.dataset.palaces[name])
        try:
            return load(palace, self.dataset.first)
        finally:
            palace.close()

    def _units(self, name: str, loaded: Loaded) -> NDArray[np.float32]:
        palace = Palace(self.dataset.palaces[name])
        try:
            return units_of(palace, loaded.rows)
        finally:
            palace.close()

    def _settings(self, stage: str) -> dict[str, Any]:
        found: dict[str, Any] = {"code": _code(estimators.__file__), "k": self.plan.neighbours}
        if stage == "recon-residual":
            found |= {"fewest": self.plan.fewest, "tikhonov": self.plan.tikhonov}
        return found

    def _of_palace(self, name: str) -> tuple[str, Arrays]:
        """Return the fingerprint of a palace and what is known of its drawers."""
        loaded = self._open(name)
        mark = loaded.fingerprint
        known = self._cache.arrays("load", {"palace": mark}, lambda: loaded.arrays(self.dataset.name, name))
        units: list[NDArray[np.float32]] = []

        def vectors() -> NDArray[np.float32]:
            if not units:
                units.append(self._units(name, loaded))
            return units[0]

        def near() -> Arrays:
            found = priors(vectors(), known["wing"].tolist(), self.plan.neighbours)
            return {"index": found.index, "cosine": found.cosine, "count": found.count}

        key = {"palace": mark}
        nearest = self._cache.arrays("neighbors", key | self._settings("neighbors"), near)
        before = Priors(nearest["index"], nearest["cosine"], nearest["count"])
        a = self._cache.arrays(
            "nn-novelty", key | self._settings("nn-novelty"), lambda: {"a": nn_novelty(before)}
        )
        b = self._cache.arrays(
            "recon-residual",
            key | self._settings("recon-residual"),
            lambda: {
                "b": recon_residual(vectors(), before, fewest=self.plan.fewest, tikhonov=self.plan.tikhonov)
            },
        )
        return mark, {**known, "count": before.count, **a, **b}

    # The whole data set

    @cached_property
    def _all(self) -> tuple[list[str], Table]:
        marks, parts = [], []
        for number, name in enumerate(self.dataset.palaces, start=1):
            mark, part = self._of_palace(name)
            marks.append(mark)
            parts.append(part)
            if number % 10 == 0 or number == len(self.dataset.palaces):
                self._say(f"{self.dataset.name}: estimators of {number}/{len(self.dataset.palaces)} palaces")
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        sizes = [len(part["count"]) for part in parts]
        return marks, Table(
            names=tuple(self.dataset.palaces),
            palace=np.repeat(np.arange(len(sizes)), sizes),
            place=np.concatenate([np.arange(size) for size in sizes]),
            count=joined["count"],
            a=joined["a"],
            b=joined["b"],
            chars=joined["chars"],
            session=joined["session"],
            role=joined["role"],
            stratum=joined["stratum"],
            text=joined["text"],
        )

    @property
    def table(self) -> Table:
        """Every drawer with its estimators."""
        return self._all[1]

    @property
    def fingerprint(self) -> str:
        """One hash for all palaces."""
        return hashlib.sha256("\n".join(self._all[0]).encode()).hexdigest()

    def _key(self, stage: str, marks: Sequence[str] | None = None) -> dict[str, Any]:
        files = {
            "downstream-eval": (downstream.__file__, forgetting.__file__),
            "fit-decay": (decay.__file__, relations.__file__),
            "heterogeneity": (relations.__file__,),
            "correlations": (relations.__file__,),
        }
        mine = files[stage]
        code = [_code(file) for file in (estimators.__file__, ranks.__file__, *mine)]
        return {"marks": list(marks or self._all[0]), "plan": asdict(self.plan), "code": code}

    def describe(self) -> dict[str, Any]:
        """Say what the data set is and how the estimators are spread; raises PalaceError for a small one."""
        table = self.table
        compared = int(np.isfinite(table.b).sum())
        if compared < FEWEST_DRAWERS:
            raise PalaceError(
                f"{self.dataset.name} is too small to be studied: {compared} drawers have enough earlier "
                f"ones in their wing to be compared with, {FEWEST_DRAWERS} are needed"
            )
        return {
            "drawers": len(table.a),
            "palaces": len(table.names),
            "sessions": len(set(zip(table.palace.tolist(), table.session.tolist(), strict=True))),
            "distinct_sessions": len(set(table.session.tolist())),
            "distinct_texts": len(set(table.text.tolist())),
            "fingerprint": self.fingerprint,
            "embedder": self._embedder,
            "strata": {name: int((table.stratum == name).sum()) for name in sorted(set(table.stratum))},
            "A": _spread(table.a[table.count > 0]) | {"low": float((table.a < LOW).mean())},
            "B": _spread(table.b[np.isfinite(table.b)]),
        }

    def resamples(self, rows: NDArray[np.bool_]) -> Resamples:
        """Return the block bootstrap's counts for some of the drawers."""
        rng = np.random.default_rng(self.plan.seeds.bootstrap)
        return block_counts(self.table.palace[rows], self.plan.resamples, rng)

    def decay(self) -> dict[str, Any]:
        """Fit the curves, for every stratum and estimator."""
        return dict(self._cache.table("fit-decay", self._key("fit-decay"), self._decay))

    def _decay(self) -> dict[str, Any]:
        table = self.table
        found: dict[str, Any] = {"A": {}, "B": {}}
        for name in sorted(set(table.stratum)):
            rows = (table.stratum == name) & np.isfinite(table.b)
            drawn = self.resamples(rows)
            for letter, values in (("A", table.a), ("B", table.b)):
                found[letter][str(name)] = decay.decay(table.count[rows], values[rows], drawn)
        return found

    def heterogeneity(self) -> dict[str, Any]:
        """Compare the strata, and the roles where there are two."""
        return dict(self._cache.table("heterogeneity", self._key("heterogeneity"), self._heterogeneity))

    def _heterogeneity(self) -> dict[str, Any]:
        rows = np.isfinite(self.table.b)
        return relations.heterogeneity(self.table, rows, self.resamples(rows))

    def correlations(self) -> dict[str, Any]:
        """Correlate the estimators with each other, with the place and with the length of the text."""
        found = dict(self._cache.table("correlations", self._key("correlations"), self._correlations))
        rng = np.random.default_rng(self.plan.seeds.subsample)
        judged = self.surprise()["judged"]
        return found | relations.with_surprise(self.table, judged, self.plan.resamples, rng)

    def _correlations(self) -> dict[str, Any]:
        rows = np.isfinite(self.table.b)
        rng = np.random.default_rng(self.plan.seeds.bootstrap)
        return relations.correlations(self.table, rows, self.resamples(rows), self.plan.resamples, rng)

    def surprise(self) -> dict[str, Any]:
        """Return what a model has said of a sample, or why there is nothing of it; asks none."""
        kept = self._cache.kept("llm-surprise", self.dataset.name)
        if kept is None:
            return judging.skipped("no model was asked (the command surprise)")
        if kept["palaces"] != self.fingerprint:
            return judging.skipped("other drawers were judged than there are now (the command surprise)")
        return {name: value for name, value in kept.items() if name != "palaces"}

    def judge(self, provider: Provider, calls: int) -> dict[str, Any]:
        """Let a model judge a sample of every stratum, and keep what it says."""
        chosen = judging.sample(self.table, calls, self.plan.seeds.subsample)
        journal = self._cache.journal("llm-surprise", self.dataset.name)
        near = {
            place: self._cache.arrays(
                "neighbors",
                {"palace": self._all[0][place], **self._settings("neighbors")},
                dict,
            )["index"]
            for place in sorted({int(self.table.palace[row]) for row in chosen})
        }
        texts = {place: [row.text for row in self._open(self.table.names[place]).rows] for place in near}
        found = judging.judge(self.table, chosen, near, texts, provider, journal, self._say)
        self._cache.keep("llm-surprise", self.dataset.name, {"palaces": self.fingerprint, **found})
        return found

    def downstream(self) -> dict[str, Any] | None:
        """Ask the questions of the data set with sessions left out; None where it has no questions."""
        collection, work = self.dataset.collection, self.dataset.work
        if collection is None or work is None or self.dataset.name != "longmemeval":
            return None
        asked = downstream.ask(
            collection, work, self._cache.journal("downstream-eval", self.dataset.name), self._say
        )
        table = self.table
        means = {
            "B": self.session_means(table.b),
            "A": self.session_means(table.a),
            "B of the user": self.session_means(np.where(table.role == "user", table.b, np.nan)),
        }
        key = self._key("downstream-eval") | {"asked": _hash(repr(asked))}
        seed, resamples = self.plan.seeds.downstream_eval, self.plan.resamples

        def make() -> dict[str, Any]:
            found = downstream.table(asked, means, seed, resamples)
            return found | {"check": forgetting.check(collection, work, asked, means["B"])}

        return dict(self._cache.table("downstream-eval", key, make))

    def session_means(self, values: Floats) -> dict[str, dict[str, float]]:
        """Return for each palace the mean of every session over its drawers that have a value."""
        found: dict[str, dict[str, float]] = {}
        table = self.table
        for number, name in enumerate(table.names):
            mine = table.palace == number
            sessions, place = np.unique(table.session[mine], return_inverse=True)
            held = np.isfinite(values[mine])
            total = np.bincount(place[held], weights=values[mine][held], minlength=len(sessions))
            size = np.bincount(place[held], minlength=len(sessions))
            found[name] = {
                str(session): float(total[i] / size[i]) if size[i] else math.nan
                for i, session in enumerate(sessions)
            }
        return found

    def plots(self) -> dict[str, Any]:
        """Return the points that the figures show."""
        table = self.table
        rows = np.flatnonzero(np.isfinite(table.b))
        rng = np.random.default_rng(self.plan.seeds.subsample)
        shown = rng.choice(rows, min(DRAWN, len(rows)), replace=False)
        curves: dict[str, Any] = {}
        for name in sorted(set(table.stratum)):
            held = (table.stratum == name) & np.isfinite(table.b)
            bins = decay.binned(table.count[held], table.b[held])
            curves[str(name)] = {
                "x": _short(bins.x),
                "y": _short(bins.y),
                "smooth": _short(decay.lowess(bins)),
            }
        edges = np.linspace(0, 1, 41)
        heights = np.histogram(table.a[table.count > 0], edges, density=True)[0]
        return {
            "points": [_short(table.a[shown]), _short(table.b[shown])],
            "curves": curves,
            "histogram": {"edges": _short(edges), "heights": _short(heights)},
            "surprisal": self._surprisal(),
        }

    def _surprisal(self) -> list[list[float]]:
        judged = self.surprise()["judged"].get("S", {})
        rows = np.array([int(row) for row in judged], dtype=np.int64)
        return [_short(self.table.a[rows]), _short(np.array(list(judged.values())))]


def _spread(values: Floats) -> dict[str, float]:
    low, middle, high = np.percentile(values, [10, 50, 90])
    return {
        "n": len(values),
        "mean": float(values.mean()),
        "p10": float(low),
        "median": float(middle),
        "p90": float(high),
    }


def _short(values: Floats) -> list[float]:
    return [round(float(value), 4) for value in values]


def _code(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
