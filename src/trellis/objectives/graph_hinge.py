r"""Structured hinge losses of general graphs, whose inference may be inexact.

The risk is that of :mod:`trellis.objectives.hinge`. Where inference
(:func:`trellis.structures.graph_best`) gives a labelling :math:`\hat y` and an upper bound, the
labelling's plane lies below the risk and the bound above it; both go to the solver, whose gap is
then valid for the risk itself, if not as small as one might wish. It says so: ``exact`` in its
result is False.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.objectives.cut import Cut
from trellis.objectives.hinge import HingeData, feature_difference, pair_differences
from trellis.structures import GraphBest, GraphPotentials, graph_best

__all__ = ["GraphHingeLoss"]

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]


class GraphHingeLoss:
    """Structured hinge losses of stacked graphs; a :class:`trellis.objectives.StructuredOracle`.

    Parameters
    ----------
    data : HingeData
        Features, labels and costs.
    edges : int64, shape (E, 2)
        Pairs of positions.
    types : int64, shape (E,), optional
        Table of each edge; 0 by default.
    n_tables : int
        Number of tables K.
    directed : bool
        Whether the two ends of an edge play different parts.
    inference : str
        Method of :func:`trellis.structures.graph_best`, or "exact".
    """

    def __init__(
        self,
        data: HingeData,
        edges: Int64s,
        types: Int64s | None = None,
        *,
        n_tables: int = 1,
        directed: bool = True,
        inference: str = "auto",
    ) -> None:
        self.data = data
        self.n_tables = n_tables
        self.directed = directed
        self.inference = inference
        offsets = data.encoded.offsets
        owner = np.searchsorted(offsets, edges[:, 0], side="right") - 1
        order = np.argsort(owner, kind="stable")
        self._edges = edges[order]
        self._types = np.zeros(len(edges), np.int64) if types is None else types[order]
        self._edge_offsets = np.searchsorted(owner[order], np.arange(len(offsets)))

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.data.sample_weight)

    @property
    def n_weights(self) -> int:
        """Number of weights F L + K L²."""
        L = self.data.n_labels
        return (self.data.n_features + self.n_tables * L) * L

    def split(self, w: Float64s) -> tuple[Float64s, Float64s]:
        """Views of flat weights: node weights (F, L) and tables (K, L, L)."""
        L = self.data.n_labels
        n = self.data.n_features * L
        return w[:n].reshape(-1, L), w[n:].reshape(self.n_tables, L, L)

    def risk(self, w: Float64s) -> Cut:
        """Bounds of R(w), and the slope of a plane below R."""
        from trellis.kernels.counts import count_differences

        d, e = self.data, self.data.encoded
        found, gold = self._augmented(w, 0, self.n_samples)
        slope = np.zeros(self.n_weights)
        node, tables = self.split(slope)
        weight = d.position_weight
        count_differences(e.indptr, e.indices, e.values, weight, found.labels, d.gold, node)
        first, second = self._edges.T
        tables += pair_differences(
            first, second, self._types, weight[first], found.labels, d.gold,
            (self.n_tables, d.n_labels), self.directed,
        )  # fmt: skip
        upper = d.sample_weight @ (found.bounds - gold)
        return Cut(float(upper), float(d.sample_weight @ (found.scores - gold)), slope)

    def best(self, i: int, w: Float64s) -> tuple[tuple[Int64s, Float64s], float, float]:
        """Features psi and loss of a labelling, and an upper bound of the loss of sample i."""
        d, offsets = self.data, self.data.encoded.offsets
        a, b = int(offsets[i]), int(offsets[i + 1])
        found, gold = self._augmented(w, i, i + 1)
        loss = float(d.costs.dense(a, b)[np.arange(b - a), found.labels].sum())
        labels = d.gold.copy()
        labels[a:b] = found.labels
        own = slice(self._edge_offsets[i], self._edge_offsets[i + 1])
        first, second = self._edges[own].T
        psi = feature_difference(
            d, a, b, labels, first, second, self._types[own], self.n_tables, self.directed
        )
        return psi, loss, float(found.bounds[0] - gold[0])

    def _augmented(self, w: Float64s, i: int, j: int) -> tuple[GraphBest, Float64s]:
        """Best labellings of samples i..j under scores and costs, and scores of the gold ones."""
        from trellis.kernels.scoring import score_nodes

        d, e = self.data, self.data.encoded
        a, b = int(e.offsets[i]), int(e.offsets[j])
        W, T = self.split(w)
        S = T if self.directed else T + T.transpose(0, 2, 1)
        own = slice(self._edge_offsets[i], self._edge_offsets[j])
        edges, types, offsets = self._edges[own] - a, self._types[own], e.offsets[i : j + 1] - a
        node = score_nodes(e.indptr, e.indices, e.values, W, a, b) + d.costs.dense(a, b)
        exact = self.inference == "exact"
        found = graph_best(
            GraphPotentials(node, S, edges, offsets, types),
            method="auto" if exact else self.inference, exact=exact,
        )  # fmt: skip
        y = d.gold[a:b]
        sample = np.repeat(np.arange(j - i), np.diff(offsets))
        gold = np.zeros(j - i)
        np.add.at(gold, sample, node[np.arange(len(y)), y])
        np.add.at(gold, sample[edges[:, 0]], S[types, y[edges[:, 0]], y[edges[:, 1]]])
        return found, gold
