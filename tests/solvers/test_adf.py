"""ADF against the published update written out in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import trellis.problems.log_likelihood as objective_module
from chain_problems import edge_entries, random_data, same_weights
from rich_problems import partial_data, random_weights
from trellis.decompose import ChainPieces
from trellis.problems import FeatureRates, LabelProblem, LogLikelihood, Penalty, Weights
from trellis.problems.visits import Visits
from trellis.solvers import AdaptiveFrequency

SLOW, FAST = 0.995, 0.6


def edge_features(weights: Weights) -> np.ndarray:
    """The feature of each rich edge weight."""
    edge = weights.edge
    owner = np.tile(np.flatnonzero(edge.row >= 0), 2 if edge.both else 1)
    return np.repeat(owner, np.diff(edge.rows()))


class Written:
    """Sun, Wang & Li (2012): weights, rates γ and counts v, the last of them the transitions'."""

    def __init__(self, data: LabelProblem, start: Weights, rate: float, l2: float) -> None:
        self.loss, self.w, self.l2 = LogLikelihood(data), start.copy(), l2
        self.gamma = np.full(len(start.node) + 1, rate)
        self.v = np.zeros(len(self.gamma))
        self.edge_of = None if start.edge is None else edge_features(start)

    def spread(self, number: np.ndarray):
        """A number for each feature, in the shapes of the weights."""
        shapes = [number[:-1, None], number[-1]]
        return shapes if self.edge_of is None else [*shapes, number[self.edge_of]]

    def window(self, visits: Visits, batch_size: int, total: int) -> float:
        met, e = 0.0, self.loss.problem.encoded
        for first in range(0, len(visits), batch_size):
            batch = visits[slice(first, first + batch_size)]
            value, slope = self.loss.value_and_gradient(self.w, batch)
            met += value
            rates = self.spread(self.gamma)
            for a, g, rate in zip(self.w.arrays(), slope.arrays(), rates, strict=True):
                a -= rate * g
            for start, end in zip(batch.starts, batch.ends, strict=True):
                inside = np.unique(e.indices[e.indptr[start] : e.indptr[end]])
                self.v[inside] += 1
                self.v[-1] += end - start > 1
        keep = 1 / (1 + 2 * self.l2 * len(visits) / total * self.gamma)
        for a, factor in zip(self.w.arrays(), self.spread(keep), strict=True):
            a *= factor
        self.gamma *= SLOW - self.v / len(visits) * (SLOW - FAST)
        self.v[:] = 0
        return met


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("edges", ["plain", "dense", "sparse"])
def test_passes_are_the_published_update(monkeypatch, edges, batch_size):
    monkeypatch.setattr(objective_module, "_REFRESH", 1)  # transitions with every batch
    data = partial_data(np.random.default_rng(0), n_samples=30, real=True)
    start = random_weights(np.random.default_rng(1), edges)
    written = Written(data, start, 0.1, l2=0.6)
    learner = AdaptiveFrequency(
        LogLikelihood(data),
        start.copy(),
        learning_rate=0.1,
        penalty=Penalty(l2=0.6),
        batch_size=batch_size,
    )
    rng = np.random.default_rng(2)
    for number in range(2):
        pieces = ChainPieces(2.5).draw(data.encoded.offsets, rng)
        visits = data.visits(pieces, rng.permutation(len(pieces)))
        bounds = np.linspace(0, len(visits), learner.windows + 1).astype(int)
        met = expected = 0.0
        for a, b in itertools.pairwise(bounds):
            window = visits[slice(a, b)]
            met += learner.visit(window, number, int(a), len(visits))
            learner.end_window(number, int(b - a), len(visits))
            expected += written.window(window, batch_size, len(visits))
            np.testing.assert_allclose(learner.rates.gamma, written.gamma, rtol=1e-12)
        assert met == pytest.approx(expected, rel=1e-9)
        same_weights(learner.weights(), written.w, rtol=1e-8, atol=1e-9)
        objective = met + learner.end_pass(number)
        assert objective == pytest.approx(expected + 0.6 * written.w.squared_norm(), rel=1e-9)
    assert learner.rates.gamma[-1] < learner.rates.gamma[:-1].min() / 10  # in nearly every piece


def test_a_window_may_be_visited_in_several_blocks():
    data = random_data(np.random.default_rng(0))
    visits = data.visits(ChainPieces(2).draw(data.encoded.offsets, np.random.default_rng(0)))
    counts = []
    for blocks in ([slice(0, None)], [slice(0, 5), slice(5, 6), slice(6, None)]):
        learner = AdaptiveFrequency(
            LogLikelihood(data), Weights.zeros(12, 3), learning_rate=0.1, penalty=Penalty()
        )
        for block in blocks:
            learner.visit(visits[block], 0, block.start, len(visits))
        counts.append(learner.rates.fired[0].copy())
    assert counts[0].tolist() == counts[1].tolist()
    e = data.encoded
    for f in range(12):
        touched = [
            f in e.indices[e.indptr[a] : e.indptr[b]]
            for a, b in zip(visits.starts, visits.ends, strict=True)
        ]
        assert counts[0][f] == sum(touched)
    assert counts[0][12] == (visits.ends - visits.starts > 1).sum()


def test_a_piece_that_is_visited_twice_counts_twice():
    data = random_data(np.random.default_rng(0))
    once = data.visits(ChainPieces(9).draw(data.encoded.offsets, np.random.default_rng(0)))
    rates = FeatureRates.constant(12, 0.1)
    assert rates.gamma.tolist() == [0.1] * 13 and not rates.fired[0].any()
    LogLikelihood(data).descend(
        Weights.zeros(12, 3), once[slice(0, 1)].repeated(3), np.array([1.0, 0.0]), rates=rates
    )
    inside = data.encoded.indices[: data.encoded.indptr[once.ends[0]]]
    assert rates.fired[0, np.unique(inside)].tolist() == [3] * len(set(inside))
    assert rates.fired[0, :12].sum() == 3 * len(set(inside))


def test_l1_and_groups_are_applied_once_a_pass_with_its_mean_rates():
    data = random_data(np.random.default_rng(0))
    penalty = Penalty(l1=0.7, group_lasso=0.2, groups=np.arange(12, dtype=np.int32) // 3)
    start = random_weights(np.random.default_rng(1), "sparse")
    learner = AdaptiveFrequency(
        LogLikelihood(data), start.copy(), learning_rate=0.3, penalty=penalty
    )
    learner.rates.gamma[:] = np.linspace(0.1, 0.5, 13)
    learner.rates.fired[0] = 1  # in one of two pieces: the rates fall
    learner.end_window(0, 2, 8)
    later = learner.rates.gamma.copy()
    learner.end_window(0, 6, 8)
    value = learner.end_pass(0)
    penalty.proximal(start, np.linspace(0.1, 0.5, 13) / 4 + later * 3 / 4)
    same_weights(learner.weights(), start, rtol=1e-12)
    assert value == pytest.approx(penalty.value(start))


def test_the_helper_knows_the_feature_of_each_edge_weight():
    data = random_data(np.random.default_rng(0))
    weights = random_weights(np.random.default_rng(1), "sparse")
    owner = edge_features(weights)
    for t in range(1, 20):
        for place, _, _, f in edge_entries(data, weights, t):
            assert owner[place] == f
