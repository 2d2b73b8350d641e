"""Families of nearest neighbours, dense clusters, and cosines measured on a palace."""

from __future__ import annotations

import numpy as np
import pytest

from castle.mind.consolidation import calibration, clusters
from castle.mind.thresholds import calibrated
from castle.novelty.scoring import update
from castle.store.catchup import catch_up_vectors
from castle.store.mind_cycles import columns
from castle.store.palace import Palace
from tests.mind.episodes import chatter, file_all


def test_links_of_some_cosine_make_families() -> None:
    rids = np.array([3, 5, 8, 9, 12])
    nearest = np.array([0, 3, 5, 3, 7])  # 7 is not among them
    cosines = np.array([np.nan, 0.95, 0.9, 0.5, 0.99])
    labels = clusters.families(rids, nearest, cosines, 0.8)
    assert labels.tolist() == [0, 0, 0, 3, 4]
    assert clusters.others(labels).tolist() == [2, 2, 2, 0, 0]


def around(centre: int, count: int, spread: float, seed: int = 0) -> list[list[float]]:
    drawn = np.random.default_rng([seed, centre])
    points = drawn.standard_normal((count, 32)) * spread
    points[:, centre] += 1
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).tolist()  # type: ignore[no-any-return]


@pytest.mark.extras
def test_dense_clusters_are_found_and_noise_is_left_out() -> None:
    pytest.importorskip("sklearn")
    vectors = np.array([*around(0, 4, 0.02), *around(9, 1, 0.02), *around(5, 3, 0.02)], dtype=np.float32)
    assert clusters.clusters(vectors, 0.9) == [[0, 1, 2, 3], [5, 6, 7]]
    assert clusters.clusters(vectors[:2], 0.9) == []
    assert clusters.clusters(vectors, 0.9, min_samples=4) == [[0, 1, 2, 3]]


@pytest.mark.extras
def test_a_large_cluster_is_looked_at_more_closely() -> None:
    pytest.importorskip("sklearn")
    angles = np.radians(np.arange(0, 91, 10))[:, None]
    between = np.cos(angles) * np.eye(32)[0] + np.sin(angles) * np.eye(32)[1]
    rows = [*around(0, 60, 0.005), *around(1, 60, 0.005), *between.tolist()]
    vectors = np.array(rows, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = clusters.clusters(vectors, 0.98)
    assert len(found) >= 2
    assert not any({0, 60} <= set(part) for part in found)
    assert clusters.clusters(vectors, 0.98, closer=0) == [list(range(len(rows)))]


def test_the_medoid_is_the_one_in_the_middle() -> None:
    vectors = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8]], dtype=np.float32)
    assert clusters.medoid(vectors) == 1
    assert clusters.medoid(np.ones((3, 2), dtype=np.float32)) == 0


def test_cosines_are_measured_on_the_palace_itself(palace: Palace) -> None:
    with palace.ledger.read() as cx:
        assert calibration.measure(palace, cx, columns(cx)) is None
        assert calibration.link(cx, "fake", None) == calibration.LINK_UNKNOWN
    file_all(palace, chatter(120), "s")
    catch_up_vectors(palace)
    update(palace)
    identity = palace.identity.identity
    with palace.ledger.write() as cx:
        found = columns(cx)
        measured = calibration.measure(palace, cx, found)
        assert measured == calibration.measure(palace, cx, found)
        assert measured is not None and measured.episodes == 120
        assert measured.random[1] < measured.nearest[0] < measured.nearest[2] <= 1
        assert calibration.outgrown(None, found) and not calibration.outgrown(measured, found)
        calibration.keep(cx, identity, measured)
        assert calibration.known(cx, identity) == measured
        assert calibrated(cx, identity, calibration.REFERENCE[3]) == pytest.approx(
            measured.nearest[0], abs=1e-4
        )
        least = calibration.link(cx, identity, measured)
        assert measured.random[2] < least <= calibrated(cx, identity, 0.95)


def test_the_numbers_of_minilm_stand_for_themselves(palace: Palace) -> None:
    measured = calibration.Calibration(99, 0.1, 0.1, (0.0, 0.1, 0.3), (0.6, 0.7, 0.8))
    with palace.ledger.write() as cx:
        calibration.keep(cx, "all-MiniLM-L6-v2/x", measured)
        calibration.keep(cx, "other/x", measured)
        assert calibrated(cx, "all-MiniLM-L6-v2/x", 0.714) == 0.714
        assert calibrated(cx, "other/x", 0.714) == pytest.approx(0.6)
