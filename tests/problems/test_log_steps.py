"""Quick passes: against steps down the gradient of the log-likelihood."""

from __future__ import annotations

import numpy as np

from label_problems import Enumerated
from margin_problems import CLASSES
from trellis.corpus import Labels, as_corpus
from trellis.features import AttributeEncoder
from trellis.problems import LabelProblem, LogObjective
from trellis.problems.log_steps import log_pass


def words(lists, labels):
    encoder = AttributeEncoder()
    encoded = encoder.learn(as_corpus([[[w] for w in words.split()] for words in lists]))
    return LabelProblem(encoded, Labels.from_lists(labels, CLASSES), encoder.n_features)


def test_a_step_is_down_the_gradient():
    p = words(["s u v"], [["a", "b", "c"]])
    w, rng = np.zeros(p.n_weights), np.random.default_rng(0)
    w[:] = rng.normal(size=w.size)
    _, gradient = LogObjective(p).value_and_gradient(w)
    expected = w - 2.0 * gradient  # one feature a position: the rate is the pace
    assert log_pass(p, w, np.array([0]), 0.0)
    np.testing.assert_allclose(w, expected, atol=1e-9)


def test_passes_lower_the_loss_on_every_structure():
    for structure in ("chain", "tree", "graph"):
        p = Enumerated(1, structure, known=0.9, directed=True).problem
        objective, w = LogObjective(p), np.zeros(p.n_weights)
        before = objective.value_and_gradient(w)[0]
        for _ in range(20):
            assert log_pass(p, w, np.flatnonzero(p.annotated), 0.01)
        assert objective.value_and_gradient(w)[0] < 0.9 * before


def test_weights_of_other_features_stay():
    p = words(["s u", "v v"], [["a", "b"], [None, None]])
    w = np.ones(p.n_weights)
    log_pass(p, w, np.array([0]), 1.0)
    assert p.weights(w).node[2].tolist() == [1.0, 1.0, 1.0]
    assert (p.weights(w).node[:2] != 1.0).all()


def test_nothing_is_learned_where_nothing_is_known():
    p = words(["s u"], [[None, None]])
    w = np.zeros(p.n_weights)
    assert not log_pass(p, w, np.array([0]), 0.1)
    assert not log_pass(p, w, np.zeros(0, np.int64), 0.1)
    assert not w.any()
