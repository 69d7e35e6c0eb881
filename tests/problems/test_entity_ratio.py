"""The expected share of entity positions, against enumeration, and the gradient of its penalty."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from trellis.corpus import as_corpus
from trellis.errors import ParameterError
from trellis.features import AttributeEncoder
from trellis.problems import LabelProblem, LogLikelihood, Weights
from trellis.problems.entity_ratio import EntityRatio
from trellis.problems.log_objective import whole_samples

X = [[["a"], ["b", "c"], ["a"]], [["c"], ["a", "b"]], [["b"]]]
Y = [["B", None, None], [None, "B"], [None]]


def made(values=False, **options):
    """A loss of three chains with three labels, pieces and weights."""
    samples = X
    if values:
        samples = [[dict.fromkeys(names, 0.5 + t) for t, names in enumerate(x)] for x in X]
    corpus = as_corpus(samples, Y)
    labels = corpus.labels.recoded(("B", "I", "O"))
    encoder = AttributeEncoder()
    problem = LabelProblem(encoder.learn(corpus), labels, 3)
    entity = np.array([True, True, False])
    options = {"ratio": 0.2, "margin": 0.05, "strength": 3.0} | options
    loss = EntityRatio(problem, entity, **options)
    rng = np.random.default_rng(0)
    weights = Weights(rng.normal(size=(3, 3)), rng.normal(size=(3, 3)))
    return loss, whole_samples(problem), weights


def enumerated(loss, weights):
    """Expected number of entity positions, labelling by labelling."""
    e, expected = loss.problem.encoded, 0.0
    dense = np.zeros((len(loss.problem.labels), 3))
    rows = np.repeat(np.arange(len(dense)), np.diff(e.indptr))
    dense[rows, e.indices] = e.values if e.values.size else 1.0
    node = dense @ weights.node
    for a, b in zip(e.offsets[:-1], e.offsets[1:], strict=True):
        scores, counts = [], []
        for y in product(range(3), repeat=int(b - a)):
            s = sum(node[a + t, label] for t, label in enumerate(y))
            s += sum(weights.transitions[i, j] for i, j in pairwise(y))
            scores.append(s)
            counts.append(sum(loss.entity[label] for label in y))
        p = np.exp(scores - np.max(scores))
        expected += p @ counts / p.sum()
    return expected


@pytest.mark.parametrize("values", [False, True])
def test_the_expected_share_is_that_of_enumeration(values):
    loss, visits, weights = made(values)
    assert loss.share(weights, visits) == pytest.approx(enumerated(loss, weights) / 6, abs=1e-8)


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("ratio", [0.05, 0.95])
def test_the_gradient_is_that_of_finite_differences(values, ratio):
    loss, visits, weights = made(values, ratio=ratio)
    _, gradient = loss.value_and_gradient(weights, visits)
    for array, slope in zip(weights.arrays(), gradient.arrays(), strict=True):
        for place in np.ndindex(array.shape):
            at, ends = array[place], []
            for step in (1e-5, -1e-5):
                array[place] = at + step
                ends.append(loss.value_and_gradient(weights, visits)[0])
            array[place] = at
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-5)


def test_within_the_margin_nothing_is_added():
    loss, visits, weights = made(margin=1.0)
    plain = LogLikelihood(loss.problem).value_and_gradient(weights, visits)
    value, gradient = loss.value_and_gradient(weights, visits)
    assert value == plain[0]
    np.testing.assert_array_equal(gradient.node, plain[1].node)


def test_the_gradient_is_written_where_it_is_told():
    loss, visits, weights = made()
    into = weights.zeros_like(float)
    value, gradient = loss.value_and_gradient(weights, visits, into)
    assert gradient is into
    again = loss.value_and_gradient(weights, visits)
    assert value == again[0]
    np.testing.assert_array_equal(into.node, again[1].node)


def test_without_pieces_there_is_no_share():
    loss, visits, weights = made()
    assert loss.value_and_gradient(weights, visits[:0])[0] == 0


@pytest.mark.parametrize("name, value", [("ratio", 0.0), ("margin", -1.0), ("strength", -1.0)])
def test_numbers_out_of_bounds_are_refused(name, value):
    with pytest.raises(ParameterError, match=name):
        made(**{name: value})
