"""What a Gaussian CRF keeps of the nodes that it was trained on: targets, and base predictions.

A base model looks better on the rows it was trained on than it is, so these have their out-of-fold
predictions R. A row that comes back among rows to predict, its target given as observed, is known
by its target and by what the base models, trained on it, say of it; then R takes the place of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s
from trellis.errors import CorruptModelError
from trellis.files.stored import check_range, take

__all__ = ["TrainingNodes"]

_DIGITS = 8  # that base predictions of a row agree to, however many rows are asked for
_FAR = 1e300


@dataclass(frozen=True)
class TrainingNodes:
    """Nodes of the training graph.

    Attributes
    ----------
    y : (n,)
        Targets, NaN where they are not known.
    R : (n, K)
        Base predictions, out-of-fold where the target is known.
    fitted : (n, K)
        What the base models say that were trained on all known targets.
    """

    y: Float64s
    R: Float64s
    fitted: Float64s

    def twins(self, y: Float64s, fitted: Float64s) -> npt.NDArray[np.intp]:
        """For each row the training node that it is, -1 if it is none (or y is NaN).

        Examples
        --------
        >>> column = np.array([[1.5], [2.5]])
        >>> nodes = TrainingNodes(np.array([1.0, 2.0]), column, column)
        >>> nodes.twins(np.array([2.0, 2.0, np.nan]), np.array([[2.5], [1.5], [2.5]]))
        array([ 1, -1, -1])
        """
        found = np.full(len(y), -1, dtype=np.intp)
        asked, known = np.flatnonzero(~np.isnan(y)), np.flatnonzero(~np.isnan(self.y))
        if not len(asked) or not len(known):
            return found
        size = float(np.abs(self.fitted).max()) or 1.0
        ours = _keys(self.y[known], self.fitted[known] / size)
        theirs = _keys(y[asked], fitted[asked] / size)
        order = np.argsort(ours, kind="stable")
        place = np.minimum(np.searchsorted(ours[order], theirs), len(order) - 1)
        same = ours[order][place] == theirs
        found[asked[same]] = known[order[place[same]]]
        return found

    def state(self) -> dict[str, Any]:
        """What a file holds."""
        return {"targets": self.y, "out_of_fold": self.R, "fitted": self.fitted}

    @classmethod
    def restored(cls, state: Mapping[str, Any], n_bases: int) -> TrainingNodes:
        """Undo :meth:`state`, checking everything."""
        y = take(state, "targets", np.float64, (None,), finite=False)
        known = y[~np.isnan(y)]
        if not known.size:
            raise CorruptModelError("no training row has a target")
        check_range(known, -_FAR, _FAR, "targets")
        predictions = []
        for name in ("out_of_fold", "fitted"):
            values = take(state, name, np.float64, (len(y), n_bases))
            check_range(values, -_FAR, _FAR, name)
            predictions.append(values)
        return cls(y, predictions[0], predictions[1])


def _keys(y: Float64s, fitted: Float64s) -> npt.NDArray[Any]:
    """One value for each row that compares as the whole row does."""
    rows = np.ascontiguousarray(np.column_stack([y, np.round(fitted, _DIGITS)]) + 0.0)  # no -0
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
