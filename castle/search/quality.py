"""Stage 6: texts that pin down more are lifted a little, by the measures of ``castle.text.understanding``."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from castle.search.candidates import Candidate, ranked
from castle.search.options import QualityTuning
from castle.text.understanding import understand

STAGE = "quality"
REMEMBERED = 1 << 14
"""Texts whose quality is remembered: the drawers that searches keep coming back to."""

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_known: OrderedDict[bytes, float] = OrderedDict()
_said: set[str] = set()


def quality(
    candidates: Sequence[Candidate],
    texts: Mapping[str, str],
    tuning: QualityTuning,
    strength: float,
    note: Callable[[str], None] | None = None,
) -> list[Candidate]:
    """Multiply each score by the factor of its text's tier, raised to ``strength``, and rank again.

    score = min(1, score * factor ** strength), in the order of uncapped scores. ``texts`` holds the served
    text of each drawer by id. A candidate without text, or whose text cannot be measured, keeps its score
    and has no quality; ``note`` is told why, once for each kind of failure, and by default warns once in the
    life of the process. Nothing is raised.
    """
    failures: dict[str, str] = {}
    lifted = [_lifted(candidate, texts, tuning, strength, failures) for candidate in candidates]
    for kind, failure in failures.items():
        if note is None:
            _warn_once(kind, failure)
        else:
            note(failure)
    # The cap comes after the sort: two candidates above 1 keep their order.
    lifted.sort(key=lambda candidate: -candidate.score)
    return ranked([candidate.but(score=min(1.0, candidate.score)) for candidate in lifted], STAGE)


def tier_of(score: float, tuning: QualityTuning) -> tuple[str | None, float]:
    """Return the tier of a quality, "high", "medium" or None, and its factor; thresholds belong to theirs."""
    if score >= tuning.threshold_high:
        return "high", tuning.boost_high
    if score >= tuning.threshold_medium:
        return "medium", tuning.boost_medium
    return None, 1.0


def overall(text: str) -> float:
    """Return the overall quality of a text, in [0, 1]; remembered by the digest of the text."""
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    found = understand(text).overall
    with _lock:
        _known[key] = found
        if len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return found


def _lifted(
    candidate: Candidate,
    texts: Mapping[str, str],
    tuning: QualityTuning,
    strength: float,
    failures: dict[str, str],
) -> Candidate:
    neutral = candidate.but(
        quality_score=None, quality_tier=None, quality_boost=1.0, score_pre_quality=candidate.score
    )
    if candidate.id not in texts:
        return neutral
    try:
        score = overall(texts[candidate.id])
        if not math.isfinite(score):
            raise ValueError(f"the measure is {score}")
    # One text that the measures did not foresee must not cost the search its other hits.
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        kind = type(error).__name__
        failures.setdefault(kind, f"quality: drawer {candidate.id} was not measured: {kind}: {error}")
        return neutral
    tier, factor = tier_of(score, tuning)
    applied = factor**strength
    return neutral.but(
        score=candidate.score * applied,
        boosts={**candidate.boosts, STAGE: applied},
        quality_score=score,
        quality_tier=tier,
        quality_boost=applied,
    )


def _warn_once(kind: str, message: str) -> None:
    """Warn once in the life of the process: a server would repeat it at every search."""
    if kind not in _said:
        _said.add(kind)
        _log.warning("%s; it keeps its score", message)
