"""Ensembles that predict given what was observed, as Gaussian CRFs over what unseen nodes get."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from trellis import load_model
from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.regression import GCRF, GLACER, KNN, knn_graph


def houses(n, seed):
    rng = np.random.default_rng(seed)
    where, X = rng.uniform(size=(n, 2)), rng.normal(size=(n, 2))
    y = X[:, 0] + 2 * np.sin(6 * where[:, 0]) + 0.2 * rng.normal(size=n)
    return where, X, y


@pytest.fixture(scope="module")
def model():
    where, X, y = houses(120, 0)
    made = GLACER(4, 0.3, Ridge(), graph=KNN(4), random_state=0, max_swaps=2)
    return made.fit(X, y, coords=where)


def test_by_hand(model):
    """Each training node is known by the mean of the components that did not see it."""
    where, X, y = houses(120, 0)
    says = np.array([m.predict(X) for m in model.models_])
    honest = np.empty(120)
    for i in range(120):
        unseen = [m for m in range(4) if i not in model.subsets_[m]] or list(range(4))
        honest[i] = says[unseen, i].mean()
    field = GCRF("precomputed", graph=KNN(4), random_state=0).fit(honest, y, coords=where)
    new_where, new_X, _ = houses(30, 1)
    base = np.mean([m.predict(new_X) for m in model.models_], axis=0)
    expected = field.predict(base, coords=new_where, return_std=True)
    found = model.predict(new_X, coords=new_where, return_std=True)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    assert (model.predict(new_X, coords=new_where) == found[0]).all()


def test_rows_alone_or_together(model):
    where, X, _ = houses(9, 2)
    mean = model.predict(X, coords=where)
    for i in range(9):
        assert model.predict(X[i : i + 1], coords=where[i : i + 1])[0] == pytest.approx(mean[i])


def test_it_beats_the_published_form_and_covers():
    where, X, y = houses(500, 3)
    train, test = np.arange(250), np.arange(250, 500)
    error = {}
    for observed in (True, False):
        made = GLACER(4, 0.3, Ridge(), graph=KNN(4), observed=observed, random_state=0, max_swaps=1)
        made.fit(X[train], y[train], coords=where[train])
        mean, std = made.predict(X[test], coords=where[test], return_std=True)
        error[observed] = np.mean((mean - y[test]) ** 2)
        if observed:
            assert 0.84 < np.mean(np.abs(mean - y[test]) < 1.645 * std) < 0.96
    assert error[True] < 0.4 * error[False]


def test_training_rows_that_come_again_count_once(model):
    where, X, y = houses(120, 0)
    new_where, new_X, _ = houses(10, 4)
    both = np.vstack([X, new_X]), np.vstack([where, new_where])
    known = np.concatenate([y, np.full(10, np.nan)])
    again = model.predict(both[0], coords=both[1], observed=known)
    np.testing.assert_allclose(again[120:], model.predict(new_X, coords=new_where), rtol=1e-9)


def test_a_graph_that_is_a_matrix():
    where, X, y = houses(80, 5)
    S = knn_graph(where[:60], 4)
    made = GLACER(3, base=LinearRegression(), random_state=0, max_swaps=1)
    made.fit(X[:60], y[:60], graph=S)
    whole = knn_graph(where, 4)
    mean, std = made.predict(X[60:], graph=whole, return_std=True)
    assert np.mean((mean - y[60:]) ** 2) < 0.5 * np.mean((y[60:] - X[60:, 0]) ** 2)
    assert (std > 0).all()


def test_a_file_holds_it(model, tmp_path):
    where, X, _ = houses(20, 6)
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert (again.predict(X, coords=where) == model.predict(X, coords=where)).all()
    header, arrays = read_container(tmp_path / "m")
    header["state"]["field"] = 3
    write_container(tmp_path / "bad", header, arrays)
    with pytest.raises(CorruptModelError, match="what conditions the ensemble is not as"):
        load_model(tmp_path / "bad")


def test_what_is_refused():
    where, X, y = houses(40, 7)
    plain = GLACER(2, 0.5, Ridge(), observed=False, graph=KNN(3), random_state=0, max_swaps=0)
    plain.fit(X, y, coords=where)
    assert plain.field_ is None
    with pytest.raises(DataError, match="does not look at what was observed"):
        plain.predict(X, coords=where, observed=y)
    with pytest.raises(DataError, match="coords are for builders"):
        plain.fit(X, y, coords=where, graph=knn_graph(where, 3))
    classes = GLACER(2, 0.5, component=LogisticRegression(), random_state=0, max_swaps=0)
    classes.fit(X, y > 0)
    assert classes.field_ is None and set(classes.predict(X)) <= {False, True}
