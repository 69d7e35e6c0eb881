"""Max-margin models by stochastic steps: pieces, rich edges, threads, streams, warm starts."""

from __future__ import annotations

import numpy as np
import pytest

import trellis.models.max_margin as max_margin
from chain_problems import same_bits, toy_language
from trellis import MaxMargin
from trellis.errors import DataError
from trellis.models.automatic import passes_for
from trellis.problems import HingeLoss
from trellis.solvers import sgd

X, Y = toy_language(60, seed=1)
TEST = toy_language(60, seed=2)


def model(**more):
    return MaxMargin(**({"solver": "sgd", "l2": 0.1, "random_state": 0} | more))


@pytest.mark.parametrize(
    "more", [{}, {"piece_size": 2.5}, {"rich_edges": True}, {"batch_size": 4}, {"scheme": "BIO"}]
)
def test_it_learns(more):
    svm = model(**more).fit(X, Y)
    assert svm.score(*TEST) > 0.97
    assert svm.solver_ == "sgd" and svm.n_passes_ == passes_for(sum(map(len, X)))
    assert svm.stop_reason_ == "max_passes" and model(decay=0.9, **more).fit(X, Y).n_passes_ == 12
    assert svm.gap_ == np.inf and svm.exact_ and svm.objective_ == svm.history_[-1].objective


def test_it_comes_down_towards_the_optimum():
    fw = MaxMargin(l2=0.1, tol=1e-3, max_passes=1000, random_state=0).fit(X, Y)
    steps = model(max_passes=200, decay=0.97, tol=0).fit(X, Y)
    problem = fw.learning_problems({"": (X, Y)})[""]
    loss = HingeLoss(problem)

    def J(w):
        return 0.1 * float(w @ w) + loss.value(w)

    start = J(np.zeros(problem.n_weights))
    assert J(fw.flat_weights(problem)) <= J(steps.flat_weights(problem)) <= 0.01 * start


def test_label_sets_and_missing_labels():
    rng = np.random.default_rng(0)
    part = [[y if rng.random() < 0.5 else None for y in labels] for labels in Y]
    part[0] = [{"O", "B-PER"} if y == "O" else y for y in part[0]]
    assert model().fit(X, part).score(*TEST) > 0.95


@pytest.mark.parametrize("structure", ["tree", "graph"])
def test_trees_and_graphs(structure):
    edges = [[(i, i + 1) for i in range(len(x) - 1)] for x in X]
    svm = model(structure=structure, directed=True).fit(X, Y, edges=edges)
    tests = [[(i, i + 1) for i in range(len(x) - 1)] for x in TEST[0]]
    assert svm.score(*TEST, edges=tests) > 0.97


def test_threads_change_nothing():
    one, two = (model(batch_size=8, n_jobs=n).fit(X, Y) for n in (1, 2))
    assert same_bits(one.weights_, two.weights_)


def test_it_goes_on_from_its_weights():
    svm = model(warm_start=True, max_passes=3, tol=0)
    first = svm.fit(X[:30], Y[:30]).weights_.copy()
    before = svm.n_features_
    svm.fit(X, Y)
    assert svm.n_features_ >= before
    assert not np.array_equal(first.node, svm.weights_.node[: len(first.node)])
    with pytest.raises(DataError, match="warm_start=True needs solver='sgd'"):
        MaxMargin(warm_start=True).fit(X, Y)


def test_it_learns_from_a_stream():
    svm = MaxMargin(l2=0.1, random_state=0)
    for start in range(0, 60, 20):
        svm.partial_fit(
            X[start : start + 20], Y[start : start + 20], classes=["B-PER", "I-PER", "O"]
        )
    assert svm.score(*TEST) > 0.95 and svm.n_batches_ == 3 and svm.solver_ == "sgd"
    with pytest.raises(DataError, match="only hinge losses of label sets, with l2, are learned"):
        MaxMargin(loss="ramp").partial_fit(X, Y)


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path):
    whole = model(max_passes=6).fit(X, Y)
    svm = model(max_passes=6)
    calls = 0
    visit = sgd.StochasticGradient.visit

    def interrupted(self, *more):
        nonlocal calls
        calls += 1
        if calls > 3 * sgd._PLACES:  # windows of a pass
            raise KeyboardInterrupt
        return visit(self, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sgd.StochasticGradient, "visit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            svm.fit(X, Y, checkpoint=tmp_path / "run", checkpoint_minutes=0)
    assert svm.stop_reason_ == "interrupted" and svm.n_passes_ == 3
    again = model(max_passes=6).fit(X, Y, checkpoint=tmp_path / "run", resume=True)
    assert same_bits(again.weights_, whole.weights_)
    assert again.n_passes_ == 6


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"l1": 1.0, "l2": 0.0}, "l1=1.0 needs solver='bundle'"),
        ({"loss": "ramp"}, "loss='ramp' needs solver='bundle'"),
        ({"learning_rate": 0}, "learning_rate must be 'auto' or a positive number, got 0"),
        ({"decay": 2}, "decay must be 'auto' or a number above 0 and of at most 1, got 2"),
    ],
)
def test_what_does_not_go_together(more, message):
    with pytest.raises(DataError, match=message):
        model(**more).fit(X, Y)


# ------------------------------------------------------------------------- when it is chosen


def rare(n: int = 30):
    """A language most of whose words are met once, so that features are sparse."""
    rng = np.random.default_rng(0)
    words = [[f"{word}{rng.integers(10**9)}" for word in s] for s in X[:n]]
    return words, Y[:n]


def test_auto_takes_steps_for_much_sparse_data(monkeypatch):
    words, labels = rare()
    size = sum(map(len, labels))

    def chosen(these=words, **options):
        svm = MaxMargin("prefix(word, 1); word", max_passes=2, random_state=0, **options)
        return svm.fit(these, labels).solver_

    monkeypatch.setattr(max_margin, "_LITTLE_DATA", size)
    assert chosen() == "frank-wolfe"
    monkeypatch.setattr(max_margin, "_LITTLE_DATA", size - 1)
    assert chosen() == chosen(rich_edges=True) == chosen(cost=1 - np.eye(3)) == "sgd"
    assert chosen(cost=lambda y, classes: [[c != z for c in classes] for z in y]) == "sgd"
    assert chosen(tol=0.1) == "frank-wolfe"  # a gap is asked for
    assert chosen(loss="ramp") == "bundle"
    assert chosen([["x"] * len(s) for s in words]) == "frank-wolfe"  # dense
    tree = MaxMargin(structure="tree", max_passes=1).fit(
        words, labels, edges=[[(i, i + 1) for i in range(len(s) - 1)] for s in words]
    )
    assert tree.solver_ == "frank-wolfe"


def test_steps_that_were_chosen_are_those_asked_for(monkeypatch):
    words, labels = rare()
    partial = [[None if i % 3 == 1 else y for i, y in enumerate(s)] for s in labels]
    monkeypatch.setattr(max_margin, "_LITTLE_DATA", 0)
    for known in (labels, partial):
        auto, sgd = (
            MaxMargin("prefix(word, 1); word", random_state=0, **options).fit(words, known)
            for options in ({}, {"solver": "sgd"})
        )
        assert auto.averaged_ and auto.n_passes_ == passes_for(sum(map(len, words)))
        assert (auto.weights_.node == sgd.weights_.node).all()
        assert auto.gap_ == np.inf and auto.stop_reason_ == "max_passes"
        assert auto.score(words, labels) > 0.9
