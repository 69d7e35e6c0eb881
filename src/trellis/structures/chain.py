r"""Linear chains: best, k best, marginals, samples and entropy, all of them exact.

A labelling :math:`y` of a sample of :math:`n` positions has the score and probability

.. math::

    s(y) = \sum_{t=0}^{n-1} \mathrm{node}_{t, y_t}
         + \sum_{t=1}^{n-1} \mathrm{trans}_{t, y_{t-1}, y_t},
    \qquad p(y) = e^{s(y)} / Z, \qquad Z = \sum_y e^{s(y)}.

The scores are held in :class:`~trellis.structures.ChainPotentials`; the transitions may be the same
at all positions. An empty sample has one labelling, of score 0. A sample all of whose labellings
are forbidden raises :class:`~trellis.errors.InfeasibleError`.

Among labellings of equal score the first is the one with the lowest label at the last position,
then at the one before, and so on back to the start.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.arrays import Bools, Float64s, Int32s, Int64s
from trellis.errors import DataError, InfeasibleError
from trellis.structures._arrays import integers
from trellis.structures.chain_potentials import ChainPotentials

__all__ = [
    "best",
    "entropy",
    "event_probability",
    "kbest",
    "labelling_score",
    "marginals",
    "pair_marginals",
    "sample",
    "span_probability",
]


def best(p: ChainPotentials) -> tuple[Int32s, Float64s]:
    """Find the labelling of highest score of each sample (Viterbi).

    Parameters
    ----------
    p : ChainPotentials
        The scores.

    Returns
    -------
    labels : int32, shape (N,)
        The best labels, stacked as ``p.node`` is. Ties: lowest label at the last position first.
    scores : float64, shape (S,)
        Their scores.

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = ChainPotentials([[0.0, 1.0], [0.5, 0.0]], [[0.0, 0.0], [-2.0, 0.0]], [0, 2])
    >>> labels, scores = best(p)
    >>> labels.tolist(), scores.tolist()
    ([1, 1], [1.0])
    """
    from trellis.kernels import chain as kernels

    labels, scores = kernels.viterbi(p.node, p.trans, p.offsets)
    _require_feasible(p, scores)
    return labels, scores


def kbest(p: ChainPotentials, k: int) -> tuple[Int32s, Float64s]:
    """Find the k labellings of highest score of each sample.

    Parameters
    ----------
    p : ChainPotentials
        The scores.
    k : int
        How many distinct labellings, at least 1.

    Returns
    -------
    labels : int32, shape (k, N)
        In each row the labellings of one rank. Where a sample has fewer than k feasible
        labellings, -1.
    scores : float64, shape (S, k)
        Their scores, descending; ``-inf`` where there is no labelling.

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling at all.

    Examples
    --------
    >>> p = ChainPotentials([[0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [0, 1])
    >>> labels, scores = kbest(p, 3)
    >>> labels.tolist(), scores.tolist()
    ([[1], [0], [-1]], [[1.0, 0.0, -inf]])
    """
    from trellis.kernels import chain as kernels

    _at_least(k, 1, "k")
    labels, scores = kernels.kbest(p.node, p.trans, p.offsets, int(k))
    _require_feasible(p, scores[:, 0])
    return labels, scores


def marginals(p: ChainPotentials) -> tuple[Float64s, Float64s]:
    """Compute the probability of each label at each position (forward–backward).

    Parameters
    ----------
    p : ChainPotentials
        The scores.

    Returns
    -------
    log_z : float64, shape (S,)
        Logarithm of the normaliser of each sample.
    node_marginals : float64, shape (N, L)
        P(y_t = j).

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = ChainPotentials([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> log_z, m = marginals(p)
    >>> np.exp(log_z).round(12).tolist(), m.round(3).tolist()
    ([3.0], [[0.667, 0.333], [0.333, 0.667]])
    """
    from trellis.kernels import chain as kernels

    log_z, node_marginals = kernels.forward_backward(p.node, p.trans, p.offsets)
    _require_feasible(p, log_z)
    return log_z, node_marginals


def pair_marginals(p: ChainPotentials) -> tuple[Float64s, Float64s]:
    """Compute the probability of each pair of neighbouring labels.

    Parameters
    ----------
    p : ChainPotentials
        The scores.

    Returns
    -------
    log_z : float64, shape (S,)
        Logarithm of the normaliser of each sample.
    pairs : float64, shape (N, L, L)
        P(y_{t-1} = i, y_t = j) in row t; zero at the first position of a sample.

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = ChainPotentials([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> pair_marginals(p)[1][1].round(3).tolist()
    [[0.333, 0.333], [0.0, 0.333]]
    """
    from trellis.kernels import chain as kernels

    log_z, pairs = kernels.pair_marginals(p.node, p.trans, p.offsets)
    _require_feasible(p, log_z)
    return log_z, pairs


def sample(p: ChainPotentials, n_samples: int, rng: np.random.Generator) -> Int32s:
    """Draw independent labellings from p(y).

    Parameters
    ----------
    p : ChainPotentials
        The scores.
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
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = ChainPotentials([[0.0, 0.0], [0.0, 0.0]], [[0.0, -np.inf], [-np.inf, 0.0]], [0, 2])
    >>> y = sample(p, 1000, np.random.default_rng(0))
    >>> y.shape, bool((y[:, 0] == y[:, 1]).all()), bool(abs(y.mean() - 0.5) < 0.05)
    ((1000, 2), True, True)
    """
    from trellis.kernels import chain as kernels

    _at_least(n_samples, 0, "n_samples")
    uniforms = rng.random((int(n_samples), len(p.node)))
    log_z, labels = kernels.sample_paths(p.node, p.trans, p.offsets, uniforms)
    _require_feasible(p, log_z)
    return labels


def entropy(p: ChainPotentials) -> Float64s:
    """Compute the entropy of p(y) of each sample, in nats.

    Parameters
    ----------
    p : ChainPotentials
        The scores.

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
    >>> p = ChainPotentials([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> np.exp(entropy(p)).round(12).tolist()
    [3.0]
    """
    from trellis.kernels import chain as kernels

    log_z, entropies = kernels.entropies(p.node, p.trans, p.offsets)
    _require_feasible(p, log_z)
    return entropies


def event_probability(p: ChainPotentials, allowed: Bools) -> Float64s:
    """Compute the probability that every label of a sample is in the label set of its position.

    Parameters
    ----------
    p : ChainPotentials
        The scores.
    allowed : array of bool, shape (N, L)
        The label sets.

    Returns
    -------
    float64, shape (S,)
        Z under the label sets, over Z; 0 where the label sets leave no feasible labelling.

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling even without the label sets.

    Examples
    --------
    >>> p = ChainPotentials([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> event_probability(p, np.array([[True, True], [False, True]])).round(3).tolist()
    [0.667]
    """
    return _event_probability(p, allowed)


def _event_probability(p: ChainPotentials, allowed: Bools, first: int = 0) -> Float64s:
    """Do the work of event_probability; ``first`` is the number of the first sample in errors."""
    from trellis.kernels import chain as kernels

    event = p.constrained(allowed)
    log_z = kernels.log_partition(p.node, p.trans, p.offsets)
    _require_feasible(p, log_z, first)
    log_event = kernels.log_partition(event.node, event.trans, event.offsets)
    # An event as good as certain may come out a rounding error above 1.
    return np.exp(np.minimum(log_event - log_z, 0.0))


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

    >>> p = ChainPotentials([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> round(span_probability(p, 0, 0, [0]), 3)
    0.667
    >>> round(span_probability(p, 0, 0, [0], not_followed_by=[0]), 3)
    0.333
    """
    alone = p.alone(sample)
    n, n_labels = alone.node.shape
    ids = _label_ids(labels, n_labels, "labels")
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
        excluded = _label_ids(not_followed_by, n_labels, "not_followed_by")
        if end < n:
            allowed[end, excluded] = False
    return float(_event_probability(alone, allowed, first=sample)[0])


def labelling_score(p: ChainPotentials, labels: npt.ArrayLike) -> Float64s:
    """Compute the score s(y) of a given labelling of each sample.

    Parameters
    ----------
    p : ChainPotentials
        The scores.
    labels : array of int, shape (N,)
        Label ids, stacked as ``p.node`` is.

    Returns
    -------
    float64, shape (S,)
        The scores; ``-inf`` where the labelling is forbidden.

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    >>> p = ChainPotentials([[0.0, 1.0], [0.5, 0.0]], [[0.0, 0.0], [-2.0, 0.0]], [0, 2])
    >>> labelling_score(p, [1, 0]).tolist()
    [-0.5]
    """
    from trellis.kernels import chain as kernels

    ids = _label_ids(labels, p.node.shape[1], "labels")
    if len(ids) != len(p.node):
        raise DataError(f"there are {len(ids)} labels for {len(p.node)} positions")
    n_samples = len(p.offsets) - 1
    terms: Float64s = p.node[np.arange(len(ids)), ids]
    follows = np.ones(len(ids), dtype=np.bool_)
    follows[p.offsets[:-1][np.diff(p.offsets) > 0]] = False
    t = np.flatnonzero(follows)
    pair = (ids[t - 1], ids[t])
    terms[t] += p.trans[pair] if p.trans.ndim == 2 else p.trans[(t, *pair)]
    sample_of = np.repeat(np.arange(n_samples), np.diff(p.offsets))
    sums = np.bincount(sample_of, weights=terms, minlength=n_samples)
    scores = sums.astype(np.float64, copy=False)
    if not np.isfinite(scores).all():
        _require_feasible(p, kernels.log_partition(p.node, p.trans, p.offsets))
    return scores


def _require_feasible(p: ChainPotentials, scores: Float64s, first: int = 0) -> None:
    """Raise if a score or log Z is not finite; ``first`` is the number of the first sample."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad) > 0:
        s = bad[0]
        raise InfeasibleError(
            f"(of {p.offsets[s + 1] - p.offsets[s]} positions) has no labelling of finite score; "
            "allow more labels or transitions",
            sample=int(first + s),
        )


def _label_ids(values: npt.ArrayLike, n_labels: int, what: str) -> Int64s:
    ids = integers(values, what)
    if ids.ndim != 1:
        raise DataError(f"{what} have shape {ids.shape}; expected one dimension")
    bad = np.flatnonzero((ids < 0) | (ids >= n_labels))
    if len(bad) > 0:
        raise DataError(
            f"{what} hold {ids[bad[0]]} at index {bad[0]}; label ids go from 0 to {n_labels - 1}"
        )
    return ids


def _at_least(value: int, least: int, what: str) -> None:
    if value < least:
        raise DataError(f"{what} is {value}; it must be at least {least}")
