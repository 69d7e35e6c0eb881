"""Orders of elimination against sets of neighbours, rewritten one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.kernels.elimination_order import FILL, GIVEN, SIZE, greedy_order


def naive(sizes, edges, kind):
    """Total, order and neighbours at each turn; every key is computed anew every time."""
    near = {v: set() for v in range(len(sizes))}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)

    def entries(v):
        return math.prod((sizes[w] for w in near[v]), start=sizes[v])

    def missing(v):
        return sum(u != w and u not in near[w] for u in near[v] for w in near[v])

    key = {GIVEN: lambda v: v, SIZE: entries, FILL: missing}[kind]
    total, order, cliques = 0, [], []
    while near:
        v = min(near, key=lambda v: (key(v), v))
        total += entries(v)
        around = near.pop(v)
        order.append(v)
        cliques.append(sorted(around))
        for w in around:
            near[w] = (near[w] | around) - {v, w}
    return total, order, cliques


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 25), st.sampled_from([0.0, 0.05, 0.15, 0.4, 1.0]),
    st.sampled_from([GIVEN, SIZE, FILL]),
)  # fmt: skip
@settings(max_examples=60)
def test_against_sets(seed, n, density, kind):
    rng = np.random.default_rng(seed)
    edges = [(a, b) for a in range(n) for b in range(a) if rng.random() < density]
    rng.shuffle(edges)
    sizes = rng.integers(1, 4, n)
    known, order, cliques = naive(sizes.tolist(), edges, kind)
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    total, *found = greedy_order(sizes.astype(float), pairs, np.inf, kind)
    assert total == known
    assert found[0].tolist() == order
    start, around = found[1:]
    assert [around[a:b].tolist() for a, b in itertools.pairwise(start)] == cliques
    assert greedy_order(sizes.astype(float), pairs, float(known), kind)[0] == known
    if known > 0:
        assert greedy_order(sizes.astype(float), pairs, known - 1.0, kind)[0] == -1


def test_costs_beyond_the_largest_float():
    n = 1040
    pairs = np.array([(a, b) for a in range(n) for b in range(max(0, a - 3), a)] +
                     [(0, b) for b in range(5, n)])  # fmt: skip
    total, order, *_ = greedy_order(np.full(n, 2.0), pairs, np.inf, GIVEN)
    assert total == np.inf and sorted(order) == list(range(n))
