"""Brute force over all labellings of tiny graphs: the oracle of the graph tests, and problems.

Nothing here is clever: every labelling is listed, scored and weighed on its own.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from trellis.structures import GraphPotentials


def score(p: GraphPotentials, y) -> float:
    """Score of a labelling of the only sample."""
    total = sum(float(p.node[v, label]) for v, label in enumerate(y))
    for e, (a, b) in enumerate(p.edges):
        total += float(p.pair[p.types[e], y[a], y[b]])
    return total


def labellings(p: GraphPotentials) -> dict[tuple[int, ...], float]:
    """The feasible labellings of the only sample and their scores, best first."""
    n, n_labels = p.node.shape
    every = {y: score(p, y) for y in itertools.product(range(n_labels), repeat=n)}
    return {y: s for y, s in sorted(every.items(), key=lambda ys: -ys[1]) if s > -math.inf}


def log_sum(scores) -> float:
    top = max(scores)
    return top + math.log(math.fsum(math.exp(s - top) for s in scores))


def marginals(p: GraphPotentials) -> tuple[np.ndarray, np.ndarray, float]:
    """Node and pair marginals and log Z of the only sample."""
    found = labellings(p)
    log_z = log_sum(found.values())
    node, pair = np.zeros(p.node.shape), np.zeros(p.pair[p.types].shape)
    for y, s in found.items():
        probability = math.exp(s - log_z)
        for v, label in enumerate(y):
            node[v, label] += probability
        for e, (a, b) in enumerate(p.edges):
            pair[e, y[a], y[b]] += probability
    return node, pair, log_z


def samples_of(p: GraphPotentials) -> list[GraphPotentials]:
    return [p.alone(s) for s in range(len(p.offsets) - 1)]


def feasible(p: GraphPotentials) -> bool:
    return all(labellings(alone) for alone in samples_of(p))


def is_forest(p: GraphPotentials) -> bool:
    """Whether the only sample has no cycle: no edge joins what is joined already."""
    group = list(range(len(p.node)))
    for a, b in p.edges:
        if group[a] == group[b]:
            return False
        group = [group[a] if g == group[b] else g for g in group]
    return True


def random_edges(rng, n: int, density: float, forest: bool) -> list[tuple[int, int]]:
    pairs = [(a, b) for a in range(n) for b in range(a)]
    rng.shuffle(pairs)
    if forest:
        parents = [(v, int(rng.integers(v))) for v in range(1, n)]
        pairs = [pair for pair in parents if rng.random() < 0.8]
    else:
        pairs = [pair for pair in pairs if rng.random() < density]
    return [pair if rng.random() < 0.5 else pair[::-1] for pair in pairs]


@st.composite
def problems(
    draw, forest=False, binary=False, submodular=False, most_nodes=5, forbidden=(0.0, 0.1, 0.3)
):
    """Stacked graphs: connected or not, of all kinds of tables, scores of both signs, and ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(0, most_nodes), max_size=3))
    n_labels = 2 if binary else draw(st.integers(1, 3))
    scale = draw(st.sampled_from([0.0, 0.3, 1.0, 3.0, 300.0]))
    whole = draw(st.booleans())
    directed = draw(st.booleans())
    kind = draw(st.sampled_from(["shared", "types", "edges"]))
    hard = draw(st.sampled_from(forbidden))
    density = draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))

    def scores(*shape):
        values = rng.normal(size=shape) * scale
        return np.round(values) if whole else values

    offsets = np.append(0, np.cumsum(sizes)).astype(int)
    edges = [
        (a + first, b + first)
        for n, first in zip(sizes, offsets, strict=False)
        for a, b in random_edges(rng, n, density, forest)
    ]
    rng.shuffle(edges)
    node = scores(offsets[-1], n_labels)
    n_tables = {"shared": 1, "types": 2, "edges": len(edges)}[kind]
    pair = scores(n_tables, n_labels, n_labels)
    node[rng.random(node.shape) < hard / 2] = -np.inf
    if submodular:
        pair[:, 0, 0] = pair[:, 0, 1] + pair[:, 1, 0] - pair[:, 1, 1] + np.abs(scores(n_tables))
        off = rng.random((n_tables, 2)) < hard
        pair[:, 0, 1][off[:, 0]] = -np.inf
        pair[:, 1, 0][off[:, 1]] = -np.inf
    else:
        pair[rng.random(pair.shape) < hard] = -np.inf
    if not directed:
        pair = np.maximum(pair, pair.transpose(0, 2, 1))
        if submodular:
            pair[:, 0, 0] = np.maximum(pair[:, 0, 0], 2 * pair[:, 0, 1] - pair[:, 1, 1])
    types = None
    if kind == "shared":
        pair = pair[0]
    elif kind == "types":
        types = rng.integers(2, size=len(edges))
    return GraphPotentials(
        node, pair, np.array(edges, int).reshape(-1, 2), offsets, types, directed
    )
