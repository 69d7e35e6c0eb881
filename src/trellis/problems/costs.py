r"""Task losses between labellings that are sums over positions, for margin rescaling.

Where position t may have the labels :math:`A_t`, the label y costs

.. math:: c_t(y) = [y \notin A_t] \, \min_{g \in A_t} c(g, y),

and :math:`\Delta(A, y) = \sum_t c_t(y_t)` is found by the same inference as scores, by adding the
costs to them. c is given as

- ``"hamming"``: 1 for each wrong label;
- an array (L, L), ``cost[gold, predicted]``, in the order of the (sorted) labels;
- a function of the gold labels of a sample and of all labels that returns the costs (n, L), if
  every position has one label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.corpus import Labels
from trellis.corpus.label_values import as_objects
from trellis.errors import DataError

__all__ = ["Costs", "additive_costs", "check_cost"]


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of all labels at all positions: row ``rows[t]`` (N,) of ``table`` (R, L)."""

    table: NDArray[np.float64]
    rows: NDArray[np.int64]

    def dense(self, positions: slice | Int64s = slice(None)) -> Float64s:
        """The costs of all or of some positions, row by row."""
        return self.table[self.rows[positions]]


def check_cost(cost: Any) -> None:
    """Raise unless this can be a task loss: "hamming", a square array or a function."""
    if callable(cost) or (isinstance(cost, str) and cost == "hamming"):
        return
    if not isinstance(cost, str) and cost is not None:
        try:
            matrix = np.asarray(cost, np.float64)
        except (TypeError, ValueError):
            matrix = np.zeros(0)
        if matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]:
            return
    raise DataError(
        'cost must be "hamming", an array (labels, labels) or a function that returns the costs of '
        f"all labels at all positions of a sample; got {cost!r}"
    )


def additive_costs(cost: Any, labels: Labels, offsets: NDArray[np.int64]) -> Costs:
    """Costs of all labels at all positions.

    Parameters
    ----------
    cost : str, array or function
        See above.
    labels : Labels
        What is known of each position.
    offsets : int64, shape (S + 1,)
        Sample s is the positions ``offsets[s]:offsets[s + 1]``.

    Returns
    -------
    Costs

    Raises
    ------
    DataError
        If the cost is not one, is not additive, is not finite, or is not 0 where the label is
        right; or if it is a function and a position has not one label.

    Examples
    --------
    >>> labels = Labels.from_lists([["b", None, {"a", "b"}]], ["a", "b", "c"])
    >>> additive_costs("hamming", labels, np.array([0, 3])).dense().tolist()
    [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    check_cost(cost)
    if isinstance(cost, str):
        return Costs((~labels.table).astype(np.float64), labels.ids.astype(np.int64))
    if callable(cost):
        return _from_function(cost, labels, offsets)
    classes = labels.classes
    matrix = np.ascontiguousarray(cost, np.float64)
    if matrix.shape != (len(classes), len(classes)):
        raise DataError(f"cost has shape {matrix.shape}; there are {len(classes)} labels")
    if not np.isfinite(matrix).all():
        raise DataError("cost holds numbers that are not finite")
    wrong = np.flatnonzero(np.diag(matrix) != 0)
    if len(wrong):
        raise DataError(
            f"cost[{wrong[0]}, {wrong[0]}] is {matrix[wrong[0], wrong[0]]}; the right label "
            f"({classes[wrong[0]]!r}) must cost 0"
        )
    table = np.array([matrix[row].min(axis=0) for row in labels.table]).reshape(labels.table.shape)
    table[labels.table] = 0.0
    return Costs(table, labels.ids.astype(np.int64))


def _from_function(cost: Any, labels: Labels, offsets: NDArray[np.int64]) -> Costs:
    classes, gold = labels.classes, labels.ids
    if (gold >= len(classes)).any():
        raise DataError(
            "a cost that is a function needs one label at each position; give "
            "an array, cost[gold, predicted]"
        )
    names, table = as_objects(classes), np.empty((len(gold), len(classes)))
    for s in range(len(offsets) - 1):
        rows = slice(offsets[s], offsets[s + 1])
        answer = _asked(cost, names[gold[rows]].tolist(), tuple(classes))
        shape = (int(offsets[s + 1] - offsets[s]), len(classes))
        try:
            costs = np.asarray(answer, np.float64)
        except (TypeError, ValueError):
            costs = np.full(1, np.nan)
        if costs.shape != shape or not np.isfinite(costs).all():
            raise DataError(
                f"the cost is not additive: for sample {s} it gave {_short(answer)}; expected the "
                f"cost of every label at every position, finite numbers of shape {shape}"
            )
        right = costs[np.arange(shape[0]), gold[rows]]
        if right.any():
            t = int(np.flatnonzero(right)[0])
            raise DataError(
                f"sample {s}, position {t}: the cost gives the right label the cost {right[t]}; "
                "it must be 0"
            )
        table[rows] = costs
    return Costs(table, np.arange(len(gold)))


def _asked(cost: Any, gold: list[str], classes: tuple[str, ...]) -> Any:
    """What the function says; a class, which can be called too, may not take this."""
    try:
        return cost(gold, classes)
    except TypeError as error:
        raise DataError(f"the cost cannot be called with labels and classes: {error}") from error


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
