"""Scores up to the largest float: every question is answered as by exact arithmetic.

Scores are small integers times a power of two, so that all sums are exact until they overflow and
ties are frequent. The oracle lists all labellings and adds up fractions.

A float of size s is known to about 1e-16 s, and a probability is an exponential of scores: with
scores of 2 ** k it can be right to about 1e-14 * 2 ** k, not better. Where that is more than all,
labellings of less than the best score have probability 0, and how it is shared among the best is
left open.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trellis.errors import DataError, InfeasibleError
from trellis.structures import (
    ChainPotentials,
    GraphPotentials,
    best,
    entropy,
    event_probability,
    kbest,
    labelling_score,
    marginals,
    sample,
)

LARGEST = np.finfo(np.float64).max
EDGES = {
    "tree": [(1, 0), (1, 2), (3, 1), (3, 4)],
    "cycle": [(0, 1), (1, 2), (2, 0), (3, 2), (3, 4)],
}


@dataclass
class Case:
    p: Any
    edges: list[tuple[int, int]]
    tables: list[np.ndarray]
    exponent: int

    def labellings(self) -> dict[tuple[int, ...], Fraction]:
        """Exact scores of all labellings that are not forbidden."""
        n, n_labels = self.p.node.shape
        scores = {}
        for y in itertools.product(range(n_labels), repeat=n):
            terms = [self.p.node[v, y[v]] for v in range(n)]
            terms += [t[y[a], y[b]] for (a, b), t in zip(self.edges, self.tables, strict=True)]
            if -np.inf not in terms:
                scores[y] = sum(map(Fraction, terms), Fraction(0))
        return scores

    @property
    def tolerance(self) -> float:
        return 1e-11 + math.ldexp(1e-14, self.exponent)

    def probabilities(self) -> dict[tuple[int, ...], float]:
        scores = self.labellings()
        top = max(scores.values())
        weights = {y: math.exp(max(s - top, Fraction(-800))) for y, s in scores.items()}
        total = math.fsum(weights.values())
        return {y: w / total for y, w in weights.items()}


@st.composite
def cases(draw, highest=1020, kinds=("chain", "stack", "tree", "cycle")):
    kind = draw(st.sampled_from(kinds))
    n_labels = draw(st.integers(2, 3))
    exponent = draw(st.integers(0, highest))
    # 15 * 2 ** 1020 is just below the largest float.
    number = st.integers(-15, 15).map(lambda c: math.ldexp(c, exponent))
    score = st.one_of(number, number, number, st.just(-np.inf))

    def table(*shape):
        size = math.prod(shape)
        return np.reshape(draw(st.lists(score, min_size=size, max_size=size)), shape)

    if kind in EDGES:
        edges = EDGES[kind]
        node, pair = table(5, n_labels), table(len(edges), n_labels, n_labels)
        p = GraphPotentials(node, pair, edges, [0, 5])
        return Case(p, edges, list(pair), exponent)
    n = draw(st.integers(1, 5))
    node = table(n, n_labels)
    trans = table(n, n_labels, n_labels) if kind == "stack" else table(n_labels, n_labels)
    p = ChainPotentials(node, trans, [0, n])
    edges = [(t - 1, t) for t in range(1, n)]
    tables = [trans[t] if kind == "stack" else trans for t in range(1, n)]
    return Case(p, edges, tables, exponent)


def as_float(score: Fraction) -> float:
    if abs(score) > Fraction(LARGEST):
        return math.inf if score > 0 else -math.inf
    return float(score)


def feasible(case: Case, question) -> bool:
    """Whether there is a labelling; if not, the question must be refused."""
    if case.labellings():
        return True
    with pytest.raises(InfeasibleError):
        question()
    return False


def assert_close(case: Case, ours, wanted) -> None:
    """Probabilities are right as far as they can be (see the module)."""
    assert np.isfinite(ours).all()
    if case.tolerance < 0.01:
        np.testing.assert_allclose(ours, wanted, atol=case.tolerance)
    else:
        np.testing.assert_allclose(np.where(wanted == 0, ours, 0.0), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.where(wanted == 1, ours, 1.0), 1.0, atol=1e-12)


@given(cases())
def test_best_and_kbest(case):
    if not feasible(case, lambda: best(case.p)):
        return
    scores = case.labellings()
    ranked = sorted(scores.values(), reverse=True)
    labels, found = best(case.p)
    assert scores[tuple(labels.tolist())] == ranked[0]
    assert found[0] == as_float(ranked[0])
    labels, found = kbest(case.p, 6)
    for rank, wanted in enumerate(ranked[:6]):
        assert scores[tuple(labels[rank].tolist())] == wanted
        assert found[0, rank] == as_float(wanted)
    assert (labels[len(ranked) :] == -1).all()


@given(cases(kinds=("tree", "cycle")), st.sampled_from(["dual", "lp", "ilp", "elimination"]))
def test_best_by_every_method(case, method):
    if not feasible(case, lambda: best(case.p, method="ilp")):
        return
    top = max(case.labellings().values())
    answer = best(case.p, method=method)
    assert answer.bounds[0] >= as_float(top)
    if answer.exact[0]:
        assert answer.scores[0] == pytest.approx(as_float(top), rel=1e-6, abs=1e-5)


@given(cases())
def test_marginals(case):
    if not feasible(case, lambda: marginals(case.p)):
        return
    chances = case.probabilities()
    m = marginals(case.p, pairs=True)
    node = np.zeros(case.p.node.shape)
    pair = np.zeros((len(case.edges), *2 * node.shape[1:]))
    for y, chance in chances.items():
        node[np.arange(len(y)), y] += chance
        for e, (a, b) in enumerate(case.edges):
            pair[e, y[a], y[b]] += chance
    assert m.exact.all()
    ours = m.pair[1:] if isinstance(case.p, ChainPotentials) else m.pair
    assert_close(case, m.node, node)
    assert_close(case, ours, pair)
    np.testing.assert_allclose(m.node.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(ours.sum(axis=(1, 2)), 1, rtol=1e-12)
    top = max(case.labellings().values())
    assert m.log_z[0] == pytest.approx(as_float(top), rel=1e-12, abs=6 + case.tolerance)


@given(cases(), st.integers(0, 2**32))
def test_samples_entropy_and_events(case, seed):
    if not feasible(case, lambda: entropy(case.p)):
        return
    chances = case.probabilities()
    drawn = sample(case.p, 20, np.random.default_rng(seed))
    assert all(chances[tuple(y)] > 1e-20 for y in drawn.tolist())
    wanted = -math.fsum(c * math.log(c) for c in chances.values() if c > 0)
    ours, ties = entropy(case.p)[0], math.log(sum(c > 0 for c in chances.values()))
    assert abs(ours - wanted) < 100 * case.tolerance
    assert 0 <= ours <= ties + 1e-9
    allowed = np.random.default_rng(seed).random(case.p.node.shape) < 0.7
    event = math.fsum(c for y, c in chances.items() if allowed[np.arange(len(y)), y].all())
    assert_close(case, event_probability(case.p, allowed)[0], np.round(event, 13))


@given(cases(highest=890, kinds=("tree", "cycle")))
def test_belief_propagation(case):
    if not feasible(case, lambda: marginals(case.p, method="elimination")):
        return
    m = marginals(case.p, pairs=True, method="bp")
    if m.exact.all():
        node = np.zeros(case.p.node.shape)
        for y, chance in case.probabilities().items():
            node[np.arange(len(y)), y] += chance
        assert_close(case, m.node, node)
    np.testing.assert_allclose(m.node.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(m.pair.sum(axis=(1, 2)), 1, rtol=1e-12)


def test_belief_propagation_says_where_it_ends():
    p = GraphPotentials([[1e280, 0.0]] * 3, np.zeros((2, 2)), [[0, 1], [1, 2], [2, 0]], [0, 3])
    assert marginals(p).node[0].tolist() == [1.0, 0.0]
    with pytest.raises(DataError, match=r"takes scores up to 1e270; divide them, or use another"):
        marginals(p, method="bp")


@pytest.mark.parametrize("large", [1e15, 1e19, 1e20, 1e30, 1e100, 1e270])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", ["chain", "tree", "cycle", "bp"])
def test_small_scores_count_beside_large_ones(kind, sign, large):
    """A label forced by 1e30, or as good as forbidden by -1e30, leaves the others as they are."""
    node = np.array([[0.3, 0.5], [sign * large, 0.0], [-0.2, 0.4], [0.0, 1.0]])
    table = np.array([[0.1, -0.7], [0.6, 0.2]])
    kept = 0 if sign > 0 else 1
    hard = node.copy()
    hard[1] = -np.inf
    hard[1, kept] = 0.0
    edges = [[0, 1], [1, 2], [2, 3]] + ([[3, 0]] if kind in ("cycle", "bp") else [])
    method = "bp" if kind == "bp" else "auto"
    if kind == "chain":
        answer, wanted = (marginals(ChainPotentials(x, table, [0, 4])) for x in (node, hard))
    else:
        answer, wanted = (
            marginals(GraphPotentials(x, table, edges, [0, 4]), method=method) for x in (node, hard)
        )
    np.testing.assert_allclose(answer.node, wanted.node, atol=1e-7 if kind == "bp" else 1e-12)


@given(st.integers(0, 2**32), st.sampled_from([1e16, 1e19, 1e20, 1e30, 1e50, 1e200, 1e307]))
@example(0, 1e20)
def test_scores_of_any_digits(seed, large):
    """Random scores have one labelling far above the rest, which then has all the probability."""
    rng = np.random.default_rng(seed)
    node, pair = large * rng.normal(size=(5, 3)), large * rng.normal(size=(5, 3, 3))
    chain = ChainPotentials(node, pair, [0, 5])
    graphs = [GraphPotentials(node, pair[: len(e)], e, [0, 5]) for e in EDGES.values()]
    for p in [chain, *graphs]:
        labels, scores = best(p)
        first, second = kbest(p, 2)[1][0]
        if not (first - second) > 1e-10 * large:
            continue
        assert labelling_score(p, labels)[0] == pytest.approx(scores[0], rel=1e-12)
        chances = marginals(p).node
        assert chances[np.arange(5), labels].tolist() == [1.0] * 5
        assert sample(p, 1, rng)[0].tolist() == labels.tolist()
        assert entropy(p)[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["chain", "tree", "cycle"])
def test_small_scores_count_beside_the_largest(kind):
    test_small_scores_count_beside_large_ones(kind, 1, LARGEST)
    test_small_scores_count_beside_large_ones(kind, -1, LARGEST)


def test_log_z_beyond_the_largest_float_is_infinite():
    p = ChainPotentials([[1e308, 1e308]] * 3, np.zeros((2, 2)), [0, 3])
    m = marginals(p)
    assert m.log_z.tolist() == [np.inf]
    assert m.node.tolist() == [[0.5, 0.5]] * 3
    assert best(p).scores.tolist() == [np.inf]
