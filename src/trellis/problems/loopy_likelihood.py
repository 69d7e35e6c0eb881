"""Negative log-likelihood of label sets on pieces with loops.

    ℓ(w) = Σ_pieces weight · ( log Σ_y e^{s(y)} − log Σ_{y allowed} e^{s(y)} )

Pieces are handed to :func:`trellis.structures.marginals`, a mini-batch at a time; where their
treewidth is too large for exact sums, the marginals and the loss are those of loopy belief
propagation, an approximation. Its turns end earlier than where marginals are the result: a step is
no worse for a thousandth that a message may still change by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import bounds, ranges
from trellis.problems.edge_rows import rich_arguments
from trellis.problems.label_problem import LabelProblem
from trellis.problems.visits import GraphVisits
from trellis.problems.weights import Weights
from trellis.structures import GraphPotentials, Marginals, labelling_score, marginals

if TYPE_CHECKING:
    from trellis.problems.log_likelihood import FeatureRates, Schedule

__all__ = ["LoopyPieces", "descend_loopy"]

_TOLERANCE = 1e-3  # of belief propagation


@dataclass
class LoopyPieces:
    """What the last visits of pieces told of them, by their edges.

    ``dear`` are those whose exact sums cost too much, which is slow to find out, ``unsettled`` the
    ones of these whose messages did not settle.
    """

    dear: set[bytes] = field(default_factory=set)
    unsettled: set[bytes] = field(default_factory=set)

    def marginals(self, p: GraphPotentials, pieces: list[bytes]) -> Marginals:
        """Marginals of pieces, with pairs."""
        method = "bp" if self.dear.issuperset(pieces) else "auto"
        found = marginals(p, pairs=True, method=method, tolerance=_TOLERANCE)
        approximate = ~found.exact
        for piece, settled in zip(
            (pieces[k] for k in np.flatnonzero(approximate)), found.converged[approximate],
            strict=True,
        ):  # fmt: skip
            self.dear.add(piece)
            if settled:
                self.unsettled.discard(piece)
            else:
                self.unsettled.add(piece)
        return found


def descend_loopy(
    problem: LabelProblem,
    weights: Weights,
    into: Weights,
    visits: GraphVisits,
    state: NDArray[np.float64],
    rates: FeatureRates,
    steps: Schedule,
    known: LoopyPieces,
) -> float:
    """Steps as those of :meth:`trellis.problems.LogLikelihood.descend`; returns the summed loss."""
    total, rate, batch = 0.0, steps.rate, steps.batch
    adaptive = rates.gamma.size > 0
    for first in range(0, len(visits), batch):
        these = visits[first : first + batch]
        paces = np.ones(len(these))
        if not adaptive:
            paces *= rate * steps.decay ** np.arange(len(these))
        total += _step(problem, weights, into, these, state, rates, paces, known)
        keep = 1.0
        for _ in range(len(these)):
            keep /= 1.0 + 2.0 * rate * steps.shrink
            rate *= steps.decay
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


def _step(
    problem: LabelProblem,
    weights: Weights,
    into: Weights,
    visits: GraphVisits,
    state: NDArray[np.float64],
    rates: FeatureRates,
    paces: NDArray[np.float64],
    known: LoopyPieces,
) -> float:
    """One step for a batch; piece k moves by paces[k] (times a feature's own rate)."""
    from trellis.kernels.loopy_steps import add_node_steps, add_rich_steps, score_nodes_at

    scale = float(state[0])
    nodes, offsets, edges, edge_ids = _stacked(visits, problem.edges)
    features, sets = problem.arguments()
    node = scale * score_nodes_at(features, weights.node, nodes)
    pair = problem.edge_tables(weights, edge_ids, scale)
    p = GraphPotentials(node.astype(np.float64), pair, edges, offsets)
    free = known.marginals(p, _names(edge_ids, visits))
    ids, table = sets.ids[nodes], sets.table
    if (ids < problem.n_labels).all():
        fixed = _one_labelling(p, ids)
    else:
        fixed = marginals(p.constrained(table[ids]), pairs=True, tolerance=_TOLERANCE)
    # Both by belief propagation, a difference may come out below zero; it is what it is.
    losses = free.log_z - fixed.log_z
    per_node = np.repeat(visits.weights * paces, np.diff(offsets))
    owner = np.searchsorted(offsets, edges[:, 0], side="right") - 1
    per_edge = (visits.weights * paces)[owner]
    node_gradient = (free.node - fixed.node) * per_node[:, None]
    pair_gradient = (free.pair - fixed.pair) * per_edge[:, None, None]
    if not problem.directed:
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
    np.add.at(change, problem.types[edge_ids], pair_gradient)
    into.transitions -= (pace_t * change).astype(kind)
    if rates.gamma.size:
        rates.fired[0, -1] += int((np.bincount(owner, minlength=len(visits)) > 0).sum())
    rich = rich_arguments(problem.rows, weights.edge)
    if rich is not None and into.edge is not None:
        flat = (step * pair_gradient).reshape(len(edges), problem.n_labels**2)
        add_rich_steps(rich, edge_ids, flat.astype(kind), rates.gamma, into.edge.values)
    return float(losses @ visits.weights)


def _names(edge_ids: NDArray[np.int64], visits: GraphVisits) -> list[bytes]:
    """What tells pieces apart, in few bytes: their edges."""
    assert visits.kept_starts is not None and visits.kept_ends is not None
    stops = np.cumsum(visits.kept_ends - visits.kept_starts)
    each = np.split(edge_ids, stops[:-1])
    return [blake2b(np.sort(ids).tobytes(), digest_size=16).digest() for ids in each]


def _one_labelling(p: GraphPotentials, ids: NDArray[np.int32]) -> Marginals:
    """Marginals if the labels are known: no inference is needed."""
    node, pair = np.zeros(p.node.shape), np.zeros((len(p.edges), *p.pair.shape[1:]))
    node[np.arange(len(ids)), ids] = 1
    pair[np.arange(len(p.edges)), ids[p.edges[:, 0]], ids[p.edges[:, 1]]] = 1
    return Marginals(labelling_score(p, ids), node, pair)


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
