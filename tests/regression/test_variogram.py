"""Variograms, against the pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.regression import knn_graph, variogram

RNG = np.random.default_rng(0)
PLACES = RNG.uniform(size=(80, 2))
VALUES = np.sin(6 * PLACES[:, 0]) + 0.1 * RNG.normal(size=80)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_against_all_pairs(metric):
    found = variogram(PLACES, VALUES, metric=metric, n_bins=6, max_distance=0.5)
    edges = 0.5 * (np.arange(7) / 6) ** 1.5
    squares, lengths = [[] for _ in range(6)], [[] for _ in range(6)]
    for i in range(80):
        for j in range(i):
            apart = np.abs(PLACES[i] - PLACES[j])
            d = apart.sum() if metric == "manhattan" else np.sqrt((apart**2).sum())
            if d <= 0.5:
                b = min(int(np.searchsorted(edges, d, side="right")) - 1, 5)
                squares[b].append((VALUES[i] - VALUES[j]) ** 2 / 2)
                lengths[b].append(d)
    kept = [b for b in range(6) if len(squares[b]) >= 20]
    assert found.count.tolist() == [len(squares[b]) for b in kept]
    assert found.gamma == pytest.approx([np.mean(squares[b]) for b in kept])
    assert found.distance == pytest.approx([np.mean(lengths[b]) for b in kept])
    assert found.variance == pytest.approx(VALUES.var())


def test_noise_is_flat_and_smooth_values_are_not():
    places = RNG.uniform(size=(3000, 2))
    noise = variogram(places, RNG.normal(size=3000))
    assert np.abs(noise.gamma / noise.variance - 1).max() < 0.15
    smooth = variogram(places, np.sin(4 * places[:, 0]))
    assert smooth.gamma[0] < 0.02 * smooth.variance
    again = variogram(places, np.sin(4 * places[:, 0]))
    assert (again.gamma == smooth.gamma).all()


def test_degrees_are_kilometres():
    where = np.column_stack([50 + PLACES[:, 0], 8 + PLACES[:, 1]])
    found = variogram(where, VALUES, metric="haversine", max_distance=60)
    assert 40 < found.distance[-1] <= 60
    lengths = -np.log(knn_graph(where, 1, metric="haversine", scale=1.0).data)
    assert found.distance[0] > lengths.min()


def test_gaps_are_left_out():
    values = VALUES.copy()
    values[::2] = np.nan
    some = variogram(PLACES, values, max_distance=0.5)
    few = variogram(PLACES[1::2], VALUES[1::2], max_distance=0.5)
    assert (some.gamma == few.gamma).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: variogram(PLACES, np.full(80, np.nan)), "needs three places with a value at leas"),
        (lambda: variogram(np.zeros((5, 2)), np.arange(5)), "all places are on one spot"),
        (lambda: variogram(PLACES, VALUES[:3]), "values"),
        (lambda: variogram(100 + PLACES, VALUES, metric="haversine"), "latitude"),
        (lambda: variogram(PLACES, VALUES, metric="taxi"), "metric must be"),
        (lambda: variogram(PLACES, VALUES, n_bins=0), "n_bins must be"),
        (lambda: variogram(PLACES, VALUES, max_distance=0), "max_distance must be"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
