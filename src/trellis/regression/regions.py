"""What a Gaussian CRF errs by in regions from which nothing is known.

Leave-one-out residuals are those of nodes among known ones. The map is cut into cells (k-means of
the places), in five folds: ten cells up to 500 nodes, and of n nodes sqrt(n / 5), as who knows many
places asks about smaller parts of the map. Nodes of a fold are predicted from the nodes of the
others, by base models that were trained on these, too. Then v_i = 1 / (1 + w_i) with the sum w_i of
what links a node to known ones is that of an inner node if the edge of the region is near, and 1
far from it. As many folds are made as hold a thousand nodes, and two at least; none that holds most
nodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.regression.bases import one_thread, predictions, trained
from trellis.regression.conditional import joined_to_known
from trellis.regression.folds import blocked_folds
from trellis.regression.training_graphs import TrainingGraphs

__all__ = ["Errors", "Weights", "errors_in_regions"]

_FOLDS, _CELLS = 5, 10
_NODES = 500  # up to which there are no more cells
_ENOUGH = 1000  # nodes that were left out


@dataclass(frozen=True)
class Weights:
    """What was learnt: how base predictions and graphs are weighted."""

    a: Float64s
    rho: Float64s
    gamma: Float64s
    alone: Float64s


@dataclass(frozen=True)
class Errors:
    """Of nodes in regions that were left out: the model's, its v, and those of the base alone."""

    model: Float64s
    v: Float64s
    base: Float64s


def errors_in_regions(
    models: Sequence[Any],
    bounds: Float64s,
    X: Any,
    y: Float64s,
    R: Float64s,
    graphs: TrainingGraphs,
    weights: Weights,
    random_state: int,
) -> Errors | None:
    """Leave out regions; None if there are too few, or a base model refuses to do without one.

    Parameters
    ----------
    models : list
        Base models, not fitted; empty if R is all there is, which then stays as it is.
    bounds : (K, 2)
        What base predictions are cut off at.
    X, y, R
        Rows, targets and out-of-fold base predictions.
    graphs : TrainingGraphs
        Which new nodes can join.
    weights : Weights
    random_state : int
    """
    from sklearn.utils import _safe_indexing

    places, geographic = graphs.places
    cells = round(_CELLS * max(1.0, len(y) / _NODES) ** 0.5)
    try:
        with one_thread():
            fold, _ = blocked_folds(
                places, _FOLDS, n_cells=cells, geographic=geographic, random_state=random_state
            )
    except DataError:
        return None
    enough = min(_FOLDS, max(2, int(np.ceil(_ENOUGH * _FOLDS / len(y)))))
    parts: list[tuple[Float64s, Float64s, Float64s]] = []
    for number in range(_FOLDS):
        kept, left = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        if len(left) > len(kept) or len(parts) == enough:
            continue
        says = R[left]
        if models:
            try:
                fitted = trained(models, _safe_indexing(X, kept), y[kept])
                says = predictions(fitted, _safe_indexing(X, left)).clip(*bounds.T)
            except DataError as error:  # such as a category that only this region has
                warnings.warn(
                    f"standard deviations are those among known places: with a region left out"
                    f" {error}",
                    stacklevel=2,
                )
                return None
        w, pull = graphs.between(left, kept, y - R @ weights.rho, weights.gamma)
        mean, v = joined_to_known(says @ weights.a, says @ weights.rho, w, pull)
        parts.append((y[left] - mean, v, y[left] - says @ weights.alone))
    if not parts:
        return None
    return Errors(*(np.concatenate(part) for part in zip(*parts, strict=True)))
