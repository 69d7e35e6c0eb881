r"""The labelling of highest score, the k best, and the score of a labelling.

How they are found depends on the structure, and every result says what it is:

======================  =========================================================================
method                  what it gives
======================  =========================================================================
``"chain"``             the best of chains, exact (Viterbi)
``"tree"``              the best of forests, exact (max-product), both by
                        :mod:`~trellis.structures.message_passes`
``"elimination"``       the best, exact; the cost rises exponentially with the treewidth
                        (:mod:`~trellis.structures.elimination`)
``"max-flow"``          the best, exact, of submodular scores with two labels
                        (:mod:`~trellis.structures.max_flow`)
``"dual"``              a labelling and an upper bound, by dual decomposition and moves on trees
                        (:mod:`~trellis.structures.dual_decomposition`)
``"lp"``                the same by the linear relaxation (:mod:`~trellis.structures.relaxation`)
``"ilp"``               the best, exact, by an integer program; may take exponential time
======================  =========================================================================

An empty sample has one labelling, of score 0. A sample all of whose labellings are forbidden raises
:class:`~trellis.errors.InfeasibleError`, where the method can tell.

Of labellings of equal score, that of a chain is the one with the lowest label at the last position,
then at the one before, and so on back to the start; that of a forest the one with the lowest label
at the node that comes first in the order of :class:`~trellis.structures.Forest`, then at the next.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s, Int32s
from trellis.domains import flag, nothing, number, one_of, takes, text, whole
from trellis.errors import DataError
from trellis.structures.chain_potentials import ChainPotentials
from trellis.structures.graph_labelling import Solver
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.lawler import kbest_by_parts
from trellis.structures.message_passes import POTENTIALS, MessagePasses
from trellis.structures.potentials import label_ids
from trellis.structures.results import Best, in_unit

__all__ = ["best", "kbest", "labelling_score"]

_METHODS = one_of("auto", "tree", "elimination", "max-flow", "dual", "lp", "ilp")
_CHAIN_METHODS = one_of("auto")
# Larger scores are measured in a larger unit: what is best stays so, no sum overflows, and linear
# programs get numbers that their tolerances are made for.
_LIMIT = 2.0**30


@takes(
    p=POTENTIALS, method=text, exact=flag, budget=whole(1), max_iterations=whole(1, 2**31),
    rounds=nothing | whole(0, 2**31), time_limit=nothing | number(above=0),
    mip_gap=number(at_least=0),
)  # fmt: skip
def best(
    p: ChainPotentials | GraphPotentials,
    *,
    method: str = "auto",
    exact: bool = False,
    budget: int = 10_000_000,
    max_iterations: int = 200,
    rounds: int | None = None,
    time_limit: float | None = None,
    mip_gap: float = 0.0,
) -> Best:
    """Find a labelling of high score of each sample, and how far from the best it can be.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    method : str
        Of graphs: ``"tree"``, ``"elimination"``, ``"max-flow"``, ``"dual"``, ``"lp"`` or ``"ilp"``
        (see the table above), or ``"auto"``: tree for forests; else a few turns of dual
        decomposition, which are often enough, and with the labels that they leave max-flow or
        elimination if that can be used, else the other turns. Large samples that are fit for
        max-flow go there at once. Chains have ``"auto"`` alone.
    exact : bool
        Follow up ``"dual"``, ``"lp"`` and ``"auto"`` by the integer program where a gap is left.
    budget : int
        Most table entries that elimination may take for a sample, of 8 bytes each.
    max_iterations : int
        Most turns of dual decomposition.
    rounds : int, optional
        Rounds of moves on random trees that improve the labellings of ``"dual"`` and ``"lp"``, and
        of ``"auto"`` where it comes to that. By default two for each turn. More rounds give better
        labellings of hard graphs, in proportionally more time; the bound stays as it is.
    time_limit : float, optional
        Most seconds that the integer program may take for a sample; its gap is said if that was not
        enough.
    mip_gap : float
        Relative gap at which the integer program may stop.

    Returns
    -------
    Best
        The labels and scores, into which it unpacks, bounds, and whether they are exact.

    Raises
    ------
    DataError
        If the method cannot be used: ``"tree"`` on a cycle, ``"elimination"`` beyond the budget
        (the message says the cost), ``"max-flow"`` on scores that are not binary and submodular.
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> from trellis.structures import ChainPotentials, GraphPotentials
    >>> p = ChainPotentials([[0.0, 1.0], [0.5, 0.0]], [[0.0, 0.0], [-2.0, 0.0]], [0, 2])
    >>> labels, scores = best(p)
    >>> labels.tolist(), scores.tolist()
    ([1, 1], [1.0])

    Three nodes of which each two like to differ, with two labels:

    >>> p = GraphPotentials(
    ...     [[0.0, 0.1], [0.0, 0.0], [0.0, 0.5]], [[-1.0, 0.0], [0.0, -1.0]],
    ...     [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> sure = best(p)
    >>> sure.labels.tolist(), sure.scores.tolist(), sure.exact.tolist(), sure.method
    ([1, 0, 1], [-0.4], [True], ('elimination',))

    The relaxation cannot know that one of the three edges must be dissatisfied:

    >>> relaxed = best(p, method="lp")
    >>> relaxed.scores.tolist(), relaxed.bounds.round(6).tolist(), relaxed.exact.tolist()
    ([-0.4], [0.3], [False])
    """
    (_CHAIN_METHODS if isinstance(p, ChainPotentials) else _METHODS).check("method", method)
    q, unit = p.in_unit(_LIMIT)
    passes = MessagePasses.of(q, method)
    if passes is not None:
        labelling = Best.exactly(*passes.best(), passes.method)
    else:
        assert isinstance(q, GraphPotentials)
        solver = Solver(q, budget, int(max_iterations), time_limit, mip_gap, rounds)
        labelling = solver.solve(method, exact)
    q.require_feasible(labelling.bounds)
    return labelling.in_unit(unit)


@takes(p=POTENTIALS, k=whole(1), budget=whole(1))
def kbest(
    p: ChainPotentials | GraphPotentials, k: int, *, budget: int = 10_000_000
) -> tuple[Int32s, Float64s]:
    """Find the k labellings of highest score of each sample, exactly.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    k : int
        How many distinct labellings, at least 1; there may be fewer.
    budget : int
        Most table entries that elimination may take for a sample with cycles, of 8 bytes each;
        beyond, there is the integer program.

    Returns
    -------
    labels : int32, shape (K, N)
        In each row the labellings of one rank. There are as many ranks as the sample with the most
        feasible labellings has, but no more than k; where a sample has fewer, -1. The first is that
        of :func:`best`; of forests and graphs, further labellings of equal score come in an order
        that depends on the scores alone, and which of them are listed when k is too small for all
        likewise.
    scores : float64, shape (S, K)
        Their scores, descending; ``-inf`` where there is no labelling.

    Raises
    ------
    DataError
        If k or the budget is less than 1.
    InfeasibleError
        If a sample has no feasible labelling at all.

    Examples
    --------
    >>> from trellis.structures import ChainPotentials, GraphPotentials
    >>> labels, scores = kbest(ChainPotentials([[0.0, 1.0]], np.zeros((2, 2)), [0, 1]), 3)
    >>> labels.tolist(), scores.tolist()
    ([[1], [0]], [[1.0, 0.0]])
    >>> p = GraphPotentials(
    ...     [[0.0, 0.1], [0.0, 0.0], [0.0, 0.5]], [[-1.0, 0.0], [0.0, -1.0]],
    ...     [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> labels, scores = kbest(p, 3)
    >>> labels.tolist(), scores.round(6).tolist()
    ([[1, 0, 1], [0, 1, 1], [0, 0, 1]], [[-0.4, -0.5, -0.5]])
    """
    q, unit = p.in_unit(_LIMIT)
    passes = MessagePasses.of(q)
    if passes is not None:
        labels, scores = passes.kbest(int(k))
    else:
        assert isinstance(q, GraphPotentials)
        labels, scores = kbest_by_parts(q, int(k), budget)
    q.require_feasible(scores[:, 0])
    ranks = max(1, int(np.isfinite(scores).any(axis=0).sum()))
    return labels[:ranks], in_unit(scores[:, :ranks], unit)


@takes(p=POTENTIALS)
def labelling_score(p: ChainPotentials | GraphPotentials, labels: npt.ArrayLike) -> Float64s:
    """Compute the score s(y) of a given labelling of each sample.

    Parameters
    ----------
    p : ChainPotentials or GraphPotentials
        The scores.
    labels : array of int, shape (N,)
        Label ids, stacked as ``p.node`` is.

    Returns
    -------
    float64, shape (S,)
        The scores; ``-inf`` where the labelling is forbidden.

    Raises
    ------
    DataError
        If the labels do not fit the rows, or one does not exist.
    InfeasibleError
        If a chain has no feasible labelling at all.

    Examples
    --------
    >>> from trellis.structures import ChainPotentials
    >>> p = ChainPotentials([[0.0, 1.0], [0.5, 0.0]], [[0.0, 0.0], [-2.0, 0.0]], [0, 2])
    >>> labelling_score(p, [1, 0]).tolist()
    [-0.5]
    """
    ids = label_ids(labels, p.node.shape[1], "labels")
    if len(ids) != len(p.node):
        raise DataError(f"there are {len(ids)} labels for {len(p.node)} {p.unit}s")
    q, unit = p.in_unit(_LIMIT)
    terms: Float64s = q.node[np.arange(len(ids)), ids]
    if isinstance(q, ChainPotentials):
        t = q.steps
        pair = (ids[t - 1], ids[t])
        tables = q.tables()
        terms[t] += tables[pair] if tables.ndim == 2 else tables[(t, *pair)]
    else:
        a, b = q.edges.T
        np.add.at(terms, a, q.pair[q.types, ids[a], ids[b]])
    sums = np.bincount(q.owner, weights=terms, minlength=q.n_samples)
    scores = sums.astype(np.float64, copy=False)
    if isinstance(q, ChainPotentials) and not np.isfinite(scores).all():
        q.require_feasible(MessagePasses(q, None).posterior())
    return in_unit(scores, unit)
