"""Nearest neighbours of scikit-learn in files: fitted again, to the same bits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import KNeighborsRegressor

from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.files.sklearn_state import check_prediction
from trellis.files.values import ValueReader, ValueWriter

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(200, 3)), 1)  # with ties
Y = RNG.normal(size=200)


def through_a_file(value: Any, path: Any) -> Any:
    writer = ValueWriter()
    node = writer(value, "m")
    write_container(path, {"m": node}, writer.arrays)
    header, arrays = read_container(path)
    return ValueReader(arrays)(header["m"])


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsRegressor(),
        KNeighborsRegressor(3, weights="distance", algorithm="kd_tree", leaf_size=5),
        KNeighborsRegressor(7, algorithm="ball_tree", p=1),
        KNeighborsRegressor(4, algorithm="brute", metric="cosine", weights="distance"),
        KNeighborsRegressor(4, metric="chebyshev"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("data", [X, X.astype(np.float32), (10 * X).astype(int)])
def test_predictions_are_the_same(model: Any, data: Any, tmp_path: Any) -> None:
    model.fit(data, Y)
    loaded = through_a_file(model, tmp_path / "m")
    check_prediction(loaded) if model.metric != "cosine" else None
    assert repr(loaded) == repr(model)
    new = np.concatenate([data, data + 1])
    assert loaded.predict(new).tobytes() == model.predict(new).tobytes()
    through_a_file(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    two = model.fit(data, np.stack([Y, -Y], 1))
    assert through_a_file(two, tmp_path / "m").predict(new).tobytes() == two.predict(new).tobytes()


def test_a_model_that_is_not_fitted(tmp_path: Any) -> None:
    assert not hasattr(through_a_file(KNeighborsRegressor(), tmp_path / "m"), "_fit_X")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            KNeighborsRegressor(metric="seuclidean", metric_params={"V": [1, 1, 1]}),
            "m has a metric",
        ),
        (KNeighborsRegressor(metric=np.dot), "m has a metric that a model file cannot hold; those"),
        (KNeighborsRegressor().fit(sparse.csr_matrix(X), Y), "m was fitted to a sparse matrix"),
    ],
)
def test_what_cannot_be_stored_is_named(model: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        ValueWriter()(model, "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n, a: n["parameters"].update(metric="haversine"), "the metric of a KNeighborsReg"),
        (lambda n, a: n["parameters"].update(metric=[1]), "the metric of a KNeighborsRegressor"),
        (lambda n, a: n["parameters"].update(metric_params=1), "the metric of a KNeighborsRegr"),
        (lambda n, a: n["parameters"].update(leaf_size=-1), "cannot be fitted to its rows"),
        (lambda n, a: n["parameters"].update(algorithm="x"), "cannot be fitted to its rows"),
        (lambda n, a: n["learned"].update(_tree=1), "KNeighborsRegressor learns no '_tree'"),
        (lambda n, a: n["learned"].pop("_y"), "rows or answers of a KNeighborsRegressor are no"),
        (lambda n, a: n["learned"].update(_fit_X=[[1.0]]), "rows or answers of a KNeighborsRegr"),
        (lambda n, a: a.update({"m._fit_X": X[0]}), "rows or answers of a KNeighborsRegressor"),
        (lambda n, a: a.update({"m._fit_X": X * np.nan}), "cannot be fitted to its rows"),
        (lambda n, a: a.update({"m._y": Y[1:]}), "cannot be fitted to its rows"),
    ],
)
def test_hostile_files_are_refused(change: Any, message: str) -> None:
    writer = ValueWriter()
    node = writer(KNeighborsRegressor().fit(X, Y), "m")
    arrays = dict(writer.arrays)
    change(node["sklearn"], arrays)
    with pytest.raises(CorruptModelError, match=message):
        ValueReader(arrays)(node)
