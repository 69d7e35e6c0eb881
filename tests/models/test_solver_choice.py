"""Solvers, penalties and threads as parameters of the estimators."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from rich_models import same_model, switches

import trellis.models.crf as crf_module
from chain_problems import chain_problem, toy_language
from trellis import ChainCRF, ChainPerceptron, Corpus, MaxMargin
from trellis.corpus import as_corpus
from trellis.decompose import WholeSamples
from trellis.models.automatic import passes_for
from trellis.problems import LogLikelihood

X, Y = toy_language(60)
X_NEW, Y_NEW = toy_language(20, seed=1)
RICH, RICH_Y = switches(60, 3)
BOTH = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])


def objective(model, X, Y) -> float:
    """The penalised loss at a model's weights, exactly."""
    corpus = Corpus.from_columns({"word": X}, Y)
    data = chain_problem(model.encoder_.encode(corpus), corpus.labels, np.ones(len(X)))
    pieces = WholeSamples().draw(corpus.offsets, np.random.default_rng(0))
    loss, _ = LogLikelihood(data).value_and_gradient(model.weights_, data.visits(pieces))
    return loss + model._penalty().value(model.weights_)


# ------------------------------------------------------------------------- the solver


@pytest.mark.parametrize("solver", ["sgd", "adf", "lbfgs", "auto"])
@pytest.mark.parametrize("piece_size", [None, 2.5])
def test_every_solver_learns_the_toy_language(solver, piece_size):
    model = ChainCRF(solver=solver, piece_size=piece_size, l2=0.1, random_state=0).fit(X, Y)
    assert model.score(X_NEW, Y_NEW) > 0.98
    assert model.solver_ == ("sgd" if solver == "auto" else solver)
    assert model.history_[-1].objective < model.history_[0].objective


def dense(n: int = 60):
    """The toy language with five numbers at each position, of which one tells the label."""
    rng = np.random.default_rng(0)
    which = {label: i for i, label in enumerate(sorted({label for s in Y for label in s}))}
    rows = [np.array([[which[label]] for label in s]) for s in Y[:n]]
    return [np.hstack([row, rng.normal(size=(len(row), 4))]) for row in rows], Y[:n]


def test_auto_chooses_by_features_and_size(monkeypatch):
    def chosen(X, Y, **options):
        return ChainCRF(max_passes=1, **options).fit(X, Y).solver_

    numbers = dense()
    assert chosen(*numbers) == "lbfgs"
    rng = np.random.default_rng(0)
    words = [[f"w{rng.integers(10**9)}" for _ in s] for s in X]
    assert chosen(words, Y) == "sgd"  # features that are met once
    told = [
        {"piece_size": 5}, {"averaged": True}, {"learning_rate": 0.1}, {"decay": 0.9},
        {"batch_size": 2}, {"l2_once": True}, {"group_lasso": 0.1}, {"lock_free": True},
    ]  # fmt: skip
    assert {chosen(*numbers, **options) for options in told} == {"sgd"}
    n = 3 * ChainCRF(max_passes=1).fit(*numbers).encoder_.encode(as_corpus(numbers[0])).indices.size
    for limit, solver in ((n, "lbfgs"), (n - 1, "sgd")):
        monkeypatch.setattr(crf_module, "_LITTLE_DATA", limit)
        assert chosen(*numbers) == solver


def test_the_penalty_is_chosen_by_features():
    assert ChainCRF(max_passes=1).fit(X[:5], Y[:5]).l2_ == 0.1
    assert ChainCRF(max_passes=1).fit(*dense()).l2_ == 1.0
    assert ChainCRF(max_passes=1).partial_fit(*dense()).l2_ == 1.0
    assert ChainCRF(l2=0.3, max_passes=1).fit(X, Y).l2_ == 0.3
    stream = ChainCRF("word; word[-1]", max_passes=1).fit(X[:2], Y[:2])
    assert stream.l2_ == 0.1 and stream.partial_fit(X, Y).l2_ == 0.1  # once chosen, it stays
    assert stream.set_params(l2=3.0).partial_fit(X, Y).l2_ == 3.0
    assert MaxMargin(max_passes=1).fit(*dense()).l2_ > MaxMargin(max_passes=1).fit(X[:5], Y[:5]).l2_
    assert MaxMargin("word", l1=1.0, max_passes=1).fit(X, Y).l2_ == 0.0


def test_averaging_is_the_default_where_nothing_speaks_against_it():
    def averaged(**options):
        model = ChainCRF("word", max_passes=1, **options).fit(X[:5], Y[:5])
        return model.averaged_

    assert averaged(solver="sgd") and averaged(piece_size=2.5) and averaged(averaged=True)
    against = [{"solver": "lbfgs"}, {"solver": "adf"}, {"decay": 0.9}, {"averaged": False}]
    against += [{"solver": "sgd", "l1": 0.1}, {"group_lasso": 0.1}]
    assert not any(averaged(**options) for options in against)
    assert not ChainCRF(solver="sgd", max_passes=1).fit(*dense()).averaged_


def test_the_same_optimum():
    """L-BFGS finds it; SGD and ADF come close, and never below."""
    best = ChainCRF("word", solver="lbfgs", l2=1.0, tol=1e-8, random_state=0).fit(X, Y)
    lowest = objective(best, X, Y)
    assert lowest == pytest.approx(best.history_[-1].objective, rel=1e-5)
    for solver, near in (("sgd", 1.02), ("adf", 1.1)):  # the rates of ADF fall fast
        other = ChainCRF(
            "word", solver=solver, l2=1.0, max_passes=60, decay=0.93, tol=-1, random_state=0
        )
        assert lowest * (1 - 1e-5) < objective(other.fit(X, Y), X, Y) < lowest * near


@pytest.mark.parametrize("kind", [ChainCRF, partial(MaxMargin, solver="sgd")])
def test_averaged_weights(kind):
    """At a fixed rate, over all passes; the score of held-out data is that of the mean."""
    model = kind("word", averaged=True, max_passes=9, random_state=0)
    model.fit(X, Y, dev=(X_NEW, Y_NEW))
    assert model.n_passes_ == 9 and model.stop_reason_ == "max_passes"
    best = max(r.dev_score for r in model.history_)
    assert model.score(X_NEW, Y_NEW) == pytest.approx(best)
    assert best > 0.97
    fixed = kind("word", averaged=True, max_passes=9, decay=1.0, random_state=0).fit(X, Y)
    again = kind("word", averaged=True, max_passes=9, random_state=0).fit(X, Y)
    last = kind("word", averaged=False, max_passes=9, decay=1.0, tol=0.0, random_state=0).fit(X, Y)
    assert same_model(again.weights_, fixed.weights_)
    assert not same_model(again.weights_, last.weights_)


def test_averaging_begins_after_a_third_of_the_passes(monkeypatch):
    given = []
    steps = ChainCRF._steps
    monkeypatch.setattr(
        ChainCRF, "_steps", lambda *a, **k: given.append(k["average_from"]) or steps(*a, **k)
    )
    ChainCRF("word", averaged=True, max_passes=12, random_state=0).fit(X, Y)
    ChainCRF("word", averaged=True, random_state=0).fit(X, Y)  # 49 passes over so little
    ChainCRF("word", decay=0.75, random_state=0).fit(X, Y)
    assert given == [4, 16, None]


def test_observed_states_only():
    few = ChainCRF("word", solver="lbfgs", states="observed", random_state=0).fit(X, Y)
    all_ = ChainCRF("word", solver="lbfgs", random_state=0).fit(X, Y)
    names = few.encoder_.names(range(few.n_features_))
    seen = {
        (f"word={w}", y)
        for s, labels in zip(X, Y, strict=True)
        for w, y in zip(s, labels, strict=True)
    }
    for (f, name), (j, label) in itertools.product(enumerate(names), enumerate(few.classes_)):
        assert (few.weights_.node[f, j] != 0) == ((name, label) in seen)
    assert all_.weights_.node.all()


def test_passes_of_each_solver():
    for solver, passes in (("sgd", 50), ("adf", 12), ("lbfgs", 500)):
        model = ChainCRF(solver=solver, tol=-1).fit(X[:5], Y[:5])
        assert model._pass_limit() == passes
    assert ChainCRF(tol=-1).fit(X, Y).n_passes_ == passes_for(sum(map(len, X)))
    assert ChainCRF(decay=0.75, tol=-1).fit(X, Y).n_passes_ == 12
    assert ChainCRF(l1=0.1, tol=-1).fit(X, Y).n_passes_ == 12
    assert ChainPerceptron(tol=-1).fit(X, Y).n_passes_ == 10
    assert ChainCRF(solver="lbfgs", tol=-1, max_passes=7).fit(X, Y).n_passes_ == 7


def test_a_stream_is_learned_by_sgd_whatever_the_solver():
    model = ChainCRF("word", solver="lbfgs", random_state=0).partial_fit(X, Y)
    assert model.solver_ == "sgd" and model.learning_rate_ > 0
    plain = ChainCRF("word", random_state=0).partial_fit(X, Y)
    assert same_model(model.weights_, plain.weights_)
    model.fit(X, Y)
    assert model.solver_ == "lbfgs"
    model.partial_fit(X, Y)  # and goes on from there
    assert model.solver_ == "sgd"


def test_the_last_or_the_average_weights():
    options = {"max_passes": 1, "random_state": 0}
    last = ChainPerceptron("word", averaged=False, **options).fit(X, Y).weights_
    mean = ChainPerceptron("word", **options).fit(X, Y).weights_
    assert (last.node == np.round(last.node)).all() and last.node.any()  # updates are whole numbers
    assert (mean.node != np.round(mean.node)).any()


# ------------------------------------------------------------------------- why it stopped


@pytest.mark.parametrize("solver", ["sgd", "adf", "lbfgs"])
def test_out_of_passes(solver):
    for n in (1, 3):
        model = ChainCRF(solver=solver, max_passes=n, tol=-1, random_state=0).fit(X, Y)
        assert model.stop_reason_ == "max_passes" and model.n_passes_ == n


def test_at_rest():
    model = ChainCRF(tol=0.05, decay=0.75, max_passes=100, random_state=0).fit(X, Y)
    assert model.stop_reason_ == "tol" and 0 <= model.history_[-1].change < 0.05
    model = ChainPerceptron(tol=0.5, max_passes=100, random_state=0).fit(X, Y)
    assert model.stop_reason_ in ("tol", "rising") and model.n_passes_ < 100
    rising = model.history_[-1].change < 0
    assert model.stop_reason_ == ("rising" if rising else "tol")
    model = ChainCRF(solver="lbfgs", random_state=0).fit(X, Y)
    assert model.stop_reason_ in ("tol", "gradient") and model.n_passes_ < 500


def test_no_longer_falling():
    """Random labels and a rate that stays large: the objective rises again and again."""
    rng = np.random.default_rng(0)
    noise = [[str(rng.integers(3)) for _ in s] for s in X]
    model = ChainPerceptron(tol=0.0, max_passes=200, random_state=0).fit(X, noise)
    assert model.stop_reason_ == "rising" and model.history_[-1].change < 0


@pytest.mark.parametrize("solver", ["sgd", "adf", "lbfgs"])
@pytest.mark.parametrize("patience", [1, 2])
def test_out_of_patience(solver, patience):
    model = ChainCRF(solver=solver, patience=patience, max_passes=50, tol=-1, random_state=0)
    model.fit(X, Y, dev=(X_NEW, Y_NEW))
    assert model.stop_reason_ == "patience"
    assert model.n_passes_ < 50
    scores = [r.dev_score for r in model.history_]
    assert max(scores) == scores[-1 - patience]


def test_a_stream():
    model = ChainCRF(random_state=0).partial_fit(X, Y)
    assert model.stop_reason_ == "max_passes"


# ------------------------------------------------------------------------- penalties


@pytest.mark.parametrize("solver", ["sgd", "adf", "lbfgs"])
def test_l1_gives_exact_zeros(solver):
    plain, sparse = (
        ChainCRF(solver=solver, l2=0.01, l1=l1, max_passes=40, random_state=0).fit(X, Y)
        for l1 in (0.0, 1.0)
    )
    zero = np.mean(sparse.weights_.node == 0)
    assert np.mean(plain.weights_.node == 0) < 0.05 and zero > 0.5
    assert sparse.weights_.node.any() and sparse.score(X_NEW, Y_NEW) > 0.98


@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
def test_the_group_lasso_drops_a_useless_template_entirely(solver):
    rng = np.random.default_rng(0)
    corpus = Corpus.from_columns(
        {"word": X, "noise": [[f"n{rng.integers(10)}" for _ in s] for s in X]}, Y
    )
    templates = "word; noise; noise[-1]; word[-1]"
    model = ChainCRF(
        templates, solver=solver, l2=0.01, group_lasso=1.0, max_passes=40, random_state=0
    )
    model.fit(corpus)
    group = model.encoder_.groups()
    size = [np.abs(model.weights_.node[group == g]).sum() for g in range(4)]
    assert size[0] > 1 and size[1] == 0 and size[2] == 0
    assert model.score(corpus) > 0.95
    plain = ChainCRF(templates, solver=solver, l2=0.01, random_state=0).fit(corpus)
    assert all(np.abs(plain.weights_.node[group == g]).sum() > 0.1 for g in range(4))


def test_the_group_lasso_drops_useless_edges_and_keeps_others():
    """The labels follow from the words alone: rich edges of the noise are not needed."""
    rng = np.random.default_rng(0)
    corpus = Corpus.from_columns(
        {"word": RICH, "noise": [[f"n{rng.integers(5)}" for _ in s] for s in RICH]}, RICH_Y
    )
    model = ChainCRF(
        "word @ edge; noise @ edge", solver="lbfgs", l2=0.01, group_lasso=0.5, random_state=0
    ).fit(corpus)
    edge = model.weights_.edge
    group = model.encoder_.groups()[edge.row >= 0]
    values = edge.values.reshape(edge.n_rows, -1)
    assert np.abs(values[group == 0]).sum() > 1 and not values[group == 1].any()
    assert model.score(corpus) > 0.98


# ------------------------------------------------------------------------- threads


RUNS = {
    "batches": (ChainCRF, {"batch_size": 8}),
    "adf": (ChainCRF, {"batch_size": 8, "solver": "adf", "piece_size": 2.5, "overlap": 1}),
    "lbfgs": (ChainCRF, {"solver": "lbfgs", "max_passes": 8}),
    "rich": (ChainCRF, {"batch_size": 8, "rich_edges": "both"}),
    "rich, observed": (ChainCRF, {"batch_size": 8, "rich_edges": "both", "edge_pairs": "observed"}),
    "rich, lbfgs": (ChainCRF, {"solver": "lbfgs", "rich_edges": True, "max_passes": 8}),
    "perceptron": (ChainPerceptron, {"batch_size": 8}),
    "rich perceptron": (ChainPerceptron, {"batch_size": 8, "rich_edges": True}),
    "one by one": (ChainCRF, {}),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_number_of_threads_does_not_change_a_bit(name, tmp_path):
    kind, options = RUNS[name]
    files = []
    for n_jobs in (None, 1, 2, 3, -1):
        model = kind(
            "word; word[-1]", **{"max_passes": 3, "random_state": 0, **options}, n_jobs=n_jobs
        )
        model.fit(RICH, RICH_Y)
        model.set_params(n_jobs=None).save(tmp_path / "m")
        files.append((tmp_path / "m").read_bytes())
    assert len(set(files)) == 1


@pytest.mark.parametrize(
    "options", [{}, {"rich_edges": True}, {"rich_edges": "both", "edge_pairs": "observed"}]
)
@BOTH
def test_nor_that_of_a_stream(kind, options):
    def streamed(n_jobs):
        model = kind("word", batch_size=6, n_jobs=n_jobs, random_state=0, **options)
        for i in range(0, 60, 20):
            model.partial_fit(RICH[i : i + 20], RICH_Y[i : i + 20], classes=["L00", "L01", "L02"])
        return model.weights_

    first = streamed(None)
    assert all(same_model(first, streamed(n)) for n in (2, 3))


@BOTH
def test_the_size_of_a_batch_is_part_of_the_algorithm(kind):
    rate = {"learning_rate": 0.1} if kind is ChainCRF else {}
    a, b = (
        kind(batch_size=n, max_passes=2, random_state=0, **rate).fit(X, Y).weights_ for n in (1, 8)
    )
    assert not same_model(a, b)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("rich", [False, True])
def test_lock_free_learns(n_jobs, rich):
    model = ChainCRF("word; word[-1]", lock_free=True, n_jobs=n_jobs, rich_edges=rich, l2=0.1)
    model.fit(X, Y)
    assert model.score(X_NEW, Y_NEW) > 0.95
    assert model.weights_.finite()


def test_lock_free_with_one_thread_differs_only_in_when_the_penalty_is_applied():
    options = {"l2": 0.0, "learning_rate": 0.1, "max_passes": 2, "random_state": 0}
    a, b = (ChainCRF(lock_free=free, **options).fit(X, Y).weights_ for free in (False, True))
    np.testing.assert_allclose(a.node, b.node, atol=1e-5)


# ------------------------------------------------------------------------- pieces that overlap


@BOTH
def test_overlapping_pieces(kind):
    plain, lapped = (
        kind("word", piece_size=2, overlap=k, max_passes=2, random_state=0).fit(RICH, RICH_Y)
        for k in (0, 2)
    )
    assert not same_model(plain.weights_, lapped.weights_)
    none = kind("word", overlap=2, max_passes=2, random_state=0).fit(RICH, RICH_Y)
    whole = kind("word", max_passes=2, random_state=0).fit(RICH, RICH_Y)
    assert same_model(none.weights_, whole.weights_)  # whole sequences have nothing to go on into
