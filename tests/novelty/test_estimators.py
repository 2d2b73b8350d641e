from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from castle.novelty import backfill, estimators
from castle.novelty.estimators import nn_novelty, priors, recon_residual
from castle.store.catchup import cached_vectors, input_hash
from castle.store.palace import Palace
from castle.store.reading import changed_rows
from tests.novelty.oracle import stored
from tests.store.filer import file

Floats = NDArray[np.float64]


def directly(
    units: Floats, groups: list[str], k: int = 20, fewest: int = 5, tikhonov: float = 1e-3
) -> tuple[list[list[int]], list[float], list[float]]:
    """Return the neighbours, A and B of each vector, one at a time from the definition."""
    near, a, b = [], [], []
    for place, unit in enumerate(units):
        before = [i for i in range(place) if groups[i] == groups[place]]
        cosine = {i: round(float(np.dot(units[i], unit)), 12) for i in before}
        nearest = sorted(before, key=lambda i: (-cosine[i], -i))[:k]
        near.append(nearest)
        a.append(max(0.0, 1.0 - cosine[nearest[0]]) if nearest else 1.0)
        b.append(residual(units[nearest], unit, tikhonov) if len(nearest) >= fewest else math.nan)
    return near, a, b


def residual(mixed: Floats, unit: Floats, tikhonov: float) -> float:
    size = len(mixed)
    apart = mixed - unit
    gram = np.array([[float(np.dot(x, y)) for y in apart] for x in apart])
    gram += tikhonov * np.trace(gram) * np.eye(size)
    try:
        raw = np.linalg.inv(gram) @ np.ones(size)
        weights = raw / (np.ones(size) @ raw)
    except np.linalg.LinAlgError:
        weights = np.ones(size) / size
    return float(np.linalg.norm(unit - weights @ mixed))


def some_units(seed: int, count: int, dim: int, copies: bool) -> Floats:
    rng = np.random.default_rng(seed)
    units = rng.standard_normal((count, dim))
    if copies:
        units[rng.integers(0, count, count // 2)] = units[rng.integers(0, count, count // 2)]
    unit: Floats = units / np.linalg.norm(units, axis=1, keepdims=True)
    return unit


@pytest.mark.parametrize(("dim", "copies"), [(3, False), (16, True), (40, True)])
@pytest.mark.parametrize("block", [1000, estimators._BLOCK_BYTES])
def test_as_one_at_a_time(monkeypatch: pytest.MonkeyPatch, dim: int, copies: bool, block: int) -> None:
    monkeypatch.setattr(estimators, "_BLOCK_BYTES", block)
    units = some_units(dim, 70, dim, copies)
    groups = ["sea" if n % 3 else "land" for n in range(70)]
    found = priors(units, groups)
    near, a, b = directly(units, groups)
    assert [[i for i in row if i >= 0] for row in found.index.tolist()] == near
    assert found.count.tolist() == [groups[:n].count(groups[n]) for n in range(70)]
    assert nn_novelty(found) == pytest.approx(a, abs=1e-11)
    assert recon_residual(units, found) == pytest.approx(b, abs=1e-9, nan_ok=True)
    assert np.isnan(recon_residual(units, found)).sum() == 10


def test_by_hand() -> None:
    angles = np.radians([0, 90, 60, 0])
    units = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = priors(units, ["w"] * 4, 2)
    assert nn_novelty(found) == pytest.approx([1, 1, 1 - math.cos(math.radians(30)), 0])
    assert found.index.tolist() == [[-1, -1], [0, -1], [1, 0], [0, 2]]
    # Two earlier ones mixed with weights 1/2: the middle of a right angle lies 1 - sqrt(1/2) inside.
    square = np.array([[1.0, 0], [0, 1], [math.sqrt(0.5), math.sqrt(0.5)]])
    middle = recon_residual(square, priors(square, ["w"] * 3, 2), fewest=2)
    assert middle[2] == pytest.approx(1 - math.sqrt(0.5))


def test_of_equally_near_ones_the_last_comes_first_and_copies_leave_nothing() -> None:
    units = np.tile([[0.6, 0.8]], (30, 1))
    found = priors(units, ["w"] * 30)
    assert found.index[29].tolist() == list(range(28, 8, -1))
    assert nn_novelty(found).tolist() == [1.0] + [0.0] * 29
    assert recon_residual(units, found)[5:].tolist() == [0.0] * 25


def test_opposites_are_more_than_new_and_nothing_is_nothing() -> None:
    assert nn_novelty(priors(np.array([[1.0, 0], [-1, 0]]), ["w", "w"])).tolist() == [1.0, 2.0]
    empty = priors(np.zeros((0, 8)), [])
    assert (len(nn_novelty(empty)), len(recon_residual(np.zeros((0, 8)), empty))) == (0, 0)


def test_a_is_what_the_palace_stores_where_there_is_one_wing_and_no_copy(palace: Palace) -> None:
    file(palace.ledger, [f"the {word} of the harbour\n" for word in "anchor boat crane dock eel".split()])
    backfill(palace)
    with palace.ledger.read() as cx:
        rows = changed_rows(cx, 0, 100)
    known = cached_vectors(palace, [input_hash(row) for row in rows])
    units = np.stack([known[input_hash(row)] for row in rows])
    found = nn_novelty(priors(units, [row.wing for row in rows]))
    assert [stored(palace)[row.id] for row in rows] == pytest.approx(found.tolist(), abs=2e-6)
