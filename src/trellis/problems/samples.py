r"""The samples of a labelling problem in flat arrays: features, edges, label sets, weights.

.. math::

    s(x, y; w) = \langle w, \Phi(x, y)\rangle
    = \sum_v \sum_{f \in x_v} x_{vf} W_{f, y_v} + \sum_{e = (a, b)} S_e(y_a, y_b),

:math:`S_e` being the table of the edge's type, T, and what rich edge features and features of the
edge itself add to it (:mod:`trellis.problems.edge_weights`); edges without direction have
:math:`S_e + S_e^\top`. A chain is a graph whose edges join neighbours; they are implied, and its
kernels are faster.

Weights are matrices (:class:`trellis.problems.Weights`), or one flat vector w of them: W (F, L) row
by row, the tables T (K, L, L), the values of the rich edges. What is known of node v is the set
:math:`A_v` of labels that it may have.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int64s, as_array, held
from trellis.corpus import Labels
from trellis.corpus.corpus import bounds, ranges
from trellis.corpus.sample_weights import sample_weights
from trellis.decompose import Pieces
from trellis.domains import flag, instance, nothing, one_of, whole
from trellis.errors import DataError
from trellis.features import Encoded
from trellis.problems.costs import check_cost
from trellis.problems.edge_rows import EdgeRows, edge_rows, rich_arguments
from trellis.problems.edge_weights import EdgeWeights
from trellis.problems.familiarity import FeatureCounts
from trellis.problems.visits import GraphVisits, Visits
from trellis.problems.weights import Weights
from trellis.structures import Forest, is_forest
from trellis.structures.forest import checked_edges

__all__ = ["LabelSamples", "taken"]


STRUCTURES = ("chain", "tree", "graph")
"""What may join the positions of a sample."""

TRANSITIONS = ("auto", "all", "observed")
"""Which pairs of labels have transition weights in a CRF of chains."""

_SOLVERS = ("auto", "exact", "tree", "elimination", "max-flow", "dual", "lp", "ilp")


class LabelSamples:
    """Samples of one structure with what is known of their labels; the base of label problems.

    Parameters
    ----------
    encoded, labels, n_features, sample_weight, structure, edges, types, n_types, directed
        As for :class:`trellis.problems.LabelProblem`.
    rich, edge_features, inference, cost, transitions
        As for :class:`trellis.problems.LabelProblem`.
    """

    owner: Any = None
    """The model that made the problem and knows the names of its features."""

    def __init__(
        self,
        encoded: Encoded,
        labels: Labels,
        n_features: int,
        *,
        sample_weight: Float64s | None = None,
        structure: str = "chain",
        edges: Int64s | None = None,
        types: Int64s | None = None,
        n_types: int = 1,
        directed: bool = True,
        rich: EdgeWeights | None = None,
        edge_features: Encoded | None = None,
        inference: str = "auto",
        cost: Any = "hamming",
        transitions: str = "all",
    ) -> None:
        instance(Encoded).check("encoded", encoded)
        instance(Labels).check("labels", labels)
        whole(0).check("n_features", n_features)
        one_of(*STRUCTURES).check("structure", structure)
        whole(1).check("n_types", n_types)
        flag.check("directed", directed)
        (nothing | instance(EdgeWeights)).check("rich", rich)
        (nothing | instance(Encoded)).check("edge_features", edge_features)
        one_of(*_SOLVERS).check("inference", inference)
        check_cost(cost)
        one_of(*TRANSITIONS).check("transitions", transitions)
        if not labels.classes:
            raise DataError("there are no labels to learn")
        if len(labels) != encoded.offsets[-1]:
            raise DataError(
                f"there are labels of {len(labels)} positions; features of {encoded.offsets[-1]}"
            )
        if encoded.n_features > n_features:
            raise DataError(
                f"feature indices go up to {encoded.n_features - 1}, but n_features={n_features}"
            )
        self.encoded = encoded
        self.labels = labels
        self.n_features = int(n_features)
        self.structure = structure
        self.n_types = n_types
        self.directed = directed
        self.rich = rich
        self.inference = inference
        self.cost = cost
        self.transitions = transitions
        weights = sample_weights(sample_weight, self.n_samples, all_zero=True)
        self.sample_weight: Float64s = held(weights, sample_weight)
        self.edge_features = edge_features
        if rich is not None:
            self._check_layout(rich)
        if structure == "chain" and edge_features is not None:
            raise DataError("the edges of chains are implied and have no features of their own")
        if structure != "chain":
            if edges is None:
                raise DataError(f'structure="{structure}" needs edges')
            given = edges, types
            edges = checked_edges(edges, self.offsets)
            if types is None:
                types = np.zeros(len(edges), np.int64)
            types = as_array(types, np.int64, "types", (len(edges),), low=0, high=n_types)
            owner = np.searchsorted(self.offsets, edges[:, 0], side="right") - 1
            if np.any(owner[1:] < owner[:-1]):  # edges in order may be mapped: they stay there
                order = np.argsort(owner, kind="stable")
                edges, types = edges[order], types[order]
                if edge_features is not None and len(edge_features.indptr) == len(edges) + 1:
                    self.edge_features = taken(edge_features, order)
            self.edges, self.types = held(edges, given[0]), held(types, given[1])
            self._check_edge_features()
            if structure == "tree":
                Forest.of(self.offsets, self.edges)  # raises if there is a cycle

    # ---------------------------------------------------------------- what there is

    @property
    def offsets(self) -> Int64s:
        """Sample s is the positions ``offsets[s]:offsets[s + 1]``."""
        return self.encoded.offsets

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.encoded.offsets) - 1

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels."""
        return self.labels.classes

    @property
    def n_labels(self) -> int:
        """Number of labels L."""
        return len(self.labels.classes)

    @cached_property
    def edges(self) -> Int64s:
        """Pairs of positions (E, 2), sample by sample."""
        inner = np.ones(int(self.offsets[-1]), bool)
        inner[self.offsets[:-1][np.diff(self.offsets) > 0]] = False
        second = np.flatnonzero(inner)
        return np.stack([second - 1, second], axis=1)

    @cached_property
    def types(self) -> Int64s:
        """Table of each edge (E,)."""
        return np.zeros(len(self.edges), np.int64)

    @cached_property
    def edge_offsets(self) -> Int64s:
        """Sample s has the edges ``edge_offsets[s]:edge_offsets[s + 1]``."""
        owner = np.searchsorted(self.offsets, self.edges[:, 0], side="right") - 1
        return np.searchsorted(owner, np.arange(self.n_samples + 1))

    @cached_property
    def feature_counts(self) -> FeatureCounts:
        """How often each feature occurs."""
        return FeatureCounts(self.encoded, self.n_features)

    @property
    def familiarity(self) -> Float64s:
        """How familiar each position is by its features (N,), 1 on the average."""
        return self.feature_counts.familiarity

    @cached_property
    def rows(self) -> EdgeRows | None:
        """Rows of rich edge weights that each edge meets."""
        if self.rich is None:
            return None
        more = self.directed, self.edge_features, self.types
        return edge_rows(self.encoded, self.edges, self.rich, *more)

    @property
    def is_rich(self) -> bool:
        """Whether there are features with weights of pairs of labels."""
        return self.rich is not None and self.rich.n_rows > 0

    @cached_property
    def is_forest(self) -> bool:
        """Whether no sample has a loop."""
        return self.structure != "graph" or is_forest(self.offsets, self.edges)

    @property
    def annotated(self) -> Bools:
        """Whether anything is known of each sample (n_samples,)."""
        return self._any(~self.vague_rows) | self.complete

    @property
    def complete(self) -> Bools:
        """Whether each sample has only one compatible output (n_samples,)."""
        return ~self._any(self.open_rows)

    @property
    def open_rows(self) -> Bools:
        """Whether more than one label is possible at each position (N,)."""
        some: Bools = (self.labels.table.sum(axis=1) > 1)[self.labels.ids]
        return some

    @property
    def vague_rows(self) -> Bools:
        """Whether nothing is known of each position (N,)."""
        some: Bools = (self.labels.table.sum(axis=1) == self.n_labels)[self.labels.ids]
        return some

    @property
    def n_open(self) -> Int64s:
        """Number of positions of each sample whose label is not known (n_samples,)."""
        counts = np.concatenate([[0], np.cumsum(self.open_rows)])
        return np.diff(counts[self.offsets])

    def open_nodes(self, i: int) -> Int64s:
        """Positions of sample i whose label is not known, ascending."""
        return np.flatnonzero(self.open_rows[int(self.offsets[i]) : int(self.offsets[i + 1])])

    def gold(self) -> Int64s:
        """The only labels there can be (N,); raises if a sample is not complete."""
        vague = np.flatnonzero(self.open_rows)
        if len(vague):
            s = int(np.searchsorted(self.offsets, vague[0], side="right")) - 1
            raise DataError(
                f"sample {s}, position {vague[0] - self.offsets[s]} has not one label; say which "
                "labels are rewarded"
            )
        gold: Int64s = self.labels.table.argmax(axis=1)[self.labels.ids]
        return gold

    def _any(self, positions: Bools) -> Bools:
        """Whether something holds at any position of each sample."""
        counts = np.concatenate([[0], np.cumsum(positions)])
        some: Bools = np.diff(counts[self.offsets]) > 0
        return some

    # ---------------------------------------------------------------- weights

    @property
    def n_weights(self) -> int:
        """Number of weights: F L + K L², and those of rich edges."""
        more = 0 if self.rich is None else self.rich.values.size
        return (self.n_features + self.n_types * self.n_labels) * self.n_labels + more

    def flat_weights(self, w: Any) -> Float64s:
        """Weights that were given as one vector, checked."""
        return as_array(w, np.float64, "weights", (self.n_weights,))

    def weights(self, w: Float64s) -> Weights:
        """Views of flat weights as matrices."""
        w = self.flat_weights(w)
        L = self.n_labels
        n, m = self.n_features * L, (self.n_features + self.n_types * L) * L
        chain = self.structure == "chain" and self.n_types == 1
        tables = w[n:m].reshape((L, L) if chain else (self.n_types, L, L))
        edge = None if self.rich is None else self.rich.like(w[m:])
        return Weights(w[:n].reshape(-1, L), tables, edge)

    def no_weights(self) -> Weights:
        """Zero weights of this problem, in float32 as models have them."""
        chain = self.structure == "chain" and self.n_types == 1
        weights = Weights.zeros(
            self.n_features, self.n_labels, n_types=None if chain else self.n_types
        )
        if self.rich is not None:
            weights.edge = self.rich.like(np.zeros(self.rich.values.size, np.float32))
        return weights

    def flat(self, weights: Weights) -> Float64s:
        """The weights of matrices as one vector (D,)."""
        return np.concatenate([a.ravel().astype(np.float64) for a in weights.arrays()])

    def check_weights(self, weights: Weights, what: str = "weights") -> None:
        """Refuse matrices that are not those of this problem, or that kernels cannot take."""
        instance(Weights).check(what, weights)
        L, tables = self.n_labels, weights.transitions.shape
        expected = (L, L) if self.structure == "chain" else (self.n_types, L, L)
        enough = weights.node.shape[0] >= self.n_features  # others may have met more features
        if not enough or weights.node.shape[1:] != (L,) or tables != expected:
            raise DataError(
                f"{what} have node {weights.node.shape} and transitions {tables}; expected "
                f"{(self.n_features, L)} and {expected}"
            )
        for array in weights.arrays():
            fit = array.flags.carray and array.dtype in (np.float32, np.float64)
            if not fit or array.dtype != weights.node.dtype:
                raise DataError(f"{what} must be writable arrays of one type, float32 or float64")
        if weights.edge is not None:
            self._check_layout(weights.edge)

    def _check_layout(self, edge: EdgeWeights) -> None:
        """Refuse rich edges of other features or labels."""
        if len(edge.row) < self.n_features:
            raise DataError(
                f"rich edges have rows of {len(edge.row)} features; there are {self.n_features}"
            )
        if edge.n_types not in (1, self.n_types):
            raise DataError(
                f"rich edges are of {edge.n_types} types of edges; there are {self.n_types}"
            )
        if edge.n_own and self.structure == "chain":
            raise DataError("the edges of chains are implied and have no features of their own")
        if self.edge_features is not None and self.edge_features.n_features > edge.n_own:
            raise DataError(
                f"features of edges go up to {self.edge_features.n_features - 1}, but there are "
                f"{edge.n_own} rows"
            )
        n_pairs = self.n_labels**2
        dense = edge.values.size == edge.n_rows * n_pairs
        if edge.n_pairs > n_pairs or not (edge.ptr.size or dense):
            raise DataError(f"rich edges are for pairs of other labels than {self.n_labels}")

    def _check_edge_features(self) -> None:
        """Refuse features of other edges."""
        own = self.edge_features
        if own is None:
            return
        if len(own.indptr) != len(self.edges) + 1:
            n_own = len(own.indptr) - 1
            raise DataError(f"there are features of {n_own} edges; edges: {len(self.edges)}")

    def check_visits(self, visits: Visits) -> None:
        """Refuse visits of pieces that are not of this problem."""
        instance(Visits if self.structure == "chain" else GraphVisits).check("visits", visits)
        n, edges = int(self.offsets[-1]), len(self.edges) if self.structure != "chain" else 0
        fits = visits.starts.min(initial=0) >= 0 and visits.ends.max(initial=0) <= n
        fits = fits and bool((visits.starts <= visits.ends).all())
        fits = fits and bool(np.isfinite(visits.weights).all())
        if isinstance(visits, GraphVisits):
            fits = fits and self.structure != "chain" and len(visits.nodes) == n
            numbers = visits.kept if visits.forest is None else visits.forest.edge
            fits = fits and numbers is not None and numbers.max(initial=-1) < edges
            if visits.kept is not None and visits.kept_ends is not None:
                fits = fits and visits.kept_ends.max(initial=0) <= len(visits.kept)
        if not fits:
            raise DataError("the pieces are not those of this problem")

    def tables(self, weights: Weights) -> NDArray[Any]:
        """Scores (K, L, L) of label pairs by type of edge, symmetric without direction."""
        T = weights.transitions.reshape(-1, self.n_labels, self.n_labels)
        return T if self.directed else T + T.transpose(0, 2, 1)

    def edge_tables(self, weights: Weights, edge_ids: Int64s, scale: float = 1.0) -> Float64s:
        """Scores (m, L, L) of label pairs of some edges; ``scale`` is that of the rich weights."""
        L = self.n_labels
        pair: Float64s = weights.transitions.reshape(-1, L, L)[self.types[edge_ids]].astype(
            np.float64
        )
        rich = rich_arguments(self.rows, weights.edge)
        if rich is not None:
            from trellis.kernels.loopy_steps import rich_scores

            pair += scale * rich_scores(rich, edge_ids, L)
        return pair if self.directed else pair + pair.transpose(0, 2, 1)

    # ---------------------------------------------------------------- kernels and pieces

    def arguments(self) -> tuple[Any, Any]:
        """What every kernel takes first: the features, and the sets of labels of the positions."""
        from trellis.kernels.visits import LabelSets

        return self.encoded.arguments(), LabelSets(*self.labels.for_kernels())

    def identity(self) -> tuple[NDArray[Any], ...]:
        """Everything that tells these samples from others."""
        features, sets = self.arguments()
        arrays = (*features, *sets, self.offsets, self.sample_weight)
        if self.structure == "chain":
            return arrays
        own = () if self.edge_features is None else tuple(self.edge_features.arguments())
        return (*arrays, self.edges, self.types, *own)

    def visits(self, pieces: Pieces, order: Int64s | None = None) -> Visits:
        """Pieces of these samples in visiting order (as drawn, if none is given)."""
        self._check_pieces(pieces)
        chosen: Any = slice(None)
        if order is not None:
            chosen = as_array(order, np.int64, "order", (None,), low=0, high=len(pieces))
        starts, ends = pieces.offsets[:-1][chosen], pieces.offsets[1:][chosen]
        sample = pieces.sample[chosen]
        if self.structure == "chain":
            if pieces.overlap:
                ends = np.minimum(ends + pieces.overlap, self.offsets[1:][sample])
            return Visits(starts, ends, self.sample_weight[sample])
        assert pieces.nodes is not None  # checked
        visits = GraphVisits(starts, ends, self.sample_weight[sample], pieces.nodes, pieces.forest)
        if pieces.kept is None:
            return visits
        piece = np.empty(len(pieces.nodes), np.int64)
        piece[pieces.nodes] = np.repeat(np.arange(len(pieces)), np.diff(pieces.offsets))
        owner = piece[self.edges[pieces.kept, 0]]
        edges_of = np.searchsorted(owner, np.arange(len(pieces) + 1))
        return replace(
            visits, kept=pieces.kept, kept_starts=edges_of[:-1][chosen],
            kept_ends=edges_of[1:][chosen],
        )  # fmt: skip

    def _check_pieces(self, pieces: Pieces) -> None:
        """Refuse pieces of other samples."""
        instance(Pieces).check("pieces", pieces)
        inside = bool(
            pieces.offsets[-1] == self.offsets[-1]
            and pieces.sample.max(initial=-1) < self.n_samples
        )
        if inside:
            starts = self.offsets[pieces.sample]
            ends = self.offsets[pieces.sample + 1]
            inside = bool(
                (pieces.offsets[:-1] >= starts).all() and (pieces.offsets[1:] <= ends).all()
            )
        if self.structure != "chain":
            edges = pieces.kept if pieces.forest is None else pieces.forest.edge
            inside = inside and pieces.nodes is not None
            inside = inside and edges is not None and edges.max(initial=-1) < len(self.edges)
        if not inside:
            raise DataError("the pieces are of other samples")

    def cut(self, pieces: Pieces) -> Self:
        """The pieces as samples of their own, each with the weight of the sample it is from."""
        self._check_pieces(pieces)
        changed = {"sample_weight": self.sample_weight[pieces.sample]}
        if self.structure == "chain":
            offsets = pieces.offsets
            if pieces.overlap:
                raise DataError("pieces that overlap cannot be samples of their own")
            return self._like(encoded=self.encoded.cut(offsets), **changed)
        assert pieces.nodes is not None
        place = np.empty(len(pieces.nodes), np.int64)
        place[pieces.nodes] = np.arange(len(pieces.nodes))
        kept = pieces.kept
        if kept is None:
            assert pieces.forest is not None
            kept = pieces.forest.edge[pieces.forest.edge >= 0]
        owner = np.searchsorted(pieces.offsets, place[self.edges[kept, 0]], side="right")
        kept = kept[np.argsort(owner, kind="stable")]
        return self._like(
            encoded=taken(self.encoded, pieces.nodes).cut(pieces.offsets),
            labels=self.labels.take(pieces.nodes), edges=place[self.edges[kept]],
            types=self.types[kept], edge_features=self._edge_features_of(kept), **changed,
        )  # fmt: skip

    def _edge_features_of(self, edges: Int64s) -> Encoded | None:
        """Features that some edges have of their own."""
        return None if self.edge_features is None else taken(self.edge_features, edges)

    def apart(self) -> Self:
        """Every position as a sample of its own, without rich edges; the tables have no effect."""
        n = int(self.offsets[-1])
        return self._like(
            encoded=self.encoded.cut(np.arange(n + 1)), structure="chain", rich=None,
            edge_features=None,
            sample_weight=np.repeat(self.sample_weight, np.diff(self.offsets)),
        )  # fmt: skip

    def with_labels(self, labels: Labels) -> Self:
        """The same samples, of whose labels other things are known."""
        if labels.classes != self.classes or len(labels) != len(self.labels):
            raise DataError("the labels must be of as many positions, and of the same classes")
        return self._like(labels=labels)

    def _like(self, **changed: Any) -> Self:
        """These samples with some attributes exchanged, and what follows from them forgotten."""
        other = copy.copy(self)
        chain = "chain" in (self.structure, changed.get("structure"))
        kept = () if chain else ("edges", "types")  # given, not found
        for name in vars(self):
            if name not in kept and isinstance(getattr(type(self), name, None), cached_property):
                del other.__dict__[name]
        for name, value in changed.items():
            setattr(other, name, value)
        return other

    def with_features_met(self) -> tuple[Self, Int64s]:
        """The same samples with the features that occur in them alone, and the numbers of these.

        A penalty keeps the weights of all others at zero, so that nothing is lost. With rich edges,
        whose rows are numbered by features, all stay.
        """
        if self.rich is not None:
            return self, np.arange(self.n_features)
        e = self.encoded
        there = np.zeros(self.n_features, np.bool_)
        there[e.indices] = True
        met = np.flatnonzero(there)
        place = np.cumsum(there, dtype=np.int32) - np.int32(1)
        encoded = Encoded.made(e.offsets, e.indptr, place[e.indices], e.values)
        return self._like(encoded=encoded, n_features=len(met)), met

    def compact(self, visits: Visits, like: Weights) -> tuple[Self, Visits, Weights]:
        """The same visits over only what they touch, and zero weights for it: for cheap trials.

        Samples with edges stay whole.
        """
        if isinstance(visits, GraphVisits):
            return self, visits, like.zeros_like(np.float32)
        lengths = visits.ends - visits.starts
        places = bounds(lengths)
        positions = ranges(visits.starts, lengths)
        encoded = taken(self.encoded, positions)
        used, indices = np.unique(encoded.indices, return_inverse=True)
        weights = Weights.zeros(len(used), self.n_labels)
        weights.edge = None if like.edge is None else like.edge.only(used.astype(np.int64))
        problem = self._like(
            encoded=Encoded.made(
                places, encoded.indptr, indices.astype(np.int32), encoded.values
            ),
            labels=self.labels.take(positions), n_features=len(used), rich=weights.edge,
            sample_weight=visits.weights,
        )  # fmt: skip
        return problem, Visits(places[:-1], places[1:], visits.weights), weights


def taken(encoded: Encoded, positions: Int64s) -> Encoded:
    """Features of some positions, in that order; the offsets stay as they are."""
    counts = encoded.indptr[positions + 1] - encoded.indptr[positions]
    where = ranges(encoded.indptr[positions], counts)
    values = encoded.values[where] if encoded.values.size else encoded.values
    return Encoded.made(encoded.offsets, bounds(counts), encoded.indices[where], values)
