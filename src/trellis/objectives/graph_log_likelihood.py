"""Negative log-likelihood of label sets on pieces of trees and graphs.

    ℓ(w) = Σ_pieces weight · ( log Σ_y e^{s(y)} − log Σ_{y allowed} e^{s(y)} )

Pieces that are trees go through one kernel, as chains do: steps, mini-batches, threads and the
exact gradient. Pieces with loops are handed to :func:`trellis.structures.graph_marginals`, a
mini-batch at a time; where their treewidth is too large for exact sums, the marginals and the loss
are those of loopy belief propagation, an approximation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import bounds, ranges
from trellis.objectives.chain import Visits
from trellis.objectives.graph import GraphData, GraphVisits
from trellis.objectives.log_likelihood import FeatureRates, LogLikelihood
from trellis.objectives.threads import N_CHUNKS, run_threads
from trellis.objectives.weights import Weights
from trellis.structures import GraphMarginals, GraphPotentials, graph_marginals, tree_score

__all__ = ["GraphLogLikelihood", "rich_arguments"]


def rich_arguments(data: GraphData, weights: Weights) -> Any:
    """What kernels take as ``rich``; None without rich edges."""
    from trellis.kernels.tree_edges import RichRows

    edge = weights.edge
    if edge is None or data.rows is None or not edge.n_crossed:
        return None
    rows = data.rows
    return RichRows(
        rows.indptr, rows.rows, rows.values, rows.features, edge.ptr, edge.pair, edge.values
    )


class GraphLogLikelihood(LogLikelihood):
    """The CRF loss of a tree or graph problem.

    Parameters
    ----------
    data : GraphData
    n_jobs : int
        Threads, for pieces that are trees; the results are the same for any number.
    """

    data: GraphData

    def __init__(self, data: GraphData, n_jobs: int = 1) -> None:
        super().__init__(data, n_jobs)

    def _run(
        self,
        weights: Weights,
        into: Weights,
        visits: Visits,
        state: NDArray[np.float64],
        rates: FeatureRates,
        *,
        rate: float,
        decay: float,
        shrink: float,
        refresh: int,
        batch: int,
    ) -> float:
        assert isinstance(visits, GraphVisits)
        if visits.forest is None:
            return self._run_loopy(
                weights, into, visits, state, rates, rate=rate, decay=decay, shrink=shrink,
                batch=batch,
            )  # fmt: skip
        from trellis.kernels.crf import Rates, Shared, Steps, crf_steps

        data, forest = self.data, visits.forest.arguments(self.data.types)
        n_labels, n_types = data.n_labels, data.n_types
        n_chunks = min(N_CHUNKS, batch)
        n_threads = min(self.n_jobs, n_chunks)
        kind = weights.node.dtype
        rich = rich_arguments(data, weights)
        into_edge = np.zeros(0, kind) if into.edge is None else into.edge.values
        positions = visits.largest_batch(batch)
        shared = Shared(
            np.zeros(3, np.int64),
            np.empty((positions, n_labels), kind),
            np.empty((0 if rich is None else positions, n_labels * n_labels), kind),
            np.zeros((n_chunks, n_types, n_labels, n_labels), kind),
            np.zeros((n_chunks, n_types, n_labels, n_labels), np.float64),
            np.zeros(n_chunks, np.float64),
            np.zeros((n_chunks, n_types), np.uint8),
            np.zeros(n_types, np.int64),
        )
        feature_bounds = self._bounds(len(weights.node), n_threads)
        # Each of many tables is met less often: its changes may wait as long as a single one's.
        wait = refresh * min(n_types, 4)

        def work(thread: int) -> None:
            crf_steps(
                *data.arguments(), visits.arguments(), None, forest,
                weights.node, weights.transitions, None, None, rich, not data.directed,
                Steps(into.node, into.transitions, into_edge),
                Rates(rate, decay, shrink, rates.gamma, rates.fired), state, wait, batch,
                feature_bounds, thread, shared, None,
            )  # fmt: skip

        run_threads(n_threads, work)
        return float(shared.losses.sum())

    # ---------------------------------------------------------------- pieces with loops

    def _run_loopy(
        self,
        weights: Weights,
        into: Weights,
        visits: GraphVisits,
        state: NDArray[np.float64],
        rates: FeatureRates,
        *,
        rate: float,
        decay: float,
        shrink: float,
        batch: int,
    ) -> float:
        total, r = 0.0, rate
        adaptive = rates.gamma.size > 0
        for first in range(0, len(visits), batch):
            these = visits[first : first + batch]
            paces = np.ones(len(these))
            if not adaptive:
                paces *= r * decay ** np.arange(len(these))
            total += self._step_loopy(weights, into, these, state, rates, paces)
            keep = 1.0
            for _ in range(len(these)):
                keep /= 1.0 + 2.0 * r * shrink
                r *= decay
            state[0] *= keep
            if keep != 1.0:
                into.transitions *= into.transitions.dtype.type(keep)
            if state[0] < 1e-4:
                into.node *= into.node.dtype.type(state[0])
                if into.edge is not None:
                    into.edge.values *= into.edge.values.dtype.type(state[0])
                state[0] = 1.0
            state[1] += len(these)
        return total

    def _step_loopy(
        self,
        weights: Weights,
        into: Weights,
        visits: GraphVisits,
        state: NDArray[np.float64],
        rates: FeatureRates,
        paces: NDArray[np.float64],
    ) -> float:
        """One step for a batch; piece k moves by paces[k] (times a feature's own rate)."""
        from trellis.kernels.loopy_steps import add_node_steps, add_rich_steps, score_nodes_at

        data, scale = self.data, float(state[0])
        nodes, offsets, edges, edge_ids = _stacked(visits, data.edges)
        features, sets = data.arguments()
        node = scale * score_nodes_at(features, weights.node, nodes)
        pair = edge_tables(data, weights, edge_ids, scale)
        p = GraphPotentials(node.astype(np.float64), pair, edges, offsets)
        free = graph_marginals(p)
        ids, table = sets.ids[nodes], sets.table
        if (ids < data.n_labels).all():
            fixed = _one_labelling(p, ids)
        else:
            fixed = graph_marginals(p.constrained(table[ids]))
        # Both by belief propagation, a difference may come out below zero; it is what it is.
        losses = free.log_z - fixed.log_z
        per_node = np.repeat(visits.weights * paces, np.diff(offsets))
        owner = np.searchsorted(offsets, edges[:, 0], side="right") - 1
        per_edge = (visits.weights * paces)[owner]
        node_gradient = (free.node - fixed.node) * per_node[:, None]
        pair_gradient = (free.pair - fixed.pair) * per_edge[:, None, None]
        if not data.directed:
            pair_gradient = pair_gradient + pair_gradient.transpose(0, 2, 1)
        step = -1.0 if rates.gamma.size else -1.0 / scale
        kind = weights.node.dtype
        visit = int(state[1]) + np.repeat(np.arange(len(visits)), np.diff(offsets))
        add_node_steps(
            features, nodes, visit, (step * node_gradient).astype(kind), rates.gamma, rates.fired,
            into.node,
        )  # fmt: skip
        pace_t = rates.gamma[-1] if rates.gamma.size else 1.0
        change = np.zeros(into.transitions.shape)
        np.add.at(change, data.types[edge_ids], pair_gradient)
        into.transitions -= (pace_t * change).astype(kind)
        if rates.gamma.size:
            rates.fired[0, -1] += int((np.bincount(owner, minlength=len(visits)) > 0).sum())
        rich = rich_arguments(data, weights)
        if rich is not None and into.edge is not None:
            flat = (step * pair_gradient).reshape(len(edges), data.n_labels**2)
            add_rich_steps(rich, edge_ids, flat.astype(kind), rates.gamma, into.edge.values)
        return float(losses @ visits.weights)


def _one_labelling(p: GraphPotentials, ids: NDArray[np.int32]) -> GraphMarginals:
    """Marginals if the labels are known: no inference is needed."""
    node, pair = np.zeros(p.node.shape), np.zeros((len(p.edges), *p.pair.shape[1:]))
    node[np.arange(len(ids)), ids] = 1
    pair[np.arange(len(p.edges)), ids[p.edges[:, 0]], ids[p.edges[:, 1]]] = 1
    n = len(p.offsets) - 1
    sure = np.ones(n, np.bool_)
    return GraphMarginals(node, pair, tree_score(p, ids), sure, sure, np.zeros(n, np.int64))


def edge_tables(
    data: GraphData, weights: Weights, edge_ids: NDArray[np.int64], scale: float = 1.0
) -> NDArray[np.float64]:
    """Scores (m, L, L) of some edges, those without direction made symmetric."""
    from trellis.kernels.loopy_steps import rich_scores

    pair = weights.transitions[data.types[edge_ids]].astype(np.float64)
    rich = rich_arguments(data, weights)
    if rich is not None:
        pair += scale * rich_scores(rich, edge_ids, data.n_labels)
    return pair if data.directed else pair + pair.transpose(0, 2, 1)


def _stacked(
    visits: GraphVisits, edges: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The pieces as samples of their own: nodes, offsets, edges between them, their numbers."""
    assert visits.kept is not None
    assert visits.kept_starts is not None and visits.kept_ends is not None
    sizes = visits.ends - visits.starts
    nodes = visits.nodes[ranges(visits.starts, sizes)]
    offsets = bounds(sizes)
    counts = visits.kept_ends - visits.kept_starts
    ids = visits.kept[ranges(visits.kept_starts, counts)]
    # A piece visited twice in a batch has its nodes twice: places are looked up piece by piece.
    piece = np.repeat(np.arange(len(sizes)), sizes)
    by_node = np.lexsort((nodes, piece))
    far = int(nodes.max(initial=0)) + 1
    key = nodes[by_node] + far * piece
    wanted = edges[ids] + far * np.repeat(np.arange(len(counts)), counts)[:, None]
    return nodes, offsets, by_node[np.searchsorted(key, wanted)], ids
