"""Transitions of some pairs only: the same loss, and the gradient of what is free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counted_problems import COUNTS, oracle, problem
from rich_problems import random_weights
from trellis import ChainCRF
from trellis.decompose import ChainPieces
from trellis.errors import ParameterError
from trellis.problems import LogLikelihood
from trellis.problems.transition_pairs import (
    MANY_LABELS,
    is_listed,
    observed_pairs,
    with_weights,
)


def masked(weights, pairs):
    """The transitions of all other pairs set to zero."""
    off = np.ones(weights.transitions.size, bool)
    off[pairs] = False
    weights.transitions.reshape(-1)[off] = 0
    return weights


def listed(n_labels, partly, seed=0, size=0.7, dtype=np.float64):
    """A problem, its visits, and weights that are zero where pairs are not free."""
    data, rng = problem(n_labels, partly, transitions="observed"), np.random.default_rng(seed)
    weights = random_weights(rng, "plain", n_labels=n_labels, size=size, dtype=dtype)
    visits = data.visits(ChainPieces(4.5).draw(data.offsets, rng))
    return data, masked(weights, observed_pairs(data)), visits


def slow_pairs(data):
    """What observed_pairs finds, one edge after the other."""
    n, ids = data.n_labels, data.labels.ids
    edges = [
        (int(ids[t - 1]), int(ids[t]))
        for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)
        for t in range(a + 1, b)
    ]
    found = {(i, j) for i, j in edges if i < n and j < n}
    ends = [[edge[k] for edge in edges if edge[k] < n] for k in (0, 1)]
    for i in set(ends[0]):
        for j in set(ends[1]):
            by_chance = len(edges) * ends[0].count(i) * ends[1].count(j)
            if by_chance >= len(ends[0]) * len(ends[1]):
                found.add((i, j))
    return sorted(i * n + j for i, j in found)


@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize("n_labels", COUNTS)
def test_pairs_are_those_seen_or_expected(n_labels, partly):
    data = problem(n_labels, partly)
    assert observed_pairs(data).tolist() == slow_pairs(data)


@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize("n_labels", COUNTS)
def test_loss_and_gradient(n_labels, partly):
    data, weights, visits = listed(n_labels, partly)
    value, gradient = LogLikelihood(data).value_and_gradient(weights, visits)
    wanted, exact = oracle(data, weights, visits)
    masked(exact, observed_pairs(data))
    assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(gradient.node, exact.node, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(gradient.transitions, exact.transitions, rtol=1e-7, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    n_labels=st.integers(2, 20),
    size=st.sampled_from([3.0, 12.0, 40.0, 150.0]),
    seed=st.integers(0, 9),
    partly=st.booleans(),
)
def test_large_weights_lose_nothing(n_labels, size, seed, partly):
    """What the pairs take away is taken from sums of all labels, or done in logarithms."""
    data, weights, visits = listed(n_labels, partly, seed, size)
    value, gradient = LogLikelihood(data).value_and_gradient(weights, visits)
    wanted, exact = oracle(data, weights, visits)
    masked(exact, observed_pairs(data))
    assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(gradient.transitions, exact.transitions, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [0.5, 8.0])
@pytest.mark.parametrize("n_labels", COUNTS)
def test_steps_in_float32_are_those_of_the_gradient(n_labels, size):
    data, start, visits = listed(n_labels, True, size=size, dtype=np.float32)
    _, gradient = oracle(data, start.map(lambda a: a.astype(np.float64)), visits)
    masked(gradient, observed_pairs(data))
    w = start.copy()
    LogLikelihood(data).descend(w, visits, np.array([1.0, 0.0]), rate=0.1, batch_size=len(visits))
    for after, before, g in zip(w.arrays(), start.arrays(), gradient.arrays(), strict=True):
        np.testing.assert_allclose(after, before - 0.1 * g, rtol=1e-5, atol=2e-4 * size)


@pytest.mark.parametrize("batch", [1, 16])
def test_any_number_of_threads_gives_the_same_bits(batch):
    ends = []
    for n_jobs in (1, 2, 3):
        data, w, visits = listed(12, True, dtype=np.float32)
        LogLikelihood(data, n_jobs).descend(
            w, visits, np.array([1.0, 0.0]), rate=0.1, shrink=0.01, batch_size=batch
        )
        ends.append(w)
    for w in ends[1:]:
        assert all((a == b).all() for a, b in zip(w.arrays(), ends[0].arrays(), strict=True))


def test_pairs_with_weights_stay_free():
    """Batches of a stream have other pairs than those before."""
    T = np.zeros((3, 3))
    T[2, 0] = 0.5
    assert with_weights(np.array([1, 4]), T).tolist() == [1, 4, 6]
    data, weights, visits = listed(9, False)
    weights.transitions[8, 8] = 1.0  # of no pair of these data
    value, gradient = LogLikelihood(data).value_and_gradient(weights, visits)
    wanted, exact = oracle(data, weights, visits)
    assert value == pytest.approx(wanted, rel=1e-9)
    assert gradient.transitions[8, 8] == pytest.approx(exact.transitions[8, 8], rel=1e-7)


def test_samples_of_one_position_have_no_pairs():
    crf = ChainCRF(transitions="observed", max_passes=2, learning_rate=0.1)
    crf.fit([[["a"]], [["b"]]], [["X"], ["Y"]])
    assert not crf.weights_.transitions.any()
    assert crf.predict([[["a"]], [["b"]]]) == [["X"], ["Y"]]


def samples(n_labels):
    X = [[[f"w{k}"] for k in range(n_labels)]]
    return X, [[f"L{k}" for k in range(n_labels)]]


@pytest.mark.parametrize(
    ("n_labels", "transitions", "few"),
    [
        (MANY_LABELS, "auto", True),
        (MANY_LABELS - 1, "auto", False),
        (30, "observed", True),
        (MANY_LABELS, "all", False),
    ],
)
def test_many_labels_have_few_transitions(n_labels, transitions, few):
    crf = ChainCRF(transitions=transitions, max_passes=1, learning_rate=0.1, max_labels=5000)
    crf.fit(*samples(n_labels))
    assert (np.count_nonzero(crf.weights_.transitions) <= n_labels) == few


@pytest.mark.parametrize(("share", "few"), [(1.0, True), (0.6, True), (0.2, False)])
def test_of_few_annotations_all_transitions_are_learned(share, few):
    X, (labels,) = samples(2 * MANY_LABELS)
    n = round(share * len(labels))
    y = [label if t < n else None for t, label in enumerate(labels)]
    data = ChainCRF(max_labels=5000).learning_problems({"a": (X, [y])}, labels=labels)["a"]
    assert is_listed(data) == few


def test_an_unknown_kind_is_refused():
    with pytest.raises(ParameterError, match="transitions"):
        ChainCRF(transitions="some").fit(*samples(3))
    with pytest.raises(ParameterError, match="transitions"):
        problem(3, False, transitions="some")


def test_a_long_sample_with_many_labels_takes_no_table_a_position():
    """Scores that scaling cannot hold are summed in logarithms, an edge at a time."""
    n, n_labels = 40, 500
    X = [[[f"w{t % 7}"] for t in range(n)]]
    y = [[f"L{(37 * t) % n_labels}" for t in range(n)]]
    crf = ChainCRF(max_passes=2, learning_rate=1e4, l2=0.0, max_labels=5000, averaged=False)
    assert np.isfinite(crf.fit(X, y).history_[-1].objective)
