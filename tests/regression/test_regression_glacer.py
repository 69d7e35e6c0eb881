"""GLACER against Algorithm 1 written down plainly, and its invariants."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.progress import Reporter
from trellis.regression import (
    GLACER,
    KNN,
    Objective,
    collaboration,
    distance_correlation,
    knn_graph,
    laplacian,
    least_squares_boosting,
    normalise,
)
from trellis.regression.collaboration import Collaboration
from trellis.regression.likelihood import dense_profile, search
from trellis.regression.spectral import own_generator, solve


def published(*args, **options):
    """A model as in the literature."""
    return GLACER(*args, base=least_squares_boosting(), observed=False, **options)


def houses(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.normal(size=n)
    return X, y, knn_graph(X[:, :2], n_neighbors=4)


def plain_algorithm(X, y, S, M, eta, seed, max_swaps, loss="paper"):
    """Algorithm 1 as printed: every pair is refitted from scratch in every iteration."""
    N = len(y)
    L = laplacian(normalise(S))
    rng = own_generator(seed, 2)
    subsets = [
        np.sort(rng.choice(N, size=round(eta * N), replace=False, shuffle=False)) for _ in range(M)
    ]

    def train(m, nodes, out=-1, new=-1):
        state = np.random.SeedSequence([seed, m, out + 1, new + 1]).generate_state(1)[0]
        base = least_squares_boosting(random_state=int(state >> 1)).fit(X[nodes], y[nodes])
        r = base.predict(X)
        own = laplacian(normalise(S[nodes][:, nodes].tocsr()))
        gamma = search(dense_profile(own, y[nodes], r[nodes])).gamma
        worst = nodes[np.argmax((y[nodes] - solve(own, gamma, r[nodes])) ** 2)]
        return solve(L, gamma, r), int(worst)

    def objective(components):
        mean = np.mean([c[0] for c in components], axis=0)
        errors = (y - mean) ** 2 / np.var(y)
        if loss == "zero_based":
            losses = 1 - np.exp(-errors)
        elif loss == "r2_sum":
            losses = 1 - np.exp((1 / N - errors / N) - 1)
        else:
            losses = 1 - np.exp((1 / N - errors) - 1)
        dcorr = distance_correlation(losses, np.column_stack([X, y]))
        return np.sqrt(losses.mean() ** 2 + dcorr**2)

    components = [train(m, nodes) for m, nodes in enumerate(subsets)]
    history = [(objective(components), None, None)]
    while len(history) <= max_swaps:
        best = None
        for j in range(M):
            for k in range(j + 1, M):
                zj, zk = components[j][1], components[k][1]
                if zk in subsets[j] or zj in subsets[k]:
                    continue
                nodes_j = np.sort(np.append(np.setdiff1d(subsets[j], [zj]), zk))
                nodes_k = np.sort(np.append(np.setdiff1d(subsets[k], [zk]), zj))
                trial = list(components)
                trial[j] = train(j, nodes_j, zj, zk)
                trial[k] = train(k, nodes_k, zk, zj)
                value = objective(trial)
                if best is None or value < best[0]:
                    best = value, (j, k), (zj, zk), trial, nodes_j, nodes_k
        if best is None or best[0] >= history[-1][0]:
            return history, True
        value, (j, k), examples, components, subsets[j], subsets[k] = best
        history.append((value, (j, k), examples))
    return history, False


@pytest.mark.parametrize("loss", ["paper", "zero_based", "r2_sum"])
def test_the_swaps_are_those_of_the_plain_algorithm(loss):
    X, y, S = houses(60, 2)
    expected, converged = plain_algorithm(X, y, S, 4, 0.3, 2, 3, loss)
    model = published(4, 0.3, random_state=2, max_swaps=3, loss=loss).fit(X, y, graph=S)
    assert len(expected) > 2
    assert [(h.pair, h.examples) for h in model.history_] == [h[1:] for h in expected]
    got = [h.r_obj for h in model.history_]
    np.testing.assert_allclose(got, [h[0] for h in expected], rtol=1e-7)
    assert model.converged_ == converged


def test_refits_are_counted_and_the_objective_falls():
    X, y, S = houses()
    M = 5
    model = published(M, random_state=0, max_swaps=5).fit(X, y, graph=S)
    start, *swaps = model.history_
    assert (start.pair, start.examples, start.n_refits) == (None, None, M)
    assert swaps
    assert swaps[0].n_refits <= 2 * swaps[0].n_pairs <= M * (M - 1)
    for before, swap in zip(model.history_, swaps, strict=False):
        assert swap.r_obj < before.r_obj
        assert swap.r_obj == pytest.approx(np.hypot(swap.r_emp, swap.dcorr))
    assert all(swap.n_refits <= 4 * M - 6 for swap in swaps[1:])
    assert all(len(set(s)) == len(s) == round(0.3 * len(y)) for s in model.subsets_)


def test_refit_counts_when_every_pair_may_swap():
    """Disjoint subsets: no worst example is in another's, and no two are the same."""
    X, y, S = houses(100)
    M = 4
    problem = published(M, 0.2)._problem(X, y, S)
    run = Collaboration(problem, Objective(X, y), None, Reporter(False))
    run.begin([np.arange(m * 20, m * 20 + 20) for m in range(M)])
    assert run.swap()
    assert run.history[1].n_refits == M * (M - 1)
    for _ in range(3):  # the subsets stay disjoint
        assert run.swap()
        assert run.history[-1].n_refits == 4 * M - 6


def test_the_number_of_processes_changes_nothing():
    X, y, S = houses()
    one, two = (
        published(4, random_state=0, max_swaps=2, n_jobs=jobs).fit(X, y, graph=S) for jobs in (1, 2)
    )
    assert [h.r_obj for h in one.history_] == [h.r_obj for h in two.history_]
    assert (one.predict(X, graph=S) == two.predict(X, graph=S)).all()


def test_resumed_run_ends_in_the_same_bits(tmp_path):
    X, y, S = houses()
    file = tmp_path / "run.trellis"
    kept = {"checkpoint": file, "resume": True}
    whole = published(4, random_state=0, max_swaps=5).fit(X, y, graph=S)
    published(4, random_state=0, max_swaps=2).fit(X, y, graph=S, **kept)
    again = published(4, random_state=0, max_swaps=5).fit(X, y, graph=S, **kept)
    assert len(whole.history_) > 3
    assert [h.r_obj for h in again.history_] == [h.r_obj for h in whole.history_]
    assert [h.pair for h in again.history_] == [h.pair for h in whole.history_]
    for a, b in zip(again.subsets_, whole.subsets_, strict=True):
        assert (a == b).all()
    assert (again.predict(X, graph=S) == whole.predict(X, graph=S)).all()


def test_resume_without_a_seed_uses_the_stored_one(tmp_path):
    X, y, S = houses(40)
    kept = {"checkpoint": tmp_path / "run.trellis", "resume": True}
    first = published(3, max_swaps=0).fit(X, y, graph=S, **kept)
    with pytest.warns(FutureWarning, match="checkpoint is now an argument of fit"):
        again = published(3, max_swaps=0, **kept).fit(X, y, graph=S)
    assert (first.predict(X, graph=S) == again.predict(X, graph=S)).all()
    assert first.history_ == again.history_


def test_unusable_checkpoints(tmp_path):
    X, y, S = houses(40)
    file = tmp_path / "run.trellis"
    model = published(3, random_state=0, max_swaps=1)
    kept = {"checkpoint": file, "resume": True}
    model.fit(X, y, graph=S, **kept)
    with pytest.raises(DataError, match="other data or parameters"):
        model.fit(X, y + 1, graph=S, **kept)
    with pytest.raises(DataError, match="other data or parameters"):
        clone(model).set_params(loss="zero_based").fit(X, y, graph=S, **kept)
    header, arrays = read_container(file)
    first, *_ = header["history"]
    nodes = arrays["nodes"]
    for broken_header, broken_arrays, message in (
        ({"history": []}, {}, "the history is empty"),
        ({"history": [{"r_obj": 1.0}]}, {}, "a record of the history lacks an entry"),
        ({"history": [first | {"r_obj": "x"}]}, {}, "'r_obj' is a str"),
        ({"history": [first | {"pair": [1]}]}, {}, "pair of an exchange are two numbers"),
        ({"history": [first | {"pair": [1, -1]}]}, {}, "pair of an exchange are two numbers"),
        ({"history": [first | {"n_pairs": -1}]}, {}, "'n_pairs' is -1"),
        ({"seed": "-1"}, {}, "the seed is negative"),
        ({"seed": 3}, {}, "'seed' is a int"),
        ({}, {"nodes": nodes[:2]}, "'nodes' has shape"),
        ({}, {"nodes": nodes[:, ::-1].copy()}, "not distinct and in order"),
        ({}, {"nodes": nodes[:, :1].copy()}, "not distinct and in order"),
        ({}, {"nodes": nodes + 40}, "examples of components lie in"),
        ({}, {"swapped": arrays["swapped"] - 1}, "exchanged examples lie in"),
        ({}, {"alpha": -arrays["alpha"]}, "alpha lie in"),
        ({}, {"gamma": -arrays["gamma"] - 1}, "gamma lie in"),
    ):
        write_container(file, header | broken_header, arrays | broken_arrays)
        with pytest.raises(CorruptModelError, match=re.escape(message)):
            model.fit(X, y, graph=S, **kept)
    write_container(file, header | {"estimator": "ChainCRF"}, arrays)
    with pytest.raises(CorruptModelError, match="this is a model, not a checkpoint"):
        model.fit(X, y, graph=S, **kept)
    file.write_text("{}")
    with pytest.raises(CorruptModelError, match="not a Trellis model file"):
        model.fit(X, y, graph=S, **kept)
    with pytest.raises(DataError, match="needs checkpoint="):
        GLACER().fit(X, y, graph=S, resume=True)


def test_objective():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    F = y + rng.normal(size=(3, 30))
    errors = (F - y) ** 2 / y.var()
    forms = {
        "paper": 1 - np.exp(1 / 30 - errors - 1),
        "r2_sum": 1 - np.exp(1 / 30 - errors / 30 - 1),
        "zero_based": 1 - np.exp(-errors),
    }
    for loss, expected in forms.items():
        objective = Objective(X, y, loss=loss)
        np.testing.assert_allclose(objective.losses(F), expected)
        r_obj, r_emp, dcorr = objective(F)
        np.testing.assert_allclose(r_emp, expected.mean(axis=1))
        Z = np.column_stack([X, y])
        np.testing.assert_allclose(dcorr, [distance_correlation(row, Z) for row in expected])
        np.testing.assert_allclose(r_obj, np.hypot(r_emp, dcorr))
        r_obj, r_emp, dcorr = Objective(X, y, loss=loss, use_dcorr=False)(F)
        assert (r_obj == r_emp).all()
        assert not dcorr.any()
    scaled = Objective(X * [1, 100], y, standardise=True)(F)[2]
    np.testing.assert_allclose(scaled, Objective(X, y, standardise=True)(F)[2])
    # Exponents + 1 of "r2_sum" add up to R^2.
    sums = (1 + np.log(1 - forms["r2_sum"])).sum(axis=1)
    np.testing.assert_allclose(sums, 1 - ((F - y) ** 2).sum(axis=1) / (30 * y.var()))


def test_prediction_is_the_mean_of_gaussian_crfs():
    X, y, S = houses()
    model = published(3, random_state=0, max_swaps=1).fit(X, y, graph=S)
    X2, _, S2 = houses(30, 7)
    mean, std = model.predict(X2, graph=S2, return_std=True)
    L = laplacian(normalise(S2)).toarray()
    means, variances = [], []
    for base, alpha, gamma in zip(model.models_, model.alphas_, model.gammas_, strict=True):
        K = np.eye(30) + gamma * L
        means.append(np.linalg.solve(K, base.predict(X2)))
        variances.append(np.diag(np.linalg.inv(2 * alpha * K)))
    np.testing.assert_allclose(mean, np.mean(means, axis=0), atol=1e-9)
    np.testing.assert_allclose(std**2, np.mean(variances, 0) + np.var(means, 0), atol=1e-9)
    assert (model.predict(X2, graph=S2) == mean).all()
    assert model.score(X, y, graph=S) > 0.3


def test_large_subsets_are_refitted_directly(monkeypatch):
    X, y, S = houses(60, 1)
    expected = published(3, random_state=0, max_swaps=2).fit(X, y, graph=S)
    monkeypatch.setattr(collaboration, "_EIGENVECTOR_ENTRIES", 5)
    direct = published(3, random_state=0, max_swaps=2).fit(X, y, graph=S)
    assert [h.pair for h in direct.history_] == [h.pair for h in expected.history_]
    np.testing.assert_allclose(
        [h.r_obj for h in direct.history_], [h.r_obj for h in expected.history_], rtol=1e-7
    )


def test_other_components():
    X, y, S = houses()
    trees = GLACER(3, component=DecisionTreeRegressor(max_depth=3), random_state=0, max_swaps=2)
    mean, std = trees.fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(mean, np.mean([m.predict(X) for m in trees.models_], axis=0))
    np.testing.assert_allclose(std, np.std([m.predict(X) for m in trees.models_], axis=0))
    assert len({m.random_state for m in trees.models_}) == 3
    assert not trees.gammas_.any()
    assert is_regressor(trees)
    lines = GLACER(3, component=LinearRegression, random_state=0, max_swaps=2).fit(X, y)
    assert isinstance(lines.models_[0], LinearRegression)
    inside = GLACER(3, base=LinearRegression(), random_state=0, max_swaps=2).fit(X, y, graph=S)
    assert isinstance(inside.models_[0], LinearRegression)
    assert inside.history_[-1].r_obj < inside.history_[0].r_obj


def test_classifiers():
    X, y, _ = houses()
    labels = np.where(y > np.median(y), "dear", "cheap")
    model = GLACER(3, component=LogisticRegression(), random_state=0, max_swaps=2)
    assert is_classifier(model)
    model.fit(X, labels)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(
        probabilities[:, 1], np.mean([m.predict_proba(X)[:, 1] for m in model.models_], axis=0)
    )
    assert list(model.classes_) == ["cheap", "dear"]
    assert (model.predict(X) == model.classes_[probabilities.argmax(axis=1)]).all()
    assert model.score(X, labels) > 0.7
    with pytest.raises(DataError, match="two classes, y has 80"):
        model.fit(X, y)
    rare = np.arange(80) == 0
    with pytest.raises(DataError, match="one class only"):
        GLACER(3, component=DecisionTreeClassifier(), random_state=0).fit(X, rare)


def test_without_distance_correlation_only_the_loss_counts():
    X, y, S = houses()
    model = published(3, use_dcorr=False, random_state=0, max_swaps=2).fit(X, y, graph=S)
    assert all(h.dcorr == 0 and h.r_obj == h.r_emp for h in model.history_)


def test_no_seed_and_no_swap():
    X, y, S = houses(40)
    model = published(2, max_swaps=0).fit(X, y, graph=S)
    assert len(model.history_) == 1
    assert not model.converged_


def test_progress_tells_the_refits_to_go():
    X, y, S = houses(60)
    stream = io.StringIO()
    problem = published(7, random_state=0)._problem(X, y, S)
    reporter = Reporter(stream=stream)
    run = Collaboration(problem, Objective(X, y), None, reporter)
    run.begin([np.arange(m * 8, m * 8 + 8) for m in range(7)])
    run.swap()
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("start: R_obj 0.")
    assert lines[1:3] == ["42 refits to go", "10 refits to go"]
    assert "42 refits in" in lines[-1]


def test_cross_validation_with_a_builder():
    X, y, _ = houses(60)
    model = GLACER(2, graph=KNN(n_neighbors=3), random_state=0, max_swaps=1)
    assert cross_val_score(model, X, y, cv=2).shape == (2,)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


X3, Y3, S3 = houses(20)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 1}, "n_components must be"),
        ({"subsample": 1.0}, "subsample must be a number between 0 and 1"),
        ({"subsample": 0.01}, "of 20 examples is 0"),
        ({"loss": "hinge"}, "loss must be 'paper', 'r2_sum' or 'zero_based'"),
        ({"max_swaps": -1}, "max_swaps must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"component": "crf"}, "component must be"),
        ({"base": 3}, "base must be None, a regressor or a function, got 3"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(DataError, match=message):
        GLACER(**params).fit(X3, Y3, graph=S3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.fit(X3, Y3 * np.nan, graph=S3), "20 of 20 targets"),
        (lambda m: m.fit(X3, np.ones(20), graph=S3), "all targets are 1"),
        (lambda m: m.fit(X3, np.arange(20) == 0, graph=S3), "subset of component . are alike"),
        (lambda m: m.fit(X3[:5], Y3[:5], graph=S3), "20 nodes but X has 5 rows"),
        (lambda m: m.fit(X3, Y3), "no graph"),
        (lambda m: m.fit(X3 * np.inf, Y3, graph=S3), "row 0 of X"),
        (lambda m: m.fit([["a"]], [1], graph=S3), "not a table of numbers"),
        (lambda m: m.fit(Y3, Y3, graph=S3), "X must have the shape"),
        (lambda m: m.fit(X3, Y3, coords=X3[:2]), "coords have 2 rows, X has 20"),
        (lambda m: m.fit(X3, 1e-200 * Y3, graph=S3), "so small that their variance is 0"),
        (lambda m: m.fit(X3, Y3, graph=S3).predict(X3[:, :2], graph=S3), "X has 2 columns"),
        (lambda m: m.fit(X3, Y3, graph=S3).predict_proba(X3), "needs a component"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(DataError, match=message):
        call(GLACER(3, max_swaps=0, random_state=0))
