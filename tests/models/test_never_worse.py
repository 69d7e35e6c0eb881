"""What is learned is never worse than nothing, nor than a model without edges."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import ChainCRF, GraphCRF, TreeCRF
from trellis.datasets import grid_edges
from trellis.decompose import GraphPieces, WholeSamples
from trellis.problems import LogLikelihood, Weights

MODELS = {"chain": ChainCRF, "tree": TreeCRF, "graph": GraphCRF}


def drawn_data(seed: int, structure: str, n: int, unknown: float, dense: bool, tied: bool):
    """Samples whose labels follow their features, their neighbours, both or neither."""
    rng = np.random.default_rng(seed)
    X, y, edges = [], [], []
    for _ in range(n):
        size = int(rng.integers(1, 12))
        links = [(i, int(rng.integers(0, i))) for i in range(1, size)]
        if structure == "graph":
            links += [(i, j) for i in range(size) for j in range(i) if rng.random() < 0.15]
            links = sorted({(max(e), min(e)) for e in links})
        labels = rng.integers(0, 3, size)
        if tied:
            for a, b in links:
                labels[a] = labels[b]
        if dense:
            X.append(np.eye(3)[labels] * rng.integers(0, 2) + rng.normal(size=(size, 3)))
        else:
            X.append([[f"f{rng.integers(0, 40)}", f"g{k}"] for k in labels // 2])
        named = [None if rng.random() < unknown else "ABC"[k] for k in labels]
        y.append(named)
        edges.append(np.array(links, np.int64).reshape(-1, 2))
    y[0][0] = "A"
    more = {} if structure == "chain" else {"edges": edges}
    return X, y, more


def objective(model, X, y, more, weights=None) -> float:
    """What training minimises, at the weights of a model or others; of graphs on some trees."""
    corpus = model._corpus(X, y, more.get("edges"))
    labels = corpus.labels.recoded(model.classes_)
    problem = model._problem(corpus, model._encode(corpus), labels)
    rng = np.random.default_rng(0)
    cut = WholeSamples() if model.structure == "chain" else GraphPieces(problem.edges, None)
    weights = model.weights_ if weights is None else weights
    visits = problem.visits(cut.draw(problem.offsets, rng))
    value, _ = LogLikelihood(problem).value_and_gradient(weights, visits)
    if getattr(model, "alike_", False):
        centre = model._centre(weights)
        arrays = zip(weights.arrays(), centre.arrays(), strict=True)
        return value + model.l2_ * sum(float(np.square(a - b).sum()) for a, b in arrays)
    return value + model.l2_ * weights.squared_norm()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000), structure=st.sampled_from(sorted(MODELS)),
    solver=st.sampled_from(["auto", "lbfgs"]), n=st.integers(1, 30),
    unknown=st.sampled_from([0.0, 0.5, 0.9]), dense=st.booleans(), tied=st.booleans(),
)  # fmt: skip
def test_the_objective_is_below_that_of_zero_weights(
    seed, structure, solver, n, unknown, dense, tied
):
    X, y, more = drawn_data(seed, structure, n, unknown, dense, tied)
    model = MODELS[structure](solver=solver, random_state=0).fit(X, y, **more)
    zero = Weights(*(np.zeros_like(a) for a in model.weights_.arrays()))
    worst = objective(model, X, y, more, zero) * (1 + 1e-3) + 1e-9  # 0 with a single label
    assert objective(model, X, y, more) <= worst


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000), structure=st.sampled_from(sorted(MODELS)), n=st.integers(1, 30),
    unknown=st.sampled_from([0.0, 0.5, 0.9]), dense=st.booleans(), tied=st.booleans(),
)  # fmt: skip
def test_the_objective_is_below_that_of_the_model_without_edges(
    seed, structure, n, unknown, dense, tied
):
    X, y, more = drawn_data(seed, structure, n, unknown, dense, tied)
    both = [
        MODELS[structure](solver="lbfgs", piece_size=size, random_state=0).fit(X, y, **more)
        for size in (None, 1)
    ]
    met, alone = (model.history_[-1].objective if model.history_ else 0.0 for model in both)
    model = both[0]
    if structure == "graph" and model.alike_:  # the same weights cost more where these are wanted
        alone += model.l2_ * model._centre(model.weights_).squared_norm()
    assert met <= alone * (1 + 1e-3) + 1e-6


@functools.cache
def grids(n):
    """So many grids of noisy blocks, of 1,600 nodes in all, and how well a model does edgeless."""
    rng, side = np.random.default_rng(n), 40 // int(np.sqrt(n))
    gold = [np.kron(rng.integers(0, 3, (side // 5, side // 5)), np.ones((5, 5), int)).ravel()
            for _ in range(n)]  # fmt: skip
    X = [np.eye(3)[labels] + rng.normal(0, 1.2, (len(labels), 3)) for labels in gold]
    data = {"y": [labels.tolist() for labels in gold], "edges": [grid_edges(side, side)] * n}
    alone = GraphCRF(random_state=0, piece_size=1).fit(X, **data)
    return X, data, alone.score(X, **data)


@pytest.mark.parametrize("n", [1, 4, 16])
@pytest.mark.parametrize("options", [{}, {"solver": "sgd"}, {"solver": "adf"}])
def test_grids_do_not_diverge(n, options):
    X, data, alone = grids(n)
    model = GraphCRF(random_state=0, **options).fit(X, **data)
    least = {"sgd": 0.0, "adf": -0.02}.get(options.get("solver"), 0.1)
    assert model.score(X, **data) > alone + least
