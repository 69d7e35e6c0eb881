"""Samples in flat arrays: flat weights, pieces as samples of their own, and what is touched."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from chain_problems import altered
from label_problems import STRUCTURES, Enumerated
from margin_problems import CLASSES, make_problem
from trellis.arrays import for_kernels, held
from trellis.corpus import Labels
from trellis.decompose import ChainPieces, GraphPieces, Pieces, WholeSamples
from trellis.errors import DataError
from trellis.features import Encoded
from trellis.problems import EdgeWeights, HingeLoss, LabelProblem, LogLikelihood, Weights
from trellis.problems.visits import Visits
from trellis.structures import Forest


def some_pieces(problem, seed=0, size=2.0, kind="graph"):
    rng = np.random.default_rng(seed)
    if problem.structure == "chain":
        return ChainPieces(size).draw(problem.offsets, rng)
    return GraphPieces(problem.edges, size, kind).draw(problem.offsets, rng)


def nodes_of_pieces(problem, pieces):
    """Positions of each piece, in its order."""
    nodes = np.arange(int(problem.offsets[-1])) if pieces.nodes is None else pieces.nodes
    return [nodes[a:b] for a, b in itertools.pairwise(pieces.offsets)]


def test_edges_come_sample_by_sample():
    given = Enumerated(7, "graph", n_samples=4, n_types=2).problem
    edges, types = given.edges, given.types

    def of(edges, types):
        return LabelProblem(
            given.encoded, given.labels, given.n_features, structure="graph", edges=edges,
            types=types, n_types=2,
        )  # fmt: skip

    same = of(edges, types)  # as a file may have them: nothing is copied
    assert np.shares_memory(same.edges, edges) and np.shares_memory(same.types, types)
    mixed = np.random.default_rng(0).permutation(len(edges))
    assert np.any(np.diff(edges[mixed, 0]) < 0)
    problem = of(edges[mixed], types[mixed])
    assert np.all(np.diff(np.searchsorted(given.offsets, problem.edges[:, 0], "right")) >= 0)
    pairs = {(*edge, k) for edge, k in zip(edges.tolist(), types.tolist(), strict=True)}
    assert pairs == {
        (*edge, k) for edge, k in zip(problem.edges.tolist(), problem.types.tolist(), strict=True)
    }
    fortran = np.asfortranarray(edges)  # kernels are not compiled for it
    held = of(fortran, types).edges
    assert held.flags.c_contiguous and not held.flags.writeable
    assert np.shares_memory(for_kernels(held), held)


@pytest.mark.parametrize("kind", ["graph", "tree"])
@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_pieces_become_samples(structure, options, kind):
    """What the pieces of a problem lose and count is what the problem of the pieces does."""
    e = Enumerated(7, structure, n_samples=4, **options)
    problem = altered(e.problem, sample_weight=np.array([1.0, 2.0, 0.5, 3.0]))
    pieces = some_pieces(problem, kind=kind)
    cut = problem.cut(pieces)
    members = nodes_of_pieces(problem, pieces)
    assert cut.n_samples == len(pieces) == len(members) > problem.n_samples
    assert cut.n_weights == problem.n_weights
    np.testing.assert_array_equal(cut.sample_weight, problem.sample_weight[pieces.sample])
    np.testing.assert_array_equal(
        cut.labels.allowed(), problem.labels.allowed()[np.concatenate(members)]
    )
    # Edges of a piece are those of the problem between its nodes: all, or a spanning tree.
    inside = {
        frozenset((int(a), int(b))): int(k)
        for (a, b), k in zip(problem.edges, problem.types, strict=True)
        if any(a in own and b in own for own in members)
    }
    old = np.concatenate(members)
    met = {
        frozenset((int(old[a]), int(old[b]))): int(k)
        for (a, b), k in zip(cut.edges, cut.types, strict=True)
    }
    assert met.items() <= inside.items()
    if structure == "chain" or kind == "graph":
        assert met == inside
    # The exact log-likelihood of the pieces is that of the new samples.
    w = problem.weights(e.weights())
    value, slope = LogLikelihood(problem).value_and_gradient(w, problem.visits(pieces))
    whole = WholeSamples().draw(cut.offsets, np.random.default_rng(0))
    if structure != "chain":
        whole = GraphPieces(cut.edges, None, kind).draw(cut.offsets, np.random.default_rng(0))
    again, slope2 = LogLikelihood(cut).value_and_gradient(w, cut.visits(whole))
    assert again == pytest.approx(value)
    for a, b in zip(slope.arrays(), slope2.arrays(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_pieces_that_overlap_are_no_samples():
    problem = make_problem(0, "chain", 5, longest=6).problem
    pieces = ChainPieces(2.0, overlap=1).draw(problem.offsets, np.random.default_rng(0))
    with pytest.raises(DataError, match="pieces that overlap cannot be samples of their own"):
        problem.cut(pieces)


@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_positions_apart(structure, options):
    p = make_problem(3, structure, 4, **options)
    alone = p.problem.apart()
    n = int(p.offsets[-1])
    rich = 0 if p.problem.rich is None else p.problem.rich.values.size
    assert (alone.n_samples, alone.n_weights) == (n, p.problem.n_weights - rich)
    assert len(alone.edges) == len(alone.types) == 0
    np.testing.assert_array_equal(
        alone.sample_weight, np.repeat(p.problem.sample_weight, np.diff(p.offsets))
    )
    alone.costs = p.problem.costs
    w = np.random.default_rng(0).normal(size=alone.n_weights)
    node = p.dense @ alone.weights(w).node
    costs, gold = p.problem.costs.dense(), p.gold
    hinges = (node + costs).max(axis=1) - node[np.arange(n), gold]
    cut = HingeLoss(alone).risk(w)
    assert cut.upper == pytest.approx(alone.sample_weight @ hinges)
    weights = alone.weights(cut.slope)
    assert not weights.transitions.any()
    assert weights.edge is None
    assert len(p.problem.edges) > 0  # the problem itself is as it was
    assert len(p.problem.batch().edges) == len(p.problem.edges)


@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_flat_weights_are_views_of_matrices(structure, options):
    problem = make_problem(0, structure, **options).problem
    w = np.arange(float(problem.n_weights))
    weights = problem.weights(w)
    L, F, K = 3, 4, problem.n_types
    assert weights.node.shape == (F, L)
    assert weights.transitions.shape == ((L, L) if structure == "chain" else (K, L, L))
    assert np.concatenate([a.ravel() for a in weights.arrays()]).tolist() == w.tolist()
    weights.node[1, 2] = -1
    assert w[5] == -1
    if problem.rich is not None:
        weights.edge.values[0] = -2
        assert w[(F + K * L) * L] == -2


@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_differences_are_those_of_joint_features(structure, options):
    e = Enumerated(9, structure, n_samples=4, **options)
    rng = np.random.default_rng(0)
    for i in range(e.n_samples):
        batch = e.problem.batch(np.array([i]))
        y, z = rng.integers(0, 3, (2, len(batch.rows)))
        index, values = e.problem.difference(batch, y, z)
        found = np.zeros(e.problem.n_weights)
        np.add.at(found, index, values)
        np.testing.assert_allclose(
            found, e.phi(i, tuple(y.tolist())) - e.phi(i, tuple(z.tolist())), atol=1e-6
        )
        index, values = e.problem.difference(batch, y, y)
        assert not len(index) and not len(values)
        joint = e.problem.joint_features(y, batch, np.full(len(y), 0.5))
        np.testing.assert_allclose(joint, 0.5 * e.phi(i, tuple(y.tolist())), atol=1e-6)


@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_differences_of_many_samples_are_those_of_each(structure, options):
    problem = Enumerated(9, structure, n_samples=5, **options).problem
    rng = np.random.default_rng(0)
    batch = problem.batch(np.array([3, 0, 4, 3]))
    y, z = rng.integers(0, 3, (2, len(batch.rows)))
    z[batch.owner == 1] = y[batch.owner == 1]
    found = problem.differences(batch, y, z)
    assert len(found) == 4 and not len(found[1][0])
    for k, (index, values) in enumerate(found):
        rows = batch.owner == k
        alone = problem.batch(batch.samples[k : k + 1])
        wanted, got = np.zeros((2, problem.n_weights))
        np.add.at(wanted, *problem.difference(alone, y[rows], z[rows]))
        got[index] = values
        assert (np.diff(index) > 0).all()
        np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_tables_of_edges():
    for directed, rich in itertools.product((True, False), (None, "sparse")):
        p = make_problem(1, "tree", 5, directed=directed, n_types=2, rich=rich)
        problem = p.problem
        w = np.random.default_rng(0).normal(size=problem.n_weights)
        chosen = np.array([2, 0])
        tables = problem.edge_tables(problem.weights(w), chosen)
        for table, e in zip(tables, chosen, strict=True):
            u, v = problem.edges[e]
            s = int(np.searchsorted(problem.offsets, u, side="right")) - 1
            a = problem.offsets[s]
            # What a pair adds, beside all else that two labellings share.
            size = problem.offsets[s + 1] - a
            blank = altered(problem, edges=problem.edges[[e]], types=problem.types[[e]])
            alone = type(p)(blank, np.zeros_like(p.dense))
            alone.dense[[u, v]] = p.dense[[u, v]]
            for i, j in itertools.product(range(3), repeat=2):
                y = [0] * size
                y[u - a], y[v - a] = i, j
                node = p.dense[u] @ problem.weights(w).node[:, i]
                node += p.dense[v] @ problem.weights(w).node[:, j]
                assert table[i, j] == pytest.approx(alone.score(w, s, tuple(y)) - node, abs=1e-5)


def test_edges_are_sorted_by_sample():
    p = make_problem(7, "graph", 5, n_types=2).problem
    q = np.random.default_rng(0).permutation(len(p.edges))
    shuffled = altered(p, edges=p.edges[q], types=p.types[q])
    owner = np.searchsorted(p.offsets, shuffled.edges[:, 0], side="right")
    assert (np.diff(owner) >= 0).all()
    assert sorted(zip(shuffled.edges.tolist(), shuffled.types.tolist(), strict=True)) == sorted(
        zip(p.edges.tolist(), p.types.tolist(), strict=True)
    )
    np.testing.assert_array_equal(shuffled.edge_offsets, p.edge_offsets)


def test_the_only_labels_there_can_be():
    p = make_problem(0).problem
    names = [CLASSES[j] for j in p.gold()]
    lists = [names[a:b] for a, b in itertools.pairwise(p.offsets)]
    assert altered(p, labels=Labels.from_lists(lists, CLASSES)).gold().tolist() == p.gold().tolist()
    for unsure in (None, {"a", "b"}):
        vague = [list(labels) for labels in lists]
        vague[2][-1] = unsure
        t = len(vague[2]) - 1
        with pytest.raises(DataError, match=f"sample 2, position {t} has not one label"):
            altered(p, labels=Labels.from_lists(vague, CLASSES)).gold()


# ------------------------------------------------------------------------- what does not fit

ENCODED = Encoded([0, 2, 3], [0, 1, 2, 3], [0, 1, 1], [])
LABELS = Labels.from_lists([["x", "y"], ["y"]])


def two(structure="chain", **options):
    """Samples of two positions and of one, two features, two labels."""
    if structure != "chain":
        options["edges"] = [[0, 1]]
    return LabelProblem(ENCODED, LABELS, 2, structure=structure, **options)


@pytest.mark.parametrize(
    ("labels", "rich", "message"),
    [
        (Labels([0, 0, 0], (), ()), None, "there are no labels to learn"),
        (
            Labels.from_lists([["x", "y"]]),
            None,
            "there are labels of 2 positions; features of 3",
        ),
        (
            LABELS,
            EdgeWeights([0], [], [], np.zeros(4), both=False),
            "rich edges have rows of 1 features; there are 2",
        ),
        (
            LABELS,
            EdgeWeights([0, 1], [], [], np.zeros(18), both=False),
            "rich edges are for pairs of other labels than 2",
        ),
        (
            LABELS,
            EdgeWeights([0, 1], [0, 1, 2], [0, 4], np.zeros(2), both=False),
            "rich edges are for pairs of other labels than 2",
        ),
    ],
)
def test_parts_that_do_not_fit(labels, rich, message):
    with pytest.raises(DataError, match=message):
        LabelProblem(ENCODED, labels, 2, rich=rich)


@pytest.mark.parametrize(
    "change",
    [
        {"node": np.asfortranarray(np.zeros((2, 2)))},
        {"node": held(np.zeros((2, 2)))},
        {"node": np.zeros((2, 2), np.float32)},
        {"transitions": np.zeros((2, 2), np.float32)},
        {"node": np.zeros((2, 2), bool), "transitions": np.zeros((2, 2), bool)},
    ],
)
def test_weights_that_kernels_cannot_take(change):
    weights = Weights.zeros(2, 2, np.float64)
    two().check_weights(weights)
    vars(weights).update(change)
    message = "sums must be writable arrays of one type, float32 or float64"
    with pytest.raises(DataError, match=message):
        two().check_weights(weights, "sums")


def test_rich_weights_of_other_samples():
    edge = EdgeWeights([0], [], [], np.zeros(4), both=False)
    weights = Weights(np.zeros((2, 2)), np.zeros((2, 2)), edge)
    with pytest.raises(DataError, match="rich edges have rows of 1 features; there are 2"):
        two().check_weights(weights)


@pytest.mark.parametrize(
    ("structure", "pieces"),
    [
        ("chain", Pieces([0, 3], [0])),  # beyond the end of its sample
        ("chain", Pieces([0, 1, 3], [0, 1])),  # before its beginning
        ("chain", Pieces([0, 2], [0])),
        ("chain", Pieces([0, 2, 3], [0, 2])),
        ("graph", Pieces([0, 2, 3], [0, 1])),
        ("graph", Pieces([0, 2, 3], [0, 1], nodes=[0, 1, 2])),
        ("graph", Pieces([0, 2, 3], [0, 1], nodes=[0, 1, 2], kept=[1])),
        (
            "tree",
            Pieces(
                [0, 2, 3], [0, 1], nodes=[0, 1, 2],
                forest=Forest([0, 1, 2], [-1, 0, -1], [-1, 7, -1], [False, True, False], [0, 2, 3]),
            ),
        ),
    ],
)  # fmt: skip
def test_pieces_of_other_samples(structure, pieces):
    for use in (two(structure).visits, two(structure).cut):
        with pytest.raises(DataError, match="the pieces are of other samples"):
            use(pieces)


@pytest.mark.parametrize(
    ("starts", "ends", "weight"), [(0, 4, 1.0), (-1, 2, 1.0), (2, 1, 1.0), (0, 2, np.nan)]
)
def test_visits_of_other_samples(starts, ends, weight):
    visits = Visits(np.array([starts]), np.array([ends]), np.array([weight]))
    with pytest.raises(DataError, match="the pieces are not those of this problem"):
        LogLikelihood(two()).value_and_gradient(Weights.zeros(2, 2, np.float64), visits)
