"""How novelty falls as a memory grows: binned means, curves fitted to them, and where it stops falling.

All curves are fitted to the same bins by the same weighted least squares, and compared by AIC from that one
sum, n ln(RSS / n) + 2k. A sum of weighted residuals for one curve and of plain ones for the other is no basis
for a comparison: the two have different units, and the difference of their AIC follows the weights, not the
fit. ``mixed_delta`` shows what such a comparison would have said.

Each curve has one parameter that is not linear; for every value of it the others follow in closed form, so
the minimum is found by a search along one line, without starting values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from research.info_theory.ranks import Floats, Ints

WIDTH = 10
"""Places in the order of filing that make one bin."""
FEWEST_BINS = 6
SMALLEST_SHARE = 0.1
"""A bin's variance counts as at least this share of the mean variance, lest a lucky bin decide the fit."""
SPAN = 0.3
NEAR = 0.05
"""Saturated: for good within this share of the whole fall of the smoothed curve from its end."""
_GRID = 120
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Bins:
    """Means ``y`` of a quantity by the mean number ``x`` of earlier drawers, with what each mean weighs."""

    x: Floats
    y: Floats
    weight: Floats
    size: Floats


def binned(count: Ints, values: Floats, counts: Floats | None = None) -> Bins:
    """Bin the values by ``count`` earlier drawers; the weight is one over the variance of the mean."""
    held = np.isfinite(values) & (count > 0)
    weight = (np.ones(len(values)) if counts is None else counts)[held]
    x, y = count[held].astype(np.float64), values[held]
    place = (count[held] - 1) // WIDTH
    size = np.bincount(place, weights=weight).astype(np.float64)
    used = size >= 2
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x = np.bincount(place, weights=weight * x) / size
        mean = np.bincount(place, weights=weight * y) / size
        apart = np.bincount(place, weights=weight * (y - mean[place]) ** 2) / (size - 1)
    mean_x, mean, apart, size = mean_x[used], mean[used], apart[used], size[used]
    if not len(size):
        return Bins(mean_x, mean, apart, size)
    pooled = float((apart * size).sum() / size.sum()) or 1.0
    return Bins(mean_x, mean, size / np.maximum(apart, SMALLEST_SHARE * pooled), size)


@dataclass(frozen=True, slots=True)
class Fit:
    """One curve: its parameters, the weighted sum of squares, AIC, and AICc for few bins."""

    name: str
    parameters: dict[str, float]
    rss: float
    aic: float
    aicc: float


Shape = Callable[[Floats, Floats], Floats]


def _power(x: Floats, alpha: Floats) -> Floats:
    return np.asarray(x[None, :] ** -alpha[:, None])


def _exponential(x: Floats, tau: Floats) -> Floats:
    return np.asarray(np.exp(-x[None, :] / tau[:, None]))


@dataclass(frozen=True, slots=True)
class Model:
    """A curve c + b f(x, theta); ``floor``: c is free, else 0; ``logarithmic``: how theta is searched."""

    name: str
    shape: Shape
    theta: str
    floor: bool
    logarithmic: bool

    @property
    def k(self) -> int:
        """The number of parameters."""
        return 3 if self.floor else 2


MODELS = (
    Model("power", _power, "alpha", floor=False, logarithmic=False),
    Model("exponential", _exponential, "tau", floor=True, logarithmic=True),
    Model("power with floor", _power, "alpha", floor=True, logarithmic=False),
)


def predicted(model: Model, parameters: Mapping[str, float], x: Floats) -> Floats:
    """Return the curve at x."""
    shape = model.shape(x, np.array([parameters[model.theta]]))[0]
    return np.asarray(parameters.get("c", 0.0) + (parameters["a"] - parameters.get("c", 0.0)) * shape)


def fit(model: Model, bins: Bins, *, plain: bool = False) -> Fit:
    """Fit one curve; ``plain`` gives every bin the same weight, and the sum that goes with that."""
    weight = np.ones(len(bins.x)) if plain else bins.weight
    low, high = _range(model, bins)
    found = (math.inf, 0.0, 0.0, low)
    for _ in range(_ROUNDS):
        grid = np.geomspace(low, high, _GRID) if model.logarithmic else np.linspace(low, high, _GRID)
        found = min(found, _best(model, bins, weight, grid))
        place = int(np.argmin(np.abs(grid - found[3])))
        low, high = float(grid[max(0, place - 1)]), float(grid[min(_GRID - 1, place + 1)])
    rss, b, c, theta = found
    parameters = {"a": b + c, model.theta: theta} | ({"c": c} if model.floor else {})
    aic = _aic(rss, len(bins.x), model.k)
    return Fit(model.name, parameters, rss, aic, aic + _small(len(bins.x), model.k))


def constant(bins: Bins) -> Fit:
    """Fit a level that does not change."""
    level = float(bins.weight @ bins.y / bins.weight.sum())
    rss = float(bins.weight @ (bins.y - level) ** 2)
    aic = _aic(rss, len(bins.x), 1)
    return Fit("constant", {"c": level}, rss, aic, aic + _small(len(bins.x), 1))


def _range(model: Model, bins: Bins) -> tuple[float, float]:
    if model.theta == "tau":
        return max(1.0, float(bins.x[0]) / 2), 10 * float(bins.x[-1])
    # A floor lets any slow power serve as a straight line; so slow a one says nothing about a level.
    return (0.05, 3.0) if model.floor else (-0.5, 3.0)


def _best(model: Model, bins: Bins, weight: Floats, grid: Floats) -> tuple[float, float, float, float]:
    """Return the least sum on the grid with b, c and theta: weighted linear regression for each theta."""
    shape = model.shape(bins.x, grid)
    total = weight.sum()
    if model.floor:
        mean, level = (shape @ weight) / total, float(weight @ bins.y) / total
        apart = shape - mean[:, None]
        square = (apart**2) @ weight
        b = np.where(square > 0, (apart @ (weight * (bins.y - level))) / np.where(square > 0, square, 1), 0)
        c = level - b * mean
    else:
        b = (shape @ (weight * bins.y)) / ((shape**2) @ weight)
        c = np.zeros(len(grid))
    rss = ((bins.y - c[:, None] - b[:, None] * shape) ** 2) @ weight
    place = int(np.argmin(rss))
    return float(rss[place]), float(b[place]), float(c[place]), float(grid[place])


def _aic(rss: float, n: int, k: int) -> float:
    return n * math.log(max(rss, 1e-300) / n) + 2 * k


def _small(n: int, k: int) -> float:
    return 2 * k * (k + 1) / (n - k - 1) if n - k - 1 > 0 else math.inf


def decay(count: Ints, values: Floats, resamples: Iterable[Floats]) -> dict[str, Any] | None:
    """Fit every curve and compare them; intervals by the resamples. None where there are too few bins."""
    bins = binned(count, values)
    if len(bins.x) < FEWEST_BINS:
        return None
    fits = {"constant": constant(bins)} | {model.name: fit(model, bins) for model in MODELS}
    best = min(one.aic for one in fits.values())
    odds = {name: math.exp((best - one.aic) / 2) for name, one in fits.items()}
    drawn: dict[str, dict[str, list[float]]] = {model.name: {} for model in MODELS}
    for counts in resamples:
        again = binned(count, values, counts)
        for model in MODELS:
            for name, value in fit(model, again).parameters.items():
                drawn[model.name].setdefault(name, []).append(value)
    plain = fit(MODELS[1], bins, plain=True)
    return {
        "bins": len(bins.x),
        "largest_n": float(bins.x[-1]),
        "first": float(bins.y[0]),
        "last": float(bins.y[-1]),
        "fits": {
            name: {
                "parameters": one.parameters,
                "intervals": {
                    key: [float(edge) for edge in np.percentile(found, [2.5, 97.5])]
                    for key, found in drawn.get(name, {}).items()
                },
                "rss": one.rss,
                "aic": one.aic,
                "aicc": one.aicc,
                "weight": odds[name] / sum(odds.values()),
            }
            for name, one in fits.items()
        },
        "winner": min(fits, key=lambda name: fits[name].aic),
        "delta": fits["power"].aic - fits["exponential"].aic,
        "delta_with_floor": fits["power with floor"].aic - fits["exponential"].aic,
        "mixed_delta": fits["power"].aic - plain.aic,
        "saturation": saturation(bins),
    }


def lowess(bins: Bins, span: float = SPAN) -> Floats:
    """Return the smoothed means, by a weighted line through the nearest bins (Cleveland, 1979).

    Fewer bins than a line needs stay as they are.
    """
    if len(bins.x) < 3:
        return bins.y.copy()
    near = max(3, math.ceil(span * len(bins.x)))
    found = np.empty(len(bins.x))
    for place, x in enumerate(bins.x):
        apart = np.abs(bins.x - x)
        reach = np.partition(apart, near - 1)[near - 1]
        kernel = np.clip(1 - (apart / (reach * 1.0000001)) ** 3, 0, None) ** 3 * bins.weight
        total = kernel.sum()
        mean_x, mean_y = kernel @ bins.x / total, kernel @ bins.y / total
        square = kernel @ (bins.x - mean_x) ** 2
        slope = kernel @ ((bins.x - mean_x) * (bins.y - mean_y)) / square if square > 0 else 0.0
        found[place] = mean_y + slope * (x - mean_x)
    return found


def saturation(bins: Bins) -> float | None:
    """Return N*, the number of earlier drawers from which on the smoothed curve stays near its end.

    Near is NEAR of the fall from its first to its last value; None where it does not fall, or only arrives in
    the last tenth of what was seen, which is where any curve arrives.
    """
    smooth = lowess(bins)
    fall = float(smooth[0] - smooth[-1])
    if fall <= 0:
        return None
    away = np.flatnonzero(np.abs(smooth - smooth[-1]) > NEAR * fall)
    reached = int(away[-1]) + 1
    if reached >= len(smooth) or bins.x[reached] > 0.9 * bins.x[-1]:
        return None
    return float(bins.x[reached])
