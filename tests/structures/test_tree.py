"""Trees: larger and special ones, both regimes of the sums, all errors.

What trees share with chains is in ``test_chains_and_forests.py``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from enumerate_passes import enumerated

from trellis.errors import DataError
from trellis.structures import (
    ChainPotentials,
    GraphPotentials,
    best,
    entropy,
    event_probability,
    kbest,
    labelling_score,
    marginals,
    sample,
)


def pair_marginals(p):
    both = marginals(p, pairs=True)
    return both.log_z, both.pair


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)


# --- larger and special trees --------------------------------------------------------------------


def shifted(p, by):
    """All node scores raised: nothing changes but log Z."""
    return GraphPotentials(p.node + by, p.pair, p.edges, p.offsets, p.types)


@pytest.mark.parametrize("scale", [1.0, 40.0, 400.0])
@pytest.mark.parametrize("each_edge", [False, True])
def test_chains_are_trees(scale, each_edge):
    """Chains, some of their edges stored backwards; at the larger scales on logarithms."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 0, 30, 31, 75])
    n, n_labels = 75, 7
    node = rng.normal(size=(n, n_labels)) * scale
    trans = rng.normal(size=(n, n_labels, n_labels) if each_edge else (n_labels, n_labels)) * scale
    starts = [0, 30, 31]
    into = np.setdiff1d(np.arange(n), starts)
    edges = np.stack([into - 1, into], axis=1)
    turned = rng.random(len(into)) < 0.5
    edges[turned] = edges[turned, ::-1]
    tables = trans[into] if each_edge else np.stack([trans, trans.T])
    if each_edge:
        tables[turned] = tables[turned].transpose(0, 2, 1)
    p = GraphPotentials(node, tables, edges, offsets, None if each_edge else turned.astype(int))
    c = ChainPotentials(node, trans, offsets)

    labels, scores = best(c)
    assert (best(p)[0] == labels).all()
    np.testing.assert_allclose(best(p)[1], scores, rtol=1e-12)
    np.testing.assert_allclose(labelling_score(p, labels), scores, rtol=1e-12)
    np.testing.assert_allclose(kbest(p, 5)[1], kbest(c, 5)[1], rtol=1e-12)
    np.testing.assert_array_equal(kbest(p, 5)[0], kbest(c, 5)[0])
    for found, expected in zip(marginals(p), marginals(c), strict=True):
        close(found, expected)
    pairs = pair_marginals(c)[1][into]
    pairs[turned] = pairs[turned].transpose(0, 2, 1)
    close(pair_marginals(p)[1], pairs)
    np.testing.assert_allclose(entropy(p), entropy(c), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("gain", [1.0, 3.0])
def test_a_lead_beyond_the_range_of_floats_is_won_back(gain):
    """Label 0 falls behind for half a path and wins it all back; no single score is extreme."""
    n = 1000
    node = np.zeros((n, 2))
    node[1 : n // 2, 0] = -gain
    node[n // 2 :, 1] = -gain
    node[0, 1] = -gain
    edges = np.stack([np.arange(1, n), np.arange(n - 1)], axis=1)
    p = GraphPotentials(node, [[0.0, -np.inf], [-np.inf, 0.0]], edges, [0, n])
    log_z, node_marginals = marginals(p)
    behind = -gain * (n // 2 - 1), -gain * (n // 2 + 1)
    odds = 1 / (1 + math.exp(behind[1] - behind[0]))
    assert log_z[0] == pytest.approx(np.logaddexp(*behind), rel=1e-12)
    np.testing.assert_allclose(node_marginals, np.tile([odds, 1 - odds], (n, 1)), rtol=1e-9)
    pairs = pair_marginals(p)[1]
    np.testing.assert_allclose(pairs, np.tile(np.diag([odds, 1 - odds]), (n - 1, 1, 1)), rtol=1e-9)


@pytest.mark.parametrize("contrast", [0.5, 2.0])
def test_a_star_of_many_leaves(contrast):
    """The product of all messages: it vanishes unless scaled, and at high contrast even so."""
    n = 2001
    edges = np.stack([np.full(n - 1, n - 1), np.arange(n - 1)], axis=1)
    node = np.zeros((n, 2))
    node[: n // 2, 1] = node[n // 2 : n - 1, 0] = -contrast
    p = GraphPotentials(node, np.diag([1.0, 1.0]), edges, [0, n])
    log_z, node_marginals = marginals(p)
    like, unlike = 1 + math.exp(1 - contrast), math.e + math.exp(-contrast)
    leaves = n // 2 * (math.log(like) + math.log(unlike))
    assert log_z[0] == pytest.approx(leaves + math.log(2), rel=1e-12)
    close(node_marginals[-1], [0.5, 0.5])
    first = 0.5 * math.e / (math.e + math.exp(-contrast)) + 0.5 / (1 + math.exp(1 - contrast))
    close(node_marginals[0], [first, 1 - first])
    highest = n // 2 * (1 + max(1 - contrast, 0))
    assert best(p)[1][0] == kbest(p, 2)[1][0, 0] == highest


def test_one_extreme_tree_leaves_the_others_as_they_are():
    """Trees of one sample in both regimes; scores of either sign do not matter to p(y)."""
    rng = np.random.default_rng(1)
    edges = np.array([[0, 1], [1, 2], [3, 4], [5, 4]])
    node, tables = rng.normal(size=(7, 3)), rng.normal(size=(4, 3, 3))
    node[4] = [0.0, -5000.0, 5000.0]
    tables[2, 0, 2] = -10000.0
    p = GraphPotentials(node, tables, edges, [0, 7])
    e = enumerated(p)[0]
    for q, by in ((p, 0.0), (shifted(p, 1e3), 7e3), (shifted(p, -1e3), -7e3)):
        log_z, node_marginals = marginals(q)
        assert log_z[0] == pytest.approx(e.log_z + by, rel=1e-12)
        for v in range(7):
            close(node_marginals[v], e.marginal(v, 3))


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_samples_have_the_right_frequencies(scale):
    rng = np.random.default_rng(2)
    edges = np.array([[1, 0], [1, 2], [3, 1], [4, 5]])
    pair = rng.normal(size=(2, 3, 3))
    pair[0, 1, 2] = -scale  # at the larger scale the tree is done on logarithms
    p = GraphPotentials(rng.normal(size=(6, 3)), pair, edges, [0, 4, 6], [0, 1, 1, 0])
    n = 20_000
    y = sample(p, n, rng)
    for e in enumerated(p):
        code = 3 ** np.arange(e.labels.shape[1])
        found = np.bincount(y[:, e.rows] @ code, minlength=3 ** len(code)) / n
        expected = np.bincount(e.labels @ code, e.probabilities, minlength=3 ** len(code))
        assert np.abs(found - expected).max() < 4 * math.sqrt(0.25 / n)


def test_label_sets_and_costs():
    p = GraphPotentials(np.zeros((3, 2)), [[1.0, 0.0], [0.0, 1.0]], [[0, 1], [1, 2]], [0, 3])
    p = p.with_costs(np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 0.0]]))
    assert best(p)[0].tolist() == [1, 1, 1]
    p = p.constrained(np.array([[True, True], [True, True], [True, False]]))
    assert best(p)[0].tolist() == [1, 0, 0]
    assert (marginals(p)[1][2] == [1.0, 0.0]).all()


def test_no_samples_and_no_draws():
    p = GraphPotentials(np.zeros((0, 2)), np.zeros((2, 2)), [], [0])
    assert best(p)[0].shape == (0,) and marginals(p)[0].shape == (0,)
    empty = GraphPotentials(np.zeros((0, 2)), np.zeros((2, 2)), [], [0, 0, 0])
    assert marginals(empty)[0].tolist() == [0.0, 0.0]
    assert kbest(empty, 2)[1].tolist() == [[0.0]] * 2
    one = GraphPotentials(np.zeros((1, 2)), np.zeros((2, 2)), [], [0, 1])
    assert sample(one, 0, np.random.default_rng(0)).shape == (0, 1)


# --- errors --------------------------------------------------------------------------------------


def test_cycles_are_refused():
    p = GraphPotentials(np.zeros((4, 2)), np.zeros((2, 2)), [[1, 2], [2, 3], [1, 3]], [0, 1, 4])
    for infer in (best, marginals):
        with pytest.raises(DataError, match=r"^sample 1: the edges close a cycle at node 2 "):
            infer(p, method="tree")
    assert labelling_score(p, [0, 0, 1, 1]).tolist() == [0.0, 0.0]


def test_wrong_arguments_are_refused():
    p = GraphPotentials(np.zeros((2, 2)), np.zeros((2, 2)), [[0, 1]], [0, 2])
    with pytest.raises(DataError, match="k must be a positive integer, got 0"):
        kbest(p, 0)
    with pytest.raises(DataError, match="n_samples must be an integer of at least 0"):
        sample(p, -1, np.random.default_rng(0))
    with pytest.raises(DataError, match="there are 1 labels for 2 nodes"):
        labelling_score(p, [0])
    with pytest.raises(DataError, match="labels hold 2 at index 1; expected 0 to 1"):
        labelling_score(p, [0, 2])
    with pytest.raises(DataError, match="label sets have shape"):
        event_probability(p, np.ones((2, 3), bool))
