"""Block-coordinate Frank–Wolfe against the bundle method, whose optimum is checked elsewhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.solvers.frank_wolfe import minimise_frank_wolfe, run_frank_wolfe
from trellis.solvers.planes import minimise_bundle


class MultiClass:
    """Multi-class hinge losses with a cost matrix and weights of the samples."""

    def __init__(self, seed: int, n: int = 12, d: int = 3, k: int = 3) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, d))
        self.gold = rng.integers(0, k, n)
        self.cost = rng.random((k, k)) + 0.5
        np.fill_diagonal(self.cost, 0)
        self.weight = rng.integers(0, 3, n).astype(float)
        self.shape = (k, d)
        self.n, self.n_weights = n, k * d

    def best(self, i, w):
        return int((w.reshape(self.shape) @ self.x[i] + self.cost[self.gold[i]]).argmax())

    def dense(self, i, w):
        y = self.best(i, w)
        psi = np.zeros(self.shape)
        psi[self.gold[i]] += self.x[i]
        psi[y] -= self.x[i]
        return psi.ravel(), self.cost[self.gold[i], y]

    def sparse(self, i, w):
        psi, loss = self.dense(i, w)
        index = np.flatnonzero(psi)[::-1]
        return (index, psi[index]), loss

    def risk(self, w):
        value, slope = 0.0, np.zeros(self.n_weights)
        for i in range(self.n):
            psi, loss = self.dense(i, w)
            value += self.weight[i] * (loss - psi @ w)
            slope -= self.weight[i] * psi
        return value, slope


@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000), l2=st.sampled_from([0.1, 1.0]), averaged=st.booleans(),
    sparse=st.booleans(),
)  # fmt: skip
def test_finds_the_optimum(seed, l2, averaged, sparse):
    p = MultiClass(seed)
    wanted = minimise_bundle(p.risk, p.n_weights, l2=l2, floor=0.0, tol=1e-6).objective
    found = minimise_frank_wolfe(
        p.sparse if sparse else p.dense, p.n, p.n_weights, l2=l2, sample_weight=p.weight,
        max_passes=400, tol=0.005, averaged=averaged, seed=seed, gap_every=7,
    )  # fmt: skip
    assert found.exact
    assert found.objective == pytest.approx(
        p.risk(found.weights)[0] + l2 * found.weights @ found.weights
    )
    assert found.lower_bound <= wanted * (1 + 1e-5) + 1e-9
    assert wanted <= found.objective * (1 + 1e-5) + 1e-9
    assert found.objective <= wanted * 1.05 + 1e-9
    dual = [r.lower_bound for r in found.records]
    assert all(a <= b for a, b in itertools.pairwise(dual))
    for r in found.records:
        assert r.lower_bound <= wanted * (1 + 1e-5) + 1e-9
        assert r.gap == pytest.approx(r.objective - r.lower_bound)


def test_dense_and_sparse_are_the_same_steps():
    p = MultiClass(5)
    runs = [
        minimise_frank_wolfe(o, p.n, p.n_weights, l2=0.1, max_passes=9, tol=0.0, seed=3)
        for o in (p.dense, p.sparse)
    ]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].stop_reason == "max_passes"
    other = minimise_frank_wolfe(p.dense, p.n, p.n_weights, l2=0.1, max_passes=9, tol=0.0, seed=4)
    assert not np.array_equal(other.weights, runs[0].weights)


def test_average_is_weighted_by_the_square_of_the_pass():
    """A problem that only looks at which points are asked about."""
    asked = []

    class Steps:
        n_samples, exact = 1, True

        def __init__(self):
            self.n = 0

        def sweep(self, order):
            self.n += 1

        def dual(self):
            return -1.0 / self.n

        def weights(self):
            return np.array([float(self.n), 1.0])

        def objective(self, w):
            asked.append(w)
            return 1.0

    run_frank_wolfe(Steps(), np.random.default_rng(0), max_passes=3)
    assert asked[0].tolist() == [0.0, 1.0]  # the start
    assert asked[1].tolist() == [3.0, 1.0]
    np.testing.assert_allclose(asked[2], [(1 + 8 + 27) / 14, 1.0])


def test_inexact_oracle_keeps_the_bounds():
    p = MultiClass(2)
    p.weight[:] = 1.0

    def second_best(i, w):
        scores = w.reshape(p.shape) @ p.x[i] + p.cost[p.gold[i]]
        y = int(np.argsort(scores)[-2]) if i == 0 else int(scores.argmax())
        psi = np.zeros(p.shape)
        psi[p.gold[i]] += p.x[i]
        psi[y] -= p.x[i]
        loss = p.cost[p.gold[i], y]
        return psi.ravel(), loss, float(scores.max() - scores[p.gold[i]])

    found = minimise_frank_wolfe(
        second_best, p.n, p.n_weights, l2=0.5, max_passes=200, tol=1e-9, seed=0
    )
    wanted = minimise_bundle(p.risk, p.n_weights, l2=0.5, floor=0.0, tol=1e-7).objective
    assert not found.exact
    assert found.lower_bound <= wanted + 1e-9
    assert found.objective >= wanted - 1e-5


def test_stops_are_named():
    p = MultiClass(1)
    found = minimise_frank_wolfe(
        lambda i, w: (np.zeros(2), 0.0), 3, 2, l2=1.0, sample_weight=np.ones(3), seed=0
    )
    assert found.stop_reason == "gap"  # nothing to learn: a gap of 0
    assert found.gap == 0
    seen = []
    slow = minimise_frank_wolfe(
        p.dense, p.n, p.n_weights, l2=0.1, max_passes=4, tol=0.0, seed=0, report=seen.append
    )
    assert slow.stop_reason == "max_passes"
    assert seen == slow.records
    start = sum(p.dense(i, np.zeros(p.n_weights))[1] for i in range(p.n))
    assert [r.objective for r in seen[:3]] == pytest.approx([start] * 3)
    assert seen[3].objective < start

    def loose(i, w):
        return np.zeros(2), 0.0, 1.0

    assert minimise_frank_wolfe(loose, 3, 2, l2=1.0, seed=0).stop_reason == "no progress"


def fine(i, w):
    return np.zeros(2), 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"l2": 0.0}, "l2 must be a positive number"),
        ({"sample_weight": np.ones(4)}, r"sample_weight must have shape \(3,\)"),
        ({"sample_weight": -np.ones(3)}, "sample_weight must be finite"),
        ({"max_passes": 0}, "must be a positive integer"),
        ({"gap_every": 0}, "must be a positive integer"),
        ({"oracle": lambda i, w: (np.zeros(3), 0.0)}, "features have shape"),
        ({"oracle": lambda i, w: (([0, 0], [1.0, 1.0]), 0.0)}, "indices must be distinct"),
        (
            {"oracle": lambda i, w: (([0, 2], [1.0, 1.0]), 0.0)},
            r"indices hold 2 at index 1; expected 0 to 1",
        ),
        ({"oracle": lambda i, w: (np.zeros(2), np.nan)}, "not finite"),
        ({"oracle": lambda i, w: (np.zeros(2), 1.0, 0.0)}, "is below the value"),
    ],
)
def test_bad_input(change, message):
    arguments = {"oracle": fine, "n_samples": 3, "n_weights": 2, "l2": 1.0} | change
    with pytest.raises(DataError, match=message):
        minimise_frank_wolfe(**arguments)
