"""The generator of fields on a map: its covariance, its shares, its places."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import Matern

from trellis import DataError
from trellis.datasets import spatial_field
from trellis.datasets.spatial import waves


def covariance(lags, smoothness):
    """Matérn's, by scikit-learn."""
    return Matern(0.1, nu=smoothness)(np.zeros((1, 1)), lags[:, None])[0]


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_waves_have_the_covariance(smoothness):
    """As good as the module says, for each draw."""
    far, near = np.linspace(0, 1, 200), np.geomspace(0.001, 0.1, 200)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        omega, share = waves(0.1, smoothness, rng)
        assert share.sum() == pytest.approx(1)
        angle = rng.uniform(0, 2 * np.pi, 200)
        ways = np.array([np.cos(angle), np.sin(angle)]).T
        off = np.cos(far[:, None] * ways @ omega) @ share - covariance(far, smoothness)
        assert np.sqrt(np.mean(off**2)) < 0.012
        apart = (1 - np.cos(near[:, None] * ways @ omega)) @ share
        ratio = apart / (1 - covariance(near, smoothness))
        assert np.sqrt(np.mean((ratio - 1) ** 2)) < 0.01


@pytest.mark.parametrize("smoothness", [0.5, 1.5])
def test_variogram(smoothness):
    """Half of the mean squared difference of places at a lag, over twenty fields."""
    edges = np.array([0.003, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
    total, wanted, count = np.zeros((3, len(edges) - 1))
    for seed in range(20):
        field = spatial_field(
            600, smoothness=smoothness, field_share=1, noise_share=0, random_state=seed
        )
        lag = pdist(field.places)
        within = np.digitize(lag, edges) - 1
        kept = (within >= 0) & (within < len(total))
        half = pdist(field.truth[:, None], "sqeuclidean") / 2
        for sums, values in (
            (total, half), (wanted, 1 - covariance(lag, smoothness)), (count, np.ones_like(lag)),
        ):  # fmt: skip
            np.add.at(sums, within[kept], values[kept])
        assert (field.y == field.truth).all()
    np.testing.assert_allclose(total / count, wanted / count, rtol=0.12)


def test_shares():
    a = spatial_field(20_000, field_share=0, noise_share=0.3, n_features=6)
    assert np.var(a.y - a.truth) == pytest.approx(0.3, rel=0.05)
    assert np.var(a.truth) == pytest.approx(0.7, rel=0.05)
    assert np.mean(a.truth) == pytest.approx(0, abs=0.03)
    x = a.X.T
    raw = 10 * np.sin(np.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4]
    assert np.corrcoef(raw, a.truth)[0, 1] == pytest.approx(1)
    # The same draws, other shares: the field is added with the root of its share.
    half, whole = (spatial_field(500, field_share=s, noise_share=1 - s).truth for s in (0.25, 1.0))
    np.testing.assert_allclose(2 * half, whole, atol=1e-12)
    assert spatial_field(10, field_share=0.9, noise_share=0.1).y.shape == (10,)


def test_places():
    uniform = spatial_field(5000).places
    crowded = spatial_field(5000, clusters=10).places
    for places in (uniform, crowded):
        assert places.min() >= 0
        assert places.max() <= 1
    cells = [np.histogram2d(*places.T, bins=10, range=[[0, 1]] * 2)[0] for places in
             (uniform, crowded)]  # fmt: skip
    assert cells[0].std() < 10  # of Poisson numbers of mean 50: 7
    assert cells[1].std() > 50


def test_seeds():
    a, b, other = (spatial_field(50, random_state=s) for s in (7, 7, 8))
    for one, same, different in zip(a, b, other, strict=True):
        assert (one == same).all()
        assert (one != different).any()


def test_blocks_of_places_change_nothing(monkeypatch):
    whole = spatial_field(50)
    monkeypatch.setattr("trellis.datasets.spatial._BLOCK", 1)
    np.testing.assert_allclose(spatial_field(50).y, whole.y, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a positive integer, got 0"),
        ({"n_features": 4}, "n_features must be an integer of at least 5, got 4"),
        ({"length_scale": 0}, "length_scale must be a positive number, got 0"),
        ({"smoothness": -1}, "smoothness must be a positive number, got -1"),
        ({"clusters": -1}, "clusters must be an integer of at least 0, got -1"),
        ({"field_share": 2}, "field_share must be a number from 0 to 1, got 2"),
        ({"noise_share": -1}, "noise_share must be a number from 0 to 1, got -1"),
        ({"field_share": 0.8, "noise_share": 0.3},
         "field_share and noise_share are 0.8 and 0.3: together they must be at most 1"),
    ],
)  # fmt: skip
def test_wrong_choices(options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        spatial_field(**options)
