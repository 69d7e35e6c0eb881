"""How training went, in words: here, and only here, codes of the library become English."""

from __future__ import annotations

from typing import Any

__all__ = ["count", "ending", "step"]

_ENDINGS = {
    "tol": "converged",
    "gradient": "converged",
    "gap": "converged",
    "eta": "converged",
    "no mistakes": "converged",
    "rising": "no more improvement",
    "no progress": "no more improvement",
    "line search": "no more improvement",
    "weak learning": "no more improvement",
    "patience": "out of patience",
    "interrupted": "interrupted",
    "max_passes": "not converged",
    "max_iterations": "not converged",
    "max_rounds": "not converged",
}
_PASSES = ("", "sgd", "adf", "frank-wolfe")  # solvers that go in passes; files of old name none


def step(model: Any) -> str:
    """What a record of training is about: a pass, an iteration or a round."""
    if getattr(model, "solver_", None) in _PASSES:
        return "pass"
    return "round" if getattr(model, "gap_", 0.0) == float("inf") else "iteration"


def count(n: int, noun: str) -> str:
    """A number of things: «1 pass», «2 passes»."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{n} {noun}{'' if n == 1 else plural}"


def ending(model: Any) -> str:
    """Why training ended, in a word or two; nothing for passes that were made as asked."""
    gap = getattr(model, "gap_", None)
    chosen = any(getattr(r, "dev_score", None) is not None for r in getattr(model, "history_", ()))
    if gap is not None and gap < float("inf") and not chosen:  # else the gap is another point's
        share = float(f"{100 * gap / max(model.objective_, 1e-300):.2g}")
        return f"within {share:g} % of the optimum"
    # Nobody expects an optimum of steps.
    steps = gap is None or getattr(model, "solver_", None) == "sgd"
    if model.stop_reason_ == "max_passes" and steps and step(model) == "pass":
        return ""
    reason: str = model.stop_reason_
    return _ENDINGS.get(reason, reason)
