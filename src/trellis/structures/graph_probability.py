"""General graphs: marginals and samples, exact by elimination or by belief propagation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.arrays import Bools, Float64s, Int32s, Int64s
from trellis.errors import DataError
from trellis.structures import elimination
from trellis.structures.belief_propagation import belief_propagation
from trellis.structures.graph_checks import (
    at_least,
    one_of,
    plans_within,
    require_feasible,
    require_forests,
    require_labels,
)
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import MessageGraph, subset, supported

__all__ = ["GraphMarginals", "graph_entropy", "graph_marginals", "graph_sample"]


_MARGINALS = ("auto", "tree", "elimination", "bp")


@dataclass(frozen=True, eq=False)
class GraphMarginals:
    """Probabilities of labels and of pairs of labels.

    Parameters
    ----------
    node : float64, shape (N, L)
        Probability of each label at each node.
    pair : float64, shape (E, L, L)
        Probability of each pair of labels at each edge, indexed as its table is.
    log_z : float64, shape (S,)
        Logarithm of the normaliser of each sample.
    exact : bool, shape (S,)
        Whether they are exact rather than those of loopy belief propagation.
    converged : bool, shape (S,)
        Whether the messages settled; true of elimination.
    n_iterations : int64, shape (S,)
        Number of turns of the messages; 0 for elimination.
    """

    node: Float64s
    pair: Float64s
    log_z: Float64s
    exact: Bools
    converged: Bools
    n_iterations: Int64s


def graph_marginals(
    p: GraphPotentials,
    *,
    method: str = "auto",
    budget: int = 10_000_000,
    max_iterations: int = 200,
    damping: float = 0.2,
    tolerance: float = 1e-8,
) -> GraphMarginals:
    """Compute the probabilities of labels and of pairs of labels.

    Parameters
    ----------
    p : GraphPotentials
        The scores.
    method : str
        ``"tree"``, ``"elimination"``, ``"bp"`` (loopy belief propagation), or ``"auto"``: for each
        sample the first of these that can be used.
    budget : int
        Most table entries that elimination may take for a sample, of 8 bytes each.
    max_iterations : int
        Most turns of belief propagation.
    damping : float
        Share of the old message that loopy belief propagation keeps, from 0 to below 1.
    tolerance : float
        Change of log messages below which belief propagation has converged.

    Returns
    -------
    GraphMarginals
        The marginals, and whether they are exact or at least converged.

    Raises
    ------
    DataError
        If the method cannot be used: ``"tree"`` on a cycle, ``"elimination"`` beyond the budget
        (the message says the cost).
    InfeasibleError
        If a sample has no feasible labelling, unless only exact inference can tell.

    Examples
    --------
    >>> p = GraphPotentials(
    ...     [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]],
    ...     [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> found = graph_marginals(p)
    >>> found.node[1].round(3).tolist(), found.exact.tolist(), found.log_z.round(3).tolist()
    ([0.358, 0.642], [True], [4.654])
    >>> loopy = graph_marginals(p, method="bp")
    >>> loopy.node[1].round(3).tolist(), loopy.exact.tolist(), loopy.converged.tolist()
    ([0.335, 0.665], [False], [True])
    """
    one_of(method, _MARGINALS)
    at_least(budget, 1, "budget")
    at_least(max_iterations, 1, "max_iterations")
    if not 0 <= damping < 1:
        raise DataError(f"damping is {damping}; it must be from 0 to below 1")
    if not tolerance > 0:
        raise DataError(f"tolerance is {tolerance}; it must be above 0")
    q = supported(p)
    require_labels(q)
    graph = MessageGraph.of(q)
    n_samples = len(p.offsets) - 1
    by_messages = np.ones(n_samples, np.bool_)
    plans: list[tuple[elimination.Plan, bool]] = []
    if method == "tree":
        require_forests(graph)
    elif method == "elimination":
        by_messages[:] = False
        plans = plans_within(q, range(n_samples), budget)
    elif method == "auto":
        loopy = np.flatnonzero(~graph.forest).tolist()
        for s, (plan, cut) in zip(loopy, elimination.plans(q, loopy, budget), strict=True):
            if plan is not None:
                plans.append((plan, cut))
                by_messages[s] = False
    n, n_labels = p.node.shape
    found = GraphMarginals(
        np.zeros((n, n_labels)),
        np.zeros((len(p.edges), n_labels, n_labels)),
        np.zeros(n_samples),
        np.ones(n_samples, np.bool_),
        np.ones(n_samples, np.bool_),
        np.zeros(n_samples, np.int64),
    )
    if by_messages.any():
        part, rows, edges = subset(q, by_messages)
        own = graph if by_messages.all() else MessageGraph.of(part)
        node, pair, log_z, converged, turns = belief_propagation(
            part, own, max_iterations, damping, tolerance
        )
        found.node[rows] = node
        found.pair[edges] = pair
        found.log_z[by_messages] = log_z
        found.exact[by_messages] = own.forest
        found.converged[by_messages] = converged | own.forest
        found.n_iterations[by_messages] = turns
    order, edge_offsets = q.by_sample()
    for group in elimination.groups(q, np.flatnonzero(~by_messages).tolist(), plans, budget):
        node_of, pair_of, log_z = group.marginals()
        found.log_z[group.samples] = log_z
        first = q.offsets[group.samples]
        for v, values in enumerate(node_of):
            labels = group.labels[v] if group.labels else np.arange(n_labels)
            found.node[(first + v)[:, None], labels] = values
        place = {ends: i for i, ends in enumerate(group.ends)}
        for i in range(edge_offsets[group.samples[0] + 1] - edge_offsets[group.samples[0]]):
            edge = order[edge_offsets[group.samples] + i]
            a, b = (int(v) for v in q.edges[edge[0]] - first[0])
            if (a, b) in place:
                values = pair_of[place[a, b]]
            else:  # one end has a single label, so the ends are independent
                values = node_of[a][:, :, None] * node_of[b][:, None, :]
            if group.labels:
                at = (edge[:, None, None], group.labels[a][:, None], group.labels[b])
                found.pair[at] = values
            else:
                found.pair[edge] = values
    require_feasible(p, found.log_z)
    return found


def graph_entropy(p: GraphPotentials, marginals: GraphMarginals | None = None) -> Float64s:
    r"""Entropy of p(y) of each sample, in nats: :math:`H = \log Z - \mathbb E[s(y)]`.

    Where the marginals are not exact it is that of belief propagation.

    Parameters
    ----------
    p : GraphPotentials
        The scores.
    marginals : GraphMarginals, optional
        Those of ``p``, if they are known.

    Returns
    -------
    float64, shape (S,)

    Examples
    --------
    >>> free = GraphPotentials(np.zeros((3, 2)), np.zeros((2, 2)), [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> (graph_entropy(free) / np.log(2)).round(6).tolist()
    [3.0]
    """
    m = graph_marginals(p) if marginals is None else marginals
    n = len(p.offsets) - 1
    owner = np.repeat(np.arange(n), np.diff(p.offsets))
    node = np.where(m.node > 0, m.node * np.where(m.node > 0, p.node, 0.0), 0.0).sum(axis=1)
    score = p.pair[p.types]
    pair = np.where(m.pair > 0, m.pair * np.where(m.pair > 0, score, 0.0), 0.0).sum(axis=(1, 2))
    expected = np.bincount(owner, node, n) + np.bincount(owner[p.edges[:, 0]], pair, n)
    entropy: Float64s = np.maximum(m.log_z - expected, 0.0)
    return entropy


def graph_sample(
    p: GraphPotentials, n_samples: int, rng: np.random.Generator, *, budget: int = 10_000_000
) -> Int32s:
    """Draw independent labellings from p(y), exactly, by variable elimination.

    Parameters
    ----------
    p : GraphPotentials
        The scores.
    n_samples : int
        How many labellings of each sample.
    rng : numpy.random.Generator
        Source of ``n_samples * N`` uniform numbers, taken in one call.
    budget : int
        Most table entries that elimination may take for a sample, of 8 bytes each.

    Returns
    -------
    int32, shape (n_samples, N)
        One draw for all samples in each row.

    Raises
    ------
    DataError
        If elimination is beyond the budget (the message says the cost).
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    Three nodes in a triangle, of which each two must differ, have two colourings with 0, 1 and 2
    at the nodes 0, 1 and 2 in some order, three of each kind:

    >>> p = GraphPotentials(
    ...     np.zeros((3, 3)), np.where(np.eye(3), -np.inf, 0.0), [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> y = graph_sample(p, 600, np.random.default_rng(0))
    >>> len(np.unique(y, axis=0)), bool((y.sum(axis=1) == 3).all())
    (6, True)
    """
    at_least(n_samples, 0, "n_samples")
    at_least(budget, 1, "budget")
    q = supported(p)
    require_labels(q)
    chosen = range(len(p.offsets) - 1)
    plans = plans_within(q, chosen, budget)
    uniforms = rng.random((n_samples, len(p.node)))
    drawn = np.zeros((n_samples, len(p.node)), np.int32)
    log_z = np.zeros(len(chosen))
    for group in elimination.groups(q, chosen, plans, budget):
        rows = p.offsets[group.samples][:, None] + np.arange(len(group.node))
        labels, log_z[group.samples] = group.sample(uniforms[:, rows].transpose(1, 0, 2))
        drawn[:, rows] = labels.transpose(1, 0, 2)
    require_feasible(p, log_z)
    return drawn
