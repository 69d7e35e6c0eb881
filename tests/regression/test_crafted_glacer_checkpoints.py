"""Checkpoints of GLACER that someone has made by hand: documented errors, or a run."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.linear_model import Ridge

from crafted import mutants
from trellis import CorruptModelError, DataError
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
