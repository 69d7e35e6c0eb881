"""Marginals and samples of graphs: exact ones against brute force, loopy ones by what must hold."""

from __future__ import annotations

import numpy as np
import pytest
from enumerate_graph import (
    feasible,
    is_forest,
    labellings,
    log_sum,
    problems,
    samples_of,
)
from enumerate_graph import marginals as enumerated_marginals
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from trellis.datasets import grid_edges
from trellis.errors import DataError, InfeasibleError
from trellis.structures import (
    GraphPotentials,
    best,
    entropy,
    event_probability,
    kbest,
    marginals,
    most_probable,
    sample,
)

INF = np.inf


def check_exact(p: GraphPotentials, found) -> None:
    order, edge_offsets = p.by_sample()
    assert found.exact.all() and found.converged.all()
    for s, alone in enumerate(samples_of(p)):
        node, pair, log_z = enumerated_marginals(alone)
        edges = order[edge_offsets[s] : edge_offsets[s + 1]]
        assert np.allclose(found.node[p.offsets[s] : p.offsets[s + 1]], node, atol=1e-9)
        assert np.allclose(found.pair[edges], pair, atol=1e-9)
        assert found.log_z[s] == pytest.approx(log_z, rel=1e-9, abs=1e-9)


@given(problems(), st.sampled_from(["auto", "elimination"]))
@settings(max_examples=30)
def test_exact_marginals(p, method):
    assume(feasible(p))
    check_exact(p, marginals(p, pairs=True, method=method))


@given(problems(forest=True), st.sampled_from(["tree", "bp", "auto"]))
@settings(max_examples=30)
def test_messages_are_exact_on_forests(p, method):
    assume(feasible(p))
    found = marginals(p, pairs=True, method=method, damping=0.9, max_iterations=1)
    check_exact(p, found)


@given(problems(), st.integers(1, 30))
@settings(max_examples=30)
def test_loopy_belief_propagation(p, n):
    assume(feasible(p))
    found = marginals(p, pairs=True, method="bp", max_iterations=n)
    assert (found.n_iterations <= n).all()
    assert np.allclose(found.node.sum(axis=1), 1.0)
    assert np.allclose(found.pair.sum(axis=(1, 2)), 1.0)
    assert np.isfinite(found.log_z).all()
    assert (found.node[np.isneginf(p.node)] == 0).all()
    assert (found.pair[np.isneginf(p.pair[p.types])] == 0).all()
    for s, alone in enumerate(samples_of(p)):
        assert found.exact[s] == is_forest(alone)
        own = (p.edges[:, 0] >= p.offsets[s]) & (p.edges[:, 0] < p.offsets[s + 1])
        if found.converged[s]:  # then beliefs of edges and nodes agree
            a, b = p.edges[own].T
            assert np.allclose(found.pair[own].sum(axis=2), found.node[a], atol=1e-5)
            assert np.allclose(found.pair[own].sum(axis=1), found.node[b], atol=1e-5)


def test_weak_loops_are_nearly_exact():
    rng = np.random.default_rng(0)
    edges = [[a, b] for a in range(5) for b in range(a)]
    p = GraphPotentials(rng.normal(size=(5, 3)), 0.05 * rng.normal(size=(10, 3, 3)), edges, [0, 5])
    loopy, exact = marginals(p, method="bp"), marginals(p)
    assert loopy.converged[0] and not loopy.exact[0]
    assert exact.exact[0] and exact.n_iterations[0] == 0
    assert np.allclose(loopy.node, exact.node, atol=2e-3)
    assert not np.array_equal(loopy.node, exact.node)
    assert loopy.log_z[0] == pytest.approx(exact.log_z[0], abs=2e-3)


def test_frustrated_loops_say_that_they_did_not_converge():
    edges = [[a, b] for a in range(6) for b in range(a)]
    rng = np.random.default_rng(1)
    p = GraphPotentials(rng.normal(size=(6, 2)), -8 * np.eye(2), edges, [0, 6])
    found = marginals(p, method="bp", max_iterations=50, damping=0.0)
    assert not found.converged[0] and found.n_iterations[0] == 50


def test_messages_that_go_round_are_damped():
    """Where nothing settles without damping, the second half of the turns has some."""
    rng = np.random.default_rng(1)
    n, edges = 400, grid_edges(20, 20)
    p = GraphPotentials(
        rng.normal(size=(n, 5)), 2.5 * rng.normal(size=(len(edges), 5, 5)), edges, [0, n]
    )
    plain, damped = (marginals(p, method="bp", damping=d) for d in (0.0, "auto"))
    assert not plain.converged[0] and plain.n_iterations[0] == 200
    assert damped.converged[0] and 100 < damped.n_iterations[0] < 200
    short = [marginals(p, method="bp", damping=d, max_iterations=5) for d in (0.0, "auto")]
    assert [int(m.n_iterations[0]) for m in short] == [5, 5]
    assert not np.array_equal(short[0].node, short[1].node)


def test_entropies_of_graphs_that_do_not_converge_come_with_a_warning():
    edges = [[a, b] for a in range(6) for b in range(a)]
    rng = np.random.default_rng(1)
    node = rng.normal(size=(6, 2))
    p = GraphPotentials(
        np.concatenate([node, node[:2]]), -8 * np.eye(2), [*edges, [6, 7]], [0, 6, 8]
    )
    with pytest.warns(
        ConvergenceWarning, match=r"^belief propagation did not converge on 1 of 2 g"
    ):
        entropy(p, budget=1)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5])
def test_scores_of_any_size(scale):
    # Exponentials of such differences underflow: sums must then be taken in logarithms.
    node = scale * np.array([[0.0, -3.0, 1.0], [2.0, 0.0, -1.0], [0.0, 1.0, 0.5]])
    pair = scale * np.array([[-4.0, 5.0, 0.0], [-1.0, -2.0, 3.0], [0.0, 2.0, -6.0]])
    for edges in ([[0, 1], [2, 1]], [[0, 1], [2, 1], [0, 2]]):
        p = GraphPotentials(node, pair, edges, [0, 3])
        check_exact(p, marginals(p, pairs=True))
        check_exact(p, marginals(p, pairs=True, method="elimination"))
        loopy = marginals(p, method="bp")
        assert np.isfinite(loopy.node).all() and np.isfinite(loopy.log_z).all()


def test_label_sets_shrink_the_cost_of_marginals():
    rng = np.random.default_rng(2)
    edges = [[a, b] for a in range(6) for b in range(a)]
    p = GraphPotentials(rng.normal(size=(6, 3)), rng.normal(size=(15, 3, 3)), edges, [0, 6])
    allowed = np.ones((6, 3), dtype=bool)
    allowed[0] = [False, True, False]
    allowed[3] = [True, False, True]
    allowed[5] = [False, False, True]
    q = p.constrained(allowed)
    check_exact(q, marginals(q, pairs=True, method="elimination", budget=200))
    with pytest.raises(DataError, match=r"takes 1.09e\+03 table entries"):
        marginals(p, method="elimination", budget=200)


@given(problems(most_nodes=4), st.data())
@settings(max_examples=30)
def test_entropies_and_events(p, data):
    assume(feasible(p))
    flags = st.lists(
        st.sampled_from([True, True, False]), min_size=p.node.size, max_size=p.node.size
    )
    allowed = np.array(data.draw(flags), bool).reshape(p.node.shape)
    entropies, events = entropy(p), event_probability(p, allowed)
    known = entropy(p, marginals(p, pairs=True, method="elimination"))
    for s, alone in enumerate(samples_of(p)):
        every = labellings(alone)
        log_z, sets = log_sum(every.values()), allowed[p.offsets[s] : p.offsets[s + 1]]
        chances = {y: np.exp(x - log_z) for y, x in every.items()}
        inside = sum(x for y, x in chances.items() if all(sets[np.arange(len(y)), y]))
        assert events[s] == pytest.approx(inside, rel=1e-9, abs=1e-12)
        surprise = sum(x * (log_z - every[y]) for y, x in chances.items())
        size = max(1.0, max(map(abs, every.values())))
        assert entropies[s] == pytest.approx(surprise, abs=1e-9 * size)
        assert known[s] == pytest.approx(surprise, abs=1e-9 * size)


@given(problems(most_nodes=4))
@settings(max_examples=30)
def test_stacking_changes_no_bit(p):
    """Samples with cycles and without, together and each on its own."""
    assume(feasible(p))
    node, entropies, ranked = marginals(p).node, entropy(p), kbest(p, 3)
    labels = best(p).labels
    for s, alone in enumerate(samples_of(p)):
        rows = slice(p.offsets[s], p.offsets[s + 1])
        assert marginals(alone).node.tolist() == node[rows].tolist()
        assert entropy(alone).tolist() == [entropies[s]]
        assert best(alone).labels.tolist() == labels[rows].tolist()
        labels_alone, scores_alone = kbest(alone, 3)
        n = len(labels_alone)  # others may have more
        assert labels_alone.tolist() == ranked[0][:n, rows].tolist()
        assert scores_alone.tolist() == [ranked[1][s][:n].tolist()]
        assert np.isneginf(ranked[1][s][n:]).all()


# ---------------------------------------------------------------------------------------- samples


@given(problems(most_nodes=4), st.booleans())
@settings(max_examples=30)
def test_samples_are_feasible(p, cut):
    assume(feasible(p))
    budget = 10**7
    if cut:
        p = p.constrained(p.node == p.node.max(axis=1, keepdims=True))
        assume(feasible(p))
        budget = 400
    y = sample(p, 5, np.random.default_rng(0), budget=budget)
    assert y.shape == (5, len(p.node)) and y.dtype == np.int32
    for s, alone in enumerate(samples_of(p)):
        every = labellings(alone)
        for draw in y[:, p.offsets[s] : p.offsets[s + 1]]:
            assert tuple(int(label) for label in draw) in every


def test_samples_have_the_right_frequencies():
    rng = np.random.default_rng(3)
    edges = [[0, 1], [1, 2], [2, 3], [3, 0], [1, 3], [4, 5], [5, 6], [6, 4]]
    pair = 0.4 * rng.normal(size=(8, 2, 2))  # weak, so that every labelling is drawn often enough
    pair[2, 0, 1] = -INF
    p = GraphPotentials(0.4 * rng.normal(size=(7, 2)), pair, edges, [0, 4, 7])
    y = sample(p, 40_000, rng)
    for s, alone in enumerate(samples_of(p)):
        every = labellings(alone)
        log_z = log_sum(every.values())
        own = y[:, p.offsets[s] : p.offsets[s + 1]]
        found, counts = np.unique(own, axis=0, return_counts=True)
        assert len(found) == len(every)
        for labels, count in zip(found.tolist(), counts, strict=True):
            probability = np.exp(every[tuple(labels)] - log_z)
            spread = np.sqrt(probability * (1 - probability) / len(y))
            assert abs(count / len(y) - probability) < 5 * spread


def test_same_seed_same_samples():
    p = GraphPotentials(np.zeros((3, 2)), np.eye(2), [[0, 1], [1, 2], [0, 2]], [0, 3])
    draws = [sample(p, 20, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert np.array_equal(draws[0], draws[1]) and not np.array_equal(draws[0], draws[2])
    assert sample(p, 0, np.random.default_rng(0)).shape == (0, 3)


# ----------------------------------------------------------------------------------------- errors


def triangle(**changes) -> GraphPotentials:
    given_ = {"node": np.zeros((3, 2)), "pair": np.eye(2), "edges": [[0, 1], [1, 2], [0, 2]]}
    return GraphPotentials(**{**given_, **changes}, offsets=[0, 0, 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "dual"}, "method must be 'auto', 'tree', 'elimination' or 'bp'"),
        ({"budget": 0}, "budget must be a positive integer, got 0"),
        ({"max_iterations": 0}, "max_iterations must be an integer from 1 to"),
        ({"damping": 1.0}, "damping is 1.0; it must be from 0 to below 1"),
        ({"damping": -0.1}, "damping must be 'auto' or a number of at least 0"),
        ({"tolerance": 0.0}, "tolerance must be a positive number"),
        ({"method": "tree"}, "sample 1: the edges close a cycle at node"),
        ({"method": "elimination", "budget": 2}, "sample 1: exact inference by elimination takes"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(DataError, match=message):
        marginals(triangle(), **options)


def test_refusals_of_samples():
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="n_samples must be an integer of at least 0"):
        sample(triangle(), -1, rng)
    with pytest.raises(DataError, match="budget must be a positive integer, got 0"):
        sample(triangle(), 1, rng, budget=0)
    with pytest.raises(DataError, match="budget must be a positive integer, got 0"):
        event_probability(triangle(), np.ones((3, 2), bool), budget=0)
    with pytest.raises(DataError, match=r"takes 14 table entries of 8 bytes \(width 2\)"):
        sample(triangle(), 1, rng, budget=10)


def test_marginals_of_other_scores_are_no_help():
    p = triangle()
    known = marginals(p, pairs=True, budget=1)  # too much for elimination
    np.testing.assert_array_equal(entropy(p, known=known, budget=1), entropy(p, budget=1))
    other = GraphPotentials(np.zeros((2, 2)), np.zeros((2, 2)), [[0, 1]], [0, 2])
    with pytest.raises(DataError, match="known marginals are those of other scores; leave them"):
        entropy(p, known=marginals(other, pairs=True), budget=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"node": [[0.0, 0.0], [-INF, -INF], [0.0, 0.0]]},
        {"pair": [[-INF, -INF], [0.0, -INF]]},
        {"pair": [[-INF, 0.0], [0.0, -INF]]},  # arc consistent: only exact methods can tell
    ],
)
def test_infeasible(changes):
    p = triangle(**changes)
    with pytest.raises(InfeasibleError, match=r"sample 1 \(of 3 nodes\) has no labelling of fin"):
        marginals(p)
    with pytest.raises(InfeasibleError, match="sample 1"):
        sample(p, 3, np.random.default_rng(0))
    with pytest.raises(InfeasibleError, match="sample 1"):
        entropy(p)
    with pytest.raises(InfeasibleError, match="sample 1"):
        event_probability(p, np.ones((3, 2), bool))


# ------------------------------------------------------------------------- most probable labels


@given(problems())
@settings(max_examples=30)
def test_most_probable_labels_are_those_of_brute_force(p):
    assume(feasible(p))
    found = most_probable(p)
    for s, alone in enumerate(samples_of(p)):
        node, _, _ = enumerated_marginals(alone)
        rows = p.rows(s)
        chosen = node[np.arange(len(node)), found[rows]]
        assert (chosen >= node.max(axis=1) - 1e-9).all()


def test_most_probable_labels_need_a_feasible_labelling():
    p = GraphPotentials([[0.0, -INF], [0.0, -INF]], [[-INF, 0.0], [0.0, 0.0]], [[0, 1]], [0, 2])
    with pytest.raises(InfeasibleError):
        most_probable(p)
