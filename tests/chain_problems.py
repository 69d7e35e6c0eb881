"""Tiny learning problems on chains, their losses by brute force, and a small toy language.

The oracle lists every labelling of every piece and scores it on its own; nothing is shared with
the kernels but the arrays that go in.
"""

from __future__ import annotations

import inspect
import itertools
import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from trellis.corpus import Labels, as_corpus
from trellis.corpus.schemes import get_scheme
from trellis.features import Encoded
from trellis.problems import LabelProblem, Weights
from trellis.problems.visits import Visits

CLASSES = "ABCD"


def chain_problem(encoded, labels, weight=None, n_features=None, **more) -> LabelProblem:
    """A problem with as many features as there are, unless more are asked for."""
    if n_features is None:
        n_features = int(encoded.indices.max(initial=-1)) + 1
    return LabelProblem(encoded, labels, n_features, sample_weight=weight, **more)


def altered(problem: LabelProblem, **changes) -> LabelProblem:
    """The problem made anew with some arguments exchanged."""
    names = list(inspect.signature(LabelProblem).parameters)
    arguments = {name: getattr(problem, name) for name in names}
    if problem.structure == "chain":
        arguments |= {"edges": None, "types": None}
    return LabelProblem(**(arguments | changes))


@dataclass
class Problem:
    """Data, weights and pieces, ready for an objective."""

    data: LabelProblem
    weights: Weights
    visits: Visits

    @property
    def allowed(self) -> np.ndarray:
        return self.data.labels.allowed()


def node_scores(e: Encoded, node: np.ndarray) -> np.ndarray:
    """Scores (N, L) of all positions, one feature after the other."""
    scores = np.zeros((len(e.indptr) - 1, node.shape[1]))
    for t in range(len(scores)):
        for p in range(e.indptr[t], e.indptr[t + 1]):
            scores[t] += (float(e.values[p]) if e.values.size else 1.0) * node[e.indices[p]]
    return scores


def edge_scores(data: LabelProblem, weights: Weights) -> np.ndarray:
    """Scores (N, L, L) of the edge into every position, one weight after the other."""
    e = data.encoded
    scores = np.tile(weights.transitions.astype(np.float64), (len(e.indptr) - 1, 1, 1))
    for t in range(1, len(scores)):
        for places, pairs, v, _ in edge_rows(data, weights, t):
            scores[t].reshape(-1)[pairs] += v * weights.edge.values[places].astype(np.float64)
    return scores


def edge_rows(data: LabelProblem, weights: Weights, t: int):
    """Every row of rich edge weights met by the edge into t: its places, pairs, value, feature."""
    e, edge, n_pairs = data.encoded, weights.edge, data.n_labels**2
    if edge is None:
        return
    for back in range(2 if edge.both else 1):
        for p in range(e.indptr[t - back], e.indptr[t - back + 1]):
            f = int(e.indices[p])
            if edge.row[f] < 0:
                continue
            row = edge.row[f] + back * edge.n_crossed
            v = float(e.values[p]) if e.values.size else 1.0
            if edge.ptr.size:
                places = slice(int(edge.ptr[row]), int(edge.ptr[row + 1]))
                yield places, edge.pair[places], v, f
            else:
                yield slice(row * n_pairs, (row + 1) * n_pairs), np.arange(n_pairs), v, f


def edge_entries(data: LabelProblem, weights: Weights, t: int):
    """Every rich edge weight met by the edge into t: its place, pair, value and feature."""
    for places, pairs, v, f in edge_rows(data, weights, t):
        for k, pair in enumerate(pairs.tolist()):
            yield places.start + k, pair, v, f


def log_sum(scores: list[float]) -> float:
    top = max(scores)
    return top + math.log(math.fsum(math.exp(s - top) for s in scores))


def brute_force(problem: Problem) -> tuple[float, Weights]:
    """Loss and gradient of the log-likelihood by listing all labellings."""
    data, weights, visits = problem.data, problem.weights, problem.visits
    node = weights.node.astype(np.float64)
    edges = edge_scores(data, weights)
    scores, allowed = node_scores(data.encoded, node), problem.allowed
    gradient = weights.zeros_like(np.float64)
    total = 0.0
    for start, end, weight in zip(visits.starts, visits.ends, visits.weights, strict=True):
        labellings = list(itertools.product(range(data.n_labels), repeat=int(end - start)))
        value = [
            sum(scores[start + t, y[t]] for t in range(len(y)))
            + sum(edges[start + t, y[t - 1], y[t]] for t in range(1, len(y)))
            for y in labellings
        ]
        good = [
            k
            for k, y in enumerate(labellings)
            if all(allowed[start + t, label] for t, label in enumerate(y))
        ]
        log_z, log_good = log_sum(value), log_sum([value[k] for k in good])
        total += weight * (log_z - log_good)
        share = np.array([math.exp(v - log_z) for v in value])
        for k in good:
            share[k] -= math.exp(value[k] - log_good)
        chance = np.zeros((end - start, data.n_labels))
        pairs = np.zeros((end - start, data.n_labels, data.n_labels))
        for y, p in zip(labellings, weight * share, strict=True):
            for t, label in enumerate(y):
                chance[t, label] += p
                if t > 0:
                    pairs[t, y[t - 1], label] += p
        add_expected(data, int(start), chance, pairs, gradient)
    return total, gradient


def add_expected(
    data: LabelProblem, start: int, chance: np.ndarray, pairs: np.ndarray, into: Weights
) -> None:
    """Add the expected features of a piece: chances of its labels (n, L) and pairs (n, L, L)."""
    e = data.encoded
    for t in range(len(chance)):
        for p in range(e.indptr[start + t], e.indptr[start + t + 1]):
            v = float(e.values[p]) if e.values.size else 1.0
            into.node[e.indices[p]] += v * chance[t]
        if t > 0:
            into.transitions += pairs[t]
            for places, of, v, _ in edge_rows(data, into, start + t):
                into.edge.values[places] += v * pairs[t].reshape(-1)[of]


def add_counts(data: LabelProblem, start: int, y, amount: float, into: Weights) -> None:
    """Add ``amount`` times the features of a labelling of the piece that begins at ``start``."""
    e = data.encoded
    for t, label in enumerate(y):
        for p in range(e.indptr[start + t], e.indptr[start + t + 1]):
            v = float(e.values[p]) if e.values.size else 1.0
            into.node[e.indices[p], label] += amount * v
        if t > 0:
            into.transitions[y[t - 1], label] += amount
            for place, pair, v, _ in edge_entries(data, into, start + t):
                if pair == y[t - 1] * data.n_labels + label:
                    into.edge.values[place] += amount * v


VALUES = st.sampled_from([-2.0, -0.5, 0.25, 1.0, 3.0])
ORDINARY = st.floats(-3, 3)
EXTREME = st.sampled_from([-1000.0, -90.0, -65.0, -1.0, 0.0, 1.0, 65.0, 90.0, 1000.0])


@st.composite
def problems(draw, numbers=ORDINARY, partial=True, sample_weights=None) -> Problem:
    """Up to three chains of up to four positions and four labels, cut into pieces."""
    n_labels = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    n, n_features = sum(lengths), draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    size = int(indptr[-1])
    indices = draw(st.lists(st.integers(0, n_features - 1), min_size=size, max_size=size))
    real = draw(st.booleans())
    values = draw(st.lists(VALUES, min_size=size, max_size=size)) if real else []
    label = st.sampled_from(CLASSES[:n_labels])
    if partial:
        some = st.sets(label, min_size=1)
        label = st.one_of(label, st.none(), some)
    y = draw(st.lists(label, min_size=n, max_size=n))
    if sample_weights is None:
        sample_weights = st.floats(0, 3)
    weight = draw(st.lists(sample_weights, min_size=len(lengths), max_size=len(lengths)))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    data = chain_problem(
        Encoded(offsets, indptr, np.array(indices, np.int32), np.array(values, np.float32)),
        Labels.from_lists([y], CLASSES[:n_labels]),
        np.array(weight),
        n_features,
    )
    flat = draw(
        st.lists(
            numbers,
            min_size=(n_features + n_labels) * n_labels,
            max_size=(n_features + n_labels) * n_labels,
        )
    )
    matrix = np.array(flat).reshape(-1, n_labels)
    weights = Weights(matrix[:n_features].copy(), matrix[n_features:].copy())
    cuts = draw(st.sets(st.integers(1, n)))
    bounds = np.array(sorted({0, *offsets.tolist(), *(c for c in cuts if c < n)}), np.int64)
    owner = np.searchsorted(offsets, bounds[:-1], side="right") - 1
    order = np.array(draw(st.permutations(range(len(owner)))), np.int64)
    visits = Visits(bounds[:-1][order], bounds[1:][order], data.sample_weight[owner[order]])
    return Problem(data, weights, visits)


def random_data(
    rng: np.random.Generator,
    *,
    n_samples: int = 20,
    n_labels: int = 3,
    n_features: int = 12,
    real: bool = False,
) -> LabelProblem:
    """Chains whose labels come from a random model: learnable, but not separable."""
    lengths = rng.integers(1, 9, n_samples)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n, width = int(offsets[-1]), 3
    indices = rng.integers(0, n_features, (n, width)).astype(np.int32)
    values = rng.normal(size=n * width).astype(np.float32) if real else np.zeros(0, np.float32)
    encoded = Encoded(offsets, np.arange(0, n * width + 1, width), indices.ravel(), values)
    truth = rng.normal(size=(n_features, n_labels))
    noisy = node_scores(encoded, truth) + rng.gumbel(size=(n, n_labels))
    names = [CLASSES[i] for i in noisy.argmax(axis=1)]
    return LabelProblem(encoded, Labels.from_lists([names], CLASSES[:n_labels]), n_features)


def same_weights(a: Weights, b: Weights, **tolerance: float) -> None:
    for x, y in zip(a.arrays(), b.arrays(), strict=True):
        np.testing.assert_allclose(x, y, **tolerance)


def same_bits(a: Weights, b: Weights) -> bool:
    return all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(a.arrays(), b.arrays(), strict=True)
    )


def labelling_scores(model, sample) -> dict[tuple[str, ...], float]:
    """Score of every labelling of one sample under a fitted model, from its weights alone."""
    corpus = as_corpus([sample])
    scores = node_scores(model.encoder_.encode(corpus), model.weights_.node.astype(np.float64))
    trans = model.weights_.transitions.astype(np.float64)
    found = {}
    for labels in itertools.product(model.classes_, repeat=len(scores)):
        names = labels if model.states_ == model.classes_ else states_of(labels)
        y = [model.states_.index(name) for name in names]
        total = sum(scores[t, label] for t, label in enumerate(y))
        total += sum(trans[a, b] for a, b in itertools.pairwise(y))
        found[labels] = float(total)
    return found


def states_of(labels) -> list[str]:
    """IOBES of labels in BIO: whether the next label goes on with a span, letter by letter."""
    states = []
    for label, after in itertools.zip_longest(labels, labels[1:]):
        goes_on = label != "O" and after == "I" + label[1:]
        states.append(label if goes_on else {"B": "S", "I": "E", "O": "O"}[label[0]] + label[1:])
    return states


def probabilities(scores: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    log_z = log_sum(list(scores.values()))
    return {y: math.exp(s - log_z) for y, s in scores.items()}


def in_scheme(scheme: str, labels) -> bool:
    """Whether labels are what the scheme writes for some spans."""
    rules = get_scheme(scheme)
    return rules.labels_for(rules.spans(labels), len(labels)) == list(labels)


_NAMES = ("Ada", "Bohr", "Curie", "Dirac", "Euler")
_WORDS = ("the", "old", "met", "saw", "a", "new", "of", "and")


def toy_language(n: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of plain words and names of one or two words between them, with BIO labels."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words: list[str] = []
        labels: list[str] = []
        for _ in range(rng.integers(1, 4)):
            k = int(rng.integers(0, 3))
            words += [str(w) for w in rng.choice(_NAMES, k)] + [str(rng.choice(_WORDS))]
            labels += [*("B-PER", "I-PER")[:k], "O"]
        X.append(words)
        y.append(labels)
    return X, y
