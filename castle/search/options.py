"""How to search: modes, and every number that a stage works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from castle.config.settings import Fusion, Priors, SearchMode, Settings
from castle.errors import UsageError

Unit = Literal["drawer", "message", "session"]

MODES: Mapping[SearchMode, tuple[str, ...]] = MappingProxyType(
    {
        "fast": (),
        "standard": ("quality",),
        "boosted": ("soar", "quality"),
        "max": ("judge", "soar", "quality"),
    }
)
"""What each mode runs after recall, fusion and the cross-encoder, in this order."""

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "dense": 1.0, "lexical": 1.0, "graph": 0.5, "names": 0.6, "times": 0.6, "phrases": 1.0, "voice": 0.5,
        "neighbours": 1.0, "session": 0.5, "substance": 0.5,
    }
)  # fmt: skip
"""Of the lists that recall brings, of what a question asks for beside its words, of what is around a drawer.

Those of the last row were chosen by hand on LoCoMo and LongMemEval, between what ``benchmarks/tuning`` fits
to LoCoMo and what costs LongMemEval nothing.
"""
READ_CHARACTERS = 600
"""Characters of text for each of ``rerank_k`` that the built-in cross-encoder reads if they are short ones.

It takes as long for 20 long texts as for 50 turns of a conversation; more of those were hardly better.
"""
MOST_READ = 50

STRENGTHS: Mapping[str, float] = MappingProxyType({"recency": 0.1, "soar": 0.1, "quality": 0.1})
"""The exponents that bound the factors of the priors; 1 would be their full strength."""


@dataclass(frozen=True, slots=True)
class QualityTuning:
    """Qualities from which a drawer counts as medium or high, and the factors for it."""

    threshold_medium: float = 0.53
    threshold_high: float = 0.60
    boost_medium: float = 1.15
    boost_high: float = 1.25


@dataclass(frozen=True, slots=True)
class Options:
    """One search: its mode, its unit, and the constants of the stages.

    ``now`` is the time that relative dates and recency count from, in microseconds; None takes the palace's
    clock. ``rerank_k`` candidates at least are read by the cross-encoder, and as many as a page holds; up to
    MOST_READ while they hold no more than ``rerank_characters`` for each of ``rerank_k``. ``priors`` chooses
    between bounded factors and those of full strength (compat). ``hide_cold`` leaves out what the mind has
    put away, ``retention_weight`` in [0, 1] says how much it counts how near the mind keeps a drawer.
    """

    mode: SearchMode = "max"
    by: Unit = "drawer"
    now: int | None = None
    fusion: Fusion = "scores"
    k_rrf: float = 60.0
    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)
    graph_top_n: int = 50
    catch_up_ms: int = 200
    recency_max_boost: float = 1.5
    recency_tau_days: float = 90.0
    info_weight: bool = False
    info_weight_threshold: float = 0.10
    info_weight_min_factor: float = 0.5
    rerank_k: int = 20
    rerank_characters: int = 0
    judge_top_n: int = 10
    quality: QualityTuning = QualityTuning()
    priors: Priors = "bounded"
    hide_cold: bool = False
    retention_weight: float = 0.0

    def strength(self, prior: str) -> float:
        """Return the exponent that a prior's factors are raised to."""
        return 1.0 if self.priors == "compat" else STRENGTHS[prior]


def options_of(
    settings: Settings,
    *,
    mode: str | None = None,
    by: str = "drawer",
    now: int | None = None,
    info_weight: bool | None = None,
    hide_cold: bool = False,
    retention_weight: float = 0.0,
) -> Options:
    """Return the options that the settings ask for, and what is asked for here; raises UsageError."""
    if not 0 <= retention_weight <= 1:
        raise UsageError(f"retention weight {retention_weight} is not between 0 and 1")
    return Options(
        mode=_one_of("mode", settings.search_mode if mode is None else mode, SearchMode),
        by=_one_of("by", by, Unit),
        now=now,
        fusion=settings.fusion,
        k_rrf=settings.k_rrf,
        weights={
            "dense": settings.weight_dense,
            "lexical": settings.weight_sparse,
            "graph": settings.weight_kg,
            "names": settings.weight_names,
            "times": settings.weight_times,
            "phrases": settings.weight_phrases,
            "voice": settings.weight_voice,
            "neighbours": settings.weight_neighbours,
            "session": settings.weight_session,
            "substance": settings.weight_substance,
        },
        graph_top_n=settings.kg_hop_top_n,
        catch_up_ms=settings.search_catch_up_ms,
        recency_max_boost=settings.recency_max_boost,
        recency_tau_days=settings.recency_tau_days,
        info_weight=settings.info_weight_enabled if info_weight is None else info_weight,
        info_weight_threshold=settings.info_weight_threshold,
        info_weight_min_factor=settings.info_weight_min_factor,
        rerank_k=settings.reranker_k_interactive,
        rerank_characters=READ_CHARACTERS if settings.reranker == "builtin" else 0,
        judge_top_n=settings.llm_judge_top_n,
        quality=QualityTuning(
            settings.quality_threshold_medium,
            settings.quality_threshold_high,
            settings.quality_boost_medium,
            settings.quality_boost_high,
        ),
        priors=settings.priors,
        hide_cold=hide_cold,
        retention_weight=retention_weight,
    )


def _one_of(name: str, given: str, kind: Any) -> Any:
    if given not in get_args(kind):
        raise UsageError(f"{name} {given!r} is none of {', '.join(get_args(kind))}")
    return given
