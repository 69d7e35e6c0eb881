"""Weights of rich edge features: features of a position crossed with pairs of labels (Sun 2014).

    S_t(y′, y) = T[y′, y] + Σ_{f ∈ x_t} v_tf · R[f, (y′, y)] + Σ_{f ∈ x_{t−1}} v · R′[f, (y′, y)]

R′, the features of the position before, is optional. With few labels every feature has all L²
pairs. With many, a feature has the pairs that it was seen with in training and a few random others
(«negatives»), as in the paper's program: a model of 50 labels would otherwise need 2,500 weights a
feature. Negatives are drawn as pairs occur in the corpus, not uniformly as there: they are what a
pair has to be told from, and pairs that many features share are cheaper.

The edges of trees and graphs may have features of their own, g ∈ x_e, each with a row, too:

    S_e(y_a, y_b) = T[y_a, y_b] + Σ_{g ∈ x_e} v_eg · R_g[y_a, y_b] + (those of the ends, as above)

Where edges have types, the features of their ends may have weights R for each type of edge.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import OwnMemory, as_array, as_offsets, for_kernels, held
from trellis.corpus import Labels
from trellis.corpus.corpus import bounds, ranges
from trellis.domains import flag, whole
from trellis.errors import DataError
from trellis.features import Encoded

__all__ = ["EdgeWeights", "as_weights", "cross", "cross_own"]


def as_weights(values: Any) -> NDArray[Any]:
    """Weights, or marks of some, as an array: as it is, or in float64 if it is no such one."""
    kept = isinstance(values, np.ndarray) and values.dtype in (np.float32, np.bool_)
    return as_array(values, values.dtype if kept else np.float64, "weights")


@dataclass
class EdgeWeights(OwnMemory):
    """Weights of features crossed with label pairs.

    Parameters
    ----------
    row : int32 array (F,)
        Row of each feature, −1 if it is not crossed.
    ptr : int64 array (rows + 1,), or empty
        Row i has the pairs ``pair[ptr[i]:ptr[i + 1]]``; empty: every row has all L² pairs.
    pair : int32 array
        Pairs y′ · L + y of all rows; empty if every row has all.
    values : array
        The weights, row by row.
    both : bool
        Whether there is a second set of rows, for the features of the position before.
    n_own : int
        Rows after these: one for each feature that edges have of their own.
    n_types : int
        Sets of rows: one (or two, see ``both``) for each type of edges.

    Raises
    ------
    DataError
        If the arrays do not fit each other.
    """

    row: NDArray[np.int32]
    ptr: NDArray[np.int64]
    pair: NDArray[np.int32]
    values: NDArray[Any]
    both: bool
    n_own: int = 0
    n_types: int = 1

    def __post_init__(self) -> None:
        flag.check("both", self.both)
        whole(0).check("n_own", self.n_own)
        whole(1).check("n_types", self.n_types)
        row = as_array(self.row, np.int32, "row", (None,), low=-1)
        if not np.array_equal(np.sort(row[row >= 0]), np.arange((row >= 0).sum())):
            raise DataError("the rows of crossed features must be 0, 1, 2, …, each once")
        pair = as_array(self.pair, np.int32, "pair", (None,), low=0)
        ptr = as_array(self.ptr, np.int64, "ptr", (None,))
        if ptr.size:
            ptr = as_offsets(ptr, "ptr", end=len(pair))
        self.row, self.ptr, self.pair = (
            held(array, of) for array, of in ((row, self.row), (ptr, self.ptr), (pair, self.pair))
        )
        if pair.size and not ptr.size:
            raise DataError("ptr is empty, as if every row had all pairs, but pair is not")
        if ptr.size and len(ptr) - 1 != self.n_rows:
            raise DataError(f"there are pairs of {len(ptr) - 1} rows, but {self.n_rows} rows")
        self.values = self._fitting(self.values)

    def _fitting(self, values: Any) -> NDArray[Any]:
        """Weights, as many as there are pairs."""
        array = as_weights(values)
        n_pairs, n_rows = len(self.pair), max(1, self.n_rows)
        if array.ndim != 1 or (array.size != n_pairs if self.ptr.size else array.size % n_rows):
            expected = f"({n_pairs},)" if self.ptr.size else f"as many for each of {n_rows} rows"
            raise DataError(f"weights have shape {array.shape}; expected {expected}")
        return array

    @cached_property
    def n_pairs(self) -> int:
        """One more than the greatest number of a pair."""
        return int(self.pair.max(initial=-1)) + 1

    @cached_property
    def n_crossed(self) -> int:
        """Number of features that are crossed."""
        return int((self.row >= 0).sum())

    @property
    def families(self) -> int:
        """Number of rows that a crossed feature has: of each type of edges one or two."""
        return (2 if self.both else 1) * self.n_types

    @property
    def n_joined(self) -> int:
        """Number of rows of features of positions."""
        return self.families * self.n_crossed

    @property
    def n_rows(self) -> int:
        """Number of rows: those of features of positions, then those of edges' own."""
        return self.n_joined + self.n_own

    def rows(self) -> NDArray[np.int64]:
        """Bounds of the rows in ``values`` (rows + 1,), also when every row has all pairs."""
        if self.ptr.size:
            return self.ptr
        n = self.n_rows
        return np.arange(n + 1) * (self.values.size // max(1, n))

    def features_of_rows(self) -> NDArray[np.int64]:
        """Feature of each row; −1 for those that edges have of their own."""
        joined = np.tile(np.flatnonzero(self.row >= 0), self.families)
        return np.append(joined, np.full(self.n_own, -1))

    def rows_of_features(self) -> NDArray[np.int32]:
        """Row of each feature as kernels take it: empty if row f is feature f."""
        return np.zeros(0, np.int32) if len(self.row) == self.n_crossed else self.row

    def arguments(self) -> Any:
        """The weights as kernels take them (:class:`trellis.kernels.rich_edges.RichEdges`)."""
        from trellis.kernels.rich_edges import RichEdges

        rows, ptr, pair = map(for_kernels, (self.rows_of_features(), self.ptr, self.pair))
        return RichEdges(rows, ptr, pair, self.values, self.n_crossed, self.both)

    def like(self, values: NDArray[Any]) -> EdgeWeights:
        """The same pairs with other weights."""
        other = copy.copy(self)
        other.values = self._fitting(values)
        return other

    def only(self, features: NDArray[np.int64]) -> EdgeWeights:
        """Zero weights with the pairs of some features, numbered anew in this order; for chains."""
        part = self.taken(features)
        return part.like(np.zeros(part.values.size, np.float32))

    def taken(
        self, features: NDArray[np.int64], own: NDArray[np.int64] | None = None
    ) -> EdgeWeights:
        """The weights of some features, and of some that edges have of their own (default: all).

        They are numbered anew in this order.
        """
        own = np.arange(self.n_own) if own is None else own
        old = self.row[features]
        row = np.where(old >= 0, np.cumsum(old >= 0) - 1, -1).astype(np.int32)
        kept = old[old >= 0].astype(np.int64)
        families = [kept + i * self.n_crossed for i in range(self.families)]
        rows = np.concatenate([*families, self.n_joined + own])
        begins = self.rows()
        sizes = begins[rows + 1] - begins[rows]
        places = ranges(begins[rows], sizes)
        ptr, pair = self.ptr, self.pair
        if ptr.size:
            ptr, pair = bounds(sizes), pair[places]
        more = len(own), self.n_types
        return EdgeWeights(row, ptr, pair, self.values[places], self.both, *more)


def cross(
    encoded: Encoded,
    labels: Labels,
    crossed: NDArray[np.bool_],
    *,
    both: bool,
    dense: bool,
    negatives: int,
    least: float = 0.0,
    rng: np.random.Generator,
    known: EdgeWeights | None = None,
    dtype: Any = np.float32,
    edges: NDArray[np.int64] | None = None,
    directed: bool = True,
    types: NDArray[np.int64] | None = None,
    n_types: int = 1,
) -> EdgeWeights:
    """Rows and pairs for the features of a corpus, all weights zero.

    Parameters
    ----------
    encoded, labels : Encoded, Labels
        The training data; pairs are looked up where both positions have a single label.
    crossed : bool array (F,)
        The features to be crossed.
    both : bool
        Cross the features of the position before, too.
    dense : bool
        Give every row all L² pairs.
    negatives : int
        Random pairs added to each row that does not have all.
    least : float
        Leave out pairs that make up less than this share of a feature's occurrences.
    rng : Generator
    known : EdgeWeights, optional
        Weights of the first features, which keep their pairs and values, as do the rows that edges
        have of their own.
    edges : int64 array (E, 2), optional
        Edges of a graph; by default neighbouring positions are joined.
    directed : bool
        Whether a pair and its mirror image differ.
    types : int64 array (E,), optional
        Types of the edges of a graph, of ``n_types``, each of which has rows of its own.
    """
    from trellis.kernels.crossing import observed_pairs

    n_labels = len(labels.classes)
    n_pairs = n_labels * n_labels
    offsets, indptr, indices, ids = map(
        for_kernels, (encoded.offsets, encoded.indptr, encoded.indices, labels.ids)
    )
    if known is None:
        no_rows, no_pairs = np.zeros(0, np.int64), np.zeros(0, np.int32)
        known = EdgeWeights(no_pairs, no_rows, no_pairs, np.zeros(0, dtype), both, 0, n_types)
    n_known, n_old = len(known.row), known.n_crossed
    new = crossed.copy()
    new[:n_known] = False
    row = np.where(new, np.cumsum(new) - 1, -1).astype(np.int32)
    n_new = int(new.sum())
    ends_met = 2 if both else 1
    families = ends_met * n_types
    if dense:
        ptr, pair = np.zeros(0, np.int64), np.zeros(0, np.int32)
        blocks = [np.zeros(n_new * n_pairs, dtype) for _ in range(families)]
    else:
        pairs = []
        for family in range(families):
            kind, back = divmod(family, ends_met)
            some = edges if edges is None or types is None else edges[types == kind]
            drawn = _draw_pairs(encoded, labels, (n_new, negatives), rng, some)
            asked = row, n_new, n_labels, back, drawn, least
            ids = for_kernels(labels.ids)
            pairs.append(
                observed_pairs(offsets, indptr, indices, ids, *asked)
                if some is None
                else _pairs_on_edges(encoded, labels, some, *asked, directed)
            )
        blocks = [np.zeros(len(p), dtype) for _, p in pairs]
    row = np.concatenate([known.row, np.where(row >= 0, row + n_old, -1)[n_known:]])
    ends = known.rows()
    cuts = [slice(ends[i * n_old], ends[(i + 1) * n_old]) for i in range(families)]
    own = slice(ends[families * n_old], None)
    values = np.concatenate(
        [a for c, b in zip(cuts, blocks, strict=True) for a in (known.values[c], b)]
        + [known.values[own]]
    )
    if not dense:
        lengths = [
            part
            for i, (p, _) in enumerate(pairs)
            for part in (np.diff(ends[i * n_old : (i + 1) * n_old + 1]), np.diff(p))
        ]
        ptr = bounds(np.concatenate([*lengths, np.diff(ends[families * n_old :])]))
        pair = np.concatenate(
            [a for c, (_, p) in zip(cuts, pairs, strict=True) for a in (known.pair[c], p)]
            + [known.pair[own]]
        )
    return EdgeWeights(row.astype(np.int32), ptr, pair, values, both, known.n_own, n_types)


def cross_own(
    known: EdgeWeights,
    own: Encoded,
    n_own: int,
    labels: Labels,
    edges: NDArray[np.int64],
    *,
    negatives: int,
    least: float = 0.0,
    rng: np.random.Generator,
    directed: bool = True,
) -> EdgeWeights:
    """Weights with rows for all features that edges have of their own; new ones are zero.

    Parameters
    ----------
    known : EdgeWeights
        What there is; rows have all pairs, or those seen, as its rows do.
    own : Encoded
        The features of the edges.
    n_own : int
        How many such features there are.
    labels, edges, negatives, least, rng, directed
        As for :func:`cross`.
    """
    n_labels, n_old = len(labels.classes), known.n_own
    n_new = n_own - n_old
    if not known.ptr.size:
        values = np.append(known.values, np.zeros(n_new * n_labels**2, known.values.dtype))
        layout = known.row, known.ptr, known.pair, values, known.both
        return EdgeWeights(*layout, n_own, known.n_types)
    drawn = _draw_pairs(own, labels, (n_new, negatives), rng, edges)
    pair = _edge_pairs(labels, edges)
    if not directed:
        pair, drawn = _canonical(pair, n_labels), _canonical(drawn, n_labels)
    met, row = np.repeat(pair, np.diff(own.indptr)), own.indices.astype(np.int64) - n_old
    seen = (met >= 0) & (row >= 0)
    ptr, more = _listed(row[seen] * n_labels**2 + met[seen], n_new, n_labels, drawn, least)
    return EdgeWeights(
        known.row, np.append(known.ptr, known.ptr[-1] + ptr[1:]), np.append(known.pair, more),
        np.append(known.values, np.zeros(len(more), known.values.dtype)), known.both, n_own,
        known.n_types,
    )  # fmt: skip


def _pairs_on_edges(
    encoded: Encoded,
    labels: Labels,
    edges: NDArray[np.int64],
    row: NDArray[np.int32],
    n_rows: int,
    n_labels: int,
    back: int,
    drawn: NDArray[np.int32],
    least: float,
    directed: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Pairs seen with each row's feature at an end of edges, and those drawn, ascending by row.

    The feature is at the second end, or at the first if ``back``; without direction at either.
    """
    n_pairs = n_labels * n_labels
    pair = _edge_pairs(labels, edges)
    single, joined = pair >= 0, [1 - back] if directed else [1, 0]
    if not directed:
        pair = _canonical(pair, n_labels)
        drawn = _canonical(drawn, n_labels)
    keys = [np.zeros(0, np.int64)]
    for end in joined:
        nodes = edges[single, end]
        counts = encoded.indptr[nodes + 1] - encoded.indptr[nodes]
        rows = row[encoded.indices[ranges(encoded.indptr[nodes], counts)]].astype(np.int64)
        here = rows * n_pairs + np.repeat(pair[single], counts)
        keys.append(here[rows >= 0])
    return _listed(np.concatenate(keys), n_rows, n_labels, drawn, least)


def _listed(
    met: NDArray[np.int64], n_rows: int, n_labels: int, drawn: NDArray[np.int32], least: float
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Pairs met often enough by rows, as row · L² + pair, and those drawn, ascending by row."""
    n_pairs = n_labels * n_labels
    key, times = np.unique(met, return_counts=True)
    total = np.bincount(key // n_pairs, times, n_rows)
    seen = key[times >= least * total[key // n_pairs]]
    more = (np.arange(n_rows)[:, None] * n_pairs + drawn).ravel()
    kept = np.unique(np.concatenate([seen, more]))
    return bounds(np.bincount(kept // n_pairs, minlength=n_rows)), (kept % n_pairs).astype(np.int32)


def _canonical(pair: NDArray[Any], n_labels: int) -> NDArray[Any]:
    """One of a pair and its mirror image (−1 stays)."""
    a, b = pair // n_labels, pair % n_labels
    mirrored: NDArray[Any] = np.minimum(a, b) * n_labels + np.maximum(a, b)
    return np.where(pair < 0, pair, mirrored)


def _edge_pairs(labels: Labels, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pair of labels of each edge, −1 where an end has not one label."""
    n_labels = len(labels.classes)
    ends = labels.ids[edges].astype(np.int64)
    single = (ends < n_labels).all(axis=1)
    return np.where(single, ends[:, 0] * n_labels + ends[:, 1], -1)


def _draw_pairs(
    encoded: Encoded,
    labels: Labels,
    shape: tuple[int, int],
    rng: np.random.Generator,
    edges: NDArray[np.int64] | None,
) -> NDArray[np.int32]:
    """Random label pairs, as often as they occur between neighbours (uniformly if none do)."""
    n_labels = len(labels.classes)
    if edges is None:
        inside = np.ones(max(0, len(labels.ids) - 1), bool)
        starts = encoded.offsets[1:-1]
        inside[starts[(starts > 0) & (starts < len(labels.ids))] - 1] = False
        first = np.flatnonzero(inside)
        edges = np.stack([first, first + 1], axis=1)
    seen = _edge_pairs(labels, edges)
    seen = seen[seen >= 0]
    if not len(seen):
        return rng.integers(0, n_labels * n_labels, shape).astype(np.int32)
    return seen[rng.integers(0, len(seen), shape)].astype(np.int32)
