r"""Learning problems of chains, trees and graphs whose nodes have label sets.

The score of a labelling y of a sample x is that of :mod:`trellis.problems.hinge`,

.. math::

    f(x, y; w) = \langle w, \Phi(x, y)\rangle
    = \sum_v \sum_{f \in x_v} x_{vf} W_{f, y_v} + \sum_{e = (a, b)} S_{k(e), y_a, y_b},

with flat weights w: W (F, L) row by row, then the tables T (K, L, L); S = T, or T + Tᵀ where edges
have no direction. What is known of node v is the set :math:`A_v` of labels it may have; a node is
*annotated* if its set is not that of all labels. A labelling is compatible if all its labels are in
their sets, and the loss counts the others,

.. math:: \Delta(A, y) = \sum_v [y_v \notin A_v] \, \min_{g \in A_v} c(g, y_v),

c being 1 or the costs that are given. It is a sum over nodes, so each maximum is one call of the
inference of the structure: over all outputs as it is, over the compatible ones with
:math:`-\infty` outside the sets. The incompatible ones are the union, over the m annotated nodes,
of the labellings that leave the set of that node: the best of m constrained maxima, of which each
costs as much as the whole of the others. The mean of all compatible labellings draws the label of
each node evenly from its set, independently of the rest.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Label, Labels
from trellis.corpus.corpus import ranges
from trellis.errors import DataError, InfeasibleError
from trellis.problems.label_inference import LabelInference, LabelMaxima
from trellis.problems.learning_problem import Maxima, Measure, Space

__all__ = ["LabelProblem"]

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


class LabelProblem(LabelInference):
    """Samples with label sets, a learning problem (:mod:`trellis.problems.learning_problem`).

    Parameters
    ----------
    encoded : Encoded
        Features of all positions.
    labels : Labels
        What is known of each position; the classes are all labels there are.
    n_features : int
        Number of features F.
    structure : "chain", "tree" or "graph"
        How the positions of a sample hang together.
    edges : int64, shape (E, 2), optional
        Trees and graphs: pairs of positions.
    types : int64, shape (E,), optional
        Table of each edge; 0 by default.
    n_tables : int
        Number of tables K.
    directed : bool
        Whether the two ends of an edge play different parts.
    inference : str
        Graphs with loops: method of :func:`trellis.structures.graph_best`, or "exact". Where it is
        not exact, values are those of the labellings found, and bounds are higher.
    loss : "hamming" or array (L, L)
        Cost of a label in place of another, ``loss[gold, predicted]``.

    Examples
    --------
    Of the three positions of a chain, the middle one is known:

    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> corpus = as_corpus([[["a"], ["b"], ["a"]]], [[None, "Y", {"X", "Z"}]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> w = np.zeros(problem.n_weights)
    >>> for space in ("all", "compatible", "incompatible"):
    ...     found = problem.maxima(w, space, loss=True)
    ...     print(space, found.values.tolist(), found.losses.tolist())
    all [2.0] [2.0]
    compatible [0.0] [0.0]
    incompatible [2.0] [2.0]
    >>> problem.annotate(0, {0: "X"})
    >>> problem.complete.tolist()
    [False]
    """

    # ---------------------------------------------------------------- annotation

    def annotate(self, i: int, annotation: Sequence[Label] | Mapping[int, Label]) -> None:
        """Add what an annotator said of sample i to what is known.

        Parameters
        ----------
        i : int
            The sample.
        annotation : list of labels, or {position: label}
            A label, None (nothing) or a set of labels for each position, or for some.

        Raises
        ------
        DataError
            If there is no such sample, position or label.
        InfeasibleError
            If it contradicts what is known; then nothing is changed.
        """
        if not 0 <= i < self.n_samples:
            raise DataError(f"there is no sample {i}; they are numbered 0 to {self.n_samples - 1}")
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        if isinstance(annotation, Mapping):
            said: list[Label] = [None] * (b - a)
            for t, label in annotation.items():
                if not (isinstance(t, int | np.integer) and 0 <= t < b - a):
                    raise DataError(f"sample {i} has positions 0 to {b - a - 1}, not {t!r}")
                said[t] = label
        else:
            said = list(annotation)
            if len(said) != b - a:
                raise DataError(
                    f"sample {i} has {b - a} positions, but there are {len(said)} labels; give one "
                    "for each (None if not known), or {position: label}"
                )
        try:
            new = Labels.from_lists([said], self.classes).allowed()
        except DataError as error:
            raise DataError(str(error).replace("sample 0,", f"sample {i},")) from None
        both = self.allowed[a:b] & new
        wrong = np.flatnonzero(~both.any(axis=1))
        if len(wrong):
            t = int(wrong[0])
            raise InfeasibleError(
                f"sample {i}, position {t}: the annotation {self._names(new[t])} contradicts "
                f"{self._names(self.allowed[a + t])}, which is known already"
            )
        self.allowed[a:b] = both
        if self._costs is not None:
            self._costs[a:b] = self._set_costs(both)

    def _names(self, row: Bools) -> str:
        return " or ".join(repr(self.classes[j]) for j in np.flatnonzero(row))

    def apart(self, samples: Int64s) -> tuple[LabelProblem, Int64s]:
        """Every node a sample of its own, and which nodes of some samples have a known label.

        The weights are in the same places; those of the edges have no effect.

        Parameters
        ----------
        samples : int64, shape (n,)
            Numbers of samples.

        Returns
        -------
        problem : LabelProblem
            What is known is shared with this one.
        nodes : int64
            Positions, sample after sample, where only one label is possible.
        """
        alone = copy.copy(self)
        alone.structure = "chain"
        alone.offsets = np.arange(int(self.offsets[-1]) + 1)
        alone._set_edges(np.zeros((0, 2), np.int64), None)
        rows = self._batch(samples).rows
        nodes: Int64s = rows[self.allowed[rows].sum(axis=1) == 1]
        return alone, nodes

    # ---------------------------------------------------------------- maxima

    def maxima(
        self, w: Float64s, space: Space, *, loss: bool = False, samples: Int64s | None = None
    ) -> Maxima:
        """Maximise score (plus task loss) over outputs of all samples, or of those named.

        Parameters
        ----------
        w : float64, shape (D,)
            Weights.
        space : "all", "compatible", "incompatible" or "mean"
            Outputs to choose from. "incompatible" takes as many calls of the inference as a sample
            has annotated nodes; "mean" is no maximum, but the mean of the compatible outputs.
        loss : bool
            Whether to add the task loss to the scores.
        samples : int64, shape (n,), optional
            Numbers of samples, all by default.

        Returns
        -------
        LabelMaxima
            Values, losses and features; for "mean" without labels.
        """
        batch = self._batch(samples)
        node, S = self._node_scores(w, batch), self._tables(w)
        if space == "mean":
            return self._mean(node, S, batch)
        costs = self._costs_at(batch.rows)
        if loss and space != "compatible":
            node += costs
        if space == "incompatible":
            labels, values, above = self._incompatible(node, S, batch)
        else:
            if space == "compatible":
                node[~self.allowed[batch.rows]] = -np.inf
            elif space != "all":
                raise DataError(f"there is no space {space!r} of outputs")
            labels, values, above = self._best(node, S, batch)
        lost = np.bincount(
            batch.owner, costs[np.arange(len(labels)), labels], len(batch.samples)
        ).astype(np.float64)
        lost[~np.isfinite(values)] = 0.0
        return LabelMaxima(values, lost, above, labels, self, batch)

    # ---------------------------------------------------------------- steps and margins

    def update(self, i: int, w: Float64s) -> bool:
        """Make a perceptron step in place: best compatible less best; False if they are equal.

        Only weights of features that the sample has are touched.
        """
        from trellis.kernels.scoring import score_nodes

        e, L = self.encoded, self.n_labels
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        batch = self._one(i)
        W, T = self.split(w)
        S = self._tables(w)
        node = score_nodes(e.indptr, e.indices, e.values, W, a, b)
        y, *_ = self._best(node, S, batch)
        allowed = self.allowed[a:b]
        if allowed[np.arange(b - a), y].all():
            return False
        node[~allowed] = -np.inf
        right, *_ = self._best(node, S, batch)
        changed = np.flatnonzero(right != y)
        counts = e.indptr[a + changed + 1] - e.indptr[a + changed]
        entries = ranges(e.indptr[a + changed], counts)
        f = e.indices[entries].astype(np.int64) * L
        x = e.values[entries].astype(np.float64) if e.values.size else 1.0
        flat = W.reshape(-1)
        np.add.at(flat, f + np.repeat(right[changed], counts), x)
        np.subtract.at(flat, f + np.repeat(y[changed], counts), x)
        first, second = batch.edges.T
        tables = T.reshape(-1)
        for labels, step in ((right, 1.0), (y, -1.0)):
            u, v = labels[first], labels[second]
            np.add.at(tables, (batch.types * L + u) * L + v, step)
            if not self.directed:
                np.add.at(tables, (batch.types * L + v) * L + u, step)
        return True

    def margins(self, w: Float64s, measure: Measure, samples: Int64s) -> Float64s:
        """How sure the model is of each sample, among the outputs that what is known allows.

        Parameters
        ----------
        w : float64, shape (D,)
            Weights.
        measure : "scoring", "best-vs-worst" or "best-vs-second"
            Score of the best labelling, or its lead over the worst or the second; infinite where
            there is no second.
        samples : int64, shape (n,)
            Numbers of samples.

        Returns
        -------
        float64, shape (n,)
            Larger is surer.
        """
        if measure not in ("scoring", "best-vs-worst", "best-vs-second"):
            raise DataError(f"there is no measure {measure!r}")
        if measure == "best-vs-second":
            _, scores = self._two_best(w, self._batch(samples))
            lead: Float64s = scores[:, 0] - scores[:, 1]
            return lead
        high = self.maxima(w, "compatible", samples=samples).values
        if measure == "scoring":
            return high
        return high + self.maxima(-w, "compatible", samples=samples).values

    def weakest_part(self, i: int, w: Float64s, size: int) -> Int64s:
        """Nodes of sample i to ask for: where best and second best differ, and around that.

        Parameters
        ----------
        i : int
            The sample.
        w : float64, shape (D,)
            Weights.
        size : int
            Number of nodes. On a chain they lie within a span of so many positions that has the
            most of those that differ, then the most that are not known; else come those that
            differ, then their neighbours.

        Returns
        -------
        int64, shape (at most ``size``,)
            Positions in the sample whose label is not known, ascending; none if all are.
        """
        if size < 1:
            raise DataError(f"size is {size}; a part has at least one node")
        b = self._one(i)
        n = len(b.rows)
        open_ = self.allowed[b.rows].sum(axis=1) > 1
        labels, scores = self._two_best(w, b)
        if not np.isfinite(scores[0]).all():
            return np.flatnonzero(open_)[:size]
        differ = labels[0] != labels[1]
        if self.structure != "chain":
            order = np.lexsort((np.arange(n), self._distances(b.edges, differ)))
            return np.sort(order[open_[order]][:size])
        width = min(size, n)
        sums = [np.concatenate([[0], np.cumsum(x)]) for x in (differ, open_)]
        hit, free = (s[width:] - s[: n + 1 - width] for s in sums)
        middle = np.flatnonzero(differ).mean()
        off = np.abs(np.arange(n + 1 - width) + (width - 1) / 2 - middle)
        start = int(np.lexsort((off, -free, -hit))[0])
        span = np.arange(start, start + width)
        found: Int64s = span[open_[span]]
        return found

    @staticmethod
    def _distances(edges: Int64s, start: Bools) -> Int64s:
        """Number of edges from each node to the nearest of some nodes; as many as there are."""
        distance = np.where(start, 0, len(start))
        for step in range(1, len(start)):
            reached = distance < step
            ends = np.concatenate([edges[reached[edges[:, 0]], 1], edges[reached[edges[:, 1]], 0]])
            new = ends[distance[ends] > step]
            if not len(new):
                break
            distance[new] = step
        return distance
