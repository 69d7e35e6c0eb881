"""The perceptron of partial annotations."""

from __future__ import annotations

import numpy as np
import pytest

from label_problems import Enumerated
from trellis.corpus import Labels, as_corpus
from trellis.errors import DataError
from trellis.features import AttributeEncoder
from trellis.problems.label_problem import LabelProblem
from trellis.solvers.perceptron_partial import partial_perceptron


class Counted:
    """A problem that counts its visits."""

    def __init__(self, problem):
        self.problem = problem
        self.visits = []
        self.weights = []

    def __getattr__(self, name):
        return getattr(self.problem, name)

    def update(self, i, w):
        self.visits.append(i)
        moved = self.problem.update(i, w)
        self.weights.append(w.copy())
        return moved


def separable():
    """Words have labels of their own; half of them are known."""
    rng = np.random.default_rng(0)
    gold = [rng.integers(0, 3, 5) for _ in range(20)]
    corpus = as_corpus([[[f"w{j}"] for j in y] for y in gold])
    lists = [["abc"[j] if rng.random() < 0.5 else None for j in y] for y in gold]
    encoded = AttributeEncoder().learn(corpus)
    return LabelProblem(encoded, Labels.from_lists(lists, "abc"), 3), gold


def test_it_learns_what_is_not_known_and_stops_early():
    problem, gold = separable()
    counted = Counted(problem)
    w = partial_perceptron(counted, passes=50, seed=0)
    assert len(counted.visits) < 50 * 20
    assert not problem.maxima(w, "all").losses.any()
    order = {problem.encoded.indices[t]: label for t, label in enumerate(np.concatenate(gold))}
    labels = problem.maxima(w, "all").labels
    right = [order[f] == label for f, label in zip(problem.encoded.indices, labels, strict=True)]
    assert np.mean(right) > 0.9


def test_average_is_over_all_visits(monkeypatch):
    problem = Counted(Enumerated(2, known=0.9).problem)
    found = partial_perceptron(problem, passes=3, seed=1)
    np.testing.assert_allclose(found, np.mean(problem.weights, axis=0))
    last = partial_perceptron(problem, passes=3, seed=1, average=False)
    np.testing.assert_array_equal(last, problem.weights[-1])
    monkeypatch.setattr("trellis.solvers.perceptron_partial._CHEAP", 15)  # every second visit
    problem.weights.clear()
    found = partial_perceptron(problem, passes=3, seed=1)
    np.testing.assert_allclose(found, np.mean(problem.weights[1::2], axis=0))


def test_order_start_and_what_is_left_out():
    e = Enumerated(2, known=0.0)
    e.problem.annotate(1, {0: "a"})
    problem = Counted(e.problem)
    start = e.weights()
    partial_perceptron(problem, passes=2, start=start)
    assert set(problem.visits) == {1}
    several = Counted(Enumerated(2, known=0.9).problem)
    partial_perceptron(several, passes=1)
    assert several.visits == [0, 1, 2]
    a, b = (partial_perceptron(several, passes=4, seed=3) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    none = partial_perceptron(Enumerated(2, known=0.0).problem, passes=2, start=start)
    np.testing.assert_array_equal(none, start)


def test_bad_parameters():
    problem = Enumerated(0).problem
    with pytest.raises(DataError, match="passes must be a positive integer"):
        partial_perceptron(problem, passes=0)
    with pytest.raises(DataError, match="start have shape"):
        partial_perceptron(problem, passes=1, start=np.zeros(2))
