"""Depth: how many statements there are, for how many concepts, and how they refer to each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp, log

from castle.text.understanding.metric import DEPTH, Metric
from castle.text.understanding.requirements import Requirement
from castle.text.understanding.roles import Roles

_ID = re.compile(r"\b(?:[A-Z]{2,10}-)?(?:FR|REQ|NFR|AC|SC)-\d+\b")
_MANY = 200


def depth(requirements: Sequence[Requirement], parts: Sequence[Roles]) -> list[Metric]:
    """Return the number of statements, statements per concept and references per statement.

    A concept is a different actor or object. Of the different identifiers in a statement the first is its
    own, the others refer. The scores saturate: at 200 statements, and as 1 - e^(-x/3) and 1 - e^(-x).
    """
    total = len(requirements)
    concepts = len(set().union(*(each.actors | each.objects for each in parts)))
    coverage = total / max(1, concepts)
    references = sum(max(0, len(set(_ID.findall(each.text))) - 1) for each in requirements) / total
    metric = DEPTH.metric
    return [
        metric("requirement_volume_score", 0.40, total, log(1 + total) / log(1 + _MANY)),
        metric("coverage_density", 0.35, coverage, 1 - exp(-coverage / 3)),
        metric("cross_reference_index", 0.25, references, 1 - exp(-references)),
    ]
