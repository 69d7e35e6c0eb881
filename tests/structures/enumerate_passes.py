"""Brute force over all labellings of tiny chains and forests, and strategies that draw such.

Nothing here is clever: every labelling is listed, scored and weighed on its own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from trellis.structures import ChainPotentials, Forest, GraphPotentials, StepChanges

# Multiples of 1/8, also the extreme ones: their sums are exact in float32 and float64, so ties are
# true ties and labels can be compared, not only scores.
ORDINARY = st.integers(-40, 40).map(lambda i: i / 8)
EXTREME = st.sampled_from([-1e4, -1000.0, -800.0, -450.0, -230.0, 450.0, 800.0, 1000.0])
SCORES = {
    "ordinary": ORDINARY,
    "forbidding": st.one_of(ORDINARY, ORDINARY, st.just(-np.inf)),
    "extreme": st.one_of(ORDINARY, EXTREME, st.just(-np.inf)),
}


@dataclass
class Enumeration:
    """The feasible labellings of one sample, best first (ties as promised), and their scores.

    ``links`` are its edges: both ends, counted from its first row, and the edge's place among all.
    """

    rows: slice
    links: list[tuple[int, int, int]]
    labels: np.ndarray
    scores: np.ndarray

    @property
    def labellings(self) -> list[tuple[int, ...]]:
        return [tuple(y) for y in self.labels.tolist()]

    @property
    def log_z(self) -> float:
        if len(self.scores) == 0:
            return -math.inf
        top = max(self.scores)
        return top + math.log(math.fsum(math.exp(s - top) for s in self.scores))

    @property
    def probabilities(self) -> np.ndarray:
        return np.exp(self.scores - self.log_z)

    @property
    def entropy(self) -> float:
        log_z = self.log_z
        return math.fsum(math.exp(s - log_z) * (log_z - s) for s in self.scores)

    def probability(self, event) -> float:
        """Probability of the labellings for which ``event(labelling)`` holds."""
        pairs = zip(self.labellings, self.probabilities, strict=True)
        return math.fsum(p for y, p in pairs if event(y))

    def marginal(self, v: int, n_labels: int) -> np.ndarray:
        return np.bincount(self.labels[:, v], self.probabilities, minlength=n_labels)


def links(p) -> list[tuple[int, int, int]]:
    """Both ends of each edge, and its place in the array of pair marginals."""
    if isinstance(p, GraphPotentials):
        return [(int(a), int(b), e) for e, (a, b) in enumerate(p.edges)]
    starts = set(p.offsets.tolist())
    return [(t - 1, t, t) for t in range(len(p.node)) if t not in starts]


def table(p, place: int) -> np.ndarray:
    if isinstance(p, GraphPotentials):
        return p.pair[p.types[place]]
    if p.trans.ndim == 3:
        return p.trans[place]
    result = p.trans.copy()
    if p.changes is not None:
        c = p.changes
        for q in range(c.ptr[place], c.ptr[place + 1]):
            result[c.source[q], c.target[q]] = c.score[q]
    return result


def enumerated(p) -> list[Enumeration]:
    """One enumeration for each of the stacked samples."""
    result = []
    for first, stop in itertools.pairwise(p.offsets.tolist()):
        n, n_labels = stop - first, p.node.shape[1]
        order = np.arange(n)[::-1]  # of chains, ties are by the last label, then back
        if isinstance(p, GraphPotentials):
            order = Forest.of(p.offsets, p.edges).order[first:stop] - first
        y = np.array(list(itertools.product(range(n_labels), repeat=n)), int)
        y = y[:, np.argsort(order)]
        inside = [(a - first, b - first, e) for a, b, e in links(p) if first <= a < stop]
        scores = sum((p.node[first + v, y[:, v]] for v in range(n)), np.zeros(len(y)))
        for a, b, e in inside:
            scores = scores + table(p, e)[y[:, a], y[:, b]]
        by_score = np.argsort(-scores, kind="stable")
        by_score = by_score[np.isfinite(scores[by_score])]
        result.append(Enumeration(slice(first, stop), inside, y[by_score], scores[by_score]))
    return result


# --- strategies ----------------------------------------------------------------------------------


def array(draw, shape, elements, dtype=np.float64):
    size = math.prod(shape)
    values = draw(st.lists(elements, min_size=size, max_size=size))
    return np.array(values, dtype=dtype).reshape(shape)


@st.composite
def chain_arrays(draw, dtype=np.float64):
    """node, trans and offsets of up to three samples, some of them empty or infeasible.

    Where the transitions are those of each position, NaN stands where they must not be looked at.
    """
    n_labels = draw(st.integers(1, 5))
    longest = {1: 5, 2: 5, 3: 4, 4: 3, 5: 3}[n_labels]
    lengths = draw(st.lists(st.integers(0, longest), max_size=3))
    elements = SCORES[draw(st.sampled_from(sorted(SCORES)))]
    node = array(draw, (sum(lengths), n_labels), elements, dtype)
    offsets = np.cumsum([0, *lengths])
    if draw(st.booleans()):
        trans = array(draw, (n_labels, n_labels), elements, dtype)
    else:
        trans = array(draw, (len(node), n_labels, n_labels), elements, dtype)
        trans[offsets[:-1][np.diff(offsets) > 0]] = np.nan
    return node, trans, offsets


@st.composite
def forests(draw):
    """Potentials of up to three samples, some of them empty, disconnected or infeasible.

    Forests of any numbering and direction of edges; tables are shared, typed or those of each edge.
    """
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
def step_changes(draw, n, n_labels, elements, most=6):
    """Up to so many pairs at each of n positions, the first ones of samples too; some twice."""
    label = st.integers(0, n_labels - 1)
    pairs = st.lists(st.tuples(label, label, elements), max_size=most)
    each = [draw(pairs) for _ in range(n)]
    flat = [pair for some in each for pair in some]
    ptr = np.cumsum([0, *map(len, each)])
    return StepChanges(ptr, *(np.array([pair[k] for pair in flat]) for k in range(3)))


@st.composite
def chains(draw):
    """Chains whose transitions are shared, changed at some positions, or those of each position."""
    node, trans, offsets = draw(chain_arrays())
    changes = None
    if trans.ndim == 2 and draw(st.booleans()):
        elements = SCORES[draw(st.sampled_from(sorted(SCORES)))]
        changes = draw(step_changes(*node.shape, elements))
    return ChainPotentials(node, trans, offsets, changes)


@st.composite
def feasible(draw, potentials):
    """Potentials of which every sample has a feasible labelling."""
    p = draw(potentials)
    assume(all(len(e.scores) for e in enumerated(p)))
    return p
