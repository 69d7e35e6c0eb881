"""New rows that join a training graph: the same numbers alone, in any batch and in any order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from trellis import load_model
from trellis.errors import DataError
from trellis.regression import GCRF, KNN, Full, Radius, check_graph, knn_graph, laplacian
from trellis.regression.joining import Joining

NAN = np.nan
BUILDERS = {
    "five nearest": KNN(5),
    "both nearest": KNN(3, symmetrise="min"),
    "mean, inverse": KNN(4, symmetrise="mean", weight="inverse", scale="mean"),
    "manhattan": KNN(4, metric="manhattan", scale=None),
    "sphere": KNN(5, metric="haversine"),
    "radius": Radius(0.3),
    "all pairs": Full(0.2),
    "two graphs": [KNN(2), Radius(0.4, weight="binary")],
}


def town(n, seed):
    rng = np.random.default_rng(seed)
    where, X = rng.uniform(size=(n, 2)), rng.normal(size=(n, 2))
    y = X[:, 0] + 2 * np.sin(5 * where[:, 0]) + 0.2 * rng.normal(size=n)
    return where, X, y


def calibrated(model, variance):
    total = 2 * np.sum(model.alpha_)
    std = model.std_scale_ * np.sqrt((variance * total) ** model.std_power_ / total)
    return np.minimum(std, model.std_limit_)


@pytest.fixture(scope="module")
def models():
    where, X, y = town(90, 0)
    made = {}
    for name, graph in BUILDERS.items():
        model = GCRF([Ridge(), LinearRegression()], graph=graph, random_state=0)
        made[name] = model.fit(X, y, coords=where)
    return made


@pytest.mark.parametrize("name", BUILDERS)
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_rows_one_by_one_in_batches_and_in_any_order(models, name, data):
    where, X, _ = town(12, 1)
    model = models[name]
    mean, std = model.predict(X, coords=where, return_std=True)
    order = data.draw(st.permutations(range(12)))
    cuts = sorted(data.draw(st.sets(st.integers(1, 11))))
    for part in np.split(np.array(order), cuts):
        again = model.predict(X[part], coords=where[part], return_std=True)
        np.testing.assert_allclose(again[0], mean[part], rtol=1e-12)
        np.testing.assert_allclose(again[1], std[part], rtol=1e-12)


@pytest.mark.parametrize("name", BUILDERS)
def test_an_answer_is_the_conditional_gaussian_on_the_graph_with_the_row(models, name):
    """Independently: the joint precision of training rows and one more, by dense matrices."""
    model = models[name]
    _, _, y = town(90, 0)
    new_where, new_X, _ = town(8, 2)
    mean, std = model.predict(new_X, coords=new_where, return_std=True)
    a, gamma = model.alpha_ / model.alpha_.sum(), np.atleast_1d(model.beta_) / model.alpha_.sum()
    R = np.vstack([model._nodes.R, model._base_predictions(new_X)])
    for i in range(8):
        S = np.zeros((91, 91))
        for factor, g, joining in zip(
            model._graphs.factors, gamma, model._graphs.joinings, strict=True
        ):
            S[:90, :90] += g * factor * joining.graph().toarray()
            link = g * factor * joining.links(new_where[i : i + 1]).toarray()[0]
            S[90, :90] += link
            S[:90, 90] += link
        M = np.diag(S.sum(axis=1)) - S
        at = np.r_[0:90, 90 + i]
        K, s = np.eye(91) + M, R[at] @ a + M @ (R[at] @ model.rho_)
        m = np.linalg.solve(K, s)
        C = np.linalg.inv(2 * model.alpha_.sum() * K)
        gain = C[90, :90] @ np.linalg.inv(C[:90, :90])
        assert mean[i] == pytest.approx(m[90] + gain @ (y - m[:90]), abs=1e-7)
        variance = C[90, 90] - gain @ C[:90, 90]
        assert std[i] == pytest.approx(calibrated(model, variance), rel=1e-6)


@pytest.mark.parametrize(
    "builder",
    [KNN(3), KNN(2, symmetrise="min"), KNN(3, symmetrise="mean"), KNN(4, metric="manhattan"),
     KNN(3, metric="haversine"), Radius(0.25), Full(0.3), KNN(3, weight=lambda d: 1 / (1 + d))],
)  # fmt: skip
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 8))  # 4 k nearest are all
def test_links_are_the_edges_a_row_gets_if_it_alone_is_added(builder, seed, n):
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(n + 3, 2))
    joining = Joining.of(builder, places[:n])
    links = joining.links(places[n:])
    assert links.shape == (3, n)
    fixed = joining.builder
    for i in range(3):
        whole = fixed(np.vstack([places[:n], places[n + i : n + i + 1]])).toarray()
        np.testing.assert_allclose(links.toarray()[i], whole[n, :n], rtol=1e-9)


def test_the_scale_is_that_of_the_training_rows():
    """Rows far apart from one another and from all others do not pull as if next door."""
    where, X, y = town(200, 3)
    model = GCRF(LinearRegression(), graph=KNN(5), random_state=0).fit(X, y, coords=where)
    far = np.array([[1e3, 0.0], [0.0, 1e3], [-1e3, 0.0]])
    mean, std = model.predict(X[:3], coords=far, return_std=True)
    np.testing.assert_allclose(mean, model.predict_base(X[:3]), rtol=1e-12)
    widest = min(model.std_scale_ / np.sqrt(2 * model.alpha_), model.std_limit_)
    np.testing.assert_allclose(std, widest, rtol=1e-12)
    _, near = model.predict(X[:3], coords=where[:3] + 1e-3, return_std=True)
    assert (near < widest).all()


def test_what_is_observed_later_counts_as_what_was_observed_before():
    """As if the late rows had been nodes of the training graph, at its scale."""
    where, X, y = town(120, 4)
    model = GCRF(LinearRegression(), graph=KNN(4), random_state=0).fit(
        X[:90], y[:90], coords=where[:90]
    )
    late = np.where(np.arange(90, 120) < 105, y[90:], NAN)
    mean, std = model.predict(X[90:], coords=where[90:], observed=late, return_std=True)
    assert (mean[:15] == y[90:105]).all() and (std[:15] == 0).all()
    joining = model._graphs.joinings[0].extended(where[90:105])
    W = model.beta_ / model.alpha_ * model._graphs.factors[0] * joining.links(where[105:]).toarray()
    base = model.bases_[0].predict(X[90:])
    R = np.concatenate([model._nodes.R[:, 0], base])
    e = np.concatenate([y[:105]]) - model.rho_[0] * R[:105]
    weight = W.sum(axis=1)
    expected = (R[105:] * (1 + weight * model.rho_[0]) + W @ e) / (1 + weight)
    np.testing.assert_allclose(mean[15:], expected)
    before, wider = model.predict(X[105:], coords=where[105:], return_std=True)
    assert (mean[15:] != before).any()
    assert std[15:].mean() < wider.mean()


def test_training_rows_that_come_again_count_once():
    where, X, y = town(100, 5)
    forest = GCRF(Ridge(), graph=KNN(4), random_state=0).fit(X[:80], y[:80], coords=where[:80])
    again = np.where(np.arange(100) < 80, y, NAN)
    everything = forest.predict(X, coords=where, observed=again, return_std=True)
    alone = forest.predict(X[80:], coords=where[80:], return_std=True)
    np.testing.assert_allclose(everything[0][80:], alone[0], rtol=1e-12)
    np.testing.assert_allclose(everything[1][80:], alone[1], rtol=1e-12)


def test_a_matrix_of_training_rows_and_new_ones_says_the_same_as_coordinates():
    where, X, y = town(100, 6)
    plain = GCRF(Ridge(), calibrate=False, random_state=0)  # a matrix has no regions to leave out
    by_place = clone(plain).set_params(graph=KNN(4)).fit(X[:80], y[:80], coords=where[:80])
    joining = by_place._graphs.joinings[0]
    S = joining.graph()
    by_matrix = clone(plain).fit(X[:80], y[:80], graph=S)
    assert by_matrix.beta_ == by_place.beta_
    whole = np.zeros((100, 100))
    whole[:80, :80] = S.toarray()
    whole[80:, :80] = joining.links(where[80:]).toarray()
    whole[:80, 80:] = whole[80:, :80].T
    expected = by_place.predict(X[80:], coords=where[80:], return_std=True)
    found = by_matrix.predict(X[80:], graph=whole, return_std=True)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    # The same, all rows given and the training rows recognised among them.
    observed = np.where(np.arange(100) < 80, y, NAN)
    given = by_matrix.predict(X, graph=whole, observed=observed, return_std=True)
    np.testing.assert_allclose(given[0][80:], expected[0], rtol=1e-9)
    np.testing.assert_allclose(given[1][80:], expected[1], rtol=1e-9)


def test_a_matrix_beside_a_builder():
    where, X, y = town(60, 14)
    both = GCRF(Ridge(), random_state=0)
    both.fit(X[:50], y[:50], coords=None, graph=[knn_graph(where[:50], 2), KNN(3)])
    assert not both._graphs.can_join
    whole = knn_graph(where, 2)
    joining = both._graphs.joinings[1]
    by_hand = np.zeros((60, 60))
    by_hand[:50, :50] = joining.graph().toarray()
    by_hand[50:, :50] = joining.links(X[50:]).toarray()
    by_hand[:50, 50:] = by_hand[50:, :50].T
    expected = both.predict(X[50:], graph=[whole, by_hand])
    np.testing.assert_allclose(both.predict(X[50:], graph=[whole, KNN(3)]), expected)


def test_a_function_that_is_no_builder_sees_training_rows_and_new_ones():
    where, X, y = town(90, 7)
    seen = []

    def nearest(places):
        seen.append(len(places))
        return knn_graph(places, 3, scale=0.1)

    model = GCRF(Ridge(), graph=nearest, random_state=0).fit(X[:70], y[:70], coords=where[:70])
    mean = model.predict(X[70:], coords=where[70:])
    assert seen == [70, 90]
    by_matrix = GCRF(Ridge(), random_state=0).fit(X[:70], y[:70], graph=nearest(where[:70]))
    np.testing.assert_allclose(mean, by_matrix.predict(X[70:], graph=nearest(where)))
    for made in (model, GCRF(Ridge()).fit(X, y, coords=where, graph=nearest)):
        with pytest.raises(DataError, match="a function, which a model file cannot hold"):
            made.save("never")


def test_some_targets_of_one_fixed_graph():
    """Semi-supervised: all nodes are there at once, and a few are known."""
    where, X, y = town(400, 8)
    S = knn_graph(where, 5)
    known = np.random.default_rng(0).uniform(size=400) < 0.3
    some = np.where(known, y, NAN)
    model = GCRF(Ridge(), random_state=0).fit(X, some, graph=S)
    mean, std = model.predict(X, graph=S, observed=some, return_std=True)
    e, base = (mean - y)[~known], (model.predict_base(X) - y)[~known]
    assert np.mean(e**2) < 0.3 * np.mean(base**2)
    assert 0.84 < np.mean(np.abs(e) < 1.645 * std[~known]) < 0.96
    K = np.eye(400) + model.beta_ / model.alpha_ * model._graphs.factors[0] * laplacian(S).toarray()
    u = ~known
    variance = np.diag(np.linalg.inv(2 * model.alpha_ * K[np.ix_(u, u)]))
    np.testing.assert_allclose(std[u], calibrated(model, variance), rtol=1e-7)


def test_rows_without_target_are_no_nodes_of_a_graph_made_from_places():
    where, X, y = town(60, 9)
    gaps = np.where(np.arange(60) % 3 == 0, NAN, y)
    known = ~np.isnan(gaps)
    a = GCRF(Ridge(), random_state=0).fit(X, gaps, coords=where)
    b = GCRF(Ridge(), random_state=0).fit(X[known], y[known], coords=where[known])
    assert (a.predict(X, coords=where) == b.predict(X, coords=where)).all()


@pytest.mark.parametrize("name", BUILDERS)
def test_a_file_holds_what_is_joined(models, name, tmp_path):
    where, X, _ = town(20, 10)
    models[name].save(tmp_path / "m.trellis")
    again = load_model(tmp_path / "m.trellis")
    for before, after in zip(
        models[name].predict(X, coords=where, return_std=True),
        again.predict(X, coords=where, return_std=True),
        strict=True,
    ):
        assert (before == after).all()
    assert (models[name].predict_base(X) == again.predict_base(X)).all()
    assert again.leave_one_out_error_ == models[name].leave_one_out_error_


def test_few_rows_have_few_neighbours():
    where, X, y = town(4, 11)
    model = GCRF(Ridge(), graph=KNN(10), random_state=0).fit(X[:3], y[:3], coords=where[:3])
    assert np.isfinite(model.predict(X[3:], coords=where[3:])).all()
    default = GCRF(random_state=0).fit(X, y, coords=where)
    assert np.isfinite(default.predict(X, coords=where, return_std=True)).all()


def test_missing_features_and_many_rows_on_one_spot():
    where, X, y = town(150, 12)
    where[:40] = 0.5
    X[::7, 0] = NAN
    model = GCRF(random_state=0).fit(X, y, coords=where)
    mean, std = model.predict(X, coords=where, return_std=True)
    assert np.isfinite(mean).all() and (std > 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, w, X, y: m.fit(X, y, coords=w[:3]), "coords have 3 rows; expected one for each"),
        (lambda m, w, X, y: m.fit(X, y, coords=w, graph=RING), "coords are for builders"),
        (lambda m, w, X, y: m.fit(X, y), "no graph: pass coords="),
        (lambda m, w, X, y: m.fit(X, y, graph=[]), "graph is a list without a graph"),
        (lambda m, w, X, y: m.fit(X, y * NAN, coords=w), "0 of 9 targets are known; two at least"),
        (lambda m, w, X, y: m.fit(X, y * np.inf, coords=w), "9 of 9 targets are missing or inf"),
        (
            lambda m, w, X, y: m.fit(X, y, coords=w).predict(X, coords=w[:, :1]),
            "coordinates have 1 columns, those of the training rows 2",
        ),
        (
            lambda m, w, X, y: m.fit(X, y, coords=w).predict(X, coords=w[:4]),
            "coords have 4 rows, X has 9",
        ),
        (
            lambda m, w, X, y: m.fit(X, y, coords=w).predict(X),
            "fit was given coords; give coords of these rows, too",
        ),
        (
            lambda m, w, X, y: m.fit(X, y, graph=KNN(2)).predict(X, coords=w),
            "fit was given no coords, but",
        ),
        (
            lambda m, w, X, y: m.fit(X, y, graph=RING).predict(X),
            "no graph: pass coords=, graph=S",
        ),
        (
            lambda m, w, X, y: m.fit(X, y, graph=RING).predict(X, graph=np.ones((4, 4))),
            "graph has 4 nodes but X has 9 rows",
        ),
        (
            lambda m, w, X, y: m.fit(X, y, graph=[RING, RING]).predict(X, graph=[RING, TWICE]),
            "the graphs have different numbers of nodes",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    where, X, y = town(9, 13)
    with pytest.raises(DataError, match=message):
        call(GCRF(Ridge(), random_state=0), where, X, y)


RING = check_graph(np.roll(np.eye(9), 1, 0) + np.roll(np.eye(9), -1, 0))
TWICE = np.kron(np.eye(2), RING.toarray())


def test_all_known_is_what_was_given():
    where, X, y = town(30, 15)
    model = GCRF(Ridge(), random_state=0).fit(X[:20], y[:20], coords=where[:20])
    mean, std = model.predict(X, coords=where, observed=y, return_std=True)
    assert (mean == y).all() and not std.any()
