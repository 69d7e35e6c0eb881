"""Inference on chains, trees and graphs with label sets: what label problems are made of.

The scores are those of :mod:`trellis.problems.samples`. Here are samples taken together in batches,
the maxima over their labellings, and the joint features of what attains them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s, as_array, for_kernels
from trellis.corpus.corpus import bounds, ranges
from trellis.errors import DataError
from trellis.problems.costs import Costs, additive_costs
from trellis.problems.edge_rows import rich_arguments
from trellis.problems.samples import LabelSamples, taken
from trellis.problems.weights import Weights
from trellis.structures import ChainPotentials, GraphPotentials, StepChanges, best, kbest

__all__ = ["Batch", "LabelInference", "LabelMaxima", "LabelMeans"]


# Most numbers in the scores that constrained copies of samples, or edges, take at once.
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Batch:
    """Some samples: the positions (n,) that are theirs, and edges numbered among these."""

    samples: Int64s
    rows: Int64s
    offsets: Int64s
    edges: Int64s
    types: Int64s
    edge_ids: Int64s

    @cached_property
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
        some = np.isfinite(self.values).astype(np.float64)
        share = some if weight is None else np.where(some > 0, weight, 0.0)
        return self._problem.joint_features(self.labels, self._batch, share[self._batch.owner])


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
        entries, counts = p.entries(b)
        indices = e.indices[entries]
        x = e.values[entries].astype(np.float64) if e.values.size else np.ones(len(indices))
        matrix = csr_array((x, indices, bounds(counts)), shape=(len(b.rows), p.n_features))
        out = np.zeros(p.n_weights)
        weights = p.weights(out)
        weights.node[:] = matrix.T @ share
        first, second = b.edges.T
        for k in range(p.n_types):
            of_type = b.types == k
            pairs = share[first[of_type]].T @ self.shares[second[of_type]]
            weights.transitions.reshape(-1, *pairs.shape)[k] = (
                pairs if p.directed else (pairs + pairs.T)
            )
        p.add_rich(
            weights, b,
            lambda part: share[first[part], :, None] * self.shares[second[part], None, :],
        )  # fmt: skip
        return out


class LabelInference(LabelSamples):
    """Samples whose maxima can be found; the base of label problems."""

    @cached_property
    def costs(self) -> Costs:
        """Costs of all labels at all positions, under what is known."""
        return additive_costs(self.cost, self.labels, self.offsets)

    @cached_property
    def graph(self) -> GraphPotentials:
        """Potentials, all zero, whose arrays are exchanged: edges and types are checked once."""
        L = self.n_labels
        return GraphPotentials(
            np.zeros((int(self.offsets[-1]), L)), np.zeros((self.n_types, L, L)), self.edges,
            self.offsets, self.types,
        )  # fmt: skip

    # ---------------------------------------------------------------- batches

    def batch(self, samples: Int64s | None = None) -> Batch:
        """Some samples, or all."""
        if samples is None:
            return self.everything
        samples = as_array(samples, np.int64, "samples", (None,), low=0, high=self.n_samples)
        counts = self.offsets[samples + 1] - self.offsets[samples]
        offsets = bounds(counts)
        n_edges = self.edge_offsets[samples + 1] - self.edge_offsets[samples]
        which = ranges(self.edge_offsets[samples], n_edges)
        shift = np.repeat(offsets[:-1] - self.offsets[samples], n_edges)
        return Batch(
            samples, ranges(self.offsets[samples], counts), offsets,
            self.edges[which] + shift[:, None], self.types[which], which,
        )  # fmt: skip

    def part(self, samples: Int64s) -> Self:
        """Some of the samples, with weights in the same places."""
        b = self.batch(samples)
        changed: dict[str, Any] = {
            "encoded": taken(self.encoded, b.rows).cut(b.offsets),
            "labels": self.labels.take(b.rows), "sample_weight": self.sample_weight[samples],
        }  # fmt: skip
        if self.structure != "chain":
            own = self._edge_features_of(b.edge_ids)
            changed |= {"edges": b.edges, "types": b.types, "edge_features": own}
        return self._like(**changed)

    def near_annotated(self, samples: Int64s) -> Self:
        """What is annotated of some samples with its neighbours; pieces of chains are samples.

        Farther positions say next to nothing of what is known, and would cost as much as it.
        """
        b = self.batch(samples)
        known = ~self.vague_rows[b.rows]
        if self.structure != "chain" or known.all():
            return self.part(samples)
        joined = b.owner[1:] == b.owner[:-1]
        near = known.copy()
        near[1:] |= known[:-1] & joined
        near[:-1] |= known[1:] & joined
        places = np.flatnonzero(near)
        begins = np.ones(len(places), np.bool_)
        begins[1:] = (np.diff(places) > 1) | (np.diff(b.owner[places]) > 0)
        offsets = np.append(np.flatnonzero(begins), len(places))
        rows = b.rows[places]
        return self._like(
            encoded=taken(self.encoded, rows).cut(offsets), labels=self.labels.take(rows),
            sample_weight=self.sample_weight[samples][b.owner[places][offsets[:-1]]],
        )  # fmt: skip

    @cached_property
    def everything(self) -> Batch:
        """All samples."""
        return Batch(
            np.arange(self.n_samples), np.arange(int(self.offsets[-1])), self.offsets,
            self.edges, self.types, np.arange(len(self.edges)),
        )  # fmt: skip

    def entries(self, b: Batch) -> tuple[Any, Int64s]:
        """Which entries of the features are those of a batch, and how many each row has."""
        indptr = self.encoded.indptr
        if b is self.__dict__.get("everything"):
            return slice(None), np.diff(indptr)
        counts = indptr[b.rows + 1] - indptr[b.rows]
        return ranges(indptr[b.rows], counts), counts

    def _features(self, b: Batch) -> tuple[Any, ...]:
        """Features of a batch: indptr, indices, values."""
        e = self.encoded
        entries, counts = self.entries(b)
        if isinstance(entries, slice):
            return tuple(e.arguments())
        values = e.values[entries] if e.values.size else e.values
        return bounds(counts), e.indices[entries], values

    def scores(self, w: Float64s, b: Batch) -> tuple[Float64s, Float64s]:
        """Scores of the labels (rows, L) of a batch, and of label pairs.

        Those of pairs are (L, L) for chains and (K, L, L) for graphs; with rich edges there is a
        table for each position that ends an edge of a chain, and for each edge of a graph.
        """
        from trellis.kernels.rich_edges import score_edges
        from trellis.kernels.scoring import Features, score_nodes

        weights, features = self.weights(w), self._features(b)
        indptr, indices, values = features
        node: Float64s = score_nodes(indptr, indices, values, weights.node, 0, len(b.rows))
        edge = weights.edge
        if self.structure != "chain":
            return node, (
                self.edge_tables(weights, b.edge_ids) if self.is_rich else self.tables(weights)
            )
        table = self.tables(weights)[0]  # all there is of a chain, or of positions set apart
        if edge is None or not self.is_rich:
            return node, table
        pair: Float64s = score_edges(Features(*features), table, edge.arguments(), 0, len(b.rows))
        return node, pair

    # ---------------------------------------------------------------- joint features

    def joint_features(self, labels: Int64s, b: Batch, share: Float64s) -> Float64s:
        """Φ of a labelling of a batch, each row with its share (rows,): (D,)."""
        from trellis.kernels.scoring import count_features

        L = self.n_labels
        out = np.zeros(self.n_weights)
        weights = self.weights(out)
        count_features(self.encoded.arguments(), b.rows, labels, share, weights.node)
        first, second = b.edges.T
        code = (b.types * L + labels[first]) * L + labels[second]
        tables = weights.transitions.reshape(-1, L, L)
        tables.reshape(-1)[:] = np.bincount(code, share[first], minlength=tables.size)
        if not self.directed:
            tables += tables.transpose(0, 2, 1).copy()
        if self.is_rich:
            assert weights.edge is not None
            for place, x, edge in self._rich_places(b.edge_ids, labels[first], labels[second]):
                np.add.at(weights.edge.values, place, x * share[first[edge]])
        return out

    def difference(self, b: Batch, labels: Int64s, other: Int64s) -> tuple[Int64s, Float64s]:
        """Φ of a labelling of a batch less Φ of another, where they differ: indices, values.

        An index may occur several times; what it has is the sum.
        """
        index, values, _ = self._difference(b, labels, other)
        return index, values

    def differences(self, b: Batch, labels: Int64s, other: Int64s) -> list[tuple[Int64s, Float64s]]:
        """The same for each sample of a batch by itself: distinct indices, ascending, and sums."""
        index, values, row = self._difference(b, labels, other)
        key, place = np.unique(b.owner[row] * self.n_weights + index, return_inverse=True)
        sums = np.bincount(place, values, len(key))
        stops = np.searchsorted(key, np.arange(1, len(b.samples)) * self.n_weights)
        return list(zip(np.split(key % self.n_weights, stops), np.split(sums, stops), strict=True))

    def _difference(
        self, b: Batch, labels: Int64s, other: Int64s
    ) -> tuple[Int64s, Float64s, Int64s]:
        """Indices and values of a difference, and a row of the sample that each is of."""
        L = self.n_labels
        changed = np.flatnonzero(labels != other)
        indptr = self.encoded.indptr
        counts = indptr[b.rows[changed] + 1] - indptr[b.rows[changed]]
        entries = ranges(indptr[b.rows[changed]], counts)
        f = self.encoded.indices[entries].astype(np.int64) * L
        x = (
            self.encoded.values[entries].astype(np.float64)
            if self.encoded.values.size
            else (np.ones(len(f)))
        )
        index = [f + np.repeat(labels[changed], counts), f + np.repeat(other[changed], counts)]
        values, rows = [x, -x], [np.repeat(changed, counts)] * 2
        first, second = b.edges.T
        moved = np.flatnonzero((labels != other)[first] | (labels != other)[second])
        tables = self.n_features * L + b.types[moved] * L * L
        rich = (self.n_features + self.n_types * L) * L
        for y, sign in ((labels, 1.0), (other, -1.0)):
            u, v = y[first[moved]], y[second[moved]]
            for code in (u * L + v,) if self.directed else (u * L + v, v * L + u):
                index.append(tables + code)
                values.append(np.full(len(moved), sign))
                rows.append(first[moved])
            if self.is_rich:
                for place, entry, edge in self._rich_places(b.edge_ids[moved], u, v):
                    index.append(rich + place)
                    values.append(sign * entry)
                    rows.append(first[moved][edge])
        return np.concatenate(index), np.concatenate(values), np.concatenate(rows)

    def _rich_places(
        self, edge_ids: Int64s, first: Int64s, second: Int64s
    ) -> Iterator[tuple[Int64s, Float64s, Int64s]]:
        """Rich weights that edges with these labels meet: places, values, and whose they are."""
        assert self.rows is not None and self.rich is not None
        L, rows = self.n_labels, self.rows
        counts = rows.indptr[edge_ids + 1] - rows.indptr[edge_ids]
        entries = ranges(rows.indptr[edge_ids], counts)
        edge = np.repeat(np.arange(len(edge_ids)), counts)
        x = rows.values[entries].astype(np.float64) if rows.values.size else np.ones(len(entries))
        for u, v in ((first, second),) if self.directed else ((first, second), (second, first)):
            key = rows.rows[entries] * (L * L) + (u * L + v)[edge]
            if not self.rich.ptr.size:
                yield key, x, edge
                continue
            known, order = self._rich_keys
            place = np.minimum(np.searchsorted(known, key), max(0, len(known) - 1))
            there = known[place] == key if len(known) else np.zeros(len(key), bool)
            yield order[place[there]], x[there], edge[there]

    @cached_property
    def _rich_keys(self) -> tuple[Int64s, Int64s]:
        """Row and pair of all rich weights as one number each, sorted, and the sorting order."""
        assert self.rich is not None
        row = np.repeat(np.arange(self.rich.n_rows), np.diff(self.rich.ptr))
        key = row * self.n_labels**2 + self.rich.pair
        order = np.argsort(key, kind="stable")
        return key[order], order

    def add_rich(self, into: Weights, b: Batch, pairs: Callable[[slice], Float64s]) -> None:
        """Add rich edge features: ``pairs`` gives the label pairs (m, L, L) of some edges."""
        rich = rich_arguments(self.rows, into.edge)
        if rich is None or into.edge is None:
            return
        from trellis.kernels.loopy_steps import add_rich_steps

        size = max(1, _BLOCK // self.n_labels**2)
        for start in range(0, len(b.edges), size):
            part = slice(start, start + size)
            counted = pairs(part)
            if not self.directed:
                counted = counted + counted.transpose(0, 2, 1)
            flat = np.ascontiguousarray(counted).reshape(len(counted), -1)
            add_rich_steps(rich, b.edge_ids[part], flat, np.zeros(0), into.edge.values)

    # ---------------------------------------------------------------- inference

    def allowed(self, b: Batch) -> NDArray[np.bool_]:
        """Labels that each row of a batch may have (rows, L)."""
        return self.labels.table[self.labels.ids[b.rows]]

    def potentials(
        self, node: Float64s, pair: Float64s, b: Batch
    ) -> ChainPotentials | GraphPotentials:
        """Potentials of a batch."""
        if self.structure == "chain":
            return ChainPotentials(node, pair, b.offsets)
        types = np.arange(len(pair)) if self.is_rich else b.types
        return self.graph.with_arrays(
            node=node, pair=pair, edges=b.edges, offsets=b.offsets, types=types
        )

    def compatible(self, w: Float64s, b: Batch) -> ChainPotentials | GraphPotentials:
        """Potentials of a batch that only compatible labellings have; no table is written out.

        Rich edges of chains that have few pairs are changes of one table.
        """
        weights = self.weights(w)
        edge, is_chain = weights.edge, self.structure == "chain"
        if not (is_chain and self.is_rich and edge is not None and edge.ptr.size):
            node, pair = self.scores(w, b)
            node[~self.allowed(b)] = -np.inf
            return self.potentials(node, pair, b)
        from trellis.kernels.scoring import Features, score_nodes
        from trellis.kernels.sparse_edges import changed_steps, count_entries

        indptr, indices, values = self._features(b)
        node = score_nodes(indptr, indices, values, weights.node, 0, len(b.rows))
        node[~self.allowed(b)] = -np.inf
        features, rich = Features(indptr, indices, values), edge.arguments()
        table = self.tables(weights)[0]
        n_entries = count_entries(features, rich)[-1]
        follow, offsets = np.ones(table.shape, np.bool_), for_kernels(b.offsets)
        changes, _ = changed_steps(features, table, rich, follow, offsets, 0, n_entries)
        return ChainPotentials(node, table, b.offsets, StepChanges.found(*changes))

    def best(self, node: Float64s, pair: Float64s, b: Batch) -> tuple[Int64s, Float64s, Float64s]:
        """Labels (rows,) and scores (n,) of the best labellings, and bounds of the scores (n,)."""
        if self.structure == "chain":
            from trellis.kernels.chain import viterbi  # without the checks, which take longer

            labels, values = viterbi(node, pair, for_kernels(b.offsets))
            if not np.isfinite(values).all():
                raise DataError("scores are not finite: weights or feature values are too large")
            return labels.astype(np.int64), values, values
        return self.best_of(self.potentials(node, pair, b))

    def best_of(self, p: ChainPotentials | GraphPotentials) -> tuple[Int64s, Float64s, Float64s]:
        """The same, of potentials."""
        exact = self.inference == "exact"
        by = "auto" if exact or self.structure == "chain" or self.is_forest else self.inference
        decoded = best(p, method=by, exact=exact)
        return decoded.labels.astype(np.int64), decoded.scores, decoded.bounds

    def mean(self, node: Float64s, pair: Float64s, b: Batch) -> LabelMeans:
        """Means of the compatible labellings: each node draws its label evenly from its set."""
        allowed = self.allowed(b)
        shares = allowed / allowed.sum(axis=1, keepdims=True)
        n, owner = len(b.samples), b.owner
        values = np.bincount(owner, (node * shares).sum(axis=1), n).astype(np.float64)
        first, second = b.edges.T
        if pair.ndim == 2:
            pair = pair[None]
        which = b.types
        if self.is_rich:
            which = second if self.structure == "chain" else np.arange(len(b.edges))
        for part in np.array_split(np.arange(len(first)), 1 + len(first) * pair[0].size // _BLOCK):
            met = np.einsum(
                "ea,eab,eb->e", shares[first[part]], pair[which[part]], shares[second[part]]
            )
            values += np.bincount(owner[first[part]], met, n)
        return LabelMeans(values, np.zeros(n), values, shares, self, b)

    def best_incompatible(
        self, node: Float64s, pair: Float64s, b: Batch
    ) -> tuple[Int64s, Float64s, Float64s]:
        """Best of the copies of each sample in which one node leaves its set."""
        labels = np.zeros(len(b.rows), np.int64)
        values, bound = (np.full(len(b.samples), -np.inf) for _ in range(2))
        allowed = self.allowed(b)
        places = np.flatnonzero(~allowed.all(axis=1))  # one copy for each
        owner, lengths = b.owner[places], np.diff(b.offsets)
        size = np.cumsum(lengths[owner] * self.n_labels)
        edges_of = np.searchsorted(b.owner[b.edges[:, 0]], np.arange(len(b.samples) + 1))
        start = 0
        while start < len(places):
            limit = (size[start - 1] if start else 0) + _BLOCK
            stop = max(start + 1, int(np.searchsorted(size, limit, side="right")))
            owners, place = owner[start:stop], places[start:stop]
            copies = self.batch(b.samples[owners])
            rows = ranges(b.offsets[owners], lengths[owners])
            scores, tables = node[rows], pair
            if self.is_rich:
                which = ranges(edges_of[owners], edges_of[owners + 1] - edges_of[owners])
                tables = pair[rows if self.structure == "chain" else which]
            left = copies.offsets[:-1] + place - b.offsets[owners]
            scores[left] = np.where(allowed[place], -np.inf, scores[left])
            y, value, upper = self.best(scores, tables, copies)
            np.maximum.at(bound, owners, upper)
            # The best copy of each sample: the last in the order of samples and values.
            order = np.lexsort((-np.arange(len(owners)), value, owners))
            last = order[np.append(np.diff(owners[order]) > 0, True)]
            for k in last.tolist():
                s = owners[k]
                if value[k] > values[s]:
                    values[s] = value[k]
                    labels[b.offsets[s] : b.offsets[s + 1]] = y[
                        copies.offsets[k] : copies.offsets[k + 1]
                    ]
            start = stop
        return labels, values, bound

    def two_best(self, w: Float64s, b: Batch) -> tuple[Int64s, Float64s]:
        """Labels (2, rows) and scores (n, 2) of the two best compatible labellings."""
        labels, scores = kbest(self.compatible(w, b), 2)
        if len(labels) == 1:  # no sample has a second
            labels = np.vstack([labels, np.full_like(labels, -1)])
            scores = np.hstack([scores, np.full_like(scores, -np.inf)])
        return labels.astype(np.int64), scores
