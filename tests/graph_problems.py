"""Tiny learning problems on trees and graphs, and their losses by listing all labellings."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from chain_problems import CLASSES, ORDINARY, VALUES, log_sum, node_scores
from trellis.corpus import Labels
from trellis.decompose import GraphPieces
from trellis.features import Encoded
from trellis.problems import EdgeWeights, LabelProblem, Weights
from trellis.problems.visits import GraphVisits


@dataclass
class GraphProblem:
    """Data, weights and pieces, ready for an objective."""

    data: LabelProblem
    weights: Weights
    visits: GraphVisits


def edge_entries(data: LabelProblem, weights: Weights, e: int):
    """Every rich weight that edge e meets: its place, pair and value; from the features alone."""
    edge, encoded, n_pairs = weights.edge, data.encoded, data.n_labels**2
    if edge is None:
        return
    families = [(1, 0), (0, edge.n_crossed)] if edge.both else [(1, 0)]
    if not data.directed:
        families = [(1, 0), (0, 0)]
    first = int(data.types[e]) * (2 if edge.both else 1) * edge.n_crossed * (edge.n_types > 1)
    for end, shift in families:
        node = data.edges[e, end]
        for p in range(encoded.indptr[node], encoded.indptr[node + 1]):
            row = edge.row[encoded.indices[p]]
            if row < 0:
                continue
            row += shift + first
            v = float(encoded.values[p]) if encoded.values.size else 1.0
            if edge.ptr.size:
                for place in range(edge.ptr[row], edge.ptr[row + 1]):
                    yield place, int(edge.pair[place]), v
            else:
                for pair in range(n_pairs):
                    yield int(row) * n_pairs + pair, pair, v
    own = data.edge_features
    for p in range(0) if own is None else range(own.indptr[e], own.indptr[e + 1]):
        row = edge.n_rows - edge.n_own + int(own.indices[p])
        v = float(own.values[p]) if own.values.size else 1.0
        if edge.ptr.size:
            for place in range(edge.ptr[row], edge.ptr[row + 1]):
                yield place, int(edge.pair[place]), v
        else:
            for pair in range(n_pairs):
                yield row * n_pairs + pair, pair, v


def tables(data: LabelProblem, weights: Weights) -> np.ndarray:
    """Scores (E, L, L) of the edges, one weight after the other."""
    out = np.array([weights.transitions[k] for k in data.types], np.float64)
    out = out.reshape(len(data.edges), data.n_labels, data.n_labels)
    for e in range(len(data.edges)):
        for place, pair, v in edge_entries(data, weights, e):
            out[e].reshape(-1)[pair] += v * float(weights.edge.values[place])
    return out if data.directed else out + out.transpose(0, 2, 1)


def pieces_of(visits: GraphVisits) -> list[tuple[list[int], list[int], float]]:
    """Nodes, edge numbers and weight of every piece."""
    found = []
    for k in range(len(visits)):
        places = range(visits.starts[k], visits.ends[k])
        nodes = [int(visits.nodes[i]) for i in places]
        if visits.forest is not None:
            edges = [int(visits.forest.edge[i]) for i in places if visits.forest.edge[i] >= 0]
        else:
            edges = visits.kept[visits.kept_starts[k] : visits.kept_ends[k]].tolist()
        found.append((nodes, edges, float(visits.weights[k])))
    return found


def labellings(problem: GraphProblem, nodes: list[int], edges: list[int]):
    """All labellings of a piece as dicts, each with its score and whether it is allowed."""
    data = problem.data
    node = node_scores(data.encoded, problem.weights.node.astype(np.float64))
    pair, allowed = tables(data, problem.weights), data.labels.allowed()
    for labels in itertools.product(range(data.n_labels), repeat=len(nodes)):
        y = dict(zip(nodes, labels, strict=True))
        score = sum(node[v, y[v]] for v in nodes)
        score += sum(pair[e, y[data.edges[e, 0]], y[data.edges[e, 1]]] for e in edges)
        yield y, float(score), all(allowed[v, y[v]] for v in nodes)


def add_counts(problem: GraphProblem, edges: list[int], y: dict, amount: float, into: Weights):
    """Add ``amount`` times the features of a labelling of a piece."""
    data = problem.data
    e = data.encoded
    for v, label in y.items():
        for p in range(e.indptr[v], e.indptr[v + 1]):
            value = float(e.values[p]) if e.values.size else 1.0
            into.node[e.indices[p], label] += amount * value
    for k in edges:
        a, b = (y[v] for v in data.edges[k])
        for x, z in [(a, b)] if data.directed else [(a, b), (b, a)]:
            into.transitions[data.types[k], x, z] += amount
            for place, pair, value in edge_entries(data, problem.weights, k):
                if pair == x * data.n_labels + z:
                    into.edge.values[place] += amount * value


def brute_force(problem: GraphProblem) -> tuple[float, Weights]:
    """Loss and gradient of the log-likelihood by listing all labellings."""
    gradient = problem.weights.zeros_like(np.float64)
    total = 0.0
    for nodes, edges, weight in pieces_of(problem.visits):
        listed = list(labellings(problem, nodes, edges))
        log_z = log_sum([score for _, score, _ in listed])
        log_good = log_sum([score for _, score, good in listed if good])
        total += weight * (log_z - log_good)
        for y, score, good in listed:
            share = math.exp(score - log_z) - (math.exp(score - log_good) if good else 0.0)
            add_counts(problem, edges, y, weight * share, gradient)
    return total, gradient


@st.composite
def edge_features(draw, n_edges, n_own):
    """Up to two features of each edge, indicators or numbers."""
    counts = draw(st.lists(st.integers(0, 2), min_size=n_edges, max_size=n_edges))
    size = sum(counts)
    indices = draw(st.lists(st.integers(0, n_own - 1), min_size=size, max_size=size))
    real = draw(st.booleans())
    values = draw(st.lists(VALUES, min_size=size, max_size=size)) if real else []
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    given = np.array(indices, np.int32), np.array(values, np.float32)
    return Encoded(np.array([0, n_edges]), indptr, *given)


@st.composite
def graph_problems(draw, loops=False, numbers=ORDINARY, partial=True, rich=None):
    """Up to two trees (or graphs) of up to five nodes and three labels, cut into pieces."""
    n_labels = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    edges = []
    for s, n in enumerate(lengths):
        if loops:
            pairs = [(a, b) for a in range(n) for b in range(a)]
            chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
        else:
            chosen = [(b, draw(st.integers(0, b - 1))) for b in range(1, n) if draw(st.booleans())]
        for a, b in chosen:
            flip = draw(st.booleans())
            edges.append((offsets[s] + (b if flip else a), offsets[s] + (a if flip else b)))
    edges = np.array(edges, np.int64).reshape(-1, 2)
    n_types = draw(st.integers(1, 2))
    types = np.array(
        draw(st.lists(st.integers(0, n_types - 1), min_size=len(edges), max_size=len(edges))),
        np.int64,
    )
    directed = draw(st.booleans())
    n, n_features = int(offsets[-1]), draw(st.integers(1, 3))
    counts = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    size = int(indptr[-1])
    indices = draw(st.lists(st.integers(0, n_features - 1), min_size=size, max_size=size))
    real = draw(st.booleans())
    values = draw(st.lists(VALUES, min_size=size, max_size=size)) if real else []
    label = st.sampled_from(CLASSES[:n_labels])
    if partial:
        label = st.one_of(label, st.none(), st.sets(label, min_size=1))
    y = draw(st.lists(label, min_size=n, max_size=n))
    weight = draw(st.lists(st.floats(0, 3), min_size=len(lengths), max_size=len(lengths)))
    encoded = Encoded(offsets, indptr, np.array(indices, np.int32), np.array(values, np.float32))

    def many(*shape):
        n = math.prod(shape)
        return np.array(draw(st.lists(numbers, min_size=n, max_size=n))).reshape(shape)

    weights = Weights(many(n_features, n_labels), many(n_types, n_labels, n_labels))
    own, n_own = None, 0
    if draw(st.booleans()) if rich is None else rich:
        n_own = draw(st.integers(0, 2))
        if n_own:
            own = draw(edge_features(len(edges), n_own))
        crossed = draw(st.lists(st.booleans(), min_size=n_features, max_size=n_features))
        row = np.where(crossed, np.cumsum(crossed) - 1, -1).astype(np.int32)
        both = draw(st.booleans()) and directed
        sets_of_rows = n_types if draw(st.booleans()) else 1
        n_rows = (2 if both else 1) * sum(crossed) * sets_of_rows + n_own
        if draw(st.booleans()):
            ptr, pair = np.zeros(0, np.int64), np.zeros(0, np.int32)
            size = n_rows * n_labels**2
        else:
            sets = [sorted(draw(st.sets(st.integers(0, n_labels**2 - 1)))) for _ in range(n_rows)]
            ptr = np.concatenate([[0], np.cumsum([len(x) for x in sets])]).astype(np.int64)
            pair = np.array([p for x in sets for p in x], np.int32)
            size = len(pair)
        weights.edge = EdgeWeights(row, ptr, pair, many(size), both, n_own, sets_of_rows)
    data = LabelProblem(
        encoded, Labels.from_lists([y], CLASSES[:n_labels]), n_features,
        sample_weight=np.array(weight), structure="graph" if loops else "tree", edges=edges,
        types=types, n_types=n_types, directed=directed, rich=weights.edge,
        edge_features=own,
    )  # fmt: skip
    piece_size = draw(st.one_of(st.none(), st.floats(1, 4)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    pieces = GraphPieces(data.edges, piece_size, "graph" if loops else "tree").draw(offsets, rng)
    return GraphProblem(data, weights, data.visits(pieces, rng.permutation(len(pieces))))
