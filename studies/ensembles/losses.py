r"""Losses of label sequences that ensembles are judged by.

An *additive* loss of an answer y′ to a sample of l positions with right labels y is

.. math:: L(y', y) = \frac{1}{l} \sum_{k=1}^{l} c(y_k, y'_k).

With :math:`c = [y_k \ne y'_k]` it is the normalised Hamming loss. Edit distance is not additive: it
serves for evaluation, and alignment (:mod:`trellis.experts.alignment`) brings it near to the
Hamming loss of the aligned answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.evaluation import edit_distance
from trellis.evaluation.pairs import check_lengths, check_samples
from trellis.experts import as_gold, as_outputs

__all__ = ["additive_loss", "expert_losses", "mean_edit_distance"]

Loss = str | Callable[[str, str], float]


def additive_loss(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], loss: Loss = "hamming"
) -> float:
    """Mean over samples of an additive loss.

    Parameters
    ----------
    gold, predicted : sequence of label sequences
        Samples without positions have loss 0.
    loss : "hamming" or function (right label, label said) -> number of at least 0

    Examples
    --------
    >>> from studies.ensembles.losses import additive_loss
    >>> additive_loss([["N", "V"], ["N"]], [["N", "N"], ["N"]])
    0.25
    >>> additive_loss([["N", "V"], ["N"]], [["N", "N"], ["N"]], lambda y, z: 3.0 * (y != z))
    0.75
    """
    check_lengths(gold, predicted)
    labels = sorted({y for samples in (gold, predicted) for sample in samples for y in sample})
    table = _table(labels, loss)
    code_of = {label: code for code, label in enumerate(labels)}
    total = 0.0
    for right, answer in zip(gold, predicted, strict=True):
        if len(right):
            cells = ([code_of[y] for y in right], [code_of[y] for y in answer])
            total += float(table[cells].mean())
    return total / len(gold)


def expert_losses(outputs: Any, gold: Any, loss: Loss = "hamming") -> NDArray[np.float64]:
    """Additive loss of each expert: mean over the samples in which it says something.

    In a sample, positions where it says nothing are left out. An expert that never says anything
    has loss NaN.

    Parameters
    ----------
    outputs : ExpertOutputs or nested sequences
        ``outputs[j][i]`` is the label sequence of expert j for sample i, or None.
    gold : sequence of label sequences
    loss : "hamming" or function (right label, label said) -> number of at least 0

    Returns
    -------
    float64 (p,)

    Examples
    --------
    >>> from studies.ensembles.losses import expert_losses
    >>> expert_losses([[["N", "V"], ["N"]], [["V", None], None]], [["N", "V"], ["N"]]).tolist()
    [0.0, 1.0]
    """
    right, out = as_gold(gold, as_outputs(outputs))
    if not len(out):
        raise DataError("there are no samples to judge the experts by")
    table = _table(out.labels, loss)
    awake = out.codes >= 0
    costs = np.where(awake, table[right[:, None], out.codes], 0.0)
    heard = np.add.reduceat(awake, out.offsets[:-1], axis=0, dtype=np.int64)
    sums = np.add.reduceat(costs, out.offsets[:-1], axis=0)
    means = np.divide(sums, heard, out=np.zeros_like(sums), where=heard > 0)
    answered = (heard > 0).sum(axis=0)
    losses = np.full(out.n_experts, np.nan)
    np.divide(means.sum(axis=0), answered, out=losses, where=answered > 0)
    return losses


def mean_edit_distance(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Mean over samples of the edit distance of the answer from the right one.

    Examples
    --------
    >>> from studies.ensembles.losses import mean_edit_distance
    >>> mean_edit_distance([["K", "AE", "T"], ["AA"]], [["K", "T"], ["AA"]])
    0.5
    """
    check_samples(gold, predicted)
    return sum(map(edit_distance, predicted, gold)) / len(gold)


def _table(labels: Sequence[str], loss: Loss) -> NDArray[np.float64]:
    """Loss (L, L) of saying the column's label where the row's is right."""
    if loss == "hamming":
        return 1.0 - np.eye(len(labels))
    if not callable(loss):
        raise DataError(f"loss is {loss!r}: expected 'hamming' or a function of two labels")
    table = np.array([[loss(y, z) for z in labels] for y in labels], np.float64)
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise DataError("the loss must be a finite number of at least 0 for all pairs of labels")
    return table.reshape(len(labels), len(labels))
