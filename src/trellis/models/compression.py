r"""Small models: features without much say are forgotten, weights rounded to half precision.

With the weights :math:`W` and those of rich edges, the say of feature f is the largest of its
weights,

.. math:: m_f = \max_y |W_{fy}|,

and only features with :math:`m_f \ge \tau` are kept, τ being given or such that a share of them is.
Features of edges are ranked with those of positions. Of those kept, weights below
:math:`\tau / 10` become zero: most features speak for a few labels, and training gives them a
little of all others. Transitions stay. What is zero takes no room in a file
(:mod:`trellis.files.packing`), nor do names and keys of features that are forgotten.

In float16 a weight keeps 11 of its 24 bits, a relative error of at most :math:`2^{-11}`. Arithmetic
is in float32 as before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import bounds
from trellis.errors import DataError
from trellis.features import AttributeEncoder, Encoder
from trellis.problems import EdgeWeights, Weights

__all__ = ["reduced", "rounded"]

_FINE = 0.1  # weights below this share of τ become zero


def rounded(weights: Weights, precision: str) -> Weights:
    """Weights that numbers of this precision hold exactly, in float32.

    Raises
    ------
    DataError
        If a weight is too large for it.

    Examples
    --------
    >>> weights = Weights(np.full((1, 2), 0.1, np.float32), np.zeros((2, 2), np.float32))
    >>> rounded(weights, "float16").node
    array([[0.09997559, 0.09997559]], dtype=float32)
    """
    if precision == "float32":
        return weights
    largest = max(float(np.abs(a).max(initial=0)) for a in weights.arrays())
    if largest > float(np.finfo(np.float16).max):
        raise DataError(
            f"the largest weight, {largest:.4g}, is too large for float16; "
            "use precision='float32', or train with a penalty (l2)"
        )
    return weights.map(lambda a: a.astype(np.float16).astype(a.dtype))


def reduced(
    encoder: Encoder,
    edge_encoder: AttributeEncoder | None,
    weights: Weights,
    keep: float,
    threshold: float | None,
) -> tuple[Encoder, AttributeEncoder | None, Weights]:
    """Features with the greatest say, and their weights.

    Parameters
    ----------
    encoder, edge_encoder, weights : Encoder, AttributeEncoder or None, Weights
    keep : float
        Share of the features, if no threshold is given.
    threshold : float or None
        τ.
    """
    say = _say(weights)
    if threshold is None:
        n = math.ceil(keep * len(say))
        first = np.argsort(-say, kind="stable")[:n]
        kept = np.zeros(len(say), bool)
        kept[first] = True
        threshold = float(say[first].min(initial=np.inf)) if n < len(say) else 0.0
    else:
        kept = say >= threshold
    kept &= say > 0
    least = _FINE * threshold
    n = encoder.n_features
    small, old = encoder.only(kept[:n])
    node, edge = _cut(weights.node[old], least), weights.edge
    own = np.zeros(0, np.int64)
    if edge_encoder is not None:
        edge_encoder, own = edge_encoder.only(kept[n:])
    if edge is not None:
        edge = _cut_edges(edge.taken(old, own), least)
    return small, edge_encoder, Weights(node, weights.transitions, edge)


def _say(weights: Weights) -> NDArray[Any]:
    """The largest weight of each feature (F,), then of each that edges have of their own."""
    say: NDArray[Any] = np.abs(weights.node).max(axis=1, initial=0)
    edge = weights.edge
    if edge is None:
        return say
    ends, of_row = edge.rows(), np.zeros(edge.n_rows, say.dtype)
    filled = np.flatnonzero(np.diff(ends))
    if len(filled):
        of_row[filled] = np.maximum.reduceat(np.abs(edge.values), ends[filled])
    feature = edge.features_of_rows()
    crossed = feature >= 0
    np.maximum.at(say, feature[crossed], of_row[crossed])
    return np.append(say, of_row[edge.n_joined :])


def _cut(values: NDArray[Any], least: float) -> NDArray[Any]:
    """The array with what is smaller than ``least`` set to zero."""
    cut: NDArray[Any] = np.where(np.abs(values) >= least, values, values.dtype.type(0))
    return cut


def _cut_edges(edge: EdgeWeights, least: float) -> EdgeWeights:
    """Rich edges without pairs of small weight, where a row need not have all pairs."""
    values = _cut(edge.values, least)
    if not edge.ptr.size:
        return edge.like(values)
    left = values != 0
    ptr = bounds(left)[edge.ptr]
    more = edge.n_own, edge.n_types
    return EdgeWeights(edge.row, ptr, edge.pair[left], values[left], edge.both, *more)
