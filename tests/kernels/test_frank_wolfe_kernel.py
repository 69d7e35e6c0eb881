"""The fused kernel of Frank–Wolfe against the generic steps, sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margin_problems import make_problem, nodes_of
from trellis.problems.hinge import HingeLoss
from trellis.problems.hinge_dual import HingeDual
from trellis.solvers.frank_wolfe import minimise_frank_wolfe, run_frank_wolfe
from trellis.solvers.planes import minimise_bundle


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    structure=st.sampled_from(["chain", "tree"]),
    directed=st.booleans(),
    n_tables=st.integers(1, 3),
    indicators=st.booleans(),
    l2=st.sampled_from([0.05, 1.0]),
)
def test_same_steps_as_the_generic_solver(seed, structure, directed, n_tables, indicators, l2):
    p = make_problem(
        seed, structure, 5, directed=directed, n_tables=n_tables, indicators=indicators
    )
    loss = HingeLoss(p.data, nodes_of(p), n_tables=n_tables, directed=directed)
    fused = run_frank_wolfe(
        HingeDual(loss, l2), np.random.default_rng(seed), max_passes=5, tol=0.0, gap_every=2
    )
    generic = minimise_frank_wolfe(
        loss.best, loss.n_samples, loss.n_weights, l2=l2, sample_weight=p.data.sample_weight,
        max_passes=5, tol=0.0, gap_every=2, seed=seed,
    )  # fmt: skip
    np.testing.assert_allclose(fused.weights, generic.weights, atol=1e-8)
    assert fused.lower_bound == pytest.approx(generic.lower_bound, rel=1e-8, abs=1e-10)
    assert fused.objective == pytest.approx(generic.objective, rel=1e-8, abs=1e-10)
    assert fused.objective == pytest.approx(
        p.risk(fused.weights) + l2 * fused.weights @ fused.weights, rel=1e-8
    )


def test_weights_are_those_of_the_means():
    """w = 1 / 2λ Σ c_i (gold features − mean features), after any number of steps."""
    p = make_problem(11, "tree", 6, n_tables=2)
    loss = HingeLoss(p.data, nodes_of(p), n_tables=2)
    dual = HingeDual(loss, 0.3)
    rng = np.random.default_rng(0)
    for _ in range(7):
        dual.sweep(rng.permutation(loss.n_samples))
    d = p.data
    c = d.position_weight
    gold = np.eye(3)[d.gold]
    node = p.dense.T @ (c[:, None] * (gold - dual._means)) / 0.6
    np.testing.assert_allclose(loss.split(dual.weights())[0], node, atol=1e-9)
    np.testing.assert_allclose(dual._means.sum(1), 1.0)
    assert (dual._means >= -1e-12).all()
    losses = [
        (dual._means * d.costs.dense())[a:b].sum()
        for a, b in zip(p.offsets[:-1], p.offsets[1:], strict=True)
    ]
    np.testing.assert_allclose(dual._losses[d.sample_weight > 0], np.array(losses)[
        d.sample_weight > 0], atol=1e-9)  # fmt: skip


def test_reaches_the_optimum_of_the_bundle_method():
    p = make_problem(2, "chain", 30, longest=3)
    loss = HingeLoss(p.data)
    wanted = minimise_bundle(loss.risk, loss.n_weights, l2=0.5, floor=0.0, tol=1e-5)
    found = run_frank_wolfe(
        HingeDual(loss, 0.5), np.random.default_rng(0), max_passes=2000, tol=1e-3
    )
    assert found.stop_reason == "gap"
    assert found.objective == pytest.approx(wanted.objective, rel=1e-3)
    assert found.lower_bound <= wanted.objective


def test_same_seed_same_bits():
    p = make_problem(4, "chain", 10)
    runs = [
        run_frank_wolfe(
            HingeDual(HingeLoss(p.data), 0.1), np.random.default_rng(1), max_passes=6, tol=0.0
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
