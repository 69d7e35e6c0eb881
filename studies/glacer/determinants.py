"""What floating point makes of the likelihood of a Gaussian CRF that is written out as it stands.

    -ll = e'Qe + ½ log(det(inv(Q))),   Q = αI + βL,   e = y − Q⁻¹αr

is how public code of the paper's authors, for another paper of theirs, has it. det(inv(Q)) = 1/|Q|
is 0 in floating point where log|Q| > 744, and then −ll is −∞; it is ∞ where log|Q| < −710. The
logarithm of |Q| grows with the number of nodes, so that only a band of (α, β) is left, narrower
the more nodes there are. *Within the band* is the best likelihood of those (α, γ = β/α) for which
the formula is finite: with K = I + γL,

    log|Q| = n log α + log|K|,   −ll = αS(γ) − (n/2) log α − ½ log|K|,

is convex in α, so the best α of the band is the unbounded n / (2S) if it lies inside, else the end
that is nearer. *The wall* is the γ at which the formula becomes −∞ on the way from that code's
start, α = 1 and β = 0, along β: n nodes and the graph decide it, targets and base models do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.base import clone

from studies.glacer.cases import Case
from studies.glacer.models import hushed
from trellis.arrays import Float64s
from trellis.regression.baselines import unstructured
from trellis.regression.bases import one_thread, seeded
from trellis.regression.gcrf import LARGEST_GAMMA
from trellis.regression.graph_matrix import laplacian, normalise
from trellis.regression.likelihood import Profile, SpectralProfile, search
from trellis.regression.spectral import eigen, solve

__all__ = ["BAND", "run_determinants", "wall", "within_band", "written_out"]

BAND = (-float(np.log(np.finfo(np.float64).max)), -float(np.log(5e-324)))
"""log|Q| at which det(inv(Q)) is neither infinite nor zero."""


def written_out(Q: Float64s) -> float:
    """log(det(inv(Q))), step by step."""
    with np.errstate(all="ignore"):
        return float(np.log(np.linalg.det(np.linalg.inv(Q))))


def within_band(profile: Profile) -> tuple[float, float]:
    """α and γ of the best likelihood among those for which the formula is finite."""
    gammas = np.concatenate([[0.0], np.exp(np.linspace(-14.0, 14.0, 1401))])
    S, log_det = profile(gammas)
    n = profile.n
    logs = np.clip(np.log(n / (2 * S)), (BAND[0] - log_det) / n, (BAND[1] - log_det) / n)
    cost = np.exp(logs) * S - n / 2 * logs - log_det / 2
    best = int(np.argmin(cost))
    return float(np.exp(logs[best])), float(gammas[best])


def wall(values: Float64s) -> float:
    """γ at which log|I + γL| leaves the band; L has these eigenvalues. Tiny graphs have none."""
    values = np.maximum(values, 0.0)  # rounding makes zeros negative, and e^34 times as large

    def beyond(log_gamma: float) -> float:
        return float(np.log1p(np.exp(log_gamma) * values).sum()) - BAND[1]

    low, high = -30.0, float(np.log(LARGEST_GAMMA))
    return float(np.exp(brentq(beyond, low, high))) if beyond(high) > 0 else LARGEST_GAMMA


def run_determinants(case: Case, repetition: int) -> dict[str, Any]:
    """For each base model the likelihood's optimum, what the formula gives there, and errors."""
    train, test = case.pair(repetition)
    n, y = len(train.y), train.y
    with one_thread(), hushed():
        L, L_test = (laplacian(normalise(part.graph)) for part in (train, test))
        values, vectors = eigen(L)
        stop = wall(values)
        found: dict[str, Any] = {"kind": "determinants", "n": n, "wall": stop, "models": {}}
        for name, base in unstructured().items():
            model = seeded(clone(base), repetition).fit(train.X, y)
            r, r_test = model.predict(train.X), model.predict(test.X)
            of_r = values, (vectors.T @ r) ** 2
            profile = SpectralProfile(L, y, r, of_r, (values, np.ones(n)))
            best = search(profile)
            Q = best.alpha * (np.eye(n) + best.gamma * L.toarray())
            alpha, gamma = within_band(profile)
            errors = {
                how: float(np.mean((solve(L_test, g, r_test) - test.y) ** 2))
                for how, g in (
                    ("base", 0.0), ("likelihood", best.gamma), ("band", gamma), ("wall", stop)
                )
            }  # fmt: skip
            found["models"][name] = {
                "alpha": best.alpha,
                "gamma": best.gamma,
                "log_det": float(np.linalg.slogdet(Q)[1]),
                "written_out": str(written_out(Q)),  # JSON has no infinities
                "band": [alpha, gamma],
                "mse": errors,
            }
    return found
