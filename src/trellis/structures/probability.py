r"""Probabilities of labels and labellings: marginals, samples, entropy, and events.

A labelling :math:`y` of score :math:`s(y)` has the probability

.. math:: p(y) = e^{s(y)} / Z, \qquad Z = \sum_y e^{s(y)}.

On chains and forests two passes of messages give all of it
(:mod:`~trellis.structures.message_passes`), on graphs of small treewidth elimination
(:mod:`~trellis.structures.elimination`). Where that costs too much there are approximate marginals,
by belief propagation (:mod:`~trellis.structures.belief_propagation`). An empty sample has one
labelling, of probability 1. A sample all of whose labellings are forbidden raises
:class:`~trellis.errors.InfeasibleError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from trellis.arrays import Bools, Float64s, Int32s, Int64s
from trellis.domains import flag, generator, instance, nothing, number, one_of, takes, text, whole
from trellis.errors import DataError
from trellis.structures import elimination
from trellis.structures.belief_propagation import belief_propagation, tell_unsettled
from trellis.structures.chain_potentials import ChainPotentials
from trellis.structures.gibbs import gibbs_draws
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import MessageGraph, subset, supported
from trellis.structures.message_passes import POTENTIALS, MessagePasses
from trellis.structures.potentials import label_ids
from trellis.structures.results import Marginals, in_unit

__all__ = [
    "entropy",
    "event_probability",
    "log_event_probability",
    "marginals",
    "most_probable",
    "sample",
    "span_probability",
]

_METHODS = one_of("auto", "tree", "elimination", "bp")
_CHAIN_METHODS = one_of("auto")
# Turns and precision of messages that tell which label is the most probable. Where neighbours are
# strongly tied, messages have several ends to come to; those that change slowly come to the one
# that is nearest to knowing nothing, and are right more often (if they settle less often).
_LABEL_TURNS, _LABEL_TOLERANCE, LABEL_DAMPING = 60, 1e-3, 0.8
_DAMPING = (0.0, 0.1)  # of the first and the second half of the turns
_LIMIT = 2.0**900  # sums of larger scores may overflow; they are measured in another unit


@takes(
    p=POTENTIALS, pairs=flag, method=text, budget=whole(1), max_iterations=whole(1, 2**31),
    damping=one_of("auto") | number(at_least=0), tolerance=number(above=0),
)  # fmt: skip
def marginals(
    p: ChainPotentials | GraphPotentials,
    *,
    pairs: bool = False,
    method: str = "auto",
    budget: int = 10_000_000,
    max_iterations: int = 200,
    damping: float | str = "auto",
    tolerance: float = 1e-8,
) -> Marginals:
    """Compute the probabilities of labels, and of pairs of labels of neighbours.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    pairs : bool
        Whether pairs are wanted.
    method : str
        Of graphs: ``"tree"``, ``"elimination"``, ``"bp"`` (loopy belief propagation), or
        ``"auto"``: for each sample the first of these that can be used. Chains have ``"auto"``
        alone (forward–backward).
    budget : int
        Most table entries that elimination may take for a sample, of 8 bytes each.
    max_iterations : int
        Most turns of belief propagation.
    damping : float or "auto"
        Share of the old message that loopy belief propagation keeps, from 0 to below 1. "auto":
        nothing in the first half of the turns, 0.1 in the other.
    tolerance : float
        Change of log messages below which belief propagation has converged.

    Returns
    -------
    Marginals
        Log Z and the marginals, into which it unpacks, and whether they are exact or at least
        converged. Log Z is infinite where it is beyond the largest float.

    Raises
    ------
    DataError
        If the method cannot be used: ``"tree"`` on a cycle, ``"elimination"`` beyond the budget
        (the message says the cost).
    InfeasibleError
        If a sample has no feasible labelling, unless only exact inference can tell.

    Examples
    --------
    >>> from trellis.structures import ChainPotentials, GraphPotentials
    >>> p = ChainPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> log_z, node = marginals(p)
    >>> np.exp(log_z).round(12).tolist(), node.round(3).tolist()
    ([3.0], [[0.667, 0.333], [0.333, 0.667]])
    >>> marginals(p, pairs=True).pair[1].round(3).tolist()
    [[0.333, 0.333], [0.0, 0.333]]

    Three nodes in a triangle, which would rather be equal:

    >>> p = GraphPotentials(
    ...     [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]],
    ...     [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> sure = marginals(p)
    >>> sure.node[1].round(3).tolist(), sure.exact.tolist(), sure.log_z.round(3).tolist()
    ([0.358, 0.642], [True], [4.654])
    >>> loopy = marginals(p, method="bp")
    >>> loopy.node[1].round(3).tolist(), loopy.exact.tolist(), loopy.converged.tolist()
    ([0.335, 0.665], [False], [True])
    """
    (_CHAIN_METHODS if isinstance(p, ChainPotentials) else _METHODS).check("method", method)
    if not isinstance(damping, str) and damping >= 1:
        raise DataError(f"damping is {damping}; it must be from 0 to below 1")
    q, unit = p.in_unit(_LIMIT)
    if unit != 1.0:
        return _large_marginals(q, unit, pairs, method, budget)
    passes = MessagePasses.of(p, method)
    if passes is not None:
        node = np.zeros(p.node.shape)
        pair = _pairs(p) if pairs else None
        answer = Marginals(passes.posterior(marginals=node, pairs=pair), node, pair)
    else:
        assert isinstance(p, GraphPotentials)
        shares = _DAMPING if isinstance(damping, str) else (float(damping),)
        settings = (int(max_iterations), shares, float(tolerance))
        answer = _loopy_marginals(p, pairs, method, budget, settings)
    p.require_feasible(answer.log_z)
    return answer


def _large_marginals(
    p: ChainPotentials | GraphPotentials, unit: float, pairs: bool, method: str, budget: int
) -> Marginals:
    """Marginals of scores in a unit: by elimination, whatever the structure."""
    if method == "bp":
        raise DataError(
            "belief propagation takes scores up to 1e270; divide them, or use another method"
        )
    q = supported(_graph(p))
    _require_labels(q)
    n = p.n_samples
    answer = Marginals(
        np.zeros(n),
        np.zeros(p.node.shape),
        _pairs(q) if pairs else None,
        n_iterations=np.zeros(n, np.int64),
    )
    by_sample = q.by_sample() if pairs else None
    for group in _eliminated(q, range(n), budget, unit):
        _put_group(answer, q, group, by_sample)
    q.require_feasible(answer.log_z)
    pair = answer.pair if pairs else None
    if pair is not None and isinstance(p, ChainPotentials):
        of_edges, pair = pair, _pairs(p)
        pair[p.steps] = of_edges
    return Marginals(
        in_unit(answer.log_z, unit), answer.node, pair, n_iterations=answer.n_iterations
    )


def _graph(p: ChainPotentials | GraphPotentials) -> GraphPotentials:
    return p.as_graph() if isinstance(p, ChainPotentials) else p


def _eliminated(
    p: GraphPotentials, samples: Sequence[int], budget: int, unit: float = 1.0
) -> Iterator[elimination.Group]:
    """Samples to be eliminated, in groups; raises and says the cost if one is beyond the budget."""
    plans = elimination.plans_within(p, samples, budget)
    return elimination.groups(p, samples, plans, budget, unit)


def _pairs(p: ChainPotentials | GraphPotentials) -> Float64s:
    n_labels = p.node.shape[1]
    n = len(p.node) if isinstance(p, ChainPotentials) else len(p.edges)
    return np.zeros((n, n_labels, n_labels))


def _loopy_marginals(
    p: GraphPotentials,
    pairs: bool,
    method: str,
    budget: int,
    settings: tuple[int, Sequence[float], float],
) -> Marginals:
    """Marginals of graphs, some with cycles; the settings are those of belief propagation."""
    q = supported(p)
    _require_labels(q)
    n = p.n_samples
    turns = np.zeros(n, np.int64)
    answer = Marginals(
        np.zeros(n), np.zeros(p.node.shape), _pairs(p) if pairs else None, n_iterations=turns
    )
    forests, plans = np.zeros(n, np.bool_), {}
    if method == "elimination":
        plans = dict(enumerate(elimination.plans_within(q, range(n), budget)))
    elif method == "auto":
        forests = MessageGraph.of(q).forest
        loopy = np.flatnonzero(~forests).tolist()
        planned = zip(loopy, elimination.plans(q, loopy, budget), strict=True)
        plans = {s: (plan, cut) for s, (plan, cut) in planned if plan is not None}
    rest = ~forests
    rest[list(plans)] = False
    if forests.any():
        part, rows, edges = subset(p, forests)
        _put(answer, forests, rows, edges if pairs else None, marginals(part, pairs=pairs))
    if rest.any():
        part, rows, edges = subset(q, rest)
        beliefs = belief_propagation(part, MessageGraph.of(part), *settings)
        _put(answer, rest, rows, edges if pairs else None, beliefs)
    by_sample = q.by_sample() if pairs else None
    for group in elimination.groups(q, list(plans), list(plans.values()), budget):
        _put_group(answer, q, group, by_sample)
    return answer


def _put(
    answer: Marginals, samples: Bools, rows: Int64s, edges: Int64s | None, part: Marginals
) -> None:
    """Copy the marginals of some samples, with these rows and edges, to where they belong."""
    answer.log_z[samples] = part.log_z
    answer.node[rows] = part.node
    if edges is not None:
        answer.pair[edges] = part.pair
    answer.exact[samples] = part.exact
    answer.converged[samples] = part.converged
    answer.n_iterations[samples] = part.n_iterations


def _put_group(
    answer: Marginals,
    q: GraphPotentials,
    group: elimination.Group,
    by_sample: tuple[Int64s, Int64s] | None,
) -> None:
    """Compute the marginals of samples that are eliminated together, and put them in place.

    Pairs need the edges sorted by sample.
    """
    node_of, pair_of, answer.log_z[group.samples] = group.marginals()
    first = q.offsets[group.samples]
    for v, values in enumerate(node_of):
        labels = group.labels[v] if group.labels else np.arange(q.node.shape[1])
        answer.node[(first + v)[:, None], labels] = values
    if by_sample is None:
        return
    order, edge_offsets = by_sample
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
            answer.pair[at] = values
        else:
            answer.pair[edge] = values


def _require_labels(p: GraphPotentials) -> None:
    """Raise if a node has no label left."""
    values = np.zeros(p.n_samples)
    values[p.owner[~np.isfinite(p.node).any(axis=1)]] = -np.inf
    p.require_feasible(values)


@takes(p=POTENTIALS, budget=whole(1))
def most_probable(p: ChainPotentials | GraphPotentials, *, budget: int = 100_000) -> Int32s:
    """Find the most probable label of each position or node.

    The labels that make the fewest errors, as far as the marginals are right. Where many nodes tell
    little, the best labelling (:func:`best`) can be far from it: all nodes alike, say.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    budget : int
        Most table entries that elimination may take for a sample with cycles; beyond, marginals are
        those of belief propagation.

    Returns
    -------
    int32, shape (N,)
        The labels; of labels as probable, the lowest.

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling, unless only exact inference can tell.

    Examples
    --------
    The best labelling has probability 0.4; that the second label is 1 has 0.6:

    >>> from trellis.structures import ChainPotentials, best
    >>> p = ChainPotentials([[0.0, 0.0], [0.0, 0.0]], np.log([[0.4, 0.3], [0.001, 0.299]]), [0, 2])
    >>> best(p).labels.tolist(), most_probable(p).tolist()
    ([0, 0], [0, 1])
    """
    labels: Int32s = label_chances(p, budget).argmax(axis=1).astype(np.int32)
    return labels


def label_chances(p: ChainPotentials | GraphPotentials, budget: int = 100_000) -> Float64s:
    """Probabilities of labels (N, L), as precise as it takes to tell which is the largest."""
    return marginals(
        p, budget=budget, max_iterations=_LABEL_TURNS, damping=LABEL_DAMPING,
        tolerance=_LABEL_TOLERANCE,
    ).node  # fmt: skip


@takes(
    p=POTENTIALS, n_samples=whole(0), rng=generator, method=one_of("exact", "auto", "gibbs"),
    budget=whole(1), sweeps=whole(1),
)  # fmt: skip
def sample(
    p: ChainPotentials | GraphPotentials,
    n_samples: int,
    rng: np.random.Generator,
    *,
    method: str = "exact",
    budget: int = 10_000_000,
    sweeps: int = 100,
) -> Int32s:
    """Draw independent labellings from p(y), exactly unless another method is asked for.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    n_samples : int
        How many labellings of each sample.
    rng : numpy.random.Generator
        Source of ``n_samples * N`` uniform numbers, taken in one call; Gibbs sampling takes more
        after them.
    method : "exact", "auto" or "gibbs"
        Of graphs: ``"gibbs"`` is Gibbs sampling on all samples with cycles, by blocks that are
        forests (:mod:`trellis.structures.gibbs`), which is approximate. ``"auto"`` takes it where
        elimination is beyond the budget, where ``"exact"`` raises.
    budget : int
        Most table entries that elimination may take for a sample with cycles, of 8 bytes each.
    sweeps : int
        Times that Gibbs sampling draws every node, from a start that is far from p(y), before the
        labels count: the more, the nearer to p(y).

    Returns
    -------
    int32, shape (n_samples, N)
        One draw for all samples in each row.

    Raises
    ------
    DataError
        If n_samples is negative, or elimination is beyond the budget (the message says the cost).
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    Two positions that must be equal, and three nodes in a triangle of which each two must differ:

    >>> from trellis.structures import ChainPotentials, GraphPotentials
    >>> p = ChainPotentials(np.zeros((2, 2)), [[0.0, -np.inf], [-np.inf, 0.0]], [0, 2])
    >>> y = sample(p, 1000, np.random.default_rng(0))
    >>> y.shape, bool((y[:, 0] == y[:, 1]).all()), bool(abs(y.mean() - 0.5) < 0.05)
    ((1000, 2), True, True)
    >>> p = GraphPotentials(
    ...     np.zeros((3, 3)), np.where(np.eye(3), -np.inf, 0.0), [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> y = sample(p, 600, np.random.default_rng(0))
    >>> len(np.unique(y, axis=0)), bool((y.sum(axis=1) == 3).all())
    (6, True)
    """
    uniforms = rng.random((int(n_samples), len(p.node)))
    q, unit = p.in_unit(_LIMIT)
    if method == "exact" or unit != 1.0 or isinstance(p, ChainPotentials):
        log_z, labels = _drawn(q, unit, uniforms, budget)
        p.require_feasible(log_z)
        return labels
    graph = supported(p)
    _require_labels(graph)
    dear = ~MessageGraph.of(graph).forest
    if method == "auto":
        loopy = np.flatnonzero(dear).tolist()
        chosen = zip(loopy, elimination.plans(graph, loopy, budget), strict=True)
        dear[[s for s, (plan, _) in chosen if plan is not None]] = False
    labels = np.zeros(uniforms.shape, np.int32)
    if not dear.all():
        part, rows, _ = subset(graph, ~dear)
        log_z, labels[:, rows] = _drawn(part, 1.0, uniforms[:, rows], budget)
        values = np.zeros(p.n_samples)
        values[~dear] = log_z
        p.require_feasible(values)
    if dear.any():
        part, rows, _ = subset(graph, dear)
        labels[:, rows] = gibbs_draws(part, len(labels), rng, int(sweeps))
    return labels


def _drawn(
    p: ChainPotentials | GraphPotentials, unit: float, uniforms: Float64s, budget: int
) -> tuple[Float64s, Int32s]:
    """Log Z (S,), -inf where there is no labelling, and labels drawn by numbers (K, N).

    Scores and log Z are measured in the unit.
    """
    labels = np.zeros(uniforms.shape, np.int32)
    passes = MessagePasses.of(p) if unit == 1.0 else None
    if passes is not None:
        return passes.posterior(uniforms=uniforms, labels=labels), labels
    q, log_z = supported(_graph(p)), np.zeros(p.n_samples)
    forests = MessageGraph.of(q).forest & (unit == 1.0)
    if forests.any():
        part, rows, _ = subset(q, forests)
        log_z[forests], labels[:, rows] = _drawn(part, 1.0, uniforms[:, rows], budget)
    for group in _eliminated(q, np.flatnonzero(~forests).tolist(), budget, unit):
        rows = p.offsets[group.samples][:, None] + np.arange(len(group.node))
        drawn, log_z[group.samples] = group.sample(uniforms[:, rows].transpose(1, 0, 2))
        labels[:, rows] = drawn.transpose(1, 0, 2)
    return log_z, labels


@takes(p=POTENTIALS, known=nothing | instance(Marginals), budget=whole(1))
def entropy(
    p: ChainPotentials | GraphPotentials,
    known: Marginals | None = None,
    *,
    budget: int = 10_000_000,
) -> Float64s:
    """Compute the entropy of p(y) of each sample, in nats.

    It is taken from conditional probabilities, where nothing cancels; where elimination is beyond
    the budget, it is that of Bethe, from the marginals of belief propagation, with a warning if
    these did not converge.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    known : Marginals, optional
        Those of ``p``, with pairs, if they are known; only graphs beyond the budget need them.
    budget : int
        Most table entries that elimination may take for a sample with cycles, of 8 bytes each.

    Returns
    -------
    float64, shape (S,)
        The entropies, between 0 and the logarithm of the number of feasible labellings.

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> from trellis.structures import ChainPotentials, GraphPotentials
    >>> p = ChainPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> np.exp(entropy(p)).round(12).tolist()
    [3.0]
    >>> free = GraphPotentials(np.zeros((3, 2)), np.zeros((2, 2)), [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> (entropy(free) / np.log(2)).round(6).tolist()
    [3.0]
    """
    entropies, converged = entropy_and_convergence(p, known, budget)
    tell_unsettled(int((~converged).sum()), p.n_samples, "their entropies are rough")
    return entropies


def entropy_and_convergence(
    p: ChainPotentials | GraphPotentials, known: Marginals | None = None, budget: int = 10_000_000
) -> tuple[Float64s, Bools]:
    """The entropies, and whether they are exact or at least the messages settled (S,)."""
    converged = np.ones(p.n_samples, np.bool_)
    q, unit = p.in_unit(_LIMIT)
    entropies = np.zeros(p.n_samples)
    passes = MessagePasses.of(p) if unit == 1.0 else None
    if passes is not None:
        p.require_feasible(passes.posterior(entropy=entropies))
        return entropies, converged
    graph = supported(_graph(q))
    _require_labels(graph)
    forests = MessageGraph.of(graph).forest & (unit == 1.0)
    if forests.any():
        entropies[forests] = entropy(subset(graph, forests)[0])
    loopy = np.flatnonzero(~forests).tolist()
    chosen = zip(loopy, elimination.plans(graph, loopy, budget), strict=True)
    plans = {s: (plan, cut) for s, (plan, cut) in chosen if plan is not None}
    log_z = np.zeros(p.n_samples)
    for group in elimination.groups(graph, list(plans), list(plans.values()), budget, unit):
        entropies[group.samples], log_z[group.samples] = group.entropies()
    p.require_feasible(log_z)
    rest = ~forests
    rest[list(plans)] = False
    if rest.any():
        assert isinstance(p, GraphPotentials)  # a chain is eliminated, or refused for its size
        m = marginals(p, pairs=True, budget=budget) if known is None else known
        n_labels = p.node.shape[1]
        given = (m.node.shape, m.pair.shape, m.log_z.shape)
        if given != (p.node.shape, (len(p.edges), n_labels, n_labels), (p.n_samples,)):
            raise DataError("known marginals are those of other scores; leave them out")
        entropies[rest] = _bethe_entropy(p, m)[rest]
        converged[rest] = m.converged[rest]
    return entropies, converged


def _bethe_entropy(p: GraphPotentials, m: Marginals) -> Float64s:
    """Sum of the entropies of the edges, less those of nodes that are counted more than once."""
    from scipy.special import entr

    n, owner = p.n_samples, p.owner
    degree = np.bincount(p.edges.ravel(), minlength=len(p.node))
    edges = np.bincount(owner[p.edges[:, 0]], entr(m.pair).sum(axis=(1, 2)), n)
    nodes = np.bincount(owner, (degree - 1) * entr(m.node).sum(axis=1), n)
    entropies: Float64s = np.maximum(edges - nodes, 0.0)
    return entropies


@takes(p=POTENTIALS, budget=whole(1))
def event_probability(
    p: ChainPotentials | GraphPotentials, allowed: Bools, *, budget: int = 10_000_000
) -> Float64s:
    """Compute the probability that every label of a sample is in the label set of its place.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    allowed : array of bool, shape (N, L)
        The label sets.
    budget : int
        Most table entries that elimination may take for a sample with cycles, of 8 bytes each.

    Returns
    -------
    float64, shape (S,)
        Z under the label sets, over Z; 0 where the label sets leave no feasible labelling.

    Raises
    ------
    DataError
        If the label sets have a wrong shape or type, or elimination is beyond the budget.
    InfeasibleError
        If a sample has no feasible labelling even without the label sets.

    Examples
    --------
    >>> from trellis.structures import ChainPotentials
    >>> p = ChainPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> event_probability(p, np.array([[True, True], [False, True]])).round(3).tolist()
    [0.667]
    """
    return np.exp(_log_event_probability(p, allowed, budget))


@takes(p=POTENTIALS, budget=whole(1))
def log_event_probability(
    p: ChainPotentials | GraphPotentials, allowed: Bools, *, budget: int = 10_000_000
) -> Float64s:
    """Compute the logarithm of :func:`event_probability`, which long samples do not round to 0.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    allowed : array of bool, shape (N, L)
        The label sets.
    budget : int
        Most table entries that elimination may take for a sample with cycles, of 8 bytes each.

    Returns
    -------
    float64, shape (S,)
        At most 0; -inf where the label sets leave no feasible labelling.

    Raises
    ------
    DataError
        If the label sets have a wrong shape or type, or elimination is beyond the budget.
    InfeasibleError
        If a sample has no feasible labelling even without the label sets.

    Examples
    --------
    >>> from trellis.structures import ChainPotentials
    >>> p = ChainPotentials(np.zeros((2000, 2)), np.zeros((2, 2)), [0, 2000])
    >>> first = np.tile([True, False], (2000, 1))
    >>> event_probability(p, first).tolist()
    [0.0]
    >>> (log_event_probability(p, first) / np.log(2)).round(6).tolist()
    [-2000.0]
    """
    return _log_event_probability(p, allowed, budget)


def _log_event_probability(
    p: ChainPotentials | GraphPotentials, allowed: Bools, budget: int, first: int = 0
) -> Float64s:
    """Do the work of both; ``first`` is the number of the first sample in errors."""
    no_draws = np.empty((0, len(p.node)))
    q, unit = p.in_unit(_LIMIT)
    log_z, _ = _drawn(q, unit, no_draws, budget)
    p.require_feasible(log_z, first)
    log_event, _ = _drawn(q.constrained(allowed), unit, no_draws, budget)
    # An event as good as certain may come out a rounding error above 1.
    return in_unit(np.minimum(log_event - log_z, 0.0), unit)


@takes(p=instance(ChainPotentials), sample=whole(0), start=whole())
def span_probability(
    p: ChainPotentials,
    sample: int,
    start: int,
    labels: npt.ArrayLike,
    not_followed_by: npt.ArrayLike | None = None,
) -> float:
    """Compute the probability that a stretch of one sample carries exactly the given labels.

    Parameters
    ----------
    p : ChainPotentials
        The scores.
    sample : int
        Number of the sample.
    start : int
        Position in the sample where the stretch starts.
    labels : array of int
        Label ids at positions ``start``, ``start + 1``, ...; at least one.
    not_followed_by : array of int, optional
        Label ids that the position after the stretch, if there is one, must not carry: given
        the id of ``I-X``, the span ``B-X I-X`` is not counted when it goes on.

    Returns
    -------
    float
        The probability.

    Raises
    ------
    DataError
        If the stretch is not inside the sample, or a label id does not exist.
    InfeasibleError
        If the sample has no feasible labelling.

    Examples
    --------
    Of the labellings 00, 01 and 11, equally probable, two start with a 0, one of them with 00:

    >>> from trellis.structures import ChainPotentials
    >>> p = ChainPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> round(span_probability(p, 0, 0, [0]), 3)
    0.667
    >>> round(span_probability(p, 0, 0, [0], not_followed_by=[0]), 3)
    0.333
    """
    alone = p.alone(sample)
    n, n_labels = alone.node.shape
    ids = label_ids(labels, n_labels, "labels")
    end = start + len(ids)
    if len(ids) == 0 or start < 0 or end > n:
        raise DataError(
            f"a span of {len(ids)} labels from position {start} does not fit sample {sample}, "
            f"which has {n} positions; give at least one label, inside the sample"
        )
    allowed = np.ones((n, n_labels), dtype=np.bool_)
    allowed[start:end] = False
    allowed[np.arange(start, end), ids] = True
    if not_followed_by is not None:
        excluded = label_ids(not_followed_by, n_labels, "not_followed_by")
        if end < n:
            allowed[end, excluded] = False
    return float(np.exp(_log_event_probability(alone, allowed, budget=1, first=sample)[0]))
