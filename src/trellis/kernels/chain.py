r"""Exact inference on stacked linear chains.

A labelling :math:`y` of a sample of :math:`n` positions has the score and probability

.. math::

    s(y) = \sum_{t=0}^{n-1} \mathrm{node}_{t, y_t}
         + \sum_{t=1}^{n-1} \mathrm{trans}_{t, y_{t-1}, y_t},
    \qquad p(y) = e^{s(y)} / Z.

Arguments of every kernel: ``node`` (N, L) and ``trans``, either one matrix (L, L) shared by all
positions or (N, L, L) with the transitions into each position, both float32 or float64, C-ordered,
finite or ``-inf`` (forbidden); ``offsets`` int64 (S + 1,), sample ``s`` being the rows
``offsets[s]:offsets[s + 1]``. Of (N, L, L) transitions, the matrix at the first position of a
sample is never looked at. A matrix that is shared may have ``changes``, pairs with other scores at
some positions (:mod:`trellis.kernels.step_changes`). Sums are taken in float64 whatever the input.
A sample that has no feasible labelling gets the score or log Z ``-inf``, best labels ``-1`` and
probabilities 0; an empty sample has one labelling, of score 0. Nothing is checked here.

The best labellings are found in :mod:`trellis.kernels.chain_max`. Sums are by forward–backward in
probabilities, normalised at each position (Rabiner, 1989, sec. V.A):

.. math::

    \alpha_t \propto x_t \odot E_t^\top \alpha_{t-1}, \qquad
    \beta_{t-1} \propto E_t (x_t \odot \beta_t), \qquad
    x_{tj} = e^{\mathrm{node}_{tj} - \max_j \mathrm{node}_{tj}}, \quad
    E_{tij} = e^{\mathrm{trans}_{tij} - \max_{ij} \mathrm{trans}_{tij}}.

Pairs with other scores have :math:`E_{tij} = e^{\mathrm{score} - \max_{ij} \mathrm{trans}_{ij}}`,
which may be above 1.

A sample is done in this way only while every quantity that is not a true zero stays so large
(``_FLOOR``, ``_SPAN``) that no product of them can vanish, and none so large that sums overflow;
otherwise the same recursions run on logarithms. So a zero always means «forbidden» (or less than
any float), and both ways give the same answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import inner, kernel, ordered, subkernel
from trellis.kernels.chain_max import as_stack, kbest, pruned_viterbi, viterbi
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.lanes import (
    at_least,
    highest,
    load,
    lower,
    lowest,
    padded,
    put,
    spread,
    store,
    upper,
)
from trellis.kernels.row_products import row_times, table_times
from trellis.kernels.rows import draw, fill, longest_sample, row_max, transpose
from trellis.kernels.step_changes import StepChanges, most_changes, none

__all__ = ["kbest", "posterior", "pruned_viterbi", "viterbi"]

Floats = npt.NDArray[np.floating[Any]]
Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

# With messages >= 1e-100 and exp(-_SPAN) > 1e-100, a product alpha * (E * x) * beta of entries
# that are not true zeros is at least 1e-300, which float64 still holds in full precision. A pair
# with another score may have an E up to exp(_SPAN): sums stay below 1e101 times the labels.
_FLOOR = 1e-100
_SPAN = 230.0


# --- sum: the messages of one sample --------------------------------------------------------------
#
# ``x``, ``alpha`` and ``beta`` hold, up to a factor per row, probabilities when a sample is
# «scaled» and their logarithms otherwise. R[k] is a matrix of transitions less its maximum, padded,
# and E[k] = exp(R[k]). Shared transitions have k = 0 alone, others those of one sample at a time:
# the matrix into position t is number ``step * (t - 1)``, with ``step`` 0 or 1.


class _Steps(NamedTuple):
    """Transitions of a sample: the matrices, the only one transposed, and what changes in it.

    The pairs that change at position t are those from ``ptr[t]`` to ``ptr[t + 1] - 1``; if there
    are none at all, ``ptr`` is empty. Pair q has the place ``place[0, q]`` in a matrix and
    ``place[1, q]`` in a transposed one, ``r[1, q]`` in R in place of ``r[0, q]``, and ``e[1, q]``
    in E in place of ``e[0, q]``.
    """

    R: Float64s
    E: Float64s
    Et: Float64s
    step: int
    ptr: Int64s
    place: Int64s
    r: Float64s
    e: Float64s


@inner
def _change(steps: _Steps, t: int, side: int, values: Float64s, which: int, M: Float64s) -> None:
    """Write what pairs have at position t (1), or what they had before (0), to the matrix."""
    if steps.ptr.size:
        for q in range(steps.ptr[t], steps.ptr[t + 1]):
            put(M, steps.place[side, q], values[which, q])


@subkernel
def _relative_trans(trans: Floats, R: Float64s, E: Float64s) -> tuple[float, float]:
    """Fill R and E; return the sum of the maxima and how far a finite entry lies below its maximum.

    The padding of R and E is left as it is.
    """
    n_labels = trans.shape[1]
    width = R.shape[2]
    sum_of_tops = 0.0
    low = spread(0.0)
    for k in range(trans.shape[0]):
        top = -np.inf
        for i in range(n_labels):
            top = max(top, row_max(trans[k], i))
        if top == -np.inf:
            top = 0.0
        sum_of_tops += top
        for i in range(n_labels):
            for j in range(n_labels):
                R[k, i, j] = trans[k, i, j] - top
        for q in range(k * width * width, (k * width + n_labels) * width, 8):
            r = load(R, q)
            low = lower(low, at_least(r, -1e300, r))
            store(E, q, fast_exp(r))
    return sum_of_tops, -lowest(low)


@subkernel
def _relative_changes(
    changes: StepChanges, first: int, n: int, top: float, steps: _Steps
) -> tuple[float, float]:
    """Fill in what changes in the sample at row ``first``; return how low and high r gets.

    Like R it is relative to the maximum ``top`` of the transitions that are shared.
    """
    R, E, _, _, ptr, place, r, e = steps
    width = R.shape[2]
    base = changes.ptr[first]
    for t in range(n + 1):
        ptr[t] = changes.ptr[first + t] - base
    for q in range(ptr[n]):
        i, j = np.int64(changes.source[base + q]), np.int64(changes.target[base + q])
        place[0, q] = i * width + j
        place[1, q] = j * width + i
        r[0, q] = R[0, i, j]
        e[0, q] = E[0, i, j]
        r[1, q] = changes.score[base + q] - top
    for q in range(ptr[n], padded(ptr[n])):
        r[1, q] = 0.0
    low, high = spread(0.0), spread(0.0)
    for q in range(0, ptr[n], 8):
        x = load(r, r.shape[1] + q)
        low = lower(low, at_least(x, -1e300, x))
        high = upper(high, x)
        store(e, e.shape[1] + q, fast_exp(lower(x, spread(_SPAN))))
    return -lowest(low), highest(high)


@subkernel
def _relative_node(
    node: Floats, first: int, n: int, limit: float, x: Float64s
) -> tuple[float, bool]:
    """Fill x with node less its row maxima; return their sum and if x is -inf or >= -limit."""
    n_labels = node.shape[1]
    total = 0.0
    too_low = 0
    for t in range(n):
        top = row_max(node, first + t)
        total += top
        for j in range(n_labels):
            x[t, j] = node[first + t, j] - top
            too_low += 1 if -np.inf < x[t, j] < -limit else 0
        for j in range(n_labels, x.shape[1]):
            x[t, j] = -np.inf
    return total, too_low == 0


@subkernel
def _forward(
    node: Floats,
    first: int,
    n: int,
    steps: _Steps,
    tops: float,
    span: float,
    x: Float64s,
    alpha: Float64s,
) -> tuple[float, bool]:
    """Fill x and alpha for the sample at row ``first``; return log Z and whether it is scaled."""
    total, fits = _relative_node(node, first, n, _SPAN - span, x)
    total += tops if steps.step == 1 else (n - 1) * tops
    if total == -np.inf:
        return total, True
    if fits and span <= _SPAN:
        for q in range(0, n * x.shape[1], 8):
            store(x, q, fast_exp(load(x, q)))
        log_z, fits = _forward_scaled(n, node.shape[1], steps, x, alpha)
        if fits:
            return total + log_z, True
        _relative_node(node, first, n, _SPAN, x)
    return total + _forward_log(n, steps, x, alpha), False


@subkernel
def _forward_scaled(
    n: int, n_labels: int, steps: _Steps, x: Float64s, alpha: Float64s
) -> tuple[float, bool]:
    """Return log Z (-inf if infeasible) and whether all of alpha is safe from underflow."""
    width = x.shape[1]
    E = steps.E
    log_z = 0.0
    for t in range(n):
        if t == 0:
            fill(alpha[0], 1.0)
        else:
            table = steps.step * (t - 1) * width * width
            _change(steps, t, 0, steps.e, 1, E)
            row_times(alpha, (t - 1) * width, E, table, n_labels, alpha, t * width)
            _change(steps, t, 0, steps.e, 0, E)
        norm = _normalise_times(alpha[t], x[t])
        if norm == 0.0:
            return -np.inf, True
        if norm < 0.0:
            return 0.0, False
        log_z += np.log(norm)
    return log_z, True


@subkernel
def _backward_scaled(
    n: int, n_labels: int, steps: _Steps, x: Float64s, beta: Float64s, w: Float64s
) -> bool:
    """Fill beta; return whether all of it is safe from underflow."""
    width = x.shape[1]
    E, Et = steps.E, steps.Et
    fill(beta[n - 1], 1.0)
    for t in range(n - 1, 0, -1):
        for j in range(width):
            w[j] = beta[t, j] * x[t, j]
        if steps.step == 1:
            table_times(E, (t - 1) * width * width, w, 0, n_labels, beta, (t - 1) * width)
        else:
            _change(steps, t, 1, steps.e, 1, Et)
            row_times(w, 0, Et, 0, n_labels, beta, (t - 1) * width)
            _change(steps, t, 1, steps.e, 0, Et)
        fill(w, 1.0)
        if _normalise_times(beta[t - 1], w) < 0.0:
            return False
    return True


@subkernel
def _normalise_times(a: Float64s, x: Float64s) -> float:
    """Replace a by a * x / sum(a * x); return the sum, or -1 if an entry fell below the floor."""
    norm = 0.0
    # Products and their sum in loops of their own: one loop would be compiled twice, for rows that
    # overlap in memory and for others, and add up in another order.
    for j in range(a.shape[0]):
        a[j] *= x[j]
    for j in range(a.shape[0]):
        norm += a[j]
    if norm == 0.0:
        return 0.0
    factor = 1.0 / norm
    too_low = 0
    for j in range(a.shape[0]):
        a[j] *= factor
        too_low += 1 if 0.0 < a[j] < _FLOOR else 0
    return norm if too_low == 0 else -1.0


@ordered
def _forward_log(n: int, steps: _Steps, x: Float64s, alpha: Float64s) -> float:
    """Do what _forward_scaled does, on logarithms."""
    width = x.shape[1]
    log_z = 0.0
    for t in range(n):
        top = -np.inf
        R = steps.R[steps.step * max(t - 1, 0)]
        _change(steps, t, 0, steps.r, 1, steps.R)
        for j in range(width):
            alpha[t, j] = x[t, j]
            if t > 0 and x[t, j] > -np.inf:
                alpha[t, j] += _log_sum_exp(alpha[t - 1], R[:, j])
            top = max(top, alpha[t, j])
        _change(steps, t, 0, steps.r, 0, steps.R)
        if top == -np.inf:
            return top
        total = 0.0
        for j in range(width):
            total += np.exp(alpha[t, j] - top)
        norm = top + np.log(total)
        for j in range(width):
            alpha[t, j] -= norm
        log_z += norm
    return log_z


@ordered
def _backward_log(n: int, steps: _Steps, x: Float64s, beta: Float64s, w: Float64s) -> None:
    """Do what _backward_scaled does, on logarithms."""
    fill(beta[n - 1], 0.0)
    for t in range(n - 1, 0, -1):
        R = steps.R[steps.step * (t - 1)]
        _change(steps, t, 0, steps.r, 1, steps.R)
        for j in range(w.shape[0]):
            w[j] = beta[t, j] + x[t, j]
        top = -np.inf
        for i in range(w.shape[0]):
            beta[t - 1, i] = _log_sum_exp(w, R[i])
            top = max(top, beta[t - 1, i])
        _change(steps, t, 0, steps.r, 0, steps.R)
        for i in range(w.shape[0]):
            beta[t - 1, i] -= top


@ordered
def _log_sum_exp(a: Float64s, b: Float64s) -> float:
    """Return the logarithm of the sum of exp(a[i] + b[i])."""
    top = -np.inf
    for i in range(a.shape[0]):
        top = max(top, a[i] + b[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(a.shape[0]):
        total += np.exp(a[i] + b[i] - top)
    return float(top + np.log(total))


# --- sum: the kernels -----------------------------------------------------------------------------


def posterior(
    node: Floats,
    trans: Floats,
    offsets: Int64s,
    marginals: Float64s,
    pairs: Float64s,
    entropy: Float64s,
    uniforms: Float64s,
    labels: Int32s,
    changes: StepChanges | None = None,
) -> Float64s:
    """Return log Z (S,) and fill those of the other arrays, zero at first, that have a size.

    They are ``marginals`` (N, L); ``pairs`` (N, L, L), P(y_{t-1} = i, y_t = j) in entry [t, i, j];
    ``entropy`` (S,), H(y_0) + sum of H(y_t | y_{t-1}), taken from conditional probabilities
    (Hernando et al., 2005), since log Z minus the expected score would cancel; and ``labels``
    (K, N), drawn by the numbers ``uniforms`` (K, N) from [0, 1).

    Forward filtering, backward sampling: y_{n-1} from alpha_{n-1}, then y_{t-1} given y_t from
    alpha_{t-1} * E_t[:, y_t]; ``uniforms`` turn into labels by inverting the sums.
    """
    wanted = (marginals, pairs, entropy, uniforms, labels)
    return _posterior(node, as_stack(trans), offsets, *wanted, changes or none(trans))


@kernel
def _posterior(
    node: Floats,
    trans: Floats,
    offsets: Int64s,
    marginals: Float64s,
    pairs: Float64s,
    entropy: Float64s,
    uniforms: Float64s,
    labels: Int32s,
    changes: StepChanges,
) -> Float64s:
    """Do what posterior does: one loop for all, as each further copy costs seconds to compile."""
    width = padded(node.shape[1])
    step = 0 if trans.shape[0] == 1 else 1
    longest = longest_sample(offsets)
    R = np.full((max(longest - 1, 0) if step == 1 else 1, width, width), -np.inf)
    E, Et = np.zeros_like(R), np.empty((width, width))
    n_changed = padded(most_changes(changes, offsets))
    ptr = np.empty(longest + 1 if n_changed else 0, np.int64)
    place = np.empty((2, n_changed), np.int64)
    r, e = np.empty((2, n_changed)), np.empty((2, n_changed))
    steps = _Steps(R, E, Et, step, ptr, place, r, e)
    tops = span = 0.0
    x = np.empty((longest, width))
    alpha, beta, w = np.zeros_like(x), np.zeros_like(x), np.empty(width)
    pair = np.empty((node.shape[1], node.shape[1]))
    both_ways = marginals.size + pairs.size + entropy.size > 0
    log_z = np.zeros(offsets.shape[0] - 1)
    for s in range(log_z.shape[0]):
        first = offsets[s]
        n = offsets[s + 1] - first
        if s == 0 or step == 1:
            tops, span = _relative_trans(trans[first + 1 : first + n] if step == 1 else trans, R, E)
        if s == 0 and step == 0:
            transpose(E[0], Et)
        if n == 0:
            continue
        reach = span
        if n_changed:
            below, above = _relative_changes(changes, first, n, tops, steps)
            reach = max(span, below) if above <= _SPAN else np.inf
        scaled = True
        for _ in range(2):
            log_z[s], scaled = _forward(node, first, n, steps, tops, reach, x, alpha)
            if log_z[s] == -np.inf or not (both_ways and scaled):
                break
            if _backward_scaled(n, node.shape[1], steps, x, beta, w):
                break
            reach = np.inf  # once more, on logarithms
        if log_z[s] == -np.inf:
            continue
        if both_ways and not scaled:
            _backward_log(n, steps, x, beta, w)
        for k in range(uniforms.shape[0]):
            _draw(first, n, steps, scaled, alpha, w, uniforms, labels, k)
        if marginals.size > 0:
            for t in range(n):
                _node_marginal(alpha[t], beta[t], scaled, marginals[first + t])
        if entropy.size > 0:
            _node_marginal(alpha[0], beta[0], scaled, pair[0])
            entropy[s] = _row_entropy(pair[0])
        for t in range(1, n if pairs.size + entropy.size > 0 else 1):
            out = pairs[first + t] if pairs.size > 0 else pair
            _pair_marginal(t, steps, alpha[t - 1], x[t], beta[t], scaled, w, out)
            if entropy.size > 0:
                for i in range(pair.shape[0]):
                    entropy[s] += _row_entropy(out[i])
    return log_z


@subkernel
def _node_marginal(alpha: Float64s, beta: Float64s, scaled: bool, out: Float64s) -> None:
    total = 0.0
    for j in range(out.shape[0]):
        out[j] = alpha[j] * beta[j] if scaled else alpha[j] + beta[j]
    if not scaled:
        _exponentiate(out)
    for j in range(out.shape[0]):
        total += out[j]
    factor = 1.0 / total
    for j in range(out.shape[0]):
        out[j] *= factor


@ordered
def _exponentiate(a: Float64s) -> None:
    """Replace a by exp(a - max(a))."""
    top = -np.inf
    for j in range(a.shape[0]):
        top = max(top, a[j])
    for j in range(a.shape[0]):
        a[j] = np.exp(a[j] - top)


@subkernel
def _pair_marginal(
    t: int,
    steps: _Steps,
    alpha: Float64s,
    x: Float64s,
    beta: Float64s,
    scaled: bool,
    w: Float64s,
    out: Float64s,
) -> None:
    n_labels = out.shape[0]
    tables, values = (steps.E, steps.e) if scaled else (steps.R, steps.r)
    M = tables[steps.step * (t - 1)]
    _change(steps, t, 0, values, 1, tables)
    if not scaled:
        for j in range(w.shape[0]):
            w[j] = x[j] + beta[j]
        for i in range(n_labels):
            for j in range(n_labels):
                out[i, j] = alpha[i] + (M[i, j] + w[j])
        _exponentiate(out.reshape(out.size))
    total = 0.0
    for i in range(n_labels):
        for j in range(n_labels):
            if scaled:
                out[i, j] = alpha[i] * M[i, j] * (x[j] * beta[j])
            total += out[i, j]
    _change(steps, t, 0, values, 0, tables)
    factor = 1.0 / total
    for i in range(n_labels):
        for j in range(n_labels):
            out[i, j] *= factor


@subkernel
def _row_entropy(p: Float64s) -> float:
    """Return sum(p) times the entropy of p / sum(p)."""
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j]
    entropy = 0.0
    for j in range(p.shape[0]):
        if 0.0 < p[j] < total:
            entropy -= p[j] * np.log(p[j] / total)
    return entropy


@subkernel
def _draw(
    first: int,
    n: int,
    steps: _Steps,
    scaled: bool,
    alpha: Float64s,
    w: Float64s,
    uniforms: Float64s,
    labels: Int32s,
    r: int,
) -> None:
    """Draw labelling r of one sample."""
    M, values = (steps.E, steps.e) if scaled else (steps.R, steps.r)
    label = -1
    for t in range(n - 1, -1, -1):
        if label >= 0:
            _change(steps, t + 1, 0, values, 1, M)
        for i in range(w.shape[0]):
            if scaled:
                w[i] = alpha[t, i] * (M[steps.step * t, i, label] if label >= 0 else 1.0)
            else:
                w[i] = alpha[t, i] + (M[steps.step * t, i, label] if label >= 0 else 0.0)
        if label >= 0:
            _change(steps, t + 1, 0, values, 0, M)
        if not scaled:
            _exponentiate(w)
        label = draw(w, w.shape[0], uniforms[r, first + t])
        labels[r, first + t] = label
