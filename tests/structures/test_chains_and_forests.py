"""Chains and forests: every question against brute force, under label sets and costs too."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from enumerate_passes import ORDINARY, array, chains, enumerated, feasible, forests
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trellis.errors import DataError, InfeasibleError
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

CASES = settings(deadline=None, max_examples=60)  # 30 chains and 30 forests
EITHER = st.one_of(chains(), forests())
POTENTIALS = feasible(EITHER)
SETS = st.sampled_from([True, True, False])


def close(answer, expected):
    np.testing.assert_allclose(answer, expected, rtol=1e-9, atol=1e-13)


@CASES
@given(POTENTIALS)
def test_best_is_the_first_of_all_labellings(p):
    labels, scores = answer = best(p)
    assert labels.dtype == np.int32 and scores.dtype == np.float64
    assert labels is answer.labels and scores is answer.scores
    kind = "chain" if isinstance(p, ChainPotentials) else "tree"
    assert answer.exact.all() and set(answer.method) <= {kind} and (answer.gap == 0).all()
    for e, score in zip(enumerated(p), scores, strict=True):
        assert labels[e.rows].tolist() == e.labels[0].tolist()
        assert score == e.scores[0]


@CASES
@given(POTENTIALS, st.integers(1, 40) | st.just(1000))
def test_kbest_lists_all_labellings_in_order(p, k):
    labels, scores = kbest(p, k)
    ranks = max([1, *(min(k, len(e.scores)) for e in enumerated(p))])
    assert labels.shape == (ranks, len(p.node)) and labels.dtype == np.int32
    assert scores.shape == (len(p.offsets) - 1, ranks)
    assert (labels[0] == best(p)[0]).all()
    for e, ranked in zip(enumerated(p), scores, strict=True):
        n = min(k, len(e.scores))
        assert ranked[:n].tolist() == e.scores[:n].tolist()
        assert (ranked[n:] == -np.inf).all() and (labels[n:, e.rows] == -1).all()
        listed = [tuple(y) for y in labels[:n, e.rows].tolist()]
        if isinstance(p, ChainPotentials):  # ties too are in order
            assert listed == e.labellings[:n]
        score_of = dict(zip(e.labellings, e.scores, strict=True))
        assert len(set(listed)) == n
        assert [score_of[y] for y in listed] == ranked[:n].tolist()


@CASES
@given(POTENTIALS, st.sampled_from([10**9, 10**30]))
def test_kbest_of_far_more_than_there_are(p, k):
    """Time and memory go by the labellings there are."""
    labels, scores = kbest(p, k)
    expected = kbest(p, 1000)
    assert np.array_equal(labels, expected[0]) and np.array_equal(scores, expected[1])


@pytest.mark.parametrize("k", [10**15, 10**25])
def test_kbest_of_more_than_memory_holds(k):
    chain = ChainPotentials(np.zeros((60, 3)), np.zeros((3, 3)), [0, 60])
    star = GraphPotentials(np.zeros((60, 3)), np.eye(3), [[0, v] for v in range(1, 60)], [0, 60])
    for p in (chain, star):
        with pytest.raises(DataError, match=f"{k} labellings do not fit into memory"):
            kbest(p, k)


@CASES
@given(POTENTIALS)
def test_marginals(p):
    answer = marginals(p)
    log_z, node = answer
    assert log_z is answer.log_z and node is answer.node and node.shape == p.node.shape
    assert answer.exact.all() and answer.converged.all() and (answer.n_iterations == 1).all()
    for e, normaliser in zip(enumerated(p), log_z, strict=True):
        assert normaliser == pytest.approx(e.log_z, rel=1e-12, abs=1e-12)
        for v in range(e.labels.shape[1]):
            close(node[e.rows][v], e.marginal(v, p.node.shape[1]))


@CASES
@given(POTENTIALS)
def test_pair_marginals(p):
    log_z, node = marginals(p)
    both = marginals(p, pairs=True)
    assert log_z.tolist() == both.log_z.tolist() and node.tolist() == both.node.tolist()
    n = len(p.node) if isinstance(p, ChainPotentials) else len(p.edges)
    assert both.pair.shape == (n, p.node.shape[1], p.node.shape[1])
    linked = np.zeros(n, bool)
    for e in enumerated(p):
        for a, b, i in e.links:
            linked[i] = True
            expected = np.zeros(both.pair.shape[1:])
            np.add.at(expected, (e.labels[:, a], e.labels[:, b]), e.probabilities)
            close(both.pair[i], expected)
            close(both.pair[i].sum(axis=1), node[e.rows][a])
            close(both.pair[i].sum(axis=0), node[e.rows][b])
    assert (both.pair[~linked] == 0).all()  # where chains start


def test_results_can_be_pickled():
    p = ChainPotentials(np.eye(3, 2), np.eye(2), [0, 1, 3])
    for answer, fields in (
        (best(p), ("labels", "scores", "bounds", "exact", "method")),
        (marginals(p, pairs=True), ("log_z", "node", "pair", "exact", "converged", "n_iterations")),
    ):
        again = pickle.loads(pickle.dumps(answer))
        assert type(again) is type(answer)
        for name in fields:
            assert np.array_equal(getattr(again, name), getattr(answer, name))


@CASES
@given(POTENTIALS)
def test_entropy(p):
    np.testing.assert_allclose(
        entropy(p), [e.entropy for e in enumerated(p)], rtol=1e-9, atol=1e-11
    )


@CASES
@given(POTENTIALS, st.data())
def test_event_probability(p, data):
    allowed = array(data.draw, p.node.shape, SETS, np.bool_)
    for e, probability in zip(enumerated(p), event_probability(p, allowed), strict=True):
        inside = allowed[e.rows][np.arange(e.labels.shape[1]), e.labels].all(axis=1)
        close(probability, e.probabilities[inside].sum())
        assert inside.any() or probability == 0.0


@CASES
@given(POTENTIALS, st.data())
def test_labelling_score(p, data):
    labels = array(data.draw, (len(p.node),), st.integers(0, p.node.shape[1] - 1), np.int32)
    for e, score in zip(enumerated(p), labelling_score(p, labels), strict=True):
        same = (e.labels == labels[e.rows]).all(axis=1)
        assert score == (e.scores[same][0] if same.any() else -np.inf)


@CASES
@given(POTENTIALS, st.data())
def test_label_sets_and_costs_of_both_signs(p, data):
    allowed = array(data.draw, p.node.shape, SETS, np.bool_)
    costs = array(data.draw, p.node.shape, ORDINARY)
    augmented = p.with_costs(costs).constrained(allowed)
    node = p.node + costs
    node[~allowed] = -np.inf
    np.testing.assert_array_equal(augmented.node, node)
    expected = enumerated(p.with_arrays(node=node))
    assume(all(len(e.scores) for e in expected))
    assert best(augmented)[1].tolist() == [e.scores[0] for e in expected]
    np.testing.assert_allclose(marginals(augmented)[0], [e.log_z for e in expected], 1e-12)


@CASES
@given(POTENTIALS, st.integers(0, 2**32 - 1))
def test_samples_are_feasible_and_follow_the_seed(p, seed):
    y = sample(p, 5, np.random.default_rng(seed))
    assert y.shape == (5, len(p.node)) and y.dtype == np.int32
    assert (y == sample(p, 5, np.random.default_rng(seed))).all()
    for e in enumerated(p):
        assert {tuple(draw) for draw in y[:, e.rows].tolist()} <= set(e.labellings)


@CASES
@given(POTENTIALS)
def test_stacking_changes_no_bit(p):
    labels, node_marginals = best(p)[0], marginals(p)[1]
    for s in range(len(p.offsets) - 1):
        alone, rows = p.alone(s), slice(p.offsets[s], p.offsets[s + 1])
        np.testing.assert_array_equal(alone.node, p.node[rows])
        assert alone.offsets.tolist() == [0, len(p.node[rows])]
        assert best(alone)[0].tolist() == labels[rows].tolist()
        assert marginals(alone)[1].tolist() == node_marginals[rows].tolist()


@CASES
@given(EITHER, st.integers(0, 20))
def test_infeasible_samples_are_named(p, v):
    assume(len(p.node) > 0)
    if all(len(e.scores) for e in enumerated(p)):
        node = p.node.copy()
        node[v % len(p.node)] = -np.inf
        p = p.with_arrays(node=node)
    bad = [s for s, e in enumerate(enumerated(p)) if len(e.scores) == 0]
    n = p.offsets[bad[0] + 1] - p.offsets[bad[0]]
    unit = "positions" if isinstance(p, ChainPotentials) else "nodes"
    message = (
        rf"^sample {bad[0]} \(of {n} {unit}\) has no labelling of finite score; allow more labels "
        "or pairs of labels$"
    )
    rng = np.random.default_rng(0)
    for infer in (
        best,
        lambda p: kbest(p, 2),
        marginals,
        lambda p: marginals(p, pairs=True),
        entropy,
        lambda p: sample(p, 1, rng),
        lambda p: event_probability(p, np.ones(p.node.shape, bool)),
    ):
        with pytest.raises(InfeasibleError, match=message):
            infer(p)
