r"""Risk of structured regression and its bound (Pavlovski et al. 2018, sections 2 and 3).

For a learning algorithm with losses in [0, 1] (Alabdulmohsin 2015, Theorem 1)

    R̂_true ≤ R̂_emp + 1 − 𝒮(ℓ(·,h), z_trn),                                          (Eq. 1, 5)

with expectations over training sets and hypotheses, and 𝒮 = 1 − ℐ the *mutual stability*: ℐ is the
total variation distance between the joint distribution of ℓ(·,h) and a random training example
z_trn and the product of their marginals. GLACER minimises instead, on one training set,

    R_obj = √(R_emp² + dCorr(L, Z)²),   L = (ℓ(z_i, h))_i,   Z = (z_i)_i.             (Eq. 2, 7)

What can be computed, and what it is worth:

- 𝒮 of the theorem is a property of the algorithm: how much the distribution of the *loss function*
  changes when one training example is known. It takes many training sets to estimate.
- The paper reads L and Z as paired observations from one training set. :func:`mutual_stability`
  estimates the variation distance of *these pairs*: both sides are cut into cells of equal counts
  and the histogram of pairs is compared with the product of its margins.
- Such a plug-in distance is positive for independent pairs, too. What pairs exchanged at random
  give is therefore estimated and taken off (``chance``). Coarse cells overlook dependence, fine
  ones drown it in chance: the estimate tends to be too high a stability, and the bound made from it
  is an illustration of Eq. (1), not a guarantee.
- dCorr vanishes exactly if ℐ does, but neither bounds the other by a constant; the paper claims no
  more than that one inspired the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.arrays import Float64s, as_array
from trellis.domains import nothing, seed, sequence_of, whole
from trellis.errors import DataError
from trellis.theory.checks import at_least

__all__ = [
    "MutualStability",
    "bias_variance_objective",
    "mutual_stability",
    "true_risk_bound",
]


@dataclass(frozen=True)
class MutualStability:
    """An estimate of mutual stability.

    Attributes
    ----------
    stability : float
        1 − (variation − chance) / (most − chance), in [0, 1], where ``most`` is the largest
        distance that these cells allow, that of a complete dependence.
    variation : float
        Variation distance of the histogram of pairs and the product of its margins.
    chance : float
        Mean of the same after random exchanges, where nothing depends on anything.
    cells : (int, int)
        Cells of the losses and of the examples.
    """

    stability: float
    variation: float
    chance: float
    cells: tuple[int, int]


def bias_variance_objective(losses: ArrayLike, examples: ArrayLike) -> float:
    """R_obj = √(R_emp² + dCorr²), the objective of GLACER (Eq. 2 and 7).

    Parameters
    ----------
    losses : array of shape (n,)
        ℓ(z_i, h), in [0, 1].
    examples : array of shape (n, k)
        z_i = (x_i, y_i).

    Returns
    -------
    float
        Between the mean loss and √2.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.theory import bias_variance_objective
    >>> z = np.arange(4.0)[:, None]
    >>> bias_variance_objective([0.3, 0.3, 0.3, 0.3], z)  # equal losses depend on nothing
    0.3
    >>> round(bias_variance_objective([0.1, 0.2, 0.3, 0.4], z), 4)
    1.0308
    """
    from trellis.regression.distance_correlation import distance_correlation

    L, Z = _pairs(losses, examples)
    return float(np.hypot(L.mean(), distance_correlation(L, Z)))


def mutual_stability(
    losses: ArrayLike,
    examples: ArrayLike,
    *,
    cells: tuple[int, int] | None = None,
    n_exchanges: int = 50,
    random_state: int | np.random.Generator = 0,
) -> MutualStability:
    """Estimate 1 − ℐ(L, Z) of paired observations; read what the module says of its worth.

    Losses are cut into intervals of equal counts; examples into boxes of equal counts, by cutting
    at the median of one column after the other.

    Parameters
    ----------
    losses : array of shape (n,)
        In [0, 1].
    examples : array of shape (n, k)
        z_i = (x_i, y_i).
    cells : (int, int), optional
        Intervals of losses and boxes of examples; boxes are rounded down to a power of 2. By
        default the power of 2 below n^(1/3) of each, at most 16.
    n_exchanges : int
        Random exchanges that ``chance`` is the mean of.
    random_state : int or Generator

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.theory import mutual_stability
    >>> z = np.linspace(0, 1, 400)[:, None]
    >>> round(mutual_stability(z[:, 0], z).stability, 2)
    0.0
    >>> independent = np.random.default_rng(0).random(400)
    >>> mutual_stability(independent, z).stability > 0.9
    True
    """
    L, Z = _pairs(losses, examples)
    n = len(L)
    whole(1).check("n_exchanges", n_exchanges)
    seed.check("random_state", random_state)
    (nothing | sequence_of(whole(), "a pair of integers")).check("cells", cells)
    if cells is None:
        k = 2 ** max(1, min(4, int(np.log2(n) / 3)))
        cells = (k, k)
    if len(cells) != 2 or min(cells) < 2 or max(cells) > n:
        raise DataError(f"cells must lie between 2 and {n}, the number of examples, got {cells}")
    rng = np.random.default_rng(random_state)
    bins = _intervals(L, cells[0])
    boxes = _boxes(Z, int(np.log2(cells[1])))
    variation = _variation(bins, boxes)
    exchanged = [_variation(rng.permutation(bins), boxes) for _ in range(n_exchanges)]
    chance = float(np.mean(exchanged))
    most = max(min(_variation(bins, bins), _variation(boxes, boxes)), chance + 1e-12)
    information = float(np.clip((variation - chance) / (most - chance), 0.0, 1.0))
    sizes = (int(bins.max()) + 1, int(boxes.max()) + 1)
    return MutualStability(1.0 - information, variation, chance, sizes)


def true_risk_bound(empirical_risk: float, stability: float | MutualStability) -> float:
    """R_emp + 1 − 𝒮: the right-hand side of Eq. (1).

    With ``stability`` from :func:`mutual_stability` it is an illustration, not a guarantee.

    Parameters
    ----------
    empirical_risk : float
        Mean loss, in [0, 1].
    stability : float or MutualStability
        In [0, 1].

    Examples
    --------
    >>> from trellis.theory import true_risk_bound
    >>> round(true_risk_bound(0.2, 0.95), 2)
    0.25
    """
    value = stability.stability if isinstance(stability, MutualStability) else stability
    for name, x in (("empirical_risk", empirical_risk), ("stability", value)):
        at_least(0, **{name: x})
        if x > 1:
            raise DataError(f"{name} must lie in [0, 1], got {x!r}")
    return float(empirical_risk + 1 - value)


def _pairs(losses: ArrayLike, examples: ArrayLike) -> tuple[Float64s, Float64s]:
    L, Z = as_array(losses, np.float64, "losses"), as_array(examples, np.float64, "examples")
    if Z.ndim == 1:
        Z = Z[:, None]
    if L.ndim != 1 or Z.ndim != 2 or len(L) != len(Z) or len(L) < 2:
        raise DataError(
            f"losses and examples have shapes {L.shape} and {Z.shape}: expected (n,) and (n, k) "
            "with n at least 2"
        )
    if not (np.isfinite(L).all() and L.min() >= 0 and L.max() <= 1):
        raise DataError("losses must lie in [0, 1]; the theorem is about bounded losses")
    if not Z.shape[1]:
        raise DataError("examples have no column")
    if not np.isfinite(Z).all():
        raise DataError(f"example {int(np.argmin(np.isfinite(Z).all(1)))} is not finite")
    return L, Z


def _intervals(values: Float64s, k: int) -> NDArray[np.int64]:
    """Number of the interval of each value; equal values share one."""
    edges = np.unique(np.quantile(values, np.arange(1, k) / k))
    return np.unique(np.searchsorted(edges, values, side="left"), return_inverse=True)[1]


def _boxes(Z: Float64s, depth: int) -> NDArray[np.int64]:
    """Number of the box of each row: halves at the median, one column after the other."""
    box = np.zeros(len(Z), dtype=np.int64)
    for level in range(depth):
        column, upper = Z[:, level % Z.shape[1]], np.zeros(len(Z), dtype=np.int64)
        for b in np.unique(box):
            inside = box == b
            upper[inside] = column[inside] > np.median(column[inside])
        box = 2 * box + upper
    return np.unique(box, return_inverse=True)[1]


def _variation(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    """½ Σ |joint − product of margins| of two labellings."""
    joint = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(joint, (a, b), 1.0 / len(a))
    return float(0.5 * np.abs(joint - joint.sum(1)[:, None] * joint.sum(0)[None, :]).sum())
