r"""Trees and forests: best, k best, marginals, samples and entropy, all of them exact.

A labelling :math:`y` of a sample has the score and probability

.. math::

    s(y) = \sum_v \mathrm{node}_{v, y_v}
         + \sum_{e = (a, b)} \mathrm{pair}_{\mathrm{types}_e, y_a, y_b},
    \qquad p(y) = e^{s(y)} / Z, \qquad Z = \sum_y e^{s(y)}.

The scores are held in :class:`~trellis.structures.GraphPotentials` whose edges close no cycle; a
sample may fall into several trees. Time is linear in the nodes, whatever the shape of the trees. An
empty sample has one labelling, of score 0. A sample all of whose labellings are forbidden raises
:class:`~trellis.errors.InfeasibleError`.

Among labellings of equal score the best is the one with the lowest label at the node that comes
first in the order of :class:`~trellis.structures.Forest`, then at the next, and so on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.arrays import Bools, Float64s, Int32s
from trellis.errors import DataError, InfeasibleError
from trellis.structures._arrays import integers
from trellis.structures.forest import rooted
from trellis.structures.graph_potentials import GraphPotentials

__all__ = [
    "tree_best",
    "tree_entropy",
    "tree_event_probability",
    "tree_kbest",
    "tree_marginals",
    "tree_pair_marginals",
    "tree_sample",
    "tree_score",
]


def tree_best(p: GraphPotentials) -> tuple[Int32s, Float64s]:
    """Find the labelling of highest score of each sample (max-product).

    Parameters
    ----------
    p : GraphPotentials
        The scores, of forests.

    Returns
    -------
    labels : int32, shape (N,)
        The best labels, stacked as ``p.node`` is. Ties: lowest label first, node by node in the
        order of ``Forest.of(p.offsets, p.edges)``.
    scores : float64, shape (S,)
        Their scores.

    Raises
    ------
    DataError
        If the edges close a cycle.
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    Nodes 1 and 2 hang on node 0, and would rather have its label:

    >>> p = GraphPotentials(
    ...     node=[[0.0, 1.0], [0.5, 0.0], [2.0, 0.0]], pair=[[1.0, 0.0], [0.0, 1.0]],
    ...     edges=[[0, 1], [0, 2]], offsets=[0, 3],
    ... )
    >>> labels, scores = tree_best(p)
    >>> labels.tolist(), scores.tolist()
    ([0, 0, 0], [4.5])
    """
    from trellis.kernels import tree_max

    f = rooted(p.offsets, p.edges)
    labels, scores = tree_max.best(p.node, p.pair, p.offsets, f.arguments(p.types), f.tree)
    _require_feasible(p, scores)
    return labels, scores


def tree_kbest(p: GraphPotentials, k: int) -> tuple[Int32s, Float64s]:
    """Find the k labellings of highest score of each sample.

    Parameters
    ----------
    p : GraphPotentials
        The scores, of forests.
    k : int
        How many distinct labellings, at least 1.

    Returns
    -------
    labels : int32, shape (k, N)
        In each row the labellings of one rank. Where a sample has fewer than k feasible
        labellings, -1. The first is that of :func:`tree_best`; further labellings of equal score
        come in an order that depends on the scores alone, and which of them are listed when k is
        too small for all likewise.
    scores : float64, shape (S, k)
        Their scores, descending; ``-inf`` where there is no labelling.

    Raises
    ------
    DataError
        If the edges close a cycle, or k is less than 1.
    InfeasibleError
        If a sample has no feasible labelling at all.

    Examples
    --------
    >>> p = GraphPotentials([[0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [], [0, 1])
    >>> labels, scores = tree_kbest(p, 3)
    >>> labels.tolist(), scores.tolist()
    ([[1], [0], [-1]], [[1.0, 0.0, -inf]])
    """
    from trellis.kernels import tree_max

    _at_least(k, 1, "k")
    f = rooted(p.offsets, p.edges)
    labels, scores = tree_max.kbest(p.node, p.pair, p.offsets, f.arguments(p.types), int(k))
    _require_feasible(p, scores[:, 0])
    return labels, scores


def tree_marginals(p: GraphPotentials) -> tuple[Float64s, Float64s]:
    """Compute the probability of each label at each node (sum-product).

    Parameters
    ----------
    p : GraphPotentials
        The scores, of forests.

    Returns
    -------
    log_z : float64, shape (S,)
        Logarithm of the normaliser of each sample.
    node_marginals : float64, shape (N, L)
        P(y_v = j).

    Raises
    ------
    DataError
        If the edges close a cycle.
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = GraphPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [[0, 1]], [0, 2])
    >>> log_z, m = tree_marginals(p)
    >>> np.exp(log_z).round(12).tolist(), m.round(3).tolist()
    ([3.0], [[0.667, 0.333], [0.333, 0.667]])
    """
    node_marginals = np.empty(p.node.shape)
    return _posterior(p, marginals=node_marginals), node_marginals


def tree_pair_marginals(p: GraphPotentials) -> tuple[Float64s, Float64s]:
    """Compute the probability of each pair of labels at the ends of each edge.

    Parameters
    ----------
    p : GraphPotentials
        The scores, of forests.

    Returns
    -------
    log_z : float64, shape (S,)
        Logarithm of the normaliser of each sample.
    pairs : float64, shape (E, L, L)
        P(y_a = i, y_b = j) in entry [e, i, j], for the edge (a, b) = ``p.edges[e]``.

    Raises
    ------
    DataError
        If the edges close a cycle.
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = GraphPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [[1, 0]], [0, 2])
    >>> tree_pair_marginals(p)[1][0].round(3).tolist()
    [[0.333, 0.333], [0.0, 0.333]]
    """
    pairs = np.empty((len(p.edges), p.node.shape[1], p.node.shape[1]))
    return _posterior(p, pairs=pairs), pairs


def tree_sample(p: GraphPotentials, n_samples: int, rng: np.random.Generator) -> Int32s:
    """Draw independent labellings from p(y).

    Parameters
    ----------
    p : GraphPotentials
        The scores, of forests.
    n_samples : int
        How many labellings of each sample.
    rng : numpy.random.Generator
        Source of ``n_samples * N`` uniform numbers, taken in one call.

    Returns
    -------
    int32, shape (n_samples, N)
        One draw for all samples in each row.

    Raises
    ------
    DataError
        If the edges close a cycle, or n_samples is negative.
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = GraphPotentials(np.zeros((2, 2)), [[0.0, -np.inf], [-np.inf, 0.0]], [[1, 0]], [0, 2])
    >>> y = tree_sample(p, 1000, np.random.default_rng(0))
    >>> y.shape, bool((y[:, 0] == y[:, 1]).all()), bool(abs(y.mean() - 0.5) < 0.05)
    ((1000, 2), True, True)
    """
    _at_least(n_samples, 0, "n_samples")
    uniforms = rng.random((int(n_samples), len(p.node)))
    labels = np.empty(uniforms.shape, np.int32)
    _posterior(p, uniforms=uniforms, labels=labels)
    return labels


def tree_entropy(p: GraphPotentials) -> Float64s:
    """Compute the entropy of p(y) of each sample, in nats.

    Parameters
    ----------
    p : GraphPotentials
        The scores, of forests.

    Returns
    -------
    float64, shape (S,)
        The entropies, between 0 and the logarithm of the number of feasible labellings.

    Raises
    ------
    DataError
        If the edges close a cycle.
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = GraphPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [[0, 1]], [0, 2])
    >>> np.exp(tree_entropy(p)).round(12).tolist()
    [3.0]
    """
    entropy = np.zeros(len(p.offsets) - 1)
    _posterior(p, entropy=entropy)
    return entropy


def tree_event_probability(p: GraphPotentials, allowed: Bools) -> Float64s:
    """Compute the probability that every label of a sample is in the label set of its node.

    Parameters
    ----------
    p : GraphPotentials
        The scores, of forests.
    allowed : array of bool, shape (N, L)
        The label sets.

    Returns
    -------
    float64, shape (S,)
        Z under the label sets, over Z; 0 where the label sets leave no feasible labelling.

    Raises
    ------
    DataError
        If the edges close a cycle, or the label sets have a wrong shape or type.
    InfeasibleError
        If a sample has no feasible labelling even without the label sets.

    Examples
    --------
    >>> p = GraphPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [[0, 1]], [0, 2])
    >>> tree_event_probability(p, np.array([[True, True], [False, True]])).round(3).tolist()
    [0.667]
    """
    event = p.constrained(allowed)
    log_z = _posterior(p)
    # An event as good as certain may come out a rounding error above 1.
    return np.exp(np.minimum(_posterior(event, require=False) - log_z, 0.0))


def tree_score(p: GraphPotentials, labels: npt.ArrayLike) -> Float64s:
    """Compute the score s(y) of a given labelling of each sample, of any graph.

    Parameters
    ----------
    p : GraphPotentials
        The scores; the edges may close cycles.
    labels : array of int, shape (N,)
        Label ids, stacked as ``p.node`` is.

    Returns
    -------
    float64, shape (S,)
        The scores; ``-inf`` where the labelling is forbidden.

    Raises
    ------
    DataError
        If the labels do not fit the nodes, or one does not exist.

    Examples
    --------
    >>> p = GraphPotentials(
    ...     node=[[0.0, 1.0], [0.5, 0.0]], pair=[[0.0, 0.0], [-2.0, 0.0]], edges=[[0, 1]],
    ...     offsets=[0, 2],
    ... )
    >>> tree_score(p, [1, 0]).tolist()
    [-0.5]
    """
    n, n_labels = p.node.shape
    ids = integers(labels, "labels")
    if ids.shape != (n,):
        raise DataError(f"labels have shape {ids.shape}; expected {(n,)}, one for each node")
    bad = np.flatnonzero((ids < 0) | (ids >= n_labels))
    if len(bad) > 0:
        raise DataError(
            f"labels hold {ids[bad[0]]} at index {bad[0]}; label ids go from 0 to {n_labels - 1}"
        )
    terms: Float64s = p.node[np.arange(n), ids]
    a, b = p.edges.T
    np.add.at(terms, a, p.pair[p.types, ids[a], ids[b]])
    n_samples = len(p.offsets) - 1
    sample = np.repeat(np.arange(n_samples), np.diff(p.offsets))
    sums = np.bincount(sample, weights=terms, minlength=n_samples)
    return sums.astype(np.float64, copy=False)


def _posterior(
    p: GraphPotentials,
    marginals: Float64s | None = None,
    pairs: Float64s | None = None,
    entropy: Float64s | None = None,
    uniforms: Float64s | None = None,
    labels: Int32s | None = None,
    require: bool = True,
) -> Float64s:
    """Return log Z and fill the arrays that are given."""
    from trellis.kernels import tree as kernels

    f = rooted(p.offsets, p.edges)
    log_z = kernels.posterior(
        p.node,
        p.pair,
        p.offsets,
        f.arguments(p.types),
        f.tree,
        np.empty((0, 0)) if marginals is None else marginals,
        np.empty((0, 0, 0)) if pairs is None else pairs,
        np.empty(0) if entropy is None else entropy,
        np.empty((0, 0)) if uniforms is None else uniforms,
        np.empty((0, 0), np.int32) if labels is None else labels,
    )
    if require:
        _require_feasible(p, log_z)
    return log_z


def _require_feasible(p: GraphPotentials, scores: Float64s) -> None:
    """Raise if a score or log Z is not finite."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad) > 0:
        s = bad[0]
        raise InfeasibleError(
            f"(of {p.offsets[s + 1] - p.offsets[s]} nodes) has no labelling of finite score; "
            "allow more labels or pairs of labels",
            sample=int(s),
        )


def _at_least(value: int, least: int, what: str) -> None:
    if value < least:
        raise DataError(f"{what} is {value}; it must be at least {least}")
