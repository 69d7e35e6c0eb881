"""Bags against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trellis.features.neighbourhood import Neighbourhood
from trellis.kernels.bags import by_node, drop_repeated


@given(st.lists(st.integers(0, 5), max_size=20))
def test_entries_of_each_node(nodes):
    ptr, order = by_node(np.array(nodes, np.int64), 6)
    found = [order[ptr[v] : ptr[v + 1]].tolist() for v in range(6)]
    assert found == [[e for e, node in enumerate(nodes) if node == v] for v in range(6)]


@given(st.lists(st.lists(st.integers(-1, 12), max_size=40), max_size=5))
def test_each_id_once(rows):
    ptr = np.cumsum([0, *map(len, rows)])
    ids = np.array([i for row in rows for i in row], np.int32)
    drop_repeated(ptr, ids)
    for t, row in enumerate(rows):
        kept = ids[ptr[t] : ptr[t + 1]]
        assert sorted(kept[kept >= 0].tolist()) == sorted({i for i in row if i >= 0})


@given(st.integers(1, 6), st.data())
def test_paths_up(n, data):
    """A node has one parent at most; there may be cycles."""
    parent = data.draw(st.lists(st.integers(-1, n - 1), min_size=n, max_size=n))
    edges = np.array([(v, p) for v, p in enumerate(parent) if p >= 0], np.int64).reshape(-1, 2)
    around = Neighbourhood(n, edges)
    for steps in data.draw(st.permutations(range(5))):
        for v in range(n):
            at, last = v, -1
            for step in range(steps):
                if parent[at] < 0:
                    at = last = step - steps
                    break
                last = edges[:, 0].tolist().index(at)
                at = parent[at]
            assert around.up(steps)[v] == at
            if steps:
                assert around.edge_up(steps)[v] == last
