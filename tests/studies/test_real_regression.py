"""Loaders of the real data sets of regression: counts, graphs, damage."""

from __future__ import annotations

import numpy as np
import pytest

from studies.datasets import load_kingcounty, load_medicare, load_sacramento, load_spatial
from trellis import DataError
from trellis.regression import KNN


def test_sacramento(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("sacramento").parent))
    data = load_sacramento()
    assert data.X.shape == (985, 5)
    assert (data.X[:, :3] == 0).any(1).sum() >= 171  # missing values are 0
    assert data.y.std() == pytest.approx(1, abs=1e-3)
    train, test = data.split(785)
    assert (len(train.y), len(test.y)) == (785, 200)
    graph = train.with_graph().graph
    assert graph.shape == (785, 785)
    assert np.diff(graph.indptr).min() >= 5


def test_medicare(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("medicare_readmissions").parent))
    data = load_medicare()
    assert (len(data.y), data.y.min()) == (1000, 144)
    # Readmissions are nearly discharges times the predicted rate.
    assert np.corrcoef(data.X[:, 0] * data.X[:, 2], data.y)[0, 1] > 0.99
    graph = data.with_graph().graph
    assert graph.sum(axis=1).min() > 0  # nobody is cut off
    assert len(load_medicare("2015-2018", None).y) == 11_328
    with pytest.raises(DataError, match="unknown period '1999'; known: 2014-2017, 2015-2018"):
        load_medicare("1999")
    with pytest.raises(DataError, match="n must lie between 2 and 11532, got 1"):
        load_medicare(n=1)


def test_kingcounty(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("kingcounty").parent))
    data = load_kingcounty()
    columns = dict(zip(data.feature_names, data.X.T, strict=True))
    assert data.X.shape == (21_597, 18)
    missing = {name: int(np.isnan(values).sum()) for name, values in columns.items()}
    told = {"waterfront": 2376, "view": 63, "yr_renovated": 3842, "sqft_basement": 454}
    assert {name: n for name, n in missing.items() if n} == told
    assert np.exp(data.y[0]) == pytest.approx(221_900)
    # What the first house is: 10/13/2014, «7 Average», «Average», no view.
    first = {name: values[0] for name, values in columns.items()}
    assert (first["date"], first["grade"], first["condition"], first["view"]) == (165, 7, 3, 0)
    assert (np.nanmin(columns["date"]), np.nanmax(columns["grade"])) == (1, 13)
    assert np.nansum(columns["waterfront"]) == 146
    # Better words are dearer houses: the order is the right one.
    for name in ("view", "grade"):
        known = ~np.isnan(columns[name])
        assert np.corrcoef(columns[name][known], data.y[known])[0, 1] > 0.3
    assert data.metric == "haversine"
    assert (data.coords == data.X[:, -2:]).all()
    assert (data.coords[:, 0] > 47).all() and (data.coords[:, 1] < -121).all()
    assert data.subset(range(50)).with_graph().graph.shape == (50, 50)


@pytest.mark.parametrize(("name", "shape"), [("meuse", (153, 9)), ("atlantic", (666, 7)),
                                             ("plants", (227, 19))])  # fmt: skip
def test_spatial(real_data, monkeypatch, name, shape):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("spatial").parent))
    data = load_spatial(name)
    assert data.X.shape == shape == (len(data.y), len(data.feature_names))
    assert np.isfinite(data.X).all()
    assert not {"cadmium", "copper", "lead", "zinc", "FIPS", "Rate"} & {*data.feature_names}
    assert (data.coords == data.X[:, -2:]).all()
    if name == "meuse":
        assert np.exp(data.y[0]) == pytest.approx(1022)
    degrees = np.abs(data.coords).max(axis=0)
    assert (data.metric == "haversine") == (name == "plants")
    assert (degrees[0] <= 90 and degrees[1] <= 180) == (name == "plants")
    assert data.with_graph(KNN(metric=data.metric)).graph.shape == (shape[0],) * 2


def test_damaged_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    (tmp_path / "sacramento").mkdir()
    (tmp_path / "sacramento" / "sacramento.csv.xz").write_text("beds_norm\n1\n")
    with pytest.raises(DataError, match="has no column 'baths_norm'"):
        load_sacramento()
    (tmp_path / "kingcounty").mkdir()
    header = (
        "date,price,bedrooms,bathrooms,sqft_living,sqft_lot,floors,waterfront,view,condition,grade,"
        "sqft_above,sqft_basement,yr_built,yr_renovated,lat,long,sqft_living15,sqft_lot15"
    )
    row = "1/2/2015,1,1,1,1,1,1,NO,{view},Good,7 Average,1,?,1900,,47.5,-122,1,1"
    table = tmp_path / "kingcounty" / "kc_house_data.csv.xz"
    table.write_text(f"{header}\n{row.format(view='')}\n")
    assert np.isnan(load_kingcounty().X).sum() == 3
    table.write_text(f"{header}\n{row.format(view='SEA')}\n")
    with pytest.raises(DataError, match="'SEA' is no view; known: NONE, FAIR, AVERAGE, GOOD, EXC"):
        load_kingcounty()
    with pytest.raises(DataError, match="unknown map 'sea'; known: meuse, atlantic, plants"):
        load_spatial("sea")
