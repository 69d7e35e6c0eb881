"""MaxMargin with label sets, and the learning problems it makes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from trellis import MaxMargin, load_model
from trellis.corpus import as_corpus, as_graph_corpus
from trellis.errors import DataError
from trellis.problems import LabelProblem, PartialObjective
from trellis.solvers.cccp import minimise_cccp

WORDS = {"D": ["the", "a"], "N": ["cat", "dog", "fish"], "V": ["sat", "ran", "fish"]}


def sentences(n, seed=0):
    """«fish» is a noun or a verb: the neighbours tell."""
    rng = np.random.default_rng(seed)
    y = [["D", "N", "V"] if rng.random() < 0.5 else ["D", "N", "V", "D", "N"] for _ in range(n)]
    return [[str(rng.choice(WORDS[label])) for label in labels] for labels in y], y


def hidden(y, share, seed=0):
    """Leave a share of the labels; of the others a set or nothing is known."""
    rng = np.random.default_rng(seed)
    others = {"D": "N", "N": "V", "V": "D"}
    rest = [None, None, None, set]

    def one(label):
        if rng.random() < share:
            return label
        return {label, others[label]} if rest[rng.integers(4)] else None

    return [[one(label) for label in labels] for labels in y]


def paths(X):
    return [[(t, t + 1) for t in range(len(x) - 1)] for x in X]


X, Y = sentences(40)
X2, Y2 = sentences(30, 1)
PART = hidden(Y, 0.4)


@pytest.mark.parametrize("loss", ["bridge", "latent-hinge", "ramp"])
@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_learns_from_a_part(structure, loss):
    edges, edges2 = (
        ({}, {}) if structure == "chain" else ({"edges": paths(X)}, {"edges": paths(X2)})
    )
    svm = MaxMargin("word", structure=structure, l2=0.1, loss=loss, random_state=0)
    svm.fit(X, PART, **edges)
    assert svm.score(X2, Y2, **edges2) > 0.97
    assert svm.stop_reason_ == "eta"
    assert svm.gap_ == np.inf
    assert svm.exact_
    objectives = [record.objective for record in svm.history_]
    assert svm.n_passes_ == len(objectives) > 1
    assert objectives == sorted(objectives, reverse=True)
    assert svm.objective_ == objectives[-1]


@pytest.mark.parametrize("solver", ["frank-wolfe", "bundle"])
def test_rich_edges_of_a_part(solver):
    x, part = X[:20], PART[:20]
    svm = MaxMargin("word", l2=0.1, rich_edges=True, solver=solver, random_state=0).fit(x, part)
    assert svm.score(X2, Y2) > 0.97
    objectives = [record.objective for record in svm.history_]
    assert objectives == sorted(objectives, reverse=True)
    assert svm.weights_.edge.values.any() and svm.gap_ == np.inf
    problem = svm.learning_problems({"": (x, part)})[""]
    w = np.concatenate([a.ravel() for a in svm.weights_.arrays()]).astype(np.float64)
    value = 0.1 * w @ w + PartialObjective(problem).value(w)
    assert svm.objective_ == pytest.approx(value, rel=1e-4)


def test_structures_and_bridge_and_latent_hinge_agree():
    runs = [
        MaxMargin("word", structure=s, loss=loss, l2=0.1, directed=True, random_state=0).fit(
            X, PART, **edges
        )
        for loss in ("bridge", "latent-hinge")
        for s, edges in (
            ("chain", {}),
            ("tree", {"edges": paths(X)}),
            ("graph", {"edges": paths(X)}),
        )
    ]
    for other in runs[1:]:
        assert other.objective_ == pytest.approx(runs[0].objective_, rel=0.02)


def test_objective_is_that_of_the_weights():
    svm = MaxMargin("word", l2=0.2, random_state=0)
    weight = 1.0 + np.arange(len(X)) % 3
    svm.fit(X, PART, sample_weight=weight)
    problem = svm.learning_problems({"": (X, PART)})[""]
    w = np.concatenate([svm.weights_.node.ravel(), svm.weights_.transitions.ravel()])
    w = w.astype(np.float64)
    value = PartialObjective(problem, "bridge", sample_weight=weight).value(w)
    assert svm.objective_ == pytest.approx(0.2 * w @ w + value, rel=1e-4)


def test_max_is_convex():
    """Sets of two, of which the mean is a good reward."""
    sets = hidden(Y, 0.8)
    svm = MaxMargin("word", l2=0.1, loss="max", random_state=0).fit(X, sets)
    assert svm.stop_reason_ == "gap"
    assert 0 <= svm.gap_ <= 0.01 * svm.objective_
    assert svm.score(X2, Y2) > 0.8


@pytest.mark.parametrize("loss", ["bridge", "latent-hinge", "max"])
def test_complete_labels_are_learned_as_ever(loss):
    solver = "bundle" if loss == "max" else "frank-wolfe"
    usual = MaxMargin("word", l2=0.1, solver=solver, random_state=0).fit(X, Y)
    other = MaxMargin("word", l2=0.1, loss=loss, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(usual.weights_.node, other.weights_.node)
    assert other.gap_ == pytest.approx(usual.gap_, abs=1e-9)
    assert other.solver_ == solver


def test_ramp_of_complete_labels_is_another_loss():
    svm = MaxMargin("word", l2=0.1, loss="ramp", random_state=0).fit(X, Y)
    assert svm.gap_ == np.inf
    assert svm.score(X2, Y2) > 0.97


def test_l1():
    svm = MaxMargin("word", l2=0.0, l1=0.5, solver="bundle", random_state=0, max_passes=5)
    svm.fit(X[:15], PART[:15])
    assert (np.abs(svm.weights_.node) < 1e-6).mean() > 0.3
    assert svm.score(X2, Y2) > 0.8


def test_costs_of_errors():
    """With hardly any weights, each known label loses its largest cost, sets their least."""
    costs = [[0, 5, 1], [2, 0, 7], [1, 3, 0]]  # D, N, V
    y = [["D", None, {"N", "V"}], ["V", "N", "D"]]
    svm = MaxMargin("word", l2=1e9, cost=costs, random_state=0)
    svm.fit([["the", "cat", "sat"]] * 2, y)
    assert svm.objective_ == pytest.approx((5 + 1) + (3 + 7 + 5), rel=1e-3)
    with pytest.raises(DataError, match="a cost that is a function needs one label"):
        clone(svm).set_params(cost=lambda labels, classes: labels).fit([["a", "b"]], [["D", None]])


def test_same_seed_same_bits_and_saving(tmp_path):
    a, b = (MaxMargin("word", l2=0.1, random_state=3).fit(X, PART) for _ in range(2))
    np.testing.assert_array_equal(a.weights_.node, b.weights_.node)
    a.save(tmp_path / "m.trellis")
    again = load_model(tmp_path / "m.trellis")
    assert again.predict(X2) == a.predict(X2)
    assert again.loss == "bridge"
    assert again.stop_reason_ == "eta"


def test_max_passes_are_rounds():
    """Those of planes are; Frank–Wolfe counts its sweeps, of which a round has many."""
    for solver, reason in (("bundle", "max_rounds"), ("frank-wolfe", "max_passes")):
        svm = MaxMargin("word", l2=0.1, max_passes=1, solver=solver, random_state=0, verbose=True)
        svm.fit(X, PART)
        assert svm.stop_reason_ == reason
        assert svm.n_passes_ == 1


def test_interrupt_keeps_what_was_learned(monkeypatch):
    calls = []
    maxima = LabelProblem.maxima

    def interrupted(self, *arguments, **options):
        calls.append(1)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return maxima(self, *arguments, **options)

    for solver in ("frank-wolfe", "bundle"):
        svm = MaxMargin("word", l2=0.1, solver=solver, random_state=0)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(LabelProblem, "maxima", interrupted)
            svm.fit(X, PART)
        assert svm.stop_reason_ == "interrupted"
        assert svm.predict(X2[:1])
        calls.clear()


def test_bad_partial():
    with pytest.raises(DataError, match="loss must be 'bridge', 'latent-hinge', 'ramp' or 'max'"):
        MaxMargin("word", loss="hinge").fit(X, PART)
    with pytest.raises(DataError, match="no position is annotated: there is nothing to learn"):
        MaxMargin("word").fit(X, [[None] * len(x) for x in X])
    every = [[{"D", "N"}] * len(x) for x in X]
    with pytest.raises(DataError, match="nothing is annotated: there is nothing to learn"):
        MaxMargin("word").fit(X, every)


# ------------------------------------------------------------------------- learning problems


def test_learning_problems_share_everything():
    svm = MaxMargin("word", l2=0.1)
    data = {"a": (X, PART), "b": [["the", "owl", "flew"]], "c": as_corpus([["cat"]], [["N"]])}
    problems = svm.learning_problems(data, labels=["X"])
    assert list(problems) == ["a", "b", "c"]
    assert {p.classes for p in problems.values()} == {("D", "N", "V", "X")}
    assert len({p.n_weights for p in problems.values()}) == 1
    assert not problems["b"].annotated.any()
    assert problems["c"].complete.all()
    assert len(problems["b"].encoded.indices) == 3  # words that only b has are features, too
    problems["b"].annotate(0, ["D", None, "X"])
    assert problems["b"].annotated.all()
    w = np.random.default_rng(0).normal(size=problems["a"].n_weights)
    model = svm.with_weights(problems["a"], w)
    assert model is not svm
    found = problems["a"].maxima(w, "all").labels
    assert [problems["a"].classes[j] for j in found] == [y for ys in model.predict(X) for y in ys]


def test_learning_problems_of_graphs(tmp_path):
    x = [(["a", "b", "c"], [(0, 1), (1, 2), (0, 2)]), (["c", "a"], [(0, 1)])]
    svm = MaxMargin("word", structure="graph", directed=False)
    problems = svm.learning_problems({"one": (x, [["P", None, "Q"], [None, None]])})
    w = np.random.default_rng(0).normal(size=problems["one"].n_weights)
    model = svm.with_weights(problems["one"], w)
    names = problems["one"].classes
    found = [names[j] for j in problems["one"].maxima(w, "all").labels]
    assert found == [label for labels in model.predict(x) for label in labels]
    model.save(tmp_path / "m.trellis")
    assert load_model(tmp_path / "m.trellis").predict(x) == model.predict(x)


def test_types_of_edges_are_those_of_all_data():
    def typed(name):
        return as_graph_corpus([["a", "b"]], [["P", "Q"]], [[(0, 1)]], [[name]])

    svm = MaxMargin("word", structure="tree")
    problems = svm.learning_problems({"one": typed("u"), "two": typed("t")})
    assert problems["one"].owner.edge_types_ == ("t", "u")
    assert problems["one"].types.tolist() == [1]
    assert problems["two"].types.tolist() == [0]
    assert svm.with_weights(problems["one"], np.zeros(problems["one"].n_weights)).edge_types_ == (
        "t", "u",
    )  # fmt: skip
    plain = as_graph_corpus([["a", "b"]], [["P", "Q"]], [[(0, 1)]])
    with pytest.raises(DataError, match="some data sets have types of edges and others have none"):
        svm.learning_problems({"one": typed("u"), "two": plain})


def test_bad_learning_problems():
    svm = MaxMargin("word")
    with pytest.raises(DataError, match="a dict of data sets, at least one"):
        svm.learning_problems({})
    with pytest.raises(DataError, match="data set 'a': learning needs at least one sequence"):
        svm.learning_problems({"a": []})
    with pytest.raises(DataError, match="data set 'b': sample 1 is empty"):
        svm.learning_problems({"a": (X, Y), "b": [["x"], []]})
    with pytest.raises(DataError, match=r"no position is annotated; .*labels="):
        svm.learning_problems({"a": X})
    with pytest.raises(DataError, match="data set 'a': there are no edges"):
        MaxMargin("word", structure="tree").learning_problems({"a": (X, Y)})
    with pytest.raises(DataError, match="BIO"):
        MaxMargin("word", scheme="BIO").learning_problems({"a": (X, Y)})
    problem = svm.learning_problems({"a": (X, Y)})["a"]
    with pytest.raises(DataError, match=r"has \d+ weights, but w has the shape \(3,\)"):
        svm.with_weights(problem, np.zeros(3))
    with pytest.raises(DataError, match="one of those that learning_problems made"):
        svm.with_weights(object(), np.zeros(3))


def test_planes_are_limited(monkeypatch):
    given = []

    def watched(surrogate, *args, **more):
        given.append(surrogate.memory)
        return minimise_cccp(surrogate, *args, **more)

    monkeypatch.setattr("trellis.solvers.partial_margin.minimise_cccp", watched)
    svm = MaxMargin("word", l2=0.1, solver="bundle", random_state=0).fit(X, PART)
    assert given[-1] >= 1000
    monkeypatch.setattr("trellis.solvers.partial_margin._NUMBERS", 1)
    few = clone(svm).fit(X, PART)
    assert given[-1] == 50
    clone(svm).set_params(memory=7, max_passes=1).fit(X, PART)
    assert given[-1] == 7
    assert few.objective_ == pytest.approx(svm.objective_, rel=0.05)
