"""Scores of graphs: what is held, what is taken out, and every refusal."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.structures import GraphPotentials

INF = np.inf


def problem(**changes) -> GraphPotentials:
    """Two samples of 3 and 2 nodes with 2 labels; their edges are interleaved."""
    given = {
        "node": np.arange(10.0).reshape(5, 2),
        "pair": np.arange(12.0).reshape(3, 2, 2),
        "edges": [[3, 4], [0, 1], [2, 1]],
        "offsets": [0, 3, 5],
    }
    return GraphPotentials(**{**given, **changes})


def test_tables_are_held_one_way():
    shared = problem(pair=[[0, 1], [2, 3]])
    assert shared.pair.shape == (1, 2, 2)
    assert shared.types.tolist() == [0, 0, 0]
    own = problem()
    assert own.types.tolist() == [0, 1, 2]
    typed = problem(pair=np.zeros((2, 2, 2)), types=[1, 0, 1])
    assert typed.types.tolist() == [1, 0, 1]
    assert problem(pair=np.zeros((2, 2)), types=[0, 0, 0]).pair.shape == (1, 2, 2)
    for p in (shared, own, typed):
        arrays = (p.node, p.pair, p.edges, p.offsets, p.types)
        assert [a.dtype.kind for a in arrays] == ["f", "f", "i", "i", "i"]
        assert all(a.dtype.itemsize == 8 and a.flags.c_contiguous for a in arrays)


@pytest.mark.parametrize("edges", [[], np.zeros((0, 2), int), np.zeros((0, 2))])
def test_no_edges_and_no_nodes(edges):
    p = GraphPotentials(np.zeros((0, 3)), np.zeros((3, 3)), edges, [0, 0, 0])
    assert p.edges.shape == (0, 2)
    assert p.alone(1).node.shape == (0, 3)
    assert p.by_sample()[1].tolist() == [0, 0, 0]


def test_alone():
    p = problem()
    first, second = p.alone(0), p.alone(1)
    assert first.edges.tolist() == [[0, 1], [2, 1]]
    assert first.pair[first.types].tolist() == p.pair[[1, 2]].tolist()
    assert second.edges.tolist() == [[0, 1]]
    assert second.pair[second.types].tolist() == p.pair[[0]].tolist()
    assert second.node.tolist() == p.node[3:].tolist()
    assert second.offsets.tolist() == [0, 2]
    typed = problem(pair=np.arange(8.0).reshape(2, 2, 2), types=[1, 0, 1])
    for s, own in enumerate(([1, 2], [0])):
        q = typed.alone(s)
        assert q.pair[q.types].tolist() == typed.pair[typed.types[own]].tolist()


def test_by_sample():
    order, edge_offsets = problem().by_sample()
    assert order.tolist() == [1, 2, 0]
    assert edge_offsets.tolist() == [0, 2, 3]


def test_label_sets_and_costs():
    p = problem()
    allowed = np.ones((5, 2), dtype=bool)
    allowed[1, 0] = False
    q = p.constrained(allowed).with_costs(np.full((5, 2), -1.0))
    assert q.node[1].tolist() == [-INF, 2.0]
    assert q.node[0].tolist() == [-1.0, 0.0]
    assert p.node[1].tolist() == [2.0, 3.0]
    assert q.directed == p.directed
    assert np.shares_memory(q.edges, p.edges)


def test_undirected_tables_may_forbid():
    p = problem(pair=[[0.0, -INF], [-INF, 1.0]], directed=False)
    assert not p.alone(0).directed


def nan_node():
    node = np.zeros((5, 2))
    node[4, 1] = np.nan
    return node


def inf_pair():
    pair = np.zeros((3, 2, 2))
    pair[2, 0, 1] = INF
    return pair


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node": np.zeros(5)}, r"node scores have shape \(5,\); expected \(nodes, labels\)"),
        ({"node": np.zeros((5, 0))}, "at least one label"),
        ({"node": [["a"]]}, "node scores have dtype"),
        ({"node": [[0.0], [0.0, 1.0]]}, "node scores cannot be read as an array"),
        ({"node": nan_node()}, "node score of label 1 at node 1 of sample 1 is nan"),
        ({"pair": inf_pair()}, "pair score of labels 0 and 1 in table 2 is inf"),
        ({"pair": np.zeros((2, 2, 2))}, "for tables of types, give types"),
        ({"pair": np.zeros((3, 3))}, r"expected \(2, 2\) or, one table for each edge, \(3, 2, 2\)"),
        ({"pair": np.zeros((2, 3, 3)), "types": [0, 1, 0]}, r"expected \('types', 2, 2\)"),
        ({"edges": [0, 1]}, r"edges have shape \(2,\)"),
        ({"edges": [[0.5, 1.0]]}, "edges have dtype"),
        ({"edges": [[3, 4], [0, 5], [2, 1]]}, "edge 1 joins nodes 0 and 5, .* numbered 0 to 4"),
        ({"edges": [[3, 4], [-1, 0], [2, 1]]}, "edge 1 joins nodes -1 and 0"),
        ({"edges": [[3, 4], [0, 1], [1, 1]]}, "edge 2 joins node 1 of sample 0 to itself"),
        (
            {"edges": [[3, 4], [0, 1], [2, 3]]},
            "edge 2 joins node 2 of sample 0 and node 0 of sample 1; an edge must stay inside",
        ),
        (
            {"edges": [[0, 1], [3, 4], [1, 0]]},
            "edges 0 and 2 both join nodes 1 and 0 of sample 0; add up",
        ),
        ({"edges": [[3, 4], [0, 1], [3, 4]]}, "edges 0 and 2 both join nodes 0 and 1 of sample 1"),
        ({"offsets": [[0, 5]]}, "one-dimensional array that starts with 0"),
        ({"offsets": [0, 4, 2, 5]}, "offsets fall at sample 1, from 4 to 2"),
        ({"offsets": [0, 4]}, "offsets end at 4, but there are 5 rows"),
        ({"types": [0, 0]}, r"types have shape \(2,\); expected \(3,\)"),
        ({"types": [0, 3, 0]}, "edge 1 is of type 3, but there are 3 tables"),
        ({"types": [0, 0, -1]}, "edge 2 is of type -1"),
        ({"types": [0.0, 0.5, 0.0]}, "types have dtype"),
        ({"directed": False}, r"table 0 is not symmetric: labels \(0, 1\) score 1.0 and \(1, 0\)"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(DataError, match=message):
        problem(**changes)


def test_refusals_of_methods():
    p = problem()
    with pytest.raises(DataError, match=r"label sets have dtype int64; expected truth values"):
        p.constrained(np.ones((5, 2), dtype=np.int64))
    with pytest.raises(DataError, match=r"costs have shape \(5,\); expected \(5, 2\)"):
        p.with_costs(np.zeros(5))
    with pytest.raises(DataError, match="cost of label 1 at node 1 of sample 1 is nan"):
        p.with_costs(nan_node())
    for s in (-1, 2):
        with pytest.raises(DataError, match=f"there is no sample {s}; samples are numbered 0 to 1"):
            p.alone(s)
