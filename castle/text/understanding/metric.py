"""What a measure is, and the seven categories with their weights."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One measure of a text.

    ``raw`` is the measured value in its own unit, ``score`` what it is worth, in [0, 1]. ``weight`` is its
    share of the category, ``category_weight`` the category's share of the whole.
    """

    name: str
    category: str
    layer: int
    raw: float
    score: float
    weight: float
    category_weight: float


@dataclass(frozen=True, slots=True)
class CategoryScore:
    """The weighted average of a category's scores, in [0, 1]."""

    name: str
    weight: float
    score: float


@dataclass(frozen=True, slots=True)
class Category:
    """A group of measures: its layer (1 to 5) and its share of the whole."""

    name: str
    layer: int
    weight: float

    def metric(self, name: str, weight: float, raw: float, score: float) -> Metric:
        """Return a measure of this category; the score is held within [0, 1]."""
        return Metric(name, self.name, self.layer, float(raw), min(1.0, max(0.0, score)), weight, self.weight)


READABILITY = Category("readability", 1, 0.10)
STRUCTURE = Category("structure", 1, 0.15)
COGNITIVE = Category("cognitive", 1, 0.10)
SEMANTIC = Category("semantic", 2, 0.15)
TESTABILITY = Category("testability", 3, 0.20)
BEHAVIORAL = Category("behavioral", 4, 0.15)
DEPTH = Category("depth", 5, 0.15)
