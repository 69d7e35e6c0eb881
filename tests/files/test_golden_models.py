"""Golden files of every kind: every later version reads them and gives the same answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden_models import ANSWERS, FOLDER, RECIPES, plain

from trellis import load_model
from trellis.files.container import read_container
from trellis.files.registry import ESTIMATORS

EXPECTED = json.loads(ANSWERS.read_text())


@pytest.mark.parametrize("name", RECIPES)
def test_golden_files_are_read_for_ever(name):
    model = load_model(FOLDER / f"{name}.trellis")
    made, predict = RECIPES[name]()
    assert type(model) is type(made)
    found = plain(predict(model))
    if isinstance(found[0], float):
        assert np.allclose(found, EXPECTED[name], rtol=1e-9, atol=0)
    else:
        assert found == EXPECTED[name]


def test_every_kind_and_every_format_has_a_golden_file():
    files = sorted(Path(FOLDER).glob("*.trellis"))
    kinds = {read_container(file)[0]["estimator"] for file in files}
    without = {"ChainPerceptron", "TreePerceptron", "GraphPerceptron"}  # the same as their CRFs
    assert kinds == set(ESTIMATORS) - without
    numbers = {int.from_bytes(file.read_bytes()[8:12], "little") for file in files}
    assert numbers == {1, 2, 3}
    assert max(file.stat().st_size for file in files) < 20_000


def test_the_packed_file_has_all_ways():
    data = (FOLDER / "chain_crf_v3_packed.trellis").read_bytes()
    table = json.loads(data[52 : 52 + int.from_bytes(data[44:52], "little")])
    ways = json.loads(table["__metadata__"]["packed"])
    assert {way for way, *_ in ways.values()} == {"narrow", "gaps", "sparse"}


def test_the_sparse_file_is_one():
    header, arrays = read_container(FOLDER / "chain_crf_v2_sparse.trellis")
    node = arrays["node"]
    assert header["estimator"] == "ChainCRF" and np.count_nonzero(node) < node.size / 4
