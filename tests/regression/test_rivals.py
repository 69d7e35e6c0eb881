"""What a regression is compared with: each rival alone, on one fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.gaussian_process import GaussianProcessRegressor

from trellis.regression import knn_graph
from trellis.regression.places import Places
from trellis.regression.rivals import Fold, kriging, rivals

RNG = np.random.default_rng(0)
N = 160
POINTS = RNG.uniform(size=(N, 2))
X = np.column_stack([RNG.normal(size=N), POINTS])
Y = X[:, 0] + np.sin(6 * POINTS[:, 0]) + 0.1 * RNG.normal(size=N)
X[::11, 0] = np.nan
FOLD = Fold(
    X, Y, np.arange(120), np.arange(120, N), POINTS, Places(("x", "y"), "euclidean"), None, 5,
    ["a", "x", "y"], (0,), 0,
)  # fmt: skip


def rmse(name, fold=FOLD):
    mean, std = rivals(coordinates=True, all_of=True)[name](fold)
    assert mean.shape == (40,) and np.isfinite(mean).all()
    assert std is None or (std > 0).all()
    return float(np.sqrt(np.mean((mean - Y[120:]) ** 2)))


@pytest.mark.parametrize(
    "name", [n for n in rivals(coordinates=True, all_of=True) if n != "mean" and "NL" not in n]
)
def test_each_is_better_than_the_mean(name):
    assert rmse(name) < rmse("mean")


def test_who_takes_part():
    assert list(rivals(coordinates=False)) == ["HGB", "forest", "neighbours", "mean"]
    every = rivals(coordinates=True, all_of=True)
    assert {"MLR", "S-RF", "(C)NL, tuned", "kriging"} <= set(every)
    assert not {"GLACER", "Kriging"} & set(every)


def test_nobody_looks_at_the_targets_to_test():
    hidden = replace(FOLD, y=np.where(np.arange(N) < 120, Y, 1e6))
    for name, rival in rivals(coordinates=True).items():
        assert (rival(hidden)[0] == rival(FOLD)[0]).all(), name


def test_gaps_are_filled_with_means_of_training():
    filled = FOLD.filled()
    assert filled[0, 0] == pytest.approx(np.nanmean(X[:120, 0]))
    train, test = FOLD.pair()
    assert np.isfinite(train.X).all() and test.graph.shape == (40, 40)
    assert train.regressors == (0,)


def test_kriging_of_all_points_is_a_gaussian_process():
    """With no more points than it looks at, it is what scikit-learn's process says."""
    some = replace(FOLD, X=np.ones((N, 1)), train=np.arange(50), regressors=(0,), names=["a"])
    mean, std = kriging(some)
    y = Y[:50]
    spread = POINTS[:50].std(axis=0).max()
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    v = (y - y.mean()).var()
    kernel = ConstantKernel(v / 2, (1e-6 * v, 1e3 * v)) * Matern(0.3, (1e-3, 1e2), nu=1.5)
    process = GaussianProcessRegressor(kernel + WhiteKernel(v / 2, (1e-6 * v, 1e3 * v)))
    order = np.random.default_rng(0).permutation(50)
    process.fit(POINTS[order] / spread, y[order] - y.mean())
    expected, of = process.predict(POINTS[120:] / spread, return_std=True)
    assert mean == pytest.approx(y.mean() + expected, abs=1e-6)
    assert std == pytest.approx(of, rel=1e-6)


def test_neighbours_of_a_graph():
    S = csr_array(knn_graph(POINTS, 5))
    mean, _ = rivals(coordinates=False)["neighbours"](replace(FOLD, graph=S))
    weights = S.toarray()[120:, :120]
    expected = [w @ Y[:120] / w.sum() if w.sum() else Y[:120].mean() for w in weights]
    assert mean == pytest.approx(expected)
