r"""The one problem that all learners of chains, trees and graphs see: samples with label sets.

A labelling is compatible with what is known if all its labels are in their sets
(:mod:`trellis.problems.samples`); a node is *annotated* if its set is not that of all labels. The
task loss :math:`\Delta(A, y)` (:mod:`trellis.problems.costs`) is a sum over nodes, so each maximum
is one call of the inference of the structure: over all outputs as it is, over the compatible ones
with :math:`-\infty` outside the sets. The incompatible ones are the union, over the m annotated
nodes, of the labellings that leave the set of that node: the best of m constrained maxima, of which
each costs as much as the whole of the others. The mean of all compatible labellings draws the label
of each node evenly from its set, independently of the rest.

Losses are small objects over a problem: :class:`trellis.problems.LogLikelihood`,
:class:`~trellis.problems.PerceptronLoss`, :class:`~trellis.problems.HingeLoss` and
:class:`~trellis.problems.PartialObjective`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s, check_in_place
from trellis.corpus import Label, Labels
from trellis.domains import is_whole, one_of, text, whole
from trellis.domains import samples as samples_of
from trellis.errors import DataError, InfeasibleError
from trellis.problems.confidence import OF_POSITIONS, PROBABILITIES, confidence, doubts
from trellis.problems.label_inference import Batch, LabelInference, LabelMaxima
from trellis.problems.problem import Maxima, Measure, Space

__all__ = ["LabelProblem"]


class LabelProblem(LabelInference):
    """Samples with label sets, a learning problem (:mod:`trellis.problems.problem`).

    Parameters
    ----------
    encoded : Encoded
        Features of all positions.
    labels : Labels
        What is known of each position; the classes are all labels there are.
    n_features : int
        Number of features F.
    sample_weight : float64, shape (S,), optional
        Weight of each sample, 1 by default.
    structure : "chain", "tree" or "graph"
        How the positions of a sample hang together.
    edges : int64, shape (E, 2), optional
        Trees and graphs: pairs of positions.
    types : int64, shape (E,), optional
        Table of each edge; 0 by default.
    n_types : int
        Number of tables K.
    directed : bool
        Whether the two ends of an edge play different parts.
    rich : EdgeWeights, optional
        Which features are crossed with which label pairs; the values are not looked at.
    edge_features : Encoded, optional
        Trees and graphs: features that edges have of their own, in CSR over edges.
    inference : str
        Graphs with loops: method of :func:`trellis.structures.best`, or "exact". Where it is
        not exact, values are those of the labellings found, and bounds are higher.
    cost : "hamming", array (L, L) or function
        Cost of a label in place of another, ``cost[gold, predicted]``.
    transitions : "auto", "all" or "observed"
        Pairs of labels whose transitions the log-likelihood of chains learns
        (:mod:`trellis.problems.transition_pairs`).

    Examples
    --------
    Of the three positions of a chain, the middle one is known:

    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> corpus = as_corpus([[["a"], ["b"], ["a"]]], [[None, "Y", {"X", "Z"}]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> w = np.zeros(problem.n_weights)
    >>> for space in ("all", "compatible", "incompatible"):
    ...     best = problem.maxima(w, space, loss=True)
    ...     print(space, best.values.tolist(), best.losses.tolist())
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
        if not (is_whole(i) and 0 <= i < self.n_samples):
            raise DataError(f"there is no sample {i}; they are numbered 0 to {self.n_samples - 1}")
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        if isinstance(annotation, Mapping):
            labels: list[Label] = [None] * (b - a)
            for t, label in annotation.items():
                if not (isinstance(t, int | np.integer) and 0 <= t < b - a):
                    raise DataError(f"sample {i} has positions 0 to {b - a - 1}, not {t!r}")
                labels[t] = label
        else:
            samples_of.check("annotation", annotation)
            labels = list(annotation)
            if len(labels) != b - a:
                raise DataError(
                    f"sample {i} has {b - a} positions, but there are {len(labels)} labels; give "
                    "one for each (None if not known), or {position: label}"
                )
        new = Labels.from_lists([labels], self.classes, first=i).allowed()
        known = self.labels.take(slice(a, b)).allowed()
        both = known & new
        wrong = np.flatnonzero(~both.any(axis=1))
        if len(wrong):
            t = int(wrong[0])
            raise InfeasibleError(
                f"sample {i}, position {t}: the annotation {self._names(new[t])} contradicts "
                f"{self._names(known[t])}, which is known already"
            )
        ids, n = self.labels.ids.copy(), len(self.classes)
        numbers = {members: n + 1 + k for k, members in enumerate(self.labels.sets)}
        for t, row in enumerate(both, a):
            members = frozenset(np.flatnonzero(row).tolist())
            if len(members) == 1:
                (ids[t],) = members
            elif len(members) == n:
                ids[t] = n
            else:
                ids[t] = numbers.setdefault(members, n + 1 + len(numbers))
        self.labels = Labels(ids, tuple(numbers), self.classes)
        self.__dict__.pop("costs", None)

    def _names(self, row: Bools) -> str:
        return " or ".join(repr(self.classes[j]) for j in np.flatnonzero(row))

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
        text.check("space", space)
        batch, w = self.batch(samples), self.flat_weights(w)
        node, pair = self.scores(w, batch)
        if space == "mean":
            return self.mean(node, pair, batch)
        costs = self.costs.dense(batch.rows)
        if loss and space != "compatible":
            node += costs
        if space == "incompatible":
            labels, values, above = self.best_incompatible(node, pair, batch)
        else:
            if space == "compatible":
                node[~self.allowed(batch)] = -np.inf
            elif space != "all":
                raise DataError(f"there is no space {space!r} of outputs")
            labels, values, above = self.best(node, pair, batch)
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
        check_in_place(w, (self.n_weights,), np.float64, "w")
        batch = self.batch(np.array([i]))
        node, pair = self.scores(w, batch)
        y, *_ = self.best(node, pair, batch)
        allowed = self.allowed(batch)
        if allowed[np.arange(len(y)), y].all():
            return False
        node[~allowed] = -np.inf
        right, *_ = self.best(node, pair, batch)
        np.add.at(w, *self.difference(batch, right, y))
        return True

    def margins(self, w: Float64s, measure: Measure, samples: Int64s) -> Float64s:
        """How sure the model is of each sample, among the outputs that what is known allows.

        Parameters
        ----------
        w : float64, shape (D,)
            Weights.
        measure : str
            "scoring", "best-vs-worst" or "best-vs-second": score of the best labelling, or its lead
            over the worst or the second, infinite where there is no second; or, of a CRF, one of
            :mod:`trellis.problems.confidence`.
        samples : int64, shape (n,)
            Numbers of samples.

        Returns
        -------
        float64, shape (n,)
            Larger is surer.
        """
        text.check("measure", measure)
        w = self.flat_weights(w)
        if measure in PROBABILITIES:
            return confidence(self, w, measure, self.batch(samples))
        if measure not in ("scoring", "best-vs-worst", "best-vs-second"):
            raise DataError(f"there is no measure {measure!r}")
        if measure == "best-vs-second":
            _, scores = self.two_best(w, self.batch(samples))
            lead: Float64s = scores[:, 0] - scores[:, 1]
            return lead
        high = self.maxima(w, "compatible", samples=samples).values
        if measure == "scoring":
            return high
        return high + self.maxima(-w, "compatible", samples=samples).values

    def weakest_parts(
        self, w: Float64s, measure: Measure, samples: Int64s, size: int
    ) -> tuple[list[Int64s], Float64s]:
        """The nodes of each sample that the model is least sure of, by its probabilities.

        Parameters
        ----------
        w : float64, shape (D,)
            Weights.
        measure : str
            One that is a sum over positions (:mod:`trellis.problems.confidence`).
        samples : int64, shape (n,)
            Numbers of samples.
        size : int
            Number of nodes, see :meth:`largest_parts`.

        Returns
        -------
        list of int64 arrays, float64 (n,)
            Positions in each sample whose label is not known, and how sure the model is of them:
            larger is surer.
        """
        one_of(*OF_POSITIONS).check("measure", measure)
        batch = self.batch(samples)
        return self.largest_parts(batch, doubts(self, self.flat_weights(w), measure, batch), size)

    def largest_parts(self, b: Batch, values: Float64s, size: int) -> tuple[list[Int64s], Float64s]:
        """The part of each sample of a batch with the largest sum of some values, and its negative.

        A part of a chain is ``size`` neighbours, elsewhere the node of the largest value and those
        nearest to it; in both those that are not known.
        """
        whole(1).check("size", size)
        open_ = self.open_rows[b.rows]
        values = np.where(open_, values, 0.0)
        sums = np.concatenate([[0.0], np.cumsum(values)])
        parts, totals = [], np.zeros(len(b.samples))
        for k, (start, end) in enumerate(pairwise(b.offsets.tolist())):
            if self.structure == "chain":
                width = min(size, end - start)
                found = sums[start + width : end + 1] - sums[start : end + 1 - width]
                first = start + (int(found.argmax()) if width else 0)
                chosen = np.arange(first, first + width)
                chosen = chosen[open_[chosen]]
            else:
                mine = b.edges[(b.edges[:, 0] >= start) & (b.edges[:, 0] < end)] - start
                top = np.zeros(end - start, np.bool_)
                top[values[start:end].argmax() if end > start else slice(0)] = True
                order = np.lexsort((np.arange(end - start), self._distances(mine, top))) + start
                chosen = np.sort(order[open_[order]][:size])
            parts.append(chosen - start)
            totals[k] = -values[chosen].sum()
        return parts, totals

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
        whole(1).check("size", size)
        b = self.batch(np.array([i]))
        n = len(b.rows)
        open_ = self.allowed(b).sum(axis=1) > 1
        labels, scores = self.two_best(w, b)
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
        places: Int64s = span[open_[span]]
        return places

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
