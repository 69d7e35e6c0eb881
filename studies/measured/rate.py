r"""Measured rate: how many SGD updates a fixed learning rate needs, against the piece size.

For each piece size one decomposition is drawn and the minimum F* of Eq. (8) found exactly. Then SGD
visits the same mini-samples at a fixed rate, from zero weights, and the gap

    (F(w) − F*) / (F(0) − F*)

is looked at after each pass. It is a share of the gap at the start, since the objectives of two
decompositions are not the same function. Updates are counted in mini-samples visited; an update at
α costs about 1/α of one on whole samples, so passes tell more about time than updates do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.measured.mini_samples import MiniSamples, check_setting, encode
from trellis.decompose import VISITS
from trellis.errors import DataError
from trellis.models import ChainCRF
from trellis.problems import Weights
from trellis.theory.checks import choice, fraction, positive

__all__ = ["RateRun", "measure_rate"]


@dataclass(frozen=True)
class RateRun:
    """One run of SGD at one piece size and one fixed learning rate.

    Attributes
    ----------
    piece_size : float or None
        Mean size of the mini-samples; None for whole samples.
    alpha : float
        Mini-samples a sample in the decomposition drawn, on average.
    learning_rate : float
        The fixed rate η.
    n_mini_samples : int
        Mini-samples, which is also the updates of one pass.
    gaps : tuple of float
        The gap after each pass, as a share of the gap at the start.
    passes : int or None
        Passes until the gap was at most epsilon; None if it never was.
    updates : int or None
        The same in updates.
    """

    piece_size: float | None
    alpha: float
    learning_rate: float
    n_mini_samples: int
    gaps: tuple[float, ...]
    passes: int | None
    updates: int | None


def measure_rate(
    corpus: Any,
    piece_sizes: Sequence[float | None],
    *,
    learning_rates: Sequence[float] = (0.1,),
    epsilon: float = 0.01,
    max_passes: int = 50,
    visit: str = "permutation",
    features: Any = "auto",
    l2: float = 1.0,
    random_state: int = 0,
) -> list[RateRun]:
    """Number of SGD updates to come within epsilon of the optimum, against the piece size.

    The rate that suits one size need not suit another (in Proposition 5 it grows with α²): give
    several and compare the best run of each size. A run that diverges counts as one that does not
    arrive.

    Parameters
    ----------
    corpus : Corpus or (X, y)
        Training data, completely labelled.
    piece_sizes : list of float or None
        Mean sizes of mini-samples; None for whole samples.
    learning_rates : list of float
        Fixed rates to try at each size.
    epsilon : float
        In (0, 1): how small the gap to the optimum has to become, as a share of the gap at the
        start.
    max_passes : int
        A run ends after so many passes at the latest.
    visit : "permutation", "replacement" or "pooled"
        Order of the visits in a pass; Algorithm 1 draws with replacement.
    features : str, list of str, Templates or "auto"
        As in :class:`trellis.ChainCRF`.
    l2 : float
        Strength of the penalty on the sum of losses.
    random_state : int
        Seed; the same seed gives the same numbers.

    Returns
    -------
    list of RateRun
        One for each piece size and rate: all rates of the first size, then of the second, …

    Examples
    --------
    >>> from studies.measured import measure_rate
    >>> X = [["a", "b", "c", "d"], ["b", "a", "d", "c"], ["a", "b", "d", "c"]] * 5
    >>> y = [["A", "B", "A", "B"], ["B", "A", "B", "A"], ["A", "A", "B", "B"]] * 5
    >>> whole, cut = measure_rate((X, y), [None, 2], features="word", epsilon=0.05)
    >>> whole.n_mini_samples, cut.n_mini_samples
    (15, 30)
    >>> whole.updates == 15 * whole.passes
    True
    """
    check_setting(piece_sizes, l2, random_state)
    fraction(one=False, epsilon=epsilon)
    choice("visit", visit, VISITS)
    if not len(learning_rates):
        raise DataError("learning_rates is empty; give at least one rate")
    for rate in learning_rates:
        positive(learning_rate=rate)
    if not (isinstance(max_passes, int | np.integer) and max_passes >= 1):
        raise DataError(f"max_passes must be a positive integer, got {max_passes!r}")
    train, _, n_features = encode(corpus, features)
    runs = []
    for size in piece_sizes:
        problem = MiniSamples.draw(train, n_features, size, l2, random_state)
        lowest = problem.minimise().value
        zero = Weights.zeros(n_features, train.n_labels, np.float64)
        scale = problem.value(zero) - lowest
        for rate in learning_rates:
            gaps = _run(
                problem, float(rate), lowest, scale, epsilon, max_passes, visit, random_state
            )
            n = len(problem.pieces)
            passes = len(gaps) if gaps and gaps[-1] <= epsilon else None
            updates = None if passes is None else passes * n
            runs.append(RateRun(size, problem.alpha, float(rate), n, tuple(gaps), passes, updates))
    return runs


def _run(
    problem: MiniSamples,
    rate: float,
    lowest: float,
    scale: float,
    epsilon: float,
    max_passes: int,
    visit: str,
    seed: int,
) -> list[float]:
    """Gaps after each pass, until one is small enough or the passes are over."""
    corpus = problem.as_corpus()
    model = ChainCRF(
        solver="sgd",
        averaged=False,
        learning_rate=rate,
        decay=1.0,
        l2=problem.l2,
        max_passes=1,
        tol=-1,
        visit=visit,
        warm_start=True,
    )
    gaps: list[float] = []
    for number in range(max_passes):
        # A pass a fit, each with a seed of its own: the same seed would repeat the same order.
        model.set_params(random_state=seed + number)
        try:
            model.fit(corpus)
        except DataError:  # the weights are no longer finite
            break
        gaps.append((problem.value(model.weights_) - lowest) / scale)
        if gaps[-1] <= epsilon:
            break
    return gaps
