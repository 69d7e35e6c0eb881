r"""Whether a model that says 90 % is right 90 % of the time.

At each position the predicted label is the one of highest marginal probability, and that
probability is the confidence c. The interval [0, 1] is cut into bins of equal width; with
:math:`n_k` positions in bin k, mean confidence :math:`\bar c_k` and accuracy :math:`\bar a_k`,

.. math:: \text{ECE} = \sum_k \frac{n_k}{n} |\bar a_k - \bar c_k|.

Two proper scores look at all the probabilities p of a position with gold label y:

.. math:: \text{Brier} = \frac{1}{n} \sum \sum_l (p_l - [l = y])^2, \qquad
          \text{log loss} = -\frac{1}{n} \sum \log p_y.

The Brier score lies in [0, 2]. In the log loss probabilities below the machine epsilon of float64
(2.2e-16) count as that, so that one impossible label does not make the mean infinite. A gold label
outside the classes has probability 0.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Weinberger, *On calibration of modern neural networks*, 2017;
G. W. Brier, *Verification of forecasts expressed in terms of probability*, 1950.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array
from trellis.domains import samples, whole
from trellis.errors import DataError
from trellis.evaluation.pairs import Gold, check_samples, checked_classes, single_label

__all__ = ["Calibration", "calibration"]

_SUM_TOLERANCE = 1e-3  # marginals may be float32
_SMALLEST = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration of :func:`calibration`; ``str()`` gives a table.

    Attributes
    ----------
    edges : (n_bins + 1,) array
        Bin k is ``[edges[k], edges[k + 1])``; the last one holds 1 too.
    count : (n_bins,) int64 array
        Positions in the bin.
    confidence, accuracy : (n_bins,) array
        Mean probability of the predicted label, and share of right ones; NaN in an empty bin.
    ece : float
        Expected calibration error.
    brier : float
        Brier score.
    log_loss : float
        Mean log loss in nats.
    """

    edges: NDArray[np.float64]
    count: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    ece: float
    brier: float
    log_loss: float

    def __str__(self) -> str:
        lines = [
            f"{self.count.sum()} positions; ECE: {self.ece:.4f}; Brier: {self.brier:.4f}; "
            f"log loss: {self.log_loss:.4f}",
            "       bin  confidence  accuracy    count",
        ]
        for k in np.flatnonzero(self.count):
            lines.append(
                f"{self.edges[k]:.2f}-{self.edges[k + 1]:.2f}   {self.confidence[k]:10.4f}"
                f"  {self.accuracy[k]:8.4f}  {self.count[k]:7}"
            )
        return "\n".join(lines)


def calibration(
    marginals: Sequence[NDArray[np.floating[Any]]],
    gold: Gold,
    classes: Sequence[Any],
    n_bins: int = 10,
) -> Calibration:
    """Compare the probabilities of the labels with how often they are right.

    Parameters
    ----------
    marginals : list of (n, L) arrays
        Probabilities of the labels at each position, rows adding up to 1.
    gold : list of lists of labels
        An entry may be None or a set of labels; unless the set is of one label it is skipped.
        A label outside `classes` is one that the model gives probability 0.
    classes : sequence
        Labels of the L columns.
    n_bins : int, default=10
        Number of bins of equal width.

    Raises
    ------
    DataError
        If shapes do not fit, rows are not probabilities, or no position is annotated.

    Examples
    --------
    >>> import numpy as np
    >>> marginals = [np.array([[0.9, 0.1], [0.6, 0.4]])]
    >>> result = calibration(marginals, [["A", "B"]], ["A", "B"])
    >>> round(result.ece, 4), round(result.brier, 4)
    (0.35, 0.37)
    """
    whole(1, 10**6).check("n_bins", n_bins)
    classes = checked_classes(classes)
    check_samples(gold, marginals, "marginals")
    index = {label: column for column, label in enumerate(classes)}
    rows: list[NDArray[np.float64]] = []
    columns: list[int] = []
    for i, (g, m) in enumerate(zip(gold, marginals, strict=True)):
        samples.check(f"sample {i} of gold", g)
        probabilities = _checked(m, i, len(g), len(classes))
        singles = [single_label(entry, i, t) for t, entry in enumerate(g)]
        keep = [t for t, label in enumerate(singles) if label is not None]
        rows.append(probabilities[keep])
        columns += [index.get(label, -1) for label in singles if label is not None]
    p = np.concatenate(rows)
    y = np.array(columns, dtype=np.int64)
    n = len(y)
    if n == 0:
        raise DataError("nothing to evaluate: no position of gold has exactly one label")

    confidence = np.minimum(p.max(axis=1), 1.0)
    right = p.argmax(axis=1) == y
    known = y >= 0
    of_gold = np.where(known, p[np.arange(n), y], 0.0)
    # sum (p_l - [l = y])^2 = sum p_l^2 - 2 p_y + 1, also where y is none of the columns
    brier = np.mean((p**2).sum(axis=1) - 2.0 * of_gold + 1.0)
    log_loss = -np.mean(np.log(np.clip(of_gold, _SMALLEST, 1.0)))

    bins = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    empty = np.full(n_bins, np.nan)
    full = count > 0
    mean_confidence, accuracy = (
        np.divide(np.bincount(bins, weights=w, minlength=n_bins), count, where=full, out=out)
        for w, out in ((confidence, empty.copy()), (right.astype(np.float64), empty.copy()))
    )
    gaps = np.abs(accuracy[full] - mean_confidence[full])
    return Calibration(
        edges=np.linspace(0.0, 1.0, n_bins + 1),
        count=count.astype(np.int64),
        confidence=mean_confidence,
        accuracy=accuracy,
        ece=float(np.sum(gaps * count[full]) / n),
        brier=float(brier),
        log_loss=float(log_loss),
    )


def _checked(
    marginals: NDArray[np.floating[Any]], sample: int, length: int, n_classes: int
) -> NDArray[np.float64]:
    p = as_array(marginals, np.float64, f"marginals of sample {sample}")
    if p.shape != (length, n_classes):
        raise DataError(
            f"sample {sample} of marginals has shape {p.shape}: expected {(length, n_classes)} "
            "(positions of gold, classes)"
        )
    if not (np.all(p >= -_SUM_TOLERANCE) and np.all(np.abs(p.sum(axis=1) - 1) <= _SUM_TOLERANCE)):
        raise DataError(
            f"sample {sample} of marginals is not made of probabilities: expected rows of "
            "numbers in [0, 1] that add up to 1"
        )
    return p
