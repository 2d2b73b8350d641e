"""How well a palace finds its own drawers again: probes, what became of them, and what did before.

    drawn = draw(palace, 50, seed=42)
    done = measure(drawn, ask)

``castle.evaluation.probes`` says how probes are made, ``castle.evaluation.history`` where results are kept.
"""

from __future__ import annotations

from castle.evaluation.history import Past, keep, past
from castle.evaluation.measuring import Ask, Evaluation, Missed, Part, Progress, measure
from castle.evaluation.probes import Probe, draw

__all__ = [
    "Ask",
    "Evaluation",
    "Missed",
    "Part",
    "Past",
    "Probe",
    "Progress",
    "draw",
    "keep",
    "measure",
    "past",
]
