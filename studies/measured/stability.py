r"""Measured stability: train again without a sample or a mini-sample, and look at the predictions.

For each piece size one decomposition of the training data is drawn and Eq. (8) solved exactly, with
all mini-samples and then without those removed, the divisor mn staying what it was (Eq. 23 and 25).
Function values and losses are those of :mod:`trellis.theory.quantities`, on whole sequences:
log p(y_k = · | x) and −log p(y_k | x). Beside them stands the bound of Theorem 11 or Corollary 12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from studies.measured.mini_samples import MiniSamples, check_setting, encode
from trellis.errors import DataError
from trellis.kernels.scoring import score_nodes
from trellis.problems import LabelProblem, Weights
from trellis.structures import ChainPotentials, marginals
from trellis.theory.checks import choice
from trellis.theory.quantities import RHO, TAU, FeatureSizes
from trellis.theory.stability import (
    Stability,
    mini_sample_stability_bound,
    sample_stability_bound,
)

__all__ = ["MeasuredStability", "measure_stability", "observed_stability"]


@dataclass(frozen=True)
class MeasuredStability:
    r"""What removing parts of the training data changed, at one piece size.

    Attributes
    ----------
    piece_size : float or None
        Mean size of the mini-samples; None for whole samples.
    alpha : float
        Mini-samples a sample in the decomposition drawn, on average.
    removed : "sample" or "mini-sample"
        What was removed, one at a time.
    n_removed : int
        How many removals were tried.
    largest : Stability
        Largest changes over all removals and test positions: lower bounds of Δ, Δ_l, Δ_s.
    mean : Stability
        The same changes, each the largest over the test positions, averaged over the removals.
    typical : float
        Mean over removals, positions and labels of the change of the function value.
    weights : float
        Largest change ‖w − w\i‖ of the weights.
    bound : Stability
        Upper bounds by Theorem 11 (mini-sample) or Corollary 12 (sample), with n the longest
        sequence, α the longest sequence over the longest mini-sample, d the number of active
        features. They hold for every sample no longer than n with features as on these data.
    error : float
        The weights of the minimisers compared are exact up to this distance.
    """

    piece_size: float | None
    alpha: float
    removed: str
    n_removed: int
    largest: Stability
    mean: Stability
    typical: float
    weights: float
    bound: Stability
    error: float


def measure_stability(
    corpus: Any,
    piece_sizes: Sequence[float | None],
    *,
    removed: str = "sample",
    n_removed: int = 5,
    test: Any = None,
    features: Any = "auto",
    l2: float = 1.0,
    random_state: int = 0,
) -> list[MeasuredStability]:
    """Change of predictions when a part of the training data is removed, against the piece size.

    Training is exact (L-BFGS on one decomposition drawn for each size), so that nothing but the
    removal changes. The samples chosen are the same for all sizes; of each, all mini-samples are
    removed, or one at random. Meant for some hundred sequences: it solves
    ``len(piece_sizes) · (n_removed + 1)`` problems, all but the first of each size from a good
    start.

    Parameters
    ----------
    corpus : Corpus or (X, y)
        Training data, completely labelled.
    piece_sizes : list of float or None
        Mean sizes of mini-samples; None for whole samples.
    removed : "sample" or "mini-sample"
        What to remove.
    n_removed : int
        How many removals to try, at most the number of samples.
    test : Corpus or (X, y), optional
        Where to look at the predictions; the training data if not given.
    features : str, list of str, Templates or "auto"
        As in :class:`trellis.ChainCRF`.
    l2 : float
        Strength of the penalty on the sum of losses.
    random_state : int
        Seed; the same seed gives the same numbers.

    Returns
    -------
    list of MeasuredStability
        One for each piece size, in their order.

    Examples
    --------
    >>> from studies.measured import measure_stability
    >>> X = [["a", "b", "c", "d"], ["b", "a", "d", "c"], ["a", "b", "d", "c"]] * 2
    >>> y = [["A", "B", "A", "B"], ["B", "A", "B", "A"], ["A", "A", "B", "B"]] * 2
    >>> whole, cut = measure_stability((X, y), [None, 2], n_removed=2, features="word")
    >>> whole.alpha, cut.alpha
    (1.0, 2.0)
    >>> whole.largest.function < whole.bound.function
    True
    """
    choice("removed", removed, ("sample", "mini-sample"))
    check_setting(piece_sizes, l2, random_state)
    if not (isinstance(n_removed, int | np.integer) and n_removed >= 1):
        raise DataError(f"n_removed must be a positive integer, got {n_removed!r}")
    train, held_out, n_features = encode(corpus, features, test)
    n_samples = len(train.sample_weight)
    rng = np.random.default_rng(random_state)
    chosen = rng.permutation(n_samples)[:n_removed]
    shares = rng.random(len(chosen))  # which mini-sample of a chosen sample
    sizes = _larger(FeatureSizes.of(train.encoded, n_features), held_out, n_features)
    longest = int(max(np.diff(d.encoded.offsets).max() for d in (train, held_out)))

    result = []
    for size in piece_sizes:
        problem = MiniSamples.draw(train, n_features, size, l2, random_state)
        whole = problem.minimise()
        values, losses = _predictions(whole.weights, held_out)
        changes, typical, moved, error = [], 0.0, 0.0, whole.error
        for sample, share in zip(chosen, shares, strict=True):
            parts = np.flatnonzero(problem.pieces.sample == sample)
            if removed == "mini-sample":
                parts = parts[[int(share * len(parts))]]
            less = problem.minimise(start=whole.weights, without=parts)
            other_values, other_losses = _predictions(less.weights, held_out)
            changes.append(
                observed_stability(
                    values, other_values, losses, other_losses, held_out.encoded.offsets
                )
            )
            typical += float(np.abs(values - other_values).mean()) / len(chosen)
            moved = max(moved, _distance(whole.weights, less.weights))
            error = max(error, whole.error + less.error)
        bound = mini_sample_stability_bound if removed == "mini-sample" else sample_stability_bound
        result.append(
            MeasuredStability(
                piece_size=size,
                alpha=problem.alpha,
                removed=removed,
                n_removed=len(chosen),
                largest=_combined(changes, np.max),
                mean=_combined(changes, np.mean),
                typical=typical,
                weights=moved,
                bound=bound(
                    m=n_samples,
                    n=longest,
                    d=sizes.active,
                    alpha=longest / int(np.diff(problem.pieces.offsets).max()),
                    lam=2 * l2 / (n_samples * longest),
                    v=sizes.largest,
                    rho=RHO,
                    tau=TAU,
                ),
                error=error,
            )
        )
    return result


def _predictions(
    weights: Weights, data: LabelProblem
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log-probabilities (N, L) of all labels and the losses (N,) of the gold ones."""
    e = data.encoded
    node = score_nodes(e.indptr, e.indices, e.values, weights.node, 0, len(e.indptr) - 1)
    _, found = marginals(ChainPotentials(node, weights.transitions, e.offsets))
    values = np.log(np.maximum(found, np.finfo(np.float64).tiny))
    return values, -values[np.arange(len(values)), data.labels.ids]


def _larger(sizes: FeatureSizes, data: LabelProblem, n_features: int) -> FeatureSizes:
    other = FeatureSizes.of(data.encoded, n_features)
    return FeatureSizes(
        max(sizes.active, other.active),
        max(sizes.largest, other.largest),
        max(sizes.norm, other.norm),
    )


def _combined(changes: list[Stability], how: Any) -> Stability:
    return Stability(
        float(how([c.function for c in changes])),
        float(how([c.loss for c in changes])),
        float(how([c.sample_loss for c in changes])),
    )


def _distance(a: Weights, b: Weights) -> float:
    return math.sqrt(Weights(a.node - b.node, a.transitions - b.transitions).squared_norm())


def observed_stability(
    values: ArrayLike,
    values_without: ArrayLike,
    losses: ArrayLike,
    losses_without: ArrayLike,
    offsets: ArrayLike,
) -> Stability:
    r"""Largest changes seen on some samples (Definitions 8 and 9).

    The definitions take the supremum over all samples and training sets. What is seen on some is a
    lower bound of that.

    Parameters
    ----------
    values, values_without : array (N, ...)
        Function values f(x, k) and f\i(x, k) at all positions; with several values a position (one
        for each label) the largest change counts.
    losses, losses_without : array (N,)
        Point-wise losses ℓ(f, z, k) and ℓ(f\i, z, k).
    offsets : array of int (S+1,)
        Sample s is the positions ``offsets[s]:offsets[s + 1]``.

    Examples
    --------
    >>> from studies.measured import observed_stability
    >>> observed_stability([1.0, 2.0, 3.0], [1.5, 2.0, 3.0], [0, 1, 2], [0.25, 1.25, 1], [0, 2, 3])
    Stability(function=0.5, loss=1.0, sample_loss=1.0)
    """
    f, g = _floats(values, "values"), _floats(values_without, "values_without")
    a, b = _floats(losses, "losses"), _floats(losses_without, "losses_without")
    bounds = np.asarray(offsets)
    n = len(f) if f.ndim else 0
    for name, array, shape in (
        ("values_without", g, f.shape),
        ("losses", a, (n,)),
        ("losses_without", b, (n,)),
    ):
        if array.shape != shape:
            raise DataError(f"{name} has shape {array.shape}; expected {shape}")
    if not (
        bounds.ndim == 1
        and bounds.size > 1
        and bounds.dtype.kind in "iu"
        and bounds[0] == 0
        and bounds[-1] == n > 0
        and (np.diff(bounds) >= 0).all()
    ):
        raise DataError(f"offsets must rise from 0 to the number of positions, {n}, at least 1")
    change = np.concatenate([[0.0], np.cumsum(a - b)])[bounds]
    return Stability(
        float(np.abs(f - g).max()),
        float(np.abs(a - b).max()),
        float(np.abs(np.diff(change)).max()),
    )


def _floats(array: ArrayLike, name: str) -> NDArray[Any]:
    try:
        numbers = np.asarray(array, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers: {error}") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"{name} must be finite; some are NaN or infinite")
    return numbers
