r"""The share ρ of what edges learned on spanning trees that counts where all edges speak.

A spanning tree of a graph with N nodes, C components and E edges has :math:`N - C` of them, the
share

.. math:: \rho_0 = (N - C) / E .

Tables learned on trees speak for the edges that were left out, too. With :math:`\rho_0 S_e` for
each edge, all edges say on average what those of a tree did (the weights of tree-reweighted belief
propagation; Wainwright, Jaakkola & Willsky 2005). But the loops of real graphs say less, or more,
and a little more than enough makes all nodes alike. So ρ is searched for: the training data are
divided by three; models of two thirds label the other with several ρ, and one is taken in place of
:math:`\rho_0` if it labels more nodes rightly, by more than two standard errors of the difference.

What is held out is what will be asked for. If all labels are known, it is graphs; of few graphs,
connected parts, whose nodes are labelled with the graph around them and without any label. If some
labels are not known, nodes of the same graphs will be labelled from those that are: it is some of
these.

With few labels there may be hardly an edge with two, and nothing would say that neighbours are
alike, as they are in most graphs that people have. So there are two ways to learn from such: the
penalty draws tables to zero, or to

.. math:: S_{ij} = [i = j] \, \log(L - 1) ,

with which two neighbours are as likely to agree as to differ. The one is taken in which the labels
held out are the more probable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s, for_kernels
from trellis.corpus import Corpus
from trellis.decompose import GraphPieces
from trellis.problems import LabelProblem, Weights
from trellis.structures import GraphPotentials, most_probable
from trellis.structures.probability import label_chances

__all__ = ["held_out_share", "share_of_trees"]

Fold = tuple[LabelProblem, LabelProblem, Int64s, NDArray[np.int32], Int64s]
"""What is learned from, what is labelled, which nodes are asked for, their labels, their units."""

# What ρ₀ is multiplied by; ρ itself is at most 1.
_FACTORS = (0.0, 0.35, 0.5, 0.7, 1.4, 2.0)
# Parts that the data are divided into; with fewer graphs than this, each is divided.
_FOLDS, _GRAPHS = 3, 6
# Most nodes, and features of nodes, that the search looks at; of features that are on the disk, and
# may not fit into memory, at most one in so many.
_NODES, _ENTRIES, _MAPPED = 50_000, 5_000_000, 40
# Belief propagation is sure of itself: a wrong label costs no more than if it had this probability.
_LEAST = 0.02


def share_of_trees(corpora: Sequence[Corpus]) -> float:
    """Share ρ₀ of the edges that are in a spanning forest; 1 if there is no loop."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_kept = n_edges = 0
    for corpus in corpora:
        assert corpus.edges is not None
        n, edges = corpus.n_positions, for_kernels(corpus.edges)
        if len(edges):
            graph = coo_array((np.ones(len(edges)), edges.T), shape=(n, n))
            n_components, _ = connected_components(graph, directed=False)
            n_kept, n_edges = n_kept + n - n_components, n_edges + len(edges)
    return n_kept / n_edges if n_edges else 1.0


def held_out_share(
    problem: LabelProblem,
    usual: float,
    ways: Sequence[Callable[[LabelProblem], Weights]],
    rng: np.random.Generator,
) -> tuple[int, float]:
    """Find the share ρ, and the way of learning, that label what is held out best.

    Parameters
    ----------
    problem : LabelProblem
        All training data.
    usual : float
        The share ρ₀, kept unless another is better beyond chance.
    ways : list of functions of a problem
        Each returns the weights that a part of the data teaches. The way is taken in which the
        labels held out are the most probable.
    rng : numpy.random.Generator
        Chooses what is held out.

    Returns
    -------
    way : int
    share : float
    """
    problem = _some_nodes(problem, rng)
    folds = list(_folds(problem, rng))
    if not all(len(asked) and train.annotated.any() for train, _, asked, *_ in folds):
        return 0, usual
    scores = [[_potentials(held, fitted(train)) for train, held, *_ in folds] for fitted in ways]
    way = 0
    if len(ways) > 1:
        way = int(np.argmax([_log_chance(each, folds, usual) for each in scores]))
    shares = np.unique([min(1.0, usual * factor) for factor in (1.0, *_FACTORS)]).tolist()
    right: dict[float, Float64s] = {}
    for share in shares:
        counts = []
        for p, (_, _, asked, gold, unit) in zip(scores[way], folds, strict=True):
            found = most_probable(p.with_arrays(pair=p.pair * share))[asked]
            counts.append(np.bincount(unit, (found == gold).astype(np.float64)))
        right[share] = np.concatenate(counts).astype(np.float64)

    def gain(share: float) -> float:
        """Nodes more that are right, less two standard errors."""
        more = right[share] - right[usual]
        return float(more.sum() - 2 * np.sqrt(len(more)) * more.std())

    best = max(right, key=lambda share: (gain(share), share == usual))
    return way, float(best) if gain(best) > 0 else usual


def _log_chance(scores: Sequence[GraphPotentials], folds: Sequence[Fold], share: float) -> float:
    """Log-probability of the labels held out, no label counting for less than ``_LEAST``."""
    total = 0.0
    for p, (_, _, asked, gold, _) in zip(scores, folds, strict=True):
        scaled = p.with_arrays(pair=p.pair * share)
        chances = label_chances(scaled)[asked, gold]
        total += float(np.log(np.maximum(chances, _LEAST)).sum())
    return total


def _some_nodes(problem: LabelProblem, rng: np.random.Generator) -> LabelProblem:
    """Annotated samples of up to so many nodes; larger ones are cut."""
    e, n = problem.encoded, len(problem.labels)
    entries = len(e.indices)
    most = min(_ENTRIES, entries // _MAPPED) if _is_mapped(e.indices) else _ENTRIES
    limit = max(1, min(_NODES, n * most // max(1, entries)))
    if int(np.diff(problem.offsets).max(initial=0)) > limit:
        pieces = GraphPieces(problem.edges, limit, "graph")
        problem = problem.cut(pieces.draw(problem.offsets, rng))
    order = rng.permutation(problem.n_samples)
    order = order[problem.annotated[order]]
    until = np.cumsum(np.diff(problem.offsets)[order])
    return problem.part(np.sort(order[: max(1, int(np.searchsorted(until, limit, side="right")))]))


def _is_mapped(array: NDArray[Any]) -> bool:
    """Whether an array is a view of a file, not of memory of its own."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return not isinstance(owner, np.ndarray)


def _folds(problem: LabelProblem, rng: np.random.Generator) -> Iterator[Fold]:
    """Each time samples to learn from, samples to label, which nodes are asked for, their labels.

    What is known of the samples to label is what will be known at prediction. Nodes of one graph,
    or part, are right or wrong together; last comes which are one unit.
    """
    labels = problem.labels
    if not problem.complete.all():
        known = rng.permutation(np.flatnonzero(labels.ids < problem.n_labels))
        for part in np.array_split(known, _FOLDS):
            fewer = problem.with_labels(labels.without(part))
            yield fewer, fewer, part, labels.ids[part], np.arange(len(part))
        return
    units, pieces = problem, None
    if problem.n_samples < _GRAPHS:
        size = max(1.0, len(labels) / (2 * _GRAPHS))
        pieces = GraphPieces(problem.edges, size, "graph").draw(problem.offsets, rng)
        units = problem.cut(pieces)
    free = problem.with_labels(labels.without(np.arange(len(labels))))
    for part in np.array_split(rng.permutation(units.n_samples), _FOLDS):
        rest = np.setdiff1d(np.arange(units.n_samples), part)
        b = units.batch(np.sort(part))
        asked, held, nodes = np.arange(len(b.rows)), free, b.rows
        if pieces is None:
            held = free.part(b.samples)
        else:
            assert pieces.nodes is not None
            asked = nodes = pieces.nodes[b.rows]
        yield units.part(rest), held, asked, labels.ids[nodes], b.owner


def _potentials(problem: LabelProblem, weights: Weights) -> GraphPotentials:
    """Scores of all samples; what is known of the labels is kept."""
    b = problem.everything
    node, pair = problem.scores(problem.flat(weights), b)
    node = np.where(problem.labels.table[problem.labels.ids], node, -np.inf)
    types = np.arange(len(b.edges)) if problem.is_rich else b.types
    return GraphPotentials(node, pair, b.edges, b.offsets, types)
