"""Forests: the order has every promised property, and cycles are found exactly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.structures import Forest, is_forest


@st.composite
def forests(draw):
    """offsets and edges of up to four samples: any numbering, direction and order of edges."""
    sizes = draw(st.lists(st.integers(0, 8), max_size=4))
    offsets = np.cumsum([0, *sizes])
    edges = []
    for first, n in zip(offsets, sizes, strict=False):
        names = draw(st.permutations(range(n)))
        for v in range(1, n):
            up = draw(st.integers(-1, v - 1))
            if up >= 0:
                pair = (first + names[v], first + names[up])
                edges.append(pair if draw(st.booleans()) else pair[::-1])
    edges = draw(st.permutations(edges))
    return offsets, np.array(edges, np.int64).reshape(-1, 2)


@given(forests())
def test_order_parents_edges_and_trees(problem):
    offsets, edges = problem
    f = Forest.of(offsets, edges)
    n = int(offsets[-1])
    for first, stop in itertools.pairwise(offsets):
        assert sorted(f.order[first:stop].tolist()) == list(range(first, stop))
    assert sorted(f.edge[f.edge >= 0].tolist()) == list(range(len(edges)))
    assert f.tree[0] == 0 and f.tree[-1] == n and (np.diff(f.tree) > 0).all()
    assert len(f.tree) - 1 == n - len(edges)
    for first, stop in itertools.pairwise(f.tree):
        assert f.order[first] == f.order[first:stop].min()
        assert f.parent[first] == f.edge[first] == -1 and not f.down[first]
        path = [first]  # depth-first: the parent is the node before or one of its ancestors
        for i in range(first + 1, stop):
            assert first <= f.parent[i] < i
            a, b = edges[f.edge[i]]
            both = (a, b) if f.down[i] else (b, a)
            assert both == (f.order[f.parent[i]], f.order[i])
            while path[-1] != f.parent[i]:
                path.pop()
            path.append(i)
    for i in range(n):  # children in the order of their edges
        children = np.flatnonzero(f.parent == i)
        assert (np.diff(f.edge[children]) > 0).all()


@given(forests(), st.data())
def test_an_edge_more_inside_a_tree_closes_a_cycle(problem, data):
    offsets, edges = problem
    assert is_forest(offsets, edges)
    f = Forest.of(offsets, edges)
    if len(f.order) == 0:
        return
    t = data.draw(st.integers(0, len(f.tree) - 2))
    inside = st.integers(f.tree[t], f.tree[t + 1] - 1)
    more = [f.order[data.draw(inside)], f.order[data.draw(inside)]]
    at = data.draw(st.integers(0, len(edges)))
    looped = np.insert(edges, at, more, axis=0)
    assert not is_forest(offsets, looped)
    s = np.searchsorted(offsets, more[0], side="right") - 1
    with pytest.raises(DataError, match=f"^sample {s}: the edges close a cycle at node"):
        Forest.of(offsets, looped)


def test_a_cycle_is_named_with_nodes_of_the_sample():
    with pytest.raises(DataError) as found:
        Forest.of([0, 2, 5], [[0, 1], [2, 3], [3, 4], [4, 2]])
    assert str(found.value) == (
        "sample 1: the edges close a cycle at node 2 (edge 1-2); a tree has none"
    )


def test_long_paths_and_stars():
    n = 200_000
    path = np.stack([np.arange(1, n), np.arange(n - 1)], axis=1)
    assert Forest.of([0, n], path).order.tolist() == list(range(n))
    star = np.stack([np.full(n - 1, n - 1), np.arange(n - 1)], axis=1)
    assert Forest.of([0, n], star).parent.max() == 1


@pytest.mark.parametrize(
    ("offsets", "edges", "message"),
    [
        ([1, 2], [], "offsets must be a one-dimensional array that starts with 0"),
        ([0, 2, 1], [], "offsets fall at sample 1, from 2 to 1"),
        ([], [], "offsets must be a one-dimensional array that starts with 0"),
        ([0, 2], [0, 1], r"edges have shape \(2,\); expected \(any, 2\)"),
        ([0, 2], [[0, 1], [0, 2]], "edge 1 joins nodes 0 and 2, but the nodes are numbered 0 to 1"),
        ([0, 2], [[-1, 1]], "edge 0 joins nodes -1 and 1, but the nodes are numbered 0 to 1"),
        (
            [0, 1, 2],
            [[0, 1]],
            "edge 0 joins node 0 of sample 0 and node 0 of sample 1; an edge must stay",
        ),
    ],
)
def test_wrong_arrays_are_refused(offsets, edges, message):
    for function in (Forest.of, is_forest):
        with pytest.raises(DataError, match=message):
            function(offsets, edges)


ROOT_AND_CHILD = {
    "order": [0, 1], "parent": [-1, 0], "edge": [-1, 0], "down": [False, True], "tree": [0, 2],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": [0, 0]}, "order must hold each of the nodes 0 to 1 once"),
        ({"order": [1, 2]}, "order must hold each of the nodes 0 to 1 once"),
        ({"parent": [-1, 1]}, "place 1 has parent 1, edge 0 and down True; the first place of a"),
        ({"parent": [-1, -1]}, "place 1 has parent -1, edge 0 and down True; .* each other one a"),
        ({"edge": [-1, -1]}, "place 1 has parent 0, edge -1 .* a parent before it and an edge"),
        ({"edge": [3, 0]}, "place 0 has parent -1, edge 3 and down False; .* -1, -1 and False"),
        ({"down": [True, True]}, "place 0 has parent -1, edge -1 and down True; .* -1 and False"),
        ({"tree": [0, 1, 2]}, "place 1 has parent 0, edge 0 and down True"),
        ({"tree": [0, 3]}, "tree end at 3; expected 2"),
    ],
)
def test_wrong_forests_are_refused(change, message):
    assert len(Forest(**ROOT_AND_CHILD).order) == 2
    with pytest.raises(DataError, match=message):
        Forest(**ROOT_AND_CHILD | change)
