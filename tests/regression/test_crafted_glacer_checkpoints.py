"""Checkpoints of GLACER that someone has made by hand: documented errors, or a run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from crafted import mutants, write_raw
from trellis import CorruptModelError, DataError
from trellis.files.container import read_container
from trellis.regression import GLACER, knn_graph

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(30, 2))
Y = np.sin(6 * X[:, 0]) + 0.1 * RNG.normal(size=30)


def test_no_crafted_checkpoint_gives_another_error(tmp_path):
    file, graph = tmp_path / "c", knn_graph(X, 3)

    def fit(n_swaps):
        model = GLACER(3, base=Ridge(), max_swaps=n_swaps, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numbers that overflow
            model.fit(X, Y, graph=graph, checkpoint=file, resume=True)

    fit(1)
    refused = 0
    for number in mutants(file, 200, seed=1):
        try:
            fit(2)
        except CorruptModelError as error:
            assert str(error).startswith(f"{file}: "), number
            refused += 1
        except DataError:
            refused += 1
    assert 100 < refused < 200


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("gamma", 1e15, r"gamma lie in .*, outside 0 <= x < 1000000000000000"),
        ("gamma", 1e300, r"gamma lie in .*, outside 0 <= x < 1000000000000000"),
        ("gamma", -1e-9, r"gamma lie in .*, outside 0 <= x < 1000000000000000"),
        ("gamma", np.inf, "array 'gamma' holds a number that is not finite"),
        ("gamma", np.nan, "array 'gamma' holds a number that is not finite"),
        ("alpha", -1e-9, "alpha lie in .*, outside 0 <= x < inf"),
        ("alpha", np.inf, "array 'alpha' holds a number that is not finite"),
    ],
)
def test_parameters_out_of_range(tmp_path, name, value, message):
    """Of gamma, also what is so large that the equations cannot be solved."""
    file, graph = tmp_path / "c", knn_graph(X, 3)
    model = GLACER(3, base=Ridge(), max_swaps=1, n_jobs=1)
    model.fit(X, Y, graph=graph, checkpoint=file, resume=True)
    header, arrays = read_container(file)
    changed = arrays[name].copy()
    changed[1] = value
    write_raw(file, header, {**arrays, name: changed})
    with pytest.raises(CorruptModelError, match=message) as caught:
        model.fit(X, Y, graph=graph, checkpoint=file, resume=True)
    assert str(caught.value).startswith(f"{file}: ")
