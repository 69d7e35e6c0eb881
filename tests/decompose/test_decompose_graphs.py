"""Pieces of graphs: connected, a partition, of the right mean size, fresh each time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.decompose import GraphPieces
from trellis.errors import DataError


@st.composite
def graphs(draw):
    """Offsets and edges of up to three graphs, connected or not."""
    lengths = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    edges = []
    for s, n in enumerate(lengths):
        pairs = [(a, b) for a in range(n) for b in range(a)]
        chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
        for a, b in chosen:
            flip = draw(st.booleans())
            edges.append((offsets[s] + (b if flip else a), offsets[s] + (a if flip else b)))
    return offsets, np.array(edges, np.int64).reshape(-1, 2)


def components(n: int, edges: np.ndarray) -> list[int]:
    """Component of each node, by repeated merging."""
    of = list(range(n))
    for _ in range(n):
        for a, b in edges:
            of[a] = of[b] = min(of[a], of[b])
    return of


@given(graphs(), st.one_of(st.none(), st.floats(1, 12)), st.integers(0, 2**32))
def test_tree_pieces_are_connected_trees_that_cover_every_node_once(graph, size, seed):
    offsets, edges = graph
    pieces = GraphPieces(edges, size).draw(offsets, np.random.default_rng(seed))
    f = pieces.forest
    n = int(offsets[-1])
    assert sorted(f.order.tolist()) == list(range(n))
    assert f.tree[0] == 0 and f.tree[-1] == n and (np.diff(f.tree) > 0).all()
    assert np.array_equal(pieces.offsets, f.tree) and len(pieces) == len(f.tree) - 1
    for k in range(len(pieces)):
        places = range(f.tree[k], f.tree[k + 1])
        owner = np.searchsorted(offsets, f.order[list(places)], side="right") - 1
        assert (owner == pieces.sample[k]).all()
        for i in places:
            if i == f.tree[k]:
                assert f.parent[i] == -1 and f.edge[i] == -1
                continue
            assert f.tree[k] <= f.parent[i] < i  # so the piece hangs together
            ends = (f.order[f.parent[i]], f.order[i])
            assert tuple(edges[f.edge[i]]) == (ends if f.down[i] else ends[::-1])
    if size is None:
        assert len(pieces) == len(set(components(n, edges)))


@given(graphs(), st.floats(1, 6), st.integers(0, 2**32))
def test_graph_pieces_keep_all_edges_inside(graph, size, seed):
    offsets, edges = graph
    tree = GraphPieces(edges, size, "tree").draw(offsets, np.random.default_rng(seed))
    whole = GraphPieces(edges, size, "graph").draw(offsets, np.random.default_rng(seed))
    assert whole.forest is None
    assert np.array_equal(whole.nodes, tree.forest.order)
    piece = np.empty(int(offsets[-1]), np.int64)
    piece[whole.nodes] = np.repeat(np.arange(len(whole)), np.diff(whole.offsets))
    inside = {e for e, (a, b) in enumerate(edges) if piece[a] == piece[b]}
    assert set(whole.kept.tolist()) == inside
    assert (np.diff(piece[edges[whole.kept, 0]]) >= 0).all()
    assert np.array_equal(whole.edges, edges[whole.kept])
    assert set(tree.forest.edge[tree.forest.edge >= 0].tolist()) <= inside


def grid(rows: int, columns: int) -> np.ndarray:
    at = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], 1)
    along = np.stack([at[:-1].ravel(), at[1:].ravel()], 1)
    return np.concatenate([across, along])


STRUCTURES = {
    "path": np.stack([np.arange(39), np.arange(1, 40)], 1),
    "star": np.stack([np.zeros(39, int), np.arange(1, 40)], 1),
    "grid": grid(5, 8),
    "binary tree": np.stack([(np.arange(1, 40) - 1) // 2, np.arange(1, 40)], 1),
}


@pytest.mark.parametrize("shape", STRUCTURES)
@pytest.mark.parametrize("size", [1.5, 3.5, 6, 10.5])
def test_sizes_have_the_mean_asked_for(shape, size):
    partition = GraphPieces(STRUCTURES[shape], size)
    rng = np.random.default_rng(0)
    counts = [len(partition.draw(np.array([0, 40]), rng)) for _ in range(400)]
    assert 40 / np.mean(counts) == pytest.approx(size, rel=0.03)


def test_pieces_of_a_path_are_blocks():
    partition = GraphPieces(STRUCTURES["path"], 5)
    rng = np.random.default_rng(1)
    for _ in range(20):
        pieces = partition.draw(np.array([0, 40]), rng)
        for a, b in zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True):
            nodes = np.sort(pieces.nodes[a:b])
            assert nodes[-1] - nodes[0] == b - a - 1
            # The edges are taken root by root: two arms meet in the block of the root.
            assert b - a <= 12


def test_pieces_are_fresh_and_follow_the_seed():
    partition = GraphPieces(STRUCTURES["grid"], 4)
    rng = np.random.default_rng(0)
    drawn = [partition.draw(np.array([0, 40]), rng) for _ in range(2)]
    again = partition.draw(np.array([0, 40]), np.random.default_rng(0))
    assert np.array_equal(drawn[0].nodes, again.nodes)
    assert np.array_equal(drawn[0].offsets, again.offsets)
    assert not np.array_equal(drawn[0].nodes, drawn[1].nodes)


def test_every_edge_of_a_grid_is_learned_from():
    edges = STRUCTURES["grid"]
    partition = GraphPieces(edges, 6)
    rng = np.random.default_rng(0)
    seen = np.zeros(len(edges), int)
    for _ in range(200):
        f = partition.draw(np.array([0, 40]), rng).forest
        seen[f.edge[f.edge >= 0]] += 1
    assert seen.min() > 40


def test_wrong_parameters_are_refused():
    edges = STRUCTURES["path"]
    with pytest.raises(DataError, match=r"piece_size must be a number of at least 1, got 0\.5"):
        GraphPieces(edges, 0.5)
    with pytest.raises(DataError, match="pieces must be 'tree' or 'graph', got 'star'"):
        GraphPieces(edges, 2, "star")


@pytest.mark.parametrize("pieces", ["tree", "graph"])
@pytest.mark.parametrize(
    ("edge", "message"),
    [
        ([0, -3], r"edges hold -3 at index \(1, 1\); expected at least 0"),
        ([0, -(10**7)], r"edges hold -10000000 at index \(1, 1\); expected at least 0"),
        ([-1, 0], r"edges hold -1 at index \(1, 0\); expected at least 0"),
        ([0.0, 1.0], "edges have dtype float64; expected integers"),
        ([2, 3], "edge 1 joins nodes 2 and 3, but the nodes are numbered 0 to 2"),
        ([0, 10**8], "edge 1 joins nodes 0 and 100000000, but the nodes are numbered 0 to 2"),
        ([2**40, 0], "edge 1 joins nodes 1099511627776 and 0, but the nodes are numbered 0 to 2"),
        ([0, 2], "edge 1 joins node 0 of sample 0 and node 0 of sample 1; an edge must stay"),
    ],
)
def test_edges_out_of_range_are_refused(edge, message, pieces):
    with pytest.raises(DataError, match=message):
        GraphPieces(np.array([[0, 1], edge]), 2.0, pieces).draw(
            np.array([0, 2, 3]), np.random.default_rng(0)
        )


def test_other_graphs_are_checked_again():
    partition = GraphPieces(np.array([[1, 2]]), 2.0)
    partition.draw(np.array([0, 3]), np.random.default_rng(0))
    with pytest.raises(DataError, match="edge 0 joins nodes 1 and 2, but the nodes are numbered 0"):
        partition.draw(np.array([0, 2]), np.random.default_rng(0))


def test_edges_stay_as_they_were_given():
    edges = np.array([[0, 1], [1, 2]])
    partition = GraphPieces(edges, None)
    first = partition.draw(np.array([0, 3]), np.random.default_rng(0))
    edges[:] = 10**8
    again = partition.draw(np.array([0, 3]), np.random.default_rng(0))
    assert np.array_equal(first.nodes, again.nodes) and len(again) == 1
    with pytest.raises(ValueError, match="read-only"):
        partition.edges[0, 0] = 10**8
