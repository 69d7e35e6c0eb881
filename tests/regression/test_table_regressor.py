"""Regressions of plain tables: what they learn, and new tables in any order."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from trellis import load_model
from trellis.errors import DataError
from trellis.regression import GCRF, GLACER, TableRegressor, knn_graph

N = 150
RNG = np.random.default_rng(0)


def made(n=N, seed=0):
    """A table whose target depends on each of its columns, and on where a row is."""
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 600, n)
    table = {
        "id": np.arange(n) + 1000,
        "size": rng.uniform(50, 150, n),
        "kind": rng.choice(["flat", "house", "farm"], n),
        "city": rng.integers(0, 20, n).astype(str),
        "sold": (np.datetime64("2020-01-01") + day).astype(str),
        "lat": 50 + rng.random(n),
        "lon": 8 + rng.random(n),
    }
    price = table["size"] + 30 * (table["kind"] == "farm") + 8 * table["city"].astype(int)
    price = price + 0.1 * day + 60 * np.sin(7 * table["lat"])
    return {**table, "city": [f"c{c}" for c in table["city"]], "price": price + rng.normal(size=n)}


TABLE, NEW = made(), made(60, 1)


def error(model, table=NEW):
    return float(np.sqrt(np.mean((model.predict(table) - table["price"]) ** 2)))


def test_every_column_helps():
    full = error(TableRegressor("price", base="ridge", random_state=0).fit(TABLE))
    for column in ("size", "kind", "city", "sold"):
        less = TableRegressor("price", base="ridge", drop=[column], random_state=0).fit(TABLE)
        assert full < error(less), column
    assert full < 0.6 * np.std(NEW["price"])


def test_neighbours_help():
    model = TableRegressor("price", base="linear", random_state=0).fit(TABLE)
    base = model.predict_base(NEW)
    assert error(model) < float(np.sqrt(np.mean((base - NEW["price"]) ** 2)))
    assert model.score(NEW) == pytest.approx(
        1 - error(model) ** 2 / np.var(np.asarray(NEW["price"]))
    )


def test_a_row_is_predicted_alike_in_any_table_of_any_order(tmp_path):
    model = TableRegressor("price", base="ridge", random_state=0).fit(TABLE)
    mean, std = model.predict(NEW, return_std=True)
    names = ["lon", "kind", "sold", "size", "lat", "city"]
    path = tmp_path / "new.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(names)
        writer.writerows(zip(*(NEW[name][40:] for name in names), strict=True))
    again, of = model.predict(path, return_std=True)
    assert again == pytest.approx(mean[40:], rel=1e-9)
    assert of == pytest.approx(std[40:], rel=1e-9)


def test_gaps_and_what_was_never_seen():
    table = {name: list(column) for name, column in TABLE.items()}
    for i in range(0, N, 10):
        table["size"][i] = "?"
        table["kind"][i + 1] = None
        table["sold"][i + 2] = "NA"
        table["price"][i + 3] = ""
    model = TableRegressor("price", base="hgb", random_state=0).fit(table)
    new = {name: list(column[:3]) for name, column in NEW.items()}
    new["kind"][0], new["city"][1], new["sold"][2] = "boat", "elsewhere", "?"
    mean, std = model.predict(new, return_std=True)
    assert np.isfinite(mean).all() and (std > 0).all()


@pytest.mark.parametrize(
    "model",
    [
        TableRegressor("price", random_state=0),
        TableRegressor("price", base=Ridge(), random_state=0),
        TableRegressor("price", model=GCRF(LinearRegression()), drop=["city"], random_state=0),
        TableRegressor("price", base="linear", model="glacer", random_state=0),
        TableRegressor(
            "price", base="tree", model=GLACER(2, max_swaps=1, random_state=0), random_state=0
        ),
    ],
    ids=["default", "estimator", "gcrf", "glacer", "own glacer"],
)
def test_models_and_their_files(model, tmp_path):
    table = {name: column[:60] for name, column in TABLE.items()}
    model.fit(table)
    assert error(model) < 1.1 * np.std(NEW["price"])
    mean, std = model.predict(NEW, return_std=True)
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert repr(again) == repr(model)
    for found, expected in zip(again.predict(NEW, return_std=True), (mean, std), strict=True):
        assert (found == expected).all()
    assert (again.predict_base(NEW) == model.predict_base(NEW)).all()
    assert np.isfinite(model.predict({n: c[:1] for n, c in NEW.items()})).all()


def test_a_graph_of_all_rows():
    """Rows without a target are in the graph; what is known of neighbours counts."""
    where = np.column_stack([TABLE["lat"], TABLE["lon"]])
    S = knn_graph(where, 6)
    hidden = np.where(np.arange(N) % 5 == 0, np.nan, TABLE["price"])
    table = {**TABLE, "price": hidden}
    model = TableRegressor("price", base="linear", drop=["lat", "lon"], random_state=0)
    model.fit(table, graph=S)
    assert model.places_ is None
    mean, std = model.predict(table, graph=S, return_std=True)
    test = np.isnan(hidden)
    truth = np.asarray(TABLE["price"])[test]
    base = model.predict_base(table)[test]
    assert np.mean((mean[test] - truth) ** 2) < 0.8 * np.mean((base - truth) ** 2)
    assert (std[test] > 0).all()
    blind = model.predict({n: c for n, c in table.items() if n != "price"}, graph=S)
    assert (blind[test] != mean[test]).all()


def test_reading_says_what_it_made_of_columns():
    data = TableRegressor("price").read(TABLE)
    assert dict(data.rows.describe())["id"] == "left out (identifier: it numbers the rows)"
    assert data.places.columns == ("lat", "lon")
    assert data.suspects() == []
    copy = {**TABLE, "cents": 100 * np.asarray(TABLE["price"])}
    assert TableRegressor("price").read(copy).suspects() == ["cents"]
    logarithm = {**TABLE, "log": np.log(np.asarray(TABLE["price"]))}
    assert TableRegressor("price").read(logarithm).suspects() == ["log"]


def test_logarithms(tmp_path):
    """Errors that are factors: what is expected is above the middle, no interval ends below 0."""
    factors = {**TABLE, "price": np.exp(np.asarray(TABLE["price"]) / 50)}
    new = {**NEW, "price": np.exp(np.asarray(NEW["price"]) / 50)}
    how = {"base": "ridge", "random_state": 0}
    model = TableRegressor("price", log=True, **how).fit(factors)
    alike = {**TABLE, "price": np.asarray(TABLE["price"]) / 50}
    within = TableRegressor("price", **how).fit(alike)
    m, s = within.predict(NEW, return_std=True)
    mean, std = model.predict(new, return_std=True)
    assert mean == pytest.approx(np.exp(m + s**2 / 2))
    assert std == pytest.approx(mean * np.sqrt(np.expm1(s**2)))
    low, high = model.predict_interval(new)
    ends = within.predict_interval(NEW)
    assert low == pytest.approx(np.exp(ends[0])) and high == pytest.approx(np.exp(ends[1]))
    assert ends[1] - ends[0] == pytest.approx(2 * 1.6448536 * s)
    assert model.predict_base(new) == pytest.approx(np.exp(within.predict_base(NEW)))
    plain = TableRegressor("price", **how).fit(factors)
    assert model.score(new) > plain.score(new)
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.log_ and (again.predict(new) == mean).all()
    assert (again.predict_interval(new, level=0.5)[0] > low).all()
    with pytest.raises(DataError, match=r"row 0, column 'price': 0\.0 has no logarithm; empty the"):
        TableRegressor("price", log=True).fit(
            {**TABLE, "price": np.append(0.0, TABLE["price"][1:])}
        )
    with pytest.raises(DataError, match="level must be a number between 0 and 1"):
        model.predict_interval(new, level=90)


def test_logarithms_on_a_graph():
    factors = {**TABLE, "price": np.exp(np.asarray(TABLE["price"]) / 50)}
    S = knn_graph(np.column_stack([TABLE["lat"], TABLE["lon"]]), 4)
    model = TableRegressor("price", log=True, base="linear", random_state=0).fit(factors, graph=S)
    half = {**factors, "price": np.where(np.arange(N) < 50, factors["price"], np.nan)}
    mean, std = model.predict(half, graph=S, return_std=True)
    assert mean[:50] == pytest.approx(factors["price"][:50]) and (std[:50] == 0).all()
    assert (std[50:] > 0).all()


@pytest.mark.parametrize("model", ["gcrf", "glacer"])
def test_rows_without_coordinates_get_what_the_base_says(model, tmp_path):
    gaps = np.arange(N) % 10 == 3
    table = {**TABLE, "lat": np.where(gaps, np.nan, TABLE["lat"])}
    few = {name: np.asarray(cells)[~gaps] for name, cells in TABLE.items()}
    how = {"base": "linear", "model": model, "drop": ["lat", "lon", "id"], "random_state": 0}
    regressor = TableRegressor("price", **how).fit(table)
    data = regressor.read(table)
    assert data.lost.tolist() == np.flatnonzero(gaps).tolist() == data.unknown.tolist()
    again = TableRegressor("price", **how).fit(few)  # as if these rows were not there
    assert again.predict(NEW) == pytest.approx(regressor.predict(NEW))
    new = {**NEW, "lon": np.where(np.arange(60) < 2, np.nan, NEW["lon"])}
    mean, std = regressor.predict(new, return_std=True)
    assert mean[:2] == pytest.approx(regressor.predict_base(new)[:2])
    full, narrow = regressor.predict(NEW, return_std=True)
    assert mean[2:] == pytest.approx(full[2:]) and std[2:] == pytest.approx(narrow[2:])
    assert (std[:2] > narrow[:2]).all()
    nowhere = {**NEW, "lon": np.full(60, np.nan)}
    regressor.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(nowhere) == pytest.approx(
        regressor.predict_base(nowhere)
    )
    S = knn_graph(np.column_stack([TABLE["lat"], TABLE["lon"]]), 4)
    on_graph = TableRegressor("price", **how).fit(table, graph=S)  # where rows do without
    assert on_graph.predict(table, graph=S) == pytest.approx(
        TableRegressor("price", **how).fit(TABLE, graph=S).predict(TABLE, graph=S)
    )


def test_cells_as_people_write_them():
    sizes = [1000 * cell for cell in TABLE["size"]]
    written = {
        **TABLE,
        "size": [f"{size:,.0f}" for size in sizes],
        "price": [f"${price:,.6f}" for price in TABLE["price"]],
    }
    plain = {
        **TABLE,
        "size": [f"{size:.0f}" for size in sizes],
        "price": [f"{price:.6f}" for price in TABLE["price"]],
    }
    first, second = (
        TableRegressor("price", base="linear", random_state=0).fit(t) for t in (written, plain)
    )
    assert first.predict(written).tolist() == second.predict(plain).tolist()
    assert first.predict(plain).tolist() == first.predict(written).tolist()
    assert first.score(written) == second.score(plain)
    notes = {code.name: code.note for code in first.rows_.codes}
    assert notes["size"] == "without ,"
    assert first.read(written).note == "without $"


def test_a_postcode_with_a_comma_stays_a_name():
    codes = [f"98,{100 + i % 4}" for i in range(N)]
    model = TableRegressor("price", base="linear", random_state=0).fit({**TABLE, "zip": codes})
    assert "zip=98,101" in model.rows_.names
    assert model.rows_.unseen(model.read({**TABLE, "zip": codes}).table) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: TableRegressor("price").fit({n: c for n, c in TABLE.items() if n != "lat"}),
            "no coordinates and no graph: name the columns",
        ),
        (
            lambda: TableRegressor("price").fit({n: c[:4] for n, c in TABLE.items()}),
            "4 rows with a target; at least 5 are needed to learn anything",
        ),
        (
            lambda: TableRegressor("price").fit({**TABLE, "price": np.ones(N)}),
            "column 'price' is the same in every row",
        ),
        (
            lambda: TableRegressor("price").fit(TABLE, graph=knn_graph(np.arange(9.0)[:, None])),
            "the graph is one of 9 nodes, but the table has 150 rows",
        ),
        (
            lambda: TableRegressor("price", model=Ridge()).fit(TABLE),
            r"model must be a GCRF or a GLACER, not Ridge\(\)",
        ),
        (lambda: TableRegressor("price", base="rigde").fit(TABLE), "no base model is called"),
        (lambda: TableRegressor("price", max_levels=0).fit(TABLE), "max_levels must be"),
        (lambda: TableRegressor("price").fit(3), "the table is a int; expected a path"),
        (lambda: TableRegressor("price").fit({"price": []}), "has a header, but no rows"),
        (
            lambda: (
                TableRegressor("price", base="linear")
                .fit(TABLE)
                .predict({name: [] for name in TABLE})
            ),
            "has a header, but no rows",
        ),
        (
            lambda: TableRegressor("price", coords=["lat", "lon"]).fit(
                {**TABLE, "lat": np.full(N, np.nan)}
            ),
            "no row has all of lat, lon",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_a_model_of_a_graph_needs_one_again():
    S = knn_graph(np.column_stack([TABLE["lat"], TABLE["lon"]]), 4)
    model = TableRegressor("price", base="linear", random_state=0).fit(TABLE, graph=S)
    with pytest.raises(DataError, match="trained with a graph of its rows; give the graph"):
        model.predict(NEW)
