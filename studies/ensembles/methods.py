"""The methods of the paper by its names, methods of our own, and how one run of them is judged.

A *run* teaches every method on some samples and judges it on others by the normalised Hamming loss.
H_Rand is judged in expectation over its draws. «Best h_j» is the expert with the smallest loss on
the test samples: nobody could have known which it is, so beating it means something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.ensembles.losses import expert_losses
from trellis.experts import (
    BestExpert,
    ESPBoost,
    ExpertOutputs,
    FollowPerturbedLeader,
    ForwardStepwise,
    LogLinearVote,
    MajorityVote,
    Rerank,
    Rover,
    Stacking,
    WeightedMajority,
)

__all__ = ["BEST", "PAPER", "disjoint_runs", "hamming_losses", "new_method", "run_losses"]

PAPER = ("MVote", "FPL", "CV", "FPL-CV", "ESPBoost", "SLE", "Rand")
"""The paper's methods, in the order of its tables."""

BEST = "best h_j"


def new_method(
    name: str,
    *,
    beta: float = 0.95,
    tie: Any = "label",
    seed: int = 0,
    scheme: str | None = None,
) -> Any:
    """An untrained method by name, those of the paper as the paper has them.

    With ``tie="label"`` the methods that follow paths, FPL and ESPBoost, have ``"expert"``: a path
    needs one expert for each context.

    Examples
    --------
    >>> new_method("CV", beta=0.85).beta
    0.85
    """
    paths = "expert" if tie == "label" else tie
    made: dict[str, Callable[[], Any]] = {
        "MVote": lambda: WeightedMajority(beta=beta, tie=tie),
        "MVote 1/l": lambda: WeightedMajority(beta=beta, tie=tie, loss_scale="1/l"),
        "CV": lambda: WeightedMajority("cross-validation", beta=beta, tie=tie),
        "CV 1/l": lambda: WeightedMajority(
            "cross-validation", beta=beta, tie=tie, loss_scale="1/l"
        ),
        "Rand": lambda: WeightedMajority("randomised", beta=beta, tie=tie, random_state=seed),
        "FPL": lambda: FollowPerturbedLeader(tie=paths, epsilon="paper", random_state=seed),
        "FPL-CV": lambda: FollowPerturbedLeader(
            "cross-validation", tie=paths, epsilon="paper", random_state=seed
        ),
        "ESPBoost": lambda: ESPBoost(tie=paths, start="nothing"),
        "SLE": lambda: ForwardStepwise(start="empty", random_state=seed),
        "best expert": BestExpert,
        "vote": MajorityVote,
        "MVote by expert": lambda: WeightedMajority(beta=beta, tie="expert"),
        "MVote by label": lambda: WeightedMajority(beta=beta, tie="label"),
        "MVote by position": lambda: WeightedMajority(beta=beta, tie="position"),
        "ROVER": Rover,
        "log-linear vote": LogLinearVote,
        "re-ranking": lambda: Rerank(unit="sample"),
        "plurality": lambda: Rerank(unit="sample", weights="uniform"),
        "re-ranking runs": lambda: Rerank(unit="run"),
        "stacking": lambda: Stacking(scheme=scheme),
    }
    return made[name]()


def run_losses(
    methods: Mapping[str, Any],
    said: ExpertOutputs,
    gold: Sequence[Sequence[str]],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
) -> dict[str, float]:
    """Normalised Hamming loss of each method after learning from ``train``, on ``test``."""
    learn, right = said.take(train), [gold[i] for i in train]
    judge, truth = said.take(test), [gold[i] for i in test]
    losses = {}
    for name, method in methods.items():
        method.fit(learn, right)
        drawn = getattr(method, "conversion", "") == "randomised"
        losses[name] = (
            method.expected_loss(judge, truth) if drawn else 1 - method.score(judge, truth)
        )
    losses[BEST] = float(np.nanmin(expert_losses(judge, truth)))
    return losses


def disjoint_runs(
    n_samples: int, size: int, n_runs: int, seed: int
) -> Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Disjoint training sets in random order, each with all other samples for testing."""
    order = np.random.default_rng(seed).permutation(n_samples)
    for r in range(n_runs):
        train = order[r * size : (r + 1) * size]
        yield train, np.setdiff1d(order, train)


def hamming_losses(
    said: ExpertOutputs,
    gold: Sequence[Sequence[str]],
    names: Sequence[str],
    *,
    size: int,
    n_runs: int,
    beta: float,
    tie: Any = "label",
    seed: int = 0,
) -> dict[str, list[float]]:
    """Losses of methods in the paper's protocol: ``n_runs`` disjoint training sets of ``size``."""
    found: dict[str, list[float]] = {}
    for r, (train, test) in enumerate(disjoint_runs(len(said), size, n_runs, seed)):
        methods = {name: new_method(name, beta=beta, tie=tie, seed=seed + r) for name in names}
        for name, loss in run_losses(methods, said, gold, train, test).items():
            found.setdefault(name, []).append(loss)
    return found
