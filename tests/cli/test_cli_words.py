"""Codes of endings, in words."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trellis.cli.words import count, ending, step

INF = float("inf")


@pytest.mark.parametrize(
    ("state", "steps", "words"),
    [
        ({"solver_": "sgd", "stop_reason_": "max_passes"}, "pass", ""),
        ({"solver_": "", "stop_reason_": ""}, "pass", ""),
        ({"solver_": "sgd", "stop_reason_": "tol"}, "pass", "converged"),
        ({"solver_": "sgd", "stop_reason_": "rising"}, "pass", "no more improvement"),
        ({"solver_": "adf", "stop_reason_": "patience"}, "pass", "out of patience"),
        ({"solver_": "lbfgs", "stop_reason_": "max_passes"}, "iteration", "not converged"),
        ({"solver_": "lbfgs", "stop_reason_": "line search"}, "iteration", "no more improvement"),
        (
            {"solver_": "frank-wolfe", "stop_reason_": "gap", "gap_": 1.0, "objective_": 200.0},
            "pass",
            "within 0.5 % of the optimum",
        ),
        (
            {"solver_": "bundle", "stop_reason_": "max_iterations", "gap_": 3.0, "objective_": 3.0},
            "iteration",
            "within 100 % of the optimum",
        ),
        (
            {"solver_": "frank-wolfe", "stop_reason_": "max_passes", "gap_": INF},
            "pass",
            "not converged",
        ),
        ({"solver_": "sgd", "stop_reason_": "max_passes", "gap_": INF}, "pass", ""),
        ({"solver_": "bundle", "stop_reason_": "eta", "gap_": INF}, "round", "converged"),
        ({"stop_reason_": "max_rounds", "gap_": INF}, "round", "not converged"),
    ],
)
def test_endings(state, steps, words):
    model = SimpleNamespace(**state)
    assert (step(model), ending(model)) == (steps, words)


def test_the_gap_of_a_point_that_was_not_kept_is_not_told():
    model = SimpleNamespace(
        solver_="frank-wolfe", stop_reason_="gap", gap_=1.0, objective_=9.0,
        history_=[SimpleNamespace(dev_score=0.5)],
    )  # fmt: skip
    assert ending(model) == "converged"


def test_counts():
    assert [count(1, "pass"), count(2, "pass"), count(0, "round")] == [
        "1 pass",
        "2 passes",
        "0 rounds",
    ]
