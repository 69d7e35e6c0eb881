"""Negative log-likelihood of label sets, summed over pieces (the CRF objective without penalty).

    ℓ(w) = Σ_pieces weight · ( log Σ_y e^{s(y)} − log Σ_{y allowed} e^{s(y)} )

Fully annotated positions make the second sum one term; positions without annotation allow every
label. With pieces = whole samples and single labels it is the usual conditional log-likelihood.

Pieces of chains and pieces that are trees go through one kernel: steps, mini-batches, threads and
the exact gradient. Pieces with loops are in :mod:`trellis.problems.loopy_likelihood`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import check_in_place
from trellis.domains import instance, number, whole
from trellis.problems.edge_rows import rich_arguments
from trellis.problems.edge_weights import EdgeWeights
from trellis.problems.label_problem import LabelProblem
from trellis.problems.threads import N_CHUNKS, feature_bounds, meeting, run_threads
from trellis.problems.transition_pairs import (
    is_listed,
    listed_pairs,
    observed_pairs,
    with_weights,
)
from trellis.problems.visits import GraphVisits, Visits, check_state
from trellis.problems.weights import Weights

__all__ = ["FeatureRates", "LogLikelihood", "Schedule"]

# Positions between two refreshes of e^transitions: long enough to make short pieces cheap, short
# enough that transitions lag by no more than a sentence or two. A refresh takes time in the square
# of the number of labels and memory for it; beyond ``_LABELS`` it comes less often.
_REFRESH, _LABELS = 48, 100

# Numbers in the buffer of score gradients when the exact gradient is computed (some megabytes).
_BUFFER = 1 << 18


@dataclass
class FeatureRates:
    """Learning rates of ADF: one a feature, and one for the transitions.

    Parameters
    ----------
    gamma : float64 array (F + 1,)
        The rates; the last is that of the transitions.
    fired : int64 array (2, F + 1)
        Pieces that each occurred in since the count was reset, and the last piece counted.
    """

    gamma: NDArray[np.float64]
    fired: NDArray[np.int64]

    def check(self, n_features: int) -> None:
        """Refuse rates that are not those of so many features, or that cannot be written to."""
        shapes = (n_features + 1,), (2, n_features + 1)
        for array, shape, kind in zip(
            (self.gamma, self.fired), shapes, (np.float64, np.int64), strict=True
        ):
            check_in_place(array, shape, kind, "feature rates")

    @classmethod
    def constant(cls, n_features: int, rate: float) -> FeatureRates:
        """The same rate for all, nothing counted."""
        fired = np.zeros((2, n_features + 1), np.int64)
        fired[1] = -1
        return cls(np.full(n_features + 1, rate), fired)


@dataclass(frozen=True)
class Schedule:
    """How large steps are, and how often they are taken.

    Parameters
    ----------
    rate, decay, shrink, batch
        As for :meth:`LogLikelihood.descend`.
    refresh : int
        Positions between two refreshes of e^transitions.
    """

    rate: float
    decay: float
    shrink: float
    refresh: int
    batch: int


_NO_RATES = FeatureRates(np.zeros(0), np.zeros((2, 0), np.int64))


class LogLikelihood:
    """The CRF loss of a problem.

    Parameters
    ----------
    problem : LabelProblem
    n_jobs : int
        Threads, unless pieces have loops; the results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.corpus import as_corpus
    >>> from trellis.decompose import WholeSamples
    >>> from trellis.features import AttributeEncoder
    >>> from trellis.problems import LabelProblem, LogLikelihood, Weights
    >>> corpus = as_corpus([[["a"], ["b"]]], [["X", "Y"]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> loss = LogLikelihood(problem)
    >>> pieces = problem.visits(WholeSamples().draw(corpus.offsets, np.random.default_rng(0)))
    >>> value, gradient = loss.value_and_gradient(Weights.zeros(2, 2, float), pieces)
    >>> round(value, 4)  # log 4: all four labellings are as likely
    1.3863
    """

    def __init__(self, problem: LabelProblem, n_jobs: int = 1) -> None:
        instance(LabelProblem).check("problem", problem)
        whole(1).check("n_jobs", n_jobs)
        self.problem = problem
        self.n_jobs = n_jobs
        self._known: dict[Any, Any] = {}  # what depends on the data alone, found when first needed

    @property
    def unsettled(self) -> tuple[int, int]:
        """Pieces whose belief propagation did not converge at their last visit, and of how many."""
        known = self._known.get("loopy")
        return (0, 0) if known is None else (len(known.unsettled), len(known.dear))

    def value_and_gradient(
        self, weights: Weights, visits: Visits, into: Weights | None = None
    ) -> tuple[float, Weights]:
        """Exact summed loss of the pieces and its gradient, in float64.

        The gradient is written to ``into``, if that is given: fresh memory is dear.
        """
        instance(Weights).check("weights", weights)
        weights = weights.map(lambda a: np.ascontiguousarray(a, np.float64))
        self._check(weights, visits)
        gradient = weights.zeros_like(np.float64) if into is None else into
        if into is not None:
            self.problem.check_weights(into, "into")
        for array in () if into is None else into.arrays():
            array.fill(0)
        n_labels = self.problem.n_labels
        a_position = n_labels + (n_labels * n_labels if weights.edge is not None else 0)
        mean_size = max(1.0, float((visits.ends - visits.starts).mean())) if len(visits) else 1.0
        batch = max(N_CHUNKS, int(_BUFFER / a_position / mean_size))
        value = self._run(
            weights, gradient, visits, np.array([1.0, 0.0]), _NO_RATES,
            Schedule(-1.0, 1.0, 0.0, 1 << 60, batch),
        )  # fmt: skip
        return value, gradient

    def at_zero(self, visits: Visits) -> float:
        """Summed loss of the pieces where all weights are zero: what knowing nothing costs."""
        labels = self.problem.labels
        chance = np.log(self.problem.n_labels / labels.table.sum(axis=1))
        return visits.total(chance[labels.ids])

    def descend(
        self,
        weights: Weights,
        visits: Visits,
        state: NDArray[np.float64],
        *,
        rate: float = 1.0,
        decay: float = 1.0,
        shrink: float = 0.0,
        batch_size: int = 1,
        rates: FeatureRates | None = None,
    ) -> float:
        """One step for each batch of pieces; weights and state change in place.

        Parameters
        ----------
        weights : Weights
            True node and edge weights are ``state[0]`` times those stored.
        visits : Visits
        state : float64 array (2,)
            The scale, and the number of pieces visited so far.
        rate, decay : float
            The k-th piece has the rate ``rate · decay^k``.
        shrink : float
            Share of the L2 penalty of one piece.
        batch_size : int
            Pieces whose gradients are taken at the same weights and summed.
        rates : FeatureRates, optional
            Rates of their own for all features, instead of ``rate``.

        Returns
        -------
        float
            The summed loss met on the way.
        """
        for name, value in (("rate", rate), ("decay", decay), ("shrink", shrink)):
            number().check(name, value)
        whole(1).check("batch_size", batch_size)
        self._check(weights, visits)
        check_state(state, 2)
        if rates is not None:
            rates.check(self.problem.n_features)
        return self._run(
            weights, weights, visits, state, rates or _NO_RATES,
            Schedule(float(rate), float(decay), float(shrink), _REFRESH, min(batch_size, 1 << 40)),
        )  # fmt: skip

    def _check(self, weights: Weights, visits: Visits) -> None:
        self.problem.check_weights(weights)
        self.problem.check_visits(visits)

    def _run(
        self,
        weights: Weights,
        into: Weights,
        visits: Visits,
        state: NDArray[np.float64],
        rates: FeatureRates,
        steps: Schedule,
    ) -> float:
        from trellis.kernels.chain_edges import DENSE, LISTED
        from trellis.kernels.crf import Rates, Shared, Steps, crf_steps
        from trellis.kernels.lanes import padded

        problem, n_labels = self.problem, self.problem.n_labels
        forest, refresh = None, steps.refresh * max(1, n_labels // _LABELS)
        if isinstance(visits, GraphVisits):
            if visits.forest is None:
                from trellis.problems.loopy_likelihood import LoopyPieces, descend_loopy

                known = self._known.setdefault("loopy", LoopyPieces())
                return descend_loopy(problem, weights, into, visits, state, rates, steps, known)
            forest = visits.forest.arguments(problem.types)
            # Each of many tables is met less often: its changes may wait as long as a single one's.
            refresh *= min(problem.n_types, 4)
        n_chunks = min(N_CHUNKS, steps.batch)
        n_threads = min(self.n_jobs, n_chunks)
        kind, positions = weights.node.dtype, visits.largest_batch(steps.batch)
        edges, rich = self._edges(weights, visits, steps.batch)
        tables: tuple[int, ...] = weights.transitions.shape
        n_types = 0 if forest is None else problem.n_types
        width = padded(n_labels)
        sums = (*tables[:-2], width, width)
        own_scores = rich is not None or (edges is not None and edges.kind == DENSE)
        if edges is not None and edges.kind == LISTED:
            tables = sums = (1, len(edges.listed.second))
        shared = Shared(
            meeting(),
            np.empty((positions, width), kind),
            np.empty((positions if own_scores else 0, n_labels * n_labels), kind),
            np.zeros((n_chunks, *sums), kind),
            np.zeros((n_chunks, *tables), np.float64),
            np.zeros(n_chunks, np.float64),
            np.zeros((n_chunks if n_types else 0, n_types), np.uint8),
            np.zeros(n_types, np.int64),
        )
        into_edge = np.zeros(0, kind) if into.edge is None else into.edge.values
        bounds = self._bounds(len(weights.node), n_threads)

        def work(thread: int) -> None:
            crf_steps(
                *problem.arguments(), visits.arguments(), True if forest is None else None, forest,
                weights.node, weights.transitions, edges, rich, not problem.directed,
                Steps(into.node, into.transitions, into_edge),
                Rates(steps.rate, steps.decay, steps.shrink, rates.gamma, rates.fired),
                state, refresh, steps.batch, bounds, thread, shared,
            )  # fmt: skip

        run_threads(n_threads, work, shared.sync)
        return float(shared.losses.sum())

    def _edges(self, weights: Weights, visits: Visits, batch: int) -> tuple[Any, Any]:
        """Edges of chains as the kernel takes them (None: plain), and rich ones of trees."""
        from trellis.kernels.chain_edges import DENSE, LISTED, SPARSE, ChainEdges
        from trellis.kernels.rich_edges import RichEdges
        from trellis.kernels.sparse_edges import Hits

        edge, kind = weights.edge, weights.node.dtype
        crossed = edge is not None and edge.n_rows > 0  # the kernel takes it that there is a row
        if isinstance(visits, GraphVisits):
            return None, rich_arguments(self.problem.rows, edge) if crossed else None
        pairs = None if crossed else self._pairs(weights)
        if not crossed and pairs is None:
            return None, None
        ids, ints, numbers = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, kind)
        rich, room, entries = RichEdges(ids, ints, ids, numbers, 0, False), 0, ints
        form = LISTED
        if edge is not None and crossed:
            rich, form = edge.arguments(), SPARSE if edge.ptr.size else DENSE
        if edge is not None and form == SPARSE:
            entries = self._entries(edge)
            room = visits.largest_batch(batch, entries)
        hits = Hits(
            entries,
            source=np.empty(room, np.int32),
            target=np.empty(room, np.int32),
            delta=np.empty(room, kind),
            extra=np.empty(room, kind),
            gradient=np.empty(room, kind),
            slot=np.empty(room, np.int64),
        )
        listed = listed_pairs(ints if pairs is None else pairs, self.problem.n_labels)
        return ChainEdges(form, rich, hits, listed), None

    def _pairs(self, weights: Weights) -> NDArray[np.int64] | None:
        """The pairs of labels that have transitions, ascending, if not all have."""
        problem, known = self.problem, self._known.get("pairs")
        if known is None or known[0] is not problem.labels:
            pairs = observed_pairs(problem) if is_listed(problem) else None
            known = self._known["pairs"] = (problem.labels, pairs)
        return None if known[1] is None else with_weights(known[1], weights.transitions)

    def _entries(self, edge: EdgeWeights) -> NDArray[np.int64]:
        """Running number of edge weights met at each position; the same for all steps of a run."""
        known = self._known.get("entries")
        if known is None or known[0] is not edge.ptr:
            from trellis.kernels.sparse_edges import count_entries

            counted = count_entries(self.problem.arguments()[0], edge.arguments())
            known = self._known["entries"] = (edge.ptr, counted)
        entries: NDArray[np.int64] = known[1]
        return entries

    def _bounds(self, n_features: int, n_threads: int) -> NDArray[np.int64]:
        if n_threads == 1:
            return np.array([0, n_features])
        if n_threads not in self._known:
            indices = self.problem.encoded.indices
            self._known[n_threads] = feature_bounds(indices, n_features, n_threads)
        bounds: NDArray[np.int64] = self._known[n_threads]
        return bounds
