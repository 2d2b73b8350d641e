from __future__ import annotations

import numpy as np
import pytest

from research.info_theory import decay
from research.info_theory.decay import MODELS, Bins, binned, constant, fit, lowess, predicted, saturation

POWER, EXPONENTIAL, FLOORED = MODELS


def bins_of(y: np.ndarray, weight: float = 1.0) -> Bins:
    x = np.arange(5.0, 5 + 10 * len(y), 10)
    return Bins(x, y, np.full(len(y), weight), np.full(len(y), 10.0))


X = np.arange(5.0, 405, 10)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (POWER, {"a": 0.9, "alpha": 0.13}),
        (EXPONENTIAL, {"a": 0.8, "c": 0.45, "tau": 60.0}),
        (FLOORED, {"a": 1.1, "c": 0.3, "alpha": 0.7}),
    ],
)
def test_what_a_curve_made_is_found_again(model: decay.Model, parameters: dict[str, float]) -> None:
    found = fit(model, bins_of(predicted(model, parameters, X)))
    assert found.parameters == pytest.approx(parameters, rel=5e-3)
    others = [fit(other, bins_of(predicted(model, parameters, X))) for other in MODELS if other != model]
    assert all(found.rss < other.rss + 1e-6 for other in others)


def test_aic_by_hand() -> None:
    bins = bins_of(np.array([1.0, 0.0, 1.0, 0.0]), weight=4.0)
    found = constant(bins)
    assert (found.parameters["c"], found.rss) == (0.5, 4.0)
    assert found.aic == pytest.approx(4 * np.log(4 / 4) + 2)
    assert found.aicc == pytest.approx(found.aic + 4 / 2)


def test_one_scale_does_not_care_how_weights_are_measured_and_two_scales_do() -> None:
    rng = np.random.default_rng(4)
    y = 0.5 + 0.3 * X**-0.5 + 0.01 * rng.standard_normal(len(X))
    light, heavy = bins_of(y), bins_of(y, weight=1e4)
    apart = [fit(POWER, bins).aic - fit(EXPONENTIAL, bins).aic for bins in (light, heavy)]
    assert apart[0] == pytest.approx(apart[1])
    mixed = [fit(POWER, bins).aic - fit(EXPONENTIAL, bins, plain=True).aic for bins in (light, heavy)]
    assert mixed[1] - mixed[0] == pytest.approx(len(X) * np.log(1e4))


def test_bins_are_ten_places_wide_and_weigh_by_their_variance() -> None:
    count = np.concatenate([np.arange(25), np.arange(25)])
    values = np.where(np.arange(50) < 25, 0.4, 0.6)
    values[count == 3] = np.nan
    bins = binned(count, values)
    assert bins.size.tolist() == [18, 20, 8]
    assert bins.y.tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert bins.x[1] == pytest.approx(15.5)
    assert bins.weight == pytest.approx(bins.size / [18 * 0.01 / 17, 20 * 0.01 / 19, 8 * 0.01 / 7])
    doubled = binned(count, values, np.full(50, 2.0))
    assert doubled.y == pytest.approx(bins.y)


def test_a_bin_that_does_not_vary_decides_nothing() -> None:
    rng = np.random.default_rng(1)
    values = rng.random(100)
    values[10:21] = 0.5
    weights = binned(np.arange(100), values).weight
    assert weights[1] < 15 * np.median(weights)


def test_smoothing_leaves_a_line_alone_and_saturation_is_where_the_fall_ends() -> None:
    line = bins_of(1 - X / 1000)
    assert lowess(line) == pytest.approx(line.y)
    assert saturation(line) is None
    assert saturation(bins_of(X / 1000)) is None
    ended = saturation(bins_of(np.where(X < 100, 1 - X / 200, 0.5)))
    assert ended is not None
    assert 80 <= ended <= 160


def test_the_record_of_one_stratum() -> None:
    rng = np.random.default_rng(6)
    count = np.tile(np.arange(150), 4)
    values = 0.4 + 0.4 * np.exp(-count / 30) + 0.05 * rng.standard_normal(600)
    drawn = [rng.multinomial(600, np.full(600, 1 / 600)).astype(float) for _ in range(30)]
    found = decay.decay(count, values, drawn)
    assert found is not None
    assert found["winner"] == "exponential"
    assert found["delta"] > 10
    low, high = found["fits"]["exponential"]["intervals"]["tau"]
    assert low < 30 < high
    assert sum(one["weight"] for one in found["fits"].values()) == pytest.approx(1)
    assert decay.decay(count[:30], values[:30], []) is None
