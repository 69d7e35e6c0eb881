"""Inference on chains, trees and graphs with label sets: what label problems are made of.

The scores are those of :mod:`trellis.problems.label_problem`. Here are samples taken together in
batches, the maxima over their labellings, and the joint features of what attains them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Labels
from trellis.corpus.corpus import bounds, ranges
from trellis.errors import DataError
from trellis.features import Encoded
from trellis.problems.losses import additive_costs
from trellis.structures import (
    ChainPotentials,
    Forest,
    GraphPotentials,
    graph_best,
    graph_kbest,
    is_forest,
    kbest,
    tree_best,
    tree_kbest,
)

__all__ = ["LabelInference", "LabelMaxima"]

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Most node scores that constrained copies of samples take at once.
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Batch:
    """Some samples: the positions (n,) that are theirs, and edges numbered among these."""

    samples: Int64s
    rows: Int64s
    offsets: Int64s
    edges: Int64s
    types: Int64s

    @property
    def owner(self) -> Int64s:
        """Place of the sample of each row."""
        return np.repeat(np.arange(len(self.samples)), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class LabelMaxima:
    """Labellings that attain the maxima of some samples.

    Parameters
    ----------
    values, losses : float64, shape (n,)
        Maxima and task losses; -inf and 0 where there is no output.
    bounds : float64, shape (n,)
        Upper bounds of the maxima.
    labels : int64, shape (rows,)
        The labels, sample after sample; 0 where there is no output.
    """

    values: Float64s
    losses: Float64s
    bounds: Float64s
    labels: Int64s
    _problem: LabelInference
    _batch: Batch

    def features(self, weight: Float64s | None = None) -> Float64s:
        """Sum of the joint features, weighted by ``weight`` (n,): (D,)."""
        p, b, L = self._problem, self._batch, self._problem.n_labels
        some = np.isfinite(self.values).astype(np.float64)
        share = (some if weight is None else np.where(some > 0, weight, 0.0))[b.owner]
        entries, counts = p._entries(b)
        code = p.encoded.indices[entries].astype(np.int64) * L + np.repeat(self.labels, counts)
        x = np.repeat(share, counts)
        if p.encoded.values.size:
            x *= p.encoded.values[entries]
        out = np.empty(p.n_weights)
        node, tables = p.split(out)
        node.reshape(-1)[:] = np.bincount(code, x, minlength=node.size)
        first, second = b.edges.T
        code = (b.types * L + self.labels[first]) * L + self.labels[second]
        tables.reshape(-1)[:] = np.bincount(code, share[first], minlength=tables.size)
        if not p.directed:
            tables += tables.transpose(0, 2, 1).copy()
        return out


@dataclass(frozen=True, eq=False)
class LabelMeans:
    """Means of the compatible labellings of some samples; ``shares`` (rows, L) of each label."""

    values: Float64s
    losses: Float64s
    bounds: Float64s
    shares: Float64s
    _problem: LabelInference
    _batch: Batch

    def features(self, weight: Float64s | None = None) -> Float64s:
        """Sum of the mean joint features, weighted by ``weight`` (n,): (D,)."""
        from scipy.sparse import csr_array

        p, b, e = self._problem, self._batch, self._problem.encoded
        share = self.shares if weight is None else self.shares * weight[b.owner][:, None]
        entries, counts = p._entries(b)
        indices = e.indices[entries]
        x = e.values[entries].astype(np.float64) if e.values.size else np.ones(len(indices))
        matrix = csr_array((x, indices, bounds(counts)), shape=(len(b.rows), p.n_features))
        out = np.zeros(p.n_weights)
        node, tables = p.split(out)
        node[:] = matrix.T @ share
        first, second = b.edges.T
        for k in range(p.n_tables):
            own = b.types == k
            tables[k] = share[first[own]].T @ self.shares[second[own]]
        if not p.directed:
            tables += tables.transpose(0, 2, 1).copy()
        return out


class LabelInference:
    """Samples of one structure with features and label sets; the base of label problems.

    Parameters
    ----------
    encoded, labels, n_features, structure, edges, types, n_tables, directed, inference, loss
        As for :class:`trellis.problems.label_problem.LabelProblem`.
    """

    def __init__(
        self,
        encoded: Encoded,
        labels: Labels,
        n_features: int,
        *,
        structure: str = "chain",
        edges: Int64s | None = None,
        types: Int64s | None = None,
        n_tables: int = 1,
        directed: bool = True,
        inference: str = "auto",
        loss: Any = "hamming",
    ) -> None:
        self.encoded = encoded
        self.offsets = encoded.offsets
        self.classes = labels.classes
        self.n_features = n_features
        self.n_tables = n_tables
        self.directed = directed
        self.inference = inference
        self.structure = structure
        self.allowed: Bools = labels.allowed()
        self._cost_table = _cost_table(loss, labels.classes)
        self._costs: Float64s | None = None
        if self._cost_table is not None:
            self._costs = self._set_costs(labels.table)[labels.ids]
        if structure == "chain":
            inner = np.ones(int(self.offsets[-1]), bool)
            inner[self.offsets[:-1][np.diff(self.offsets) > 0]] = False
            second = np.flatnonzero(inner)
            edges, types = np.stack([second - 1, second], axis=1), None
        elif edges is None:
            raise DataError(f'structure="{structure}" needs edges')
        self._set_edges(np.asarray(edges, np.int64).reshape(-1, 2), types)

    def _set_edges(self, edges: Int64s, types: Int64s | None) -> None:
        owner = np.searchsorted(self.offsets, edges[:, 0], side="right") - 1
        order = np.argsort(owner, kind="stable")
        self.edges = edges[order]
        self.types = np.zeros(len(edges), np.int64) if types is None else types[order]
        self.edge_offsets = np.searchsorted(owner[order], np.arange(self.n_samples + 1))
        if self.structure == "chain":
            return
        L = self.n_labels
        # Edges and types are checked here, once; arrays are exchanged later.
        self._graph = GraphPotentials(
            np.zeros((int(self.offsets[-1]), L)), np.zeros((self.n_tables, L, L)), self.edges,
            self.offsets, self.types,
        )  # fmt: skip
        self._forest = self.structure == "tree" or is_forest(self.offsets, self.edges)
        if self.structure == "tree":
            Forest.of(self.offsets, self.edges)  # raises if there is a cycle

    # ---------------------------------------------------------------- what there is

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.offsets) - 1

    @property
    def n_labels(self) -> int:
        """Number of labels L."""
        return len(self.classes)

    @property
    def n_weights(self) -> int:
        """Number of weights F L + K L²."""
        return (self.n_features + self.n_tables * self.n_labels) * self.n_labels

    @property
    def annotated(self) -> Bools:
        """Whether anything is known of each sample (n_samples,)."""
        known = ~self.allowed.all(axis=1)
        counts = np.concatenate([[0], np.cumsum(known)])
        return (np.diff(counts[self.offsets]) > 0) | self.complete

    @property
    def complete(self) -> Bools:
        """Whether each sample has only one compatible output (n_samples,)."""
        vague = self.allowed.sum(axis=1) > 1
        counts = np.concatenate([[0], np.cumsum(vague)])
        none: Bools = np.diff(counts[self.offsets]) == 0
        return none

    def split(self, w: Float64s) -> tuple[Float64s, Float64s]:
        """Views of flat weights: node weights (F, L) and tables (K, L, L)."""
        L = self.n_labels
        n = self.n_features * L
        return w[:n].reshape(-1, L), w[n:].reshape(self.n_tables, L, L)

    # ---------------------------------------------------------------- costs

    def _set_costs(self, sets: Bools) -> Float64s:
        """Costs (R, L) of all labels under some label sets (R, L), as the table has them."""
        assert self._cost_table is not None
        rows = [self._cost_table[row].min(axis=0) for row in sets]
        costs = np.array(rows).reshape(sets.shape)
        costs[sets] = 0.0
        return costs

    def _costs_at(self, rows: Int64s) -> Float64s:
        if self._costs is None:
            return (~self.allowed[rows]).astype(np.float64)
        return self._costs[rows]

    # ---------------------------------------------------------------- inference

    def _mean(self, node: Float64s, S: Float64s, b: Batch) -> LabelMeans:
        allowed = self.allowed[b.rows]
        shares = allowed / allowed.sum(axis=1, keepdims=True)
        n, owner = len(b.samples), b.owner
        values = np.bincount(owner, (node * shares).sum(axis=1), n).astype(np.float64)
        first, second = b.edges.T
        for k in range(self.n_tables):
            own = b.types == k
            pairs = ((shares[first[own]] @ S[k]) * shares[second[own]]).sum(axis=1)
            values += np.bincount(owner[first[own]], pairs, n)
        return LabelMeans(values, np.zeros(n), values, shares, self, b)

    def _incompatible(
        self, node: Float64s, S: Float64s, b: Batch
    ) -> tuple[Int64s, Float64s, Float64s]:
        """Best of the copies of each sample in which one node leaves its set."""
        labels = np.zeros(len(b.rows), np.int64)
        values, bound = (np.full(len(b.samples), -np.inf) for _ in range(2))
        places = np.flatnonzero(~self.allowed[b.rows].all(axis=1))  # one copy for each
        owner, lengths = b.owner[places], np.diff(b.offsets)
        size = np.cumsum(lengths[owner] * self.n_labels)
        start = 0
        while start < len(places):
            limit = (size[start - 1] if start else 0) + _BLOCK
            stop = max(start + 1, int(np.searchsorted(size, limit, side="right")))
            own, place = owner[start:stop], places[start:stop]
            copies = self._batch(b.samples[own])
            rows = ranges(b.offsets[own], lengths[own])
            scores = node[rows]
            left = copies.offsets[:-1] + place - b.offsets[own]
            scores[left] = np.where(self.allowed[b.rows[place]], -np.inf, scores[left])
            y, value, upper = self._best(scores, S, copies)
            np.maximum.at(bound, own, upper)
            # The best copy of each sample: the last in the order of samples and values.
            order = np.lexsort((-np.arange(len(own)), value, own))
            last = order[np.append(np.diff(own[order]) > 0, True)]
            for k in last.tolist():
                s = own[k]
                if value[k] > values[s]:
                    values[s] = value[k]
                    labels[b.offsets[s] : b.offsets[s + 1]] = y[
                        copies.offsets[k] : copies.offsets[k + 1]
                    ]
            start = stop
        return labels, values, bound

    def _batch(self, samples: Int64s | None) -> Batch:
        if samples is None:
            n = int(self.offsets[-1])
            return Batch(
                np.arange(self.n_samples), np.arange(n), self.offsets, self.edges, self.types
            )
        samples = np.asarray(samples, np.int64)
        counts = self.offsets[samples + 1] - self.offsets[samples]
        offsets = bounds(counts)
        n_edges = self.edge_offsets[samples + 1] - self.edge_offsets[samples]
        which = ranges(self.edge_offsets[samples], n_edges)
        shift = np.repeat(offsets[:-1] - self.offsets[samples], n_edges)
        return Batch(
            samples, ranges(self.offsets[samples], counts), offsets,
            self.edges[which] + shift[:, None], self.types[which],
        )  # fmt: skip

    def _entries(self, b: Batch) -> tuple[Any, Int64s]:
        """Which entries of the features are those of a batch, and how many each row has."""
        indptr = self.encoded.indptr
        counts = indptr[b.rows + 1] - indptr[b.rows]
        if len(b.rows) == len(indptr) - 1 and b.offsets is self.offsets:
            return slice(None), counts
        return ranges(indptr[b.rows], counts), counts

    def _node_scores(self, w: Float64s, b: Batch) -> Float64s:
        from trellis.kernels.scoring import score_nodes

        e, (W, _) = self.encoded, self.split(w)
        entries, counts = self._entries(b)
        if isinstance(entries, slice):
            found: Float64s = score_nodes(e.indptr, e.indices, e.values, W, 0, len(b.rows))
            return found
        values = e.values[entries] if e.values.size else e.values
        found = score_nodes(bounds(counts), e.indices[entries], values, W, 0, len(b.rows))
        return found

    def _tables(self, w: Float64s) -> Float64s:
        T = self.split(w)[1]
        return T if self.directed else T + T.transpose(0, 2, 1)

    def _potentials(self, node: Float64s, S: Float64s, b: Batch) -> GraphPotentials:
        return self._graph.with_arrays(
            node=node, pair=S, edges=b.edges, offsets=b.offsets, types=b.types
        )

    def _best(self, node: Float64s, S: Float64s, b: Batch) -> tuple[Int64s, Float64s, Float64s]:
        """Labels (rows,) and scores (n,) of the best labellings, and bounds of the scores (n,)."""
        if self.structure == "chain":
            from trellis.kernels.chain import viterbi  # without the checks, which take longer

            labels, values = viterbi(node, S[0], b.offsets)
            if not np.isfinite(values).all():
                raise DataError("scores are not finite: weights or feature values are too large")
        elif self._forest:
            labels, values = tree_best(self._potentials(node, S, b))
        else:
            exact = self.inference == "exact"
            found = graph_best(
                self._potentials(node, S, b), method="auto" if exact else self.inference,
                exact=exact,
            )  # fmt: skip
            return found.labels.astype(np.int64), found.scores, found.bounds
        return labels.astype(np.int64), values, values

    def _one(self, i: int) -> Batch:
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        own = slice(self.edge_offsets[i], self.edge_offsets[i + 1])
        return Batch(
            np.array([i]), np.arange(a, b), np.array([0, b - a]), self.edges[own] - a,
            self.types[own],
        )  # fmt: skip

    def _two_best(self, w: Float64s, b: Batch) -> tuple[Int64s, Float64s]:
        """Labels (2, rows) and scores (n, 2) of the two best compatible labellings."""
        node, S = self._node_scores(w, b), self._tables(w)
        node[~self.allowed[b.rows]] = -np.inf
        if self.structure == "chain":
            labels, scores = kbest(ChainPotentials(node, S[0], b.offsets), 2)
        else:
            p = self._potentials(node, S, b)
            labels, scores = tree_kbest(p, 2) if self._forest else graph_kbest(p, 2)
        return labels.astype(np.int64), scores


def _cost_table(loss: Any, classes: Sequence[str]) -> Float64s | None:
    """Costs (L, L) of a loss, checked; None for Hamming's."""
    if isinstance(loss, str) and loss == "hamming":
        return None
    if callable(loss):
        raise DataError(
            "a loss that is a function needs one label at each position (and no ramp loss); give "
            "an array, loss[gold, predicted]"
        )
    none = np.zeros(0, np.int64)
    return additive_costs(loss, none, np.zeros(1, np.int64), classes).table
