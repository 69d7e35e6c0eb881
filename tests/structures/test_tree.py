"""Trees: every inference routine against brute force, both regimes of the sums, all errors.

Samples are forests of any numbering and direction of edges; tables are shared, typed or those of
each edge.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trellis import structures
from trellis.errors import DataError, InfeasibleError
from trellis.structures import ChainPotentials, Forest, GraphPotentials, chain, tree

CASES = settings(deadline=None, max_examples=60)

# Multiples of 1/8, also the extreme ones: their sums are exact, so ties are true ties and labels
# can be compared, not only scores.
ORDINARY = st.integers(-40, 40).map(lambda i: i / 8)
EXTREME = st.sampled_from([-1e4, -1000.0, -800.0, -450.0, -230.0, 450.0, 800.0, 1000.0])
SCORES = {
    "ordinary": ORDINARY,
    "forbidding": st.one_of(ORDINARY, ORDINARY, st.just(-np.inf)),
    "extreme": st.one_of(ORDINARY, EXTREME, st.just(-np.inf)),
}


def array(draw, shape, elements):
    size = math.prod(shape)
    return np.array(draw(st.lists(elements, min_size=size, max_size=size)), float).reshape(shape)


@st.composite
def anything(draw):
    """Potentials of up to three samples, some of them empty, disconnected or infeasible."""
    n_labels = draw(st.integers(1, 5))
    largest = {1: 6, 2: 6, 3: 5, 4: 4, 5: 3}[n_labels]
    sizes = draw(st.lists(st.integers(0, largest), max_size=3))
    offsets = np.cumsum([0, *sizes])
    edges = []
    for first, n in zip(offsets, sizes, strict=False):
        names = draw(st.permutations(range(n)))
        for v in range(1, n):
            up = draw(st.integers(-1, v - 1) | st.just(0))
            if up >= 0:
                pair = [first + names[v], first + names[up]]
                edges.append(pair if draw(st.booleans()) else pair[::-1])
    edges = draw(st.permutations(edges))
    elements = SCORES[draw(st.sampled_from(sorted(SCORES)))]
    node = array(draw, (sum(sizes), n_labels), elements)
    n_tables = draw(st.sampled_from([None, len(edges), 2, 3]))
    types = None
    shape = (n_labels, n_labels) if n_tables is None else (n_tables, n_labels, n_labels)
    if n_tables in (2, 3):
        m = len(edges)
        types = draw(st.lists(st.integers(0, n_tables - 1), min_size=m, max_size=m))
    return GraphPotentials(node, array(draw, shape, elements), edges, offsets, types)


@st.composite
def potentials(draw):
    """As ``anything``, but every sample has a feasible labelling."""
    p = draw(anything())
    assume(all(len(e.scores) for e in enumerated(p)))
    return p


@dataclass
class Enumerated:
    """All feasible labellings of one sample, best first (ties as promised), scores and p(y)."""

    rows: slice
    edges: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    log_z: float
    probability: np.ndarray


def enumerated(p):
    found = []
    order = Forest.of(p.offsets, p.edges).order
    for first, stop in itertools.pairwise(p.offsets.tolist()):
        n, n_labels = stop - first, p.node.shape[1]
        y = np.array(list(itertools.product(range(n_labels), repeat=n)), int)
        y = y[:, np.argsort(order[first:stop] - first)]  # lexicographic in the order of the forest
        scores = sum((p.node[first + v, y[:, v]] for v in range(n)), np.zeros(len(y)))
        own = np.flatnonzero((p.edges[:, 0] >= first) & (p.edges[:, 0] < stop))
        for e in own:
            a, b = p.edges[e] - first
            scores = scores + p.pair[p.types[e], y[:, a], y[:, b]]
        by_score = np.argsort(-scores, kind="stable")
        by_score = by_score[np.isfinite(scores[by_score])]
        y, scores = y[by_score], scores[by_score]
        weight = np.exp(scores - scores[0]) if len(scores) else scores
        log_z = scores[0] + math.log(math.fsum(weight)) if len(scores) else -math.inf
        probability = weight / weight.sum()
        found.append(Enumerated(slice(first, stop), own, y, scores, log_z, probability))
    return found


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)


# --- against brute force -------------------------------------------------------------------------


@CASES
@given(potentials())
def test_best_is_the_first_of_all_labellings(p):
    labels, scores = tree.tree_best(p)
    assert labels.dtype == np.int32 and scores.dtype == np.float64
    for e, score in zip(enumerated(p), scores, strict=True):
        assert labels[e.rows].tolist() == e.labels[0].tolist()
        assert score == e.scores[0]


@CASES
@given(potentials(), st.integers(1, 40) | st.just(1000))
def test_kbest_lists_all_labellings_in_order(p, k):
    labels, scores = tree.tree_kbest(p, k)
    assert labels.shape == (k, len(p.node)) and labels.dtype == np.int32
    assert scores.shape == (len(p.offsets) - 1, k)
    assert (labels[0] == tree.tree_best(p)[0]).all()
    for e, found in zip(enumerated(p), scores, strict=True):
        n = min(k, len(e.scores))
        assert found[:n].tolist() == e.scores[:n].tolist()
        assert (found[n:] == -np.inf).all() and (labels[n:, e.rows] == -1).all()
        score_of = dict(zip(map(tuple, e.labels.tolist()), e.scores, strict=True))
        listed = [tuple(y) for y in labels[:n, e.rows].tolist()]
        assert len(set(listed)) == n
        assert [score_of[y] for y in listed] == found[:n].tolist()


@CASES
@given(potentials())
def test_marginals(p):
    log_z, node_marginals = tree.tree_marginals(p)
    assert node_marginals.shape == p.node.shape
    for e, found in zip(enumerated(p), log_z, strict=True):
        assert found == pytest.approx(e.log_z, rel=1e-12, abs=1e-12)
        for v in range(e.labels.shape[1]):
            expected = np.bincount(e.labels[:, v], e.probability, minlength=p.node.shape[1])
            close(node_marginals[e.rows][v], expected)


@CASES
@given(potentials())
def test_pair_marginals_as_the_edges_are_stored(p):
    log_z, pairs = tree.tree_pair_marginals(p)
    assert log_z.tolist() == tree.tree_marginals(p)[0].tolist()
    assert pairs.shape == (len(p.edges), p.node.shape[1], p.node.shape[1])
    for e in enumerated(p):
        for i in e.edges:
            a, b = p.edges[i] - e.rows.start
            expected = np.zeros(pairs.shape[1:])
            np.add.at(expected, (e.labels[:, a], e.labels[:, b]), e.probability)
            close(pairs[i], expected)


@CASES
@given(potentials())
def test_entropy(p):
    found = tree.tree_entropy(p)
    for e, entropy in zip(enumerated(p), found, strict=True):
        x = e.probability[e.probability > 0]
        assert entropy == pytest.approx(-(x * np.log(x)).sum(), rel=1e-9, abs=1e-12)


@CASES
@given(potentials(), st.data())
def test_event_probability(p, data):
    size = p.node.size
    allowed = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    allowed = np.array(allowed, bool).reshape(p.node.shape)
    found = tree.tree_event_probability(p, allowed)
    for e, probability in zip(enumerated(p), found, strict=True):
        inside = allowed[e.rows][np.arange(e.labels.shape[1]), e.labels].all(axis=1)
        close(probability, e.probability[inside].sum())


@CASES
@given(potentials(), st.data())
def test_score_of_any_labelling(p, data):
    n, n_labels = p.node.shape
    y = data.draw(st.lists(st.integers(0, n_labels - 1), min_size=n, max_size=n))
    found = tree.tree_score(p, np.array(y, int))
    for e, score in zip(enumerated(p), found, strict=True):
        same = (e.labels == np.array(y, int)[e.rows]).all(axis=1)
        assert score == (e.scores[same][0] if same.any() else -np.inf)


@CASES
@given(potentials(), st.integers(0, 2**32))
def test_samples_are_feasible_and_repeatable(p, seed):
    y = tree.tree_sample(p, 3, np.random.default_rng(seed))
    assert y.shape == (3, len(p.node)) and y.dtype == np.int32
    assert y.tolist() == tree.tree_sample(p, 3, np.random.default_rng(seed)).tolist()
    for draw in y:
        assert np.isfinite(tree.tree_score(p, draw)).all()


@CASES
@given(anything(), st.integers(0, 20))
def test_infeasible_samples_are_named(p, v):
    assume(len(p.node) > 0)
    if all(len(e.scores) for e in enumerated(p)):
        p.node[v % len(p.node)] = -np.inf
    bad = [s for s, e in enumerate(enumerated(p)) if len(e.scores) == 0]
    n = p.offsets[bad[0] + 1] - p.offsets[bad[0]]
    message = (
        rf"^sample {bad[0]} \(of {n} nodes\) has no labelling of finite score; allow more labels "
        "or pairs of labels$"
    )
    rng = np.random.default_rng(0)
    for infer in (
        tree.tree_best,
        lambda p: tree.tree_kbest(p, 2),
        tree.tree_marginals,
        tree.tree_pair_marginals,
        tree.tree_entropy,
        lambda p: tree.tree_sample(p, 1, rng),
        lambda p: tree.tree_event_probability(p, np.ones(p.node.shape, bool)),
    ):
        with pytest.raises(InfeasibleError, match=message):
            infer(p)


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

    labels, scores = chain.best(c)
    assert (tree.tree_best(p)[0] == labels).all()
    np.testing.assert_allclose(tree.tree_best(p)[1], scores, rtol=1e-12)
    np.testing.assert_allclose(tree.tree_score(p, labels), scores, rtol=1e-12)
    np.testing.assert_allclose(tree.tree_kbest(p, 5)[1], chain.kbest(c, 5)[1], rtol=1e-12)
    np.testing.assert_array_equal(tree.tree_kbest(p, 5)[0], chain.kbest(c, 5)[0])
    for found, expected in zip(tree.tree_marginals(p), chain.marginals(c), strict=True):
        close(found, expected)
    pairs = chain.pair_marginals(c)[1][into]
    pairs[turned] = pairs[turned].transpose(0, 2, 1)
    close(tree.tree_pair_marginals(p)[1], pairs)
    np.testing.assert_allclose(tree.tree_entropy(p), chain.entropy(c), rtol=1e-9, atol=1e-12)


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
    log_z, node_marginals = tree.tree_marginals(p)
    behind = -gain * (n // 2 - 1), -gain * (n // 2 + 1)
    odds = 1 / (1 + math.exp(behind[1] - behind[0]))
    assert log_z[0] == pytest.approx(np.logaddexp(*behind), rel=1e-12)
    np.testing.assert_allclose(node_marginals, np.tile([odds, 1 - odds], (n, 1)), rtol=1e-9)
    pairs = tree.tree_pair_marginals(p)[1]
    np.testing.assert_allclose(pairs, np.tile(np.diag([odds, 1 - odds]), (n - 1, 1, 1)), rtol=1e-9)


@pytest.mark.parametrize("contrast", [0.5, 2.0])
def test_a_star_of_many_leaves(contrast):
    """The product of all messages: it vanishes unless scaled, and at high contrast even so."""
    n = 2001
    edges = np.stack([np.full(n - 1, n - 1), np.arange(n - 1)], axis=1)
    node = np.zeros((n, 2))
    node[: n // 2, 1] = node[n // 2 : n - 1, 0] = -contrast
    p = GraphPotentials(node, np.diag([1.0, 1.0]), edges, [0, n])
    log_z, node_marginals = tree.tree_marginals(p)
    like, unlike = 1 + math.exp(1 - contrast), math.e + math.exp(-contrast)
    leaves = n // 2 * (math.log(like) + math.log(unlike))
    assert log_z[0] == pytest.approx(leaves + math.log(2), rel=1e-12)
    close(node_marginals[-1], [0.5, 0.5])
    first = 0.5 * math.e / (math.e + math.exp(-contrast)) + 0.5 / (1 + math.exp(1 - contrast))
    close(node_marginals[0], [first, 1 - first])
    highest = n // 2 * (1 + max(1 - contrast, 0))
    assert tree.tree_best(p)[1][0] == tree.tree_kbest(p, 2)[1][0, 0] == highest


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
        log_z, node_marginals = tree.tree_marginals(q)
        assert log_z[0] == pytest.approx(e.log_z + by, rel=1e-12)
        for v in range(7):
            close(node_marginals[v], np.bincount(e.labels[:, v], e.probability, minlength=3))


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_samples_have_the_right_frequencies(scale):
    rng = np.random.default_rng(2)
    edges = np.array([[1, 0], [1, 2], [3, 1], [4, 5]])
    pair = rng.normal(size=(2, 3, 3))
    pair[0, 1, 2] = -scale  # at the larger scale the tree is done on logarithms
    p = GraphPotentials(rng.normal(size=(6, 3)), pair, edges, [0, 4, 6], [0, 1, 1, 0])
    n = 20_000
    y = tree.tree_sample(p, n, rng)
    for e in enumerated(p):
        code = 3 ** np.arange(e.labels.shape[1])
        found = np.bincount(y[:, e.rows] @ code, minlength=3 ** len(code)) / n
        expected = np.bincount(e.labels @ code, e.probability, minlength=3 ** len(code))
        assert np.abs(found - expected).max() < 4 * math.sqrt(0.25 / n)


def test_label_sets_and_costs():
    p = GraphPotentials(np.zeros((3, 2)), [[1.0, 0.0], [0.0, 1.0]], [[0, 1], [1, 2]], [0, 3])
    p = p.with_costs(np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 0.0]]))
    assert tree.tree_best(p)[0].tolist() == [1, 1, 1]
    p = p.constrained(np.array([[True, True], [True, True], [True, False]]))
    assert tree.tree_best(p)[0].tolist() == [1, 0, 0]
    assert (tree.tree_marginals(p)[1][2] == [1.0, 0.0]).all()


def test_no_samples_and_no_draws():
    p = GraphPotentials(np.zeros((0, 2)), np.zeros((2, 2)), [], [0])
    assert tree.tree_best(p)[0].shape == (0,) and tree.tree_marginals(p)[0].shape == (0,)
    empty = GraphPotentials(np.zeros((0, 2)), np.zeros((2, 2)), [], [0, 0, 0])
    assert tree.tree_marginals(empty)[0].tolist() == [0.0, 0.0]
    assert tree.tree_kbest(empty, 2)[1].tolist() == [[0.0, -np.inf]] * 2
    one = GraphPotentials(np.zeros((1, 2)), np.zeros((2, 2)), [], [0, 1])
    assert tree.tree_sample(one, 0, np.random.default_rng(0)).shape == (0, 1)


# --- errors --------------------------------------------------------------------------------------


def test_cycles_are_refused():
    p = GraphPotentials(np.zeros((4, 2)), np.zeros((2, 2)), [[1, 2], [2, 3], [1, 3]], [0, 1, 4])
    rng = np.random.default_rng(0)
    for infer in (
        tree.tree_best,
        lambda p: tree.tree_kbest(p, 2),
        tree.tree_marginals,
        tree.tree_pair_marginals,
        tree.tree_entropy,
        lambda p: tree.tree_sample(p, 1, rng),
        lambda p: tree.tree_event_probability(p, np.ones(p.node.shape, bool)),
    ):
        with pytest.raises(DataError, match=r"^sample 1: the edges close a cycle at node 2 "):
            infer(p)
    assert tree.tree_score(p, [0, 0, 1, 1]).tolist() == [0.0, 0.0]


def test_wrong_arguments_are_refused():
    p = GraphPotentials(np.zeros((2, 2)), np.zeros((2, 2)), [[0, 1]], [0, 2])
    with pytest.raises(DataError, match="k is 0; it must be at least 1"):
        tree.tree_kbest(p, 0)
    with pytest.raises(DataError, match="n_samples is -1; it must be at least 0"):
        tree.tree_sample(p, -1, np.random.default_rng(0))
    with pytest.raises(DataError, match=r"labels have shape \(1,\); expected \(2,\), one for each"):
        tree.tree_score(p, [0])
    with pytest.raises(DataError, match="labels hold 2 at index 1; label ids go from 0 to 1"):
        tree.tree_score(p, [0, 2])
    with pytest.raises(DataError, match="label sets are"):
        tree.tree_event_probability(p, np.ones((2, 3), bool))


def test_public_names():
    assert set(tree.__all__) <= set(structures.__all__)
