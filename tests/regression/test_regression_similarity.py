"""Similarity graphs against brute force over all pairs, and every complaint about bad ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.regression import (
    KNN,
    Full,
    Radius,
    check_graph,
    full_graph,
    knn_graph,
    laplacian,
    normalise,
    radius_graph,
)
from trellis.regression.graph_matrix import resolve_graph


def all_distances(points, metric):
    if metric == "haversine":
        lat, lon = np.radians(points).T
        dlat, dlon = lat[:, None] - lat, lon[:, None] - lon
        h = np.sin(dlat / 2) ** 2 + np.cos(lat)[:, None] * np.cos(lat) * np.sin(dlon / 2) ** 2
        return 2 * 6371.0088 * np.arcsin(np.sqrt(h))
    difference = points[:, None, :] - points[None, :, :]
    power = 1 if metric == "manhattan" else 2
    return (np.abs(difference) ** power).sum(axis=2) ** (1 / power)


METRICS = st.sampled_from(["euclidean", "manhattan", "haversine"])


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 30), st.integers(1, 6), METRICS, st.integers(0, 10**6))
def test_knn_is_brute_force(n, k, metric, seed):
    k = min(k, n - 1)
    points = np.random.default_rng(seed).uniform(-80, 80, size=(n, 2))
    distances = all_distances(points, metric)
    nearest = np.argsort(distances + np.diag(np.full(n, np.inf)), axis=1)[:, :k]
    chosen = np.zeros((n, n), dtype=bool)
    np.put_along_axis(chosen, nearest, True, axis=1)
    weights = np.exp(-distances / 100)
    for symmetrise, expected in (
        ("max", (chosen | chosen.T) * weights),
        ("min", (chosen & chosen.T) * weights),
        ("mean", (chosen * weights + (chosen * weights).T) / 2),
    ):
        S = knn_graph(points, k, metric=metric, scale=100, symmetrise=symmetrise)
        np.testing.assert_allclose(S.toarray(), expected, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 30), METRICS, st.integers(0, 10**6))
def test_radius_and_full_are_brute_force(n, metric, seed):
    points = np.random.default_rng(seed).uniform(-80, 80, size=(n, 2))
    distances = all_distances(points, metric)
    radius = 5000.0 if metric == "haversine" else 60.0
    weights = np.exp(-distances / radius)
    np.fill_diagonal(weights, 0)
    S = radius_graph(points, radius, metric=metric, scale=radius)
    np.testing.assert_allclose(S.toarray(), np.where(distances <= radius, weights, 0), atol=1e-12)
    S = full_graph(points, 0.3, metric=metric, scale=radius)
    np.testing.assert_allclose(S.toarray(), np.where(weights >= 0.3, weights, 0), atol=1e-9)


def test_several_nodes_on_one_spot_have_no_self_edge():
    points = np.zeros((4, 2))
    S = knn_graph(points, n_neighbors=2)
    assert S.diagonal().sum() == 0
    assert (np.diff(S.indptr) >= 2).all()
    assert set(S.data) == {1.0}


@pytest.mark.parametrize(
    ("weight", "expected"),
    [("exp", np.exp(-2)), ("inverse", 1 / 2.1), ("binary", 1), (lambda d: d**2, 4)],
)
def test_weights(weight, expected):
    assert knn_graph([[0.0], [2.0]], 1, weight=weight, scale=None)[0, 1] == pytest.approx(expected)


def test_scales():
    points = [[0.0], [1.0], [3.0], [7.0]]  # edges of length 1, 1, 2, 4 from k = 1
    assert knn_graph(points, 1, scale=2.0)[0, 1] == pytest.approx(np.exp(-0.5))
    assert knn_graph(points, 1, scale="median")[0, 1] == pytest.approx(np.exp(-1 / 1.5))
    assert knn_graph(points, 1, scale="mean")[0, 1] == pytest.approx(np.exp(-1 / 2))
    assert full_graph(points, scale="median")[0, 1] == pytest.approx(np.exp(-1 / 3.5))
    assert knn_graph([[1.0], [1.0]], 1, scale="median")[0, 1] == 1


def test_underflow_is_said_and_scaling_helps():
    points = [[0.0], [1.0], [2000.0]]
    with pytest.warns(UserWarning, match=r"1 of 3 edges have weight 0.*scale='median'"):
        S = knn_graph(points, 1)
    assert S.nnz == 2
    assert knn_graph(points, 1, scale="mean").nnz == 4


class Table:
    """The part of a DataFrame that is used."""

    def __init__(self, columns):
        self.columns = columns

    def __getitem__(self, names):
        return Table({name: self.columns[name] for name in names})

    def to_numpy(self):
        return np.column_stack(list(self.columns.values()))


def test_columns_of_a_table_and_of_an_array():
    table = Table({"lat": np.array([0.0, 1.0, 3.0]), "price": np.array([5.0, 9.0, 1.0])})
    expected = knn_graph([[0.0], [1.0], [3.0]], 1).toarray()
    assert (knn_graph(table, 1, columns=["lat"]).toarray() == expected).all()
    assert (KNN(1, columns=[0])(table.to_numpy()).toarray() == expected).all()
    assert knn_graph(table, 1).shape == (3, 3)
    with pytest.raises(DataError, match="cannot take coordinates"):
        knn_graph(table, 1, columns=["lon"])
    with pytest.raises(DataError, match="cannot take coordinates"):
        knn_graph(table.to_numpy(), 1, columns=[7])
    with pytest.raises(DataError, match="columns must be None or a list such as"):
        knn_graph(table, 1, columns="lat")


def test_builders_are_the_functions():
    points = np.random.default_rng(0).normal(size=(20, 2))
    for builder, S in (
        (KNN(3, metric="manhattan"), knn_graph(points, 3, metric="manhattan")),
        (Radius(0.5, weight="binary"), radius_graph(points, 0.5, weight="binary")),
        (Full(0.2, scale="median"), full_graph(points, 0.2, scale="median")),
    ):
        assert (builder(points) != S).nnz == 0
        assert (resolve_graph(builder, points, 20) != S).nnz == 0


def test_normalise_and_laplacian():
    S = knn_graph(np.random.default_rng(0).normal(size=(30, 2)), 4)
    N = normalise(S)
    assert N.sum() == pytest.approx(30)
    L = laplacian(N)
    y = np.random.default_rng(1).normal(size=30)
    dense = N.toarray()
    pairs = 0.5 * (dense * (y[:, None] - y) ** 2).sum()
    assert y @ (L @ y) == pytest.approx(pairs)
    empty = check_graph(np.zeros((3, 3)))
    assert normalise(empty).nnz == 0


def test_self_similarity_is_dropped_and_rounding_is_no_asymmetry():
    S = check_graph(np.array([[1.0, 0.5], [0.5 + 1e-15, 1.0]]))
    assert S.diagonal().sum() == 0
    assert (S != S.T).nnz == 0
    assert check_graph(sp.coo_array(np.ones((2, 2)))).nnz == 2


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([[0, np.nan], [np.nan, 0]], r"S\[0, 1\] is nan"),
        ([[0, np.inf], [np.inf, 0]], r"S\[0, 1\] is inf"),
        ([[0, -1], [-1, 0]], "negative"),
        ([[0, 2], [1, 0]], r"not symmetric: S\[0, 1\] = 2 but S\[1, 0\] = 1"),
        ([[0, 1, 0], [1, 0, 0]], "square"),
        ([0, 1], "square"),
        ([["a", "b"], ["b", "a"]], "not a matrix of numbers"),
        (np.zeros((3, 3)), "3 nodes but X has 2 rows"),
    ],
)
def test_bad_graphs(graph, message):
    with pytest.raises(DataError, match=message):
        check_graph(graph, 2)


def test_no_graph():
    with pytest.raises(DataError, match="no graph: pass graph=S"):
        resolve_graph(None, [[1.0]], 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: knn_graph([[0.0], [1.0]], 2), "n_neighbors must be an integer from 1 to 1"),
        (lambda: knn_graph([[0.0], [1.0]], 0), "n_neighbors must be"),
        (lambda: knn_graph([[0.0], [1.0]], 1, symmetrise="sum"), "symmetrise must be"),
        (lambda: knn_graph([[0.0], [1.0]], 1, metric="cosine"), "metric must be"),
        (lambda: knn_graph([[0.0], [1.0]], 1, metric="haversine"), "latitude"),
        (lambda: knn_graph([[91.0, 0], [1.0, 0]], 1, metric="haversine"), "latitude"),
        (lambda: knn_graph([[0.0], [1.0]], 1, weight="cubic"), "weight must be"),
        (lambda: knn_graph([[0.0], [1.0]], 1, weight=lambda d: -d), "one finite number >= 0"),
        (lambda: knn_graph([[0.0], [1.0]], 1, scale="max"), "scale must be"),
        (lambda: knn_graph([[0.0], [1.0]], 1, scale=0), "scale must be"),
        (lambda: knn_graph([[0.0], [np.nan]], 1), "row 1 of the coordinates holds a NaN"),
        (lambda: knn_graph([[0.0], [-2e150]], 1), r"coordinates are beyond 1e\+150: their squares"),
        (lambda: knn_graph([], 1), "the coordinates must have the shape"),
        (lambda: radius_graph([[0.0], [1.0]], -1), "radius must be"),
        (lambda: full_graph([[0.0], [1.0]], np.nan), "threshold must be"),
    ],
)
def test_bad_parameters(call, message):
    with pytest.raises(DataError, match=message):
        call()
