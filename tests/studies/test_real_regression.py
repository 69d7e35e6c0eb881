"""Loaders of the real data sets of regression: counts, graphs, damage."""

from __future__ import annotations

import numpy as np
import pytest

from studies.datasets import load_medicare, load_sacramento
from trellis import DataError


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


def test_damaged_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    (tmp_path / "sacramento").mkdir()
    (tmp_path / "sacramento" / "sacramento.csv.xz").write_text("beds_norm\n1\n")
    with pytest.raises(DataError, match="has no column 'baths_norm'"):
        load_sacramento()
