"""The fused kernel of Frank–Wolfe against the generic steps, sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margin_problems import make_problem
from trellis.problems import HingeDual, HingeLoss
from trellis.solvers.frank_wolfe import minimise_frank_wolfe, run_frank_wolfe
from trellis.solvers.planes import minimise_bundle


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    structure=st.sampled_from(["chain", "tree"]),
    directed=st.booleans(),
    n_types=st.integers(1, 3),
    indicators=st.booleans(),
    l2=st.sampled_from([0.05, 1.0]),
)
def test_same_steps_as_the_generic_solver(seed, structure, directed, n_types, indicators, l2):
    p = make_problem(seed, structure, 5, directed=directed, n_types=n_types, indicators=indicators)
    loss = HingeLoss(p.problem)
    fused = run_frank_wolfe(
        HingeDual(loss, l2), np.random.default_rng(seed), max_passes=5, tol=0.0, gap_every=2
    )
    generic = minimise_frank_wolfe(
        loss.best, loss.n_samples, loss.n_weights, l2=l2, sample_weight=loss.sample_weight,
        max_passes=5, tol=0.0, gap_every=2, seed=seed,
    )  # fmt: skip
    np.testing.assert_allclose(fused.weights, generic.weights, atol=1e-8)
    assert fused.lower_bound == pytest.approx(generic.lower_bound, rel=1e-8, abs=1e-10)
    assert fused.objective == pytest.approx(generic.objective, rel=1e-8, abs=1e-10)
    assert fused.objective == pytest.approx(
        p.risk(fused.weights) + l2 * fused.weights @ fused.weights, rel=1e-8
    )


def test_reaches_the_optimum_of_the_bundle_method():
    p = make_problem(2, "chain", 30, longest=3)
    loss = HingeLoss(p.problem)
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
            HingeDual(HingeLoss(p.problem), 0.1), np.random.default_rng(1), max_passes=6, tol=0.0
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
