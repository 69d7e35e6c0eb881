r"""Additive losses between labellings, for margin rescaling.

A loss that is a sum over positions, :math:`\Delta(y^*, y) = \sum_t c_t(y_t)` with
:math:`c_t(y^*_t) = 0`, is found by the same inference as scores, by adding its costs to them. It
is given as

- ``"hamming"``: 1 for each wrong label;
- an array (L, L), ``loss[gold, predicted]``, in the order of the (sorted) labels;
- a function of the gold labels of a sample and of all labels that returns the costs (n, L).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Labels
from trellis.errors import DataError

__all__ = ["Costs", "additive_costs", "check_loss", "gold_labels"]


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of all labels at all positions: row ``rows[t]`` (N,) of ``table`` (R, L)."""

    table: NDArray[np.float64]
    rows: NDArray[np.int64]

    def dense(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """The costs of consecutive positions, row by row."""
        return self.table[self.rows[start:stop]]


def gold_labels(labels: Labels, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Gold labels (N,); raises if a position has none, or a set of them.

    Examples
    --------
    >>> gold_labels(Labels.from_lists([["a", "b"]]), np.array([0, 2])).tolist()
    [0, 1]
    """
    vague = np.flatnonzero(labels.ids >= len(labels.classes))
    if len(vague):
        t = int(vague[0])
        s = int(np.searchsorted(offsets, t, side="right")) - 1
        what = "is not annotated" if labels.ids[t] == len(labels.classes) else "has a set of labels"
        raise DataError(
            f"sample {s}, position {t - offsets[s]} {what}; max-margin training needs one label "
            "at each position (ChainCRF learns from label sets)"
        )
    return labels.ids.astype(np.int64)


def check_loss(loss: Any) -> None:
    """Raise unless this can be a loss: "hamming", a square array or a function."""
    if callable(loss) or (isinstance(loss, str) and loss == "hamming"):
        return
    if not isinstance(loss, str) and loss is not None:
        try:
            matrix = np.asarray(loss, np.float64)
        except (TypeError, ValueError):
            matrix = np.zeros(0)
        if matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]:
            return
    raise DataError(
        'loss must be "hamming", an array (labels, labels) or a function that returns the costs of '
        f"all labels at all positions of a sample; got {loss!r}"
    )


def additive_costs(
    loss: Any, gold: NDArray[np.int64], offsets: NDArray[np.int64], classes: Sequence[str]
) -> Costs:
    """Costs of a loss for all positions.

    Parameters
    ----------
    loss : str, array or function
        See above.
    gold : int64, shape (N,)
        Gold labels.
    offsets : int64, shape (S + 1,)
        Sample s is the positions ``offsets[s]:offsets[s + 1]``.
    classes : sequence of str
        The labels.

    Returns
    -------
    Costs

    Raises
    ------
    DataError
        If the loss is not one, is not additive, is not finite, or costs something where the label
        is right.

    Examples
    --------
    >>> costs = additive_costs("hamming", np.array([1, 0]), np.array([0, 2]), ["a", "b"])
    >>> costs.dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_loss(loss)
    n_labels = len(classes)
    if isinstance(loss, str):
        return Costs(1.0 - np.eye(n_labels), gold)
    if callable(loss):
        return _from_function(loss, gold, offsets, classes)
    table = np.ascontiguousarray(loss, np.float64)
    if table.shape != (n_labels, n_labels):
        raise DataError(f"loss has shape {table.shape}; there are {n_labels} labels")
    if not np.isfinite(table).all():
        raise DataError("loss holds numbers that are not finite")
    wrong = np.flatnonzero(np.diag(table) != 0)
    if len(wrong):
        raise DataError(
            f"loss[{wrong[0]}, {wrong[0]}] is {table[wrong[0], wrong[0]]}; the right label "
            f"({classes[wrong[0]]!r}) must cost 0"
        )
    return Costs(table, gold)


def _from_function(
    loss: Any, gold: NDArray[np.int64], offsets: NDArray[np.int64], classes: Sequence[str]
) -> Costs:
    names = np.array(classes, object)
    table = np.empty((len(gold), len(classes)))
    for s in range(len(offsets) - 1):
        own = slice(offsets[s], offsets[s + 1])
        answer = loss(names[gold[own]].tolist(), tuple(classes))
        shape = (int(offsets[s + 1] - offsets[s]), len(classes))
        try:
            costs = np.asarray(answer, np.float64)
        except (TypeError, ValueError):
            costs = np.full(1, np.nan)
        if costs.shape != shape or not np.isfinite(costs).all():
            raise DataError(
                f"the loss is not additive: for sample {s} it gave {_short(answer)}; expected the "
                f"cost of every label at every position, finite numbers of shape {shape}"
            )
        right = costs[np.arange(shape[0]), gold[own]]
        if right.any():
            t = int(np.flatnonzero(right)[0])
            raise DataError(
                f"sample {s}, position {t}: the loss gives the right label the cost {right[t]}; "
                "it must be 0"
            )
        table[own] = costs
    return Costs(table, np.arange(len(gold)))


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
