r"""Probabilities of label sets on stretches of chains, all from one forward–backward.

With :math:`\alpha_t(j)` the logarithm of the summed weight of all ways to reach label j at position
t, and :math:`\beta_t(j)` that of all ways to go on from there, a window of positions a..b whose
labels lie in sets :math:`A_a, \dots, A_b` has

.. math::

    P = \frac{\sum_{j \in A_b} e^{v_b(j) + \beta_b(j)}}{\sum_j e^{\alpha_b(j) + \beta_b(j)}},
    \qquad v_a = \alpha_a \text{ on } A_a, \qquad
    v_t(j) = \mathrm{node}_{tj} + \log \sum_{i \in A_{t-1}} e^{v_{t-1}(i) + T_t(i, j)},

so that a window takes time by its own length, wherever it lies. Everything is a logarithm, but a
step of the messages is a product of a vector and a matrix of exponentials; only what has become so
small there that digits could be missing, or too large, is summed once more as logarithms are. So
-inf always means «forbidden». Nothing is checked here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel, ordered
from trellis.kernels.rows import longest_sample
from trellis.kernels.step_changes import StepChanges, change, change_back, turned

__all__ = ["window_probabilities"]

Bools = npt.NDArray[np.bool_]
Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

# Terms that vanish (below 1e-308, times exponentials of at most _HIGH) are nothing beside a sum as
# large as this.
_SMALL, _HIGH = 1e-250, 50.0


@ordered
def _log_sum(a: Float64s, b: Float64s, chosen: Int64s, first: int, last: int) -> float:
    """Logarithm of the sum of exp(a[i] + b[i]) over the chosen i from ``first`` to ``last``."""
    top = -np.inf
    for k in range(first, last):
        top = max(top, a[chosen[k]] + b[chosen[k]])
    if top == -np.inf or last - first == 1:
        return top
    total = 0.0
    for k in range(first, last):
        total += np.exp(a[chosen[k]] + b[chosen[k]] - top)
    return float(top + np.log(total))


@ordered
def _exponentials(trans: Float64s, turned: bool, T: Float64s, E: Float64s) -> float:
    """Fill T with transitions, maybe turned, and E with exp(T less its maximum), which returns."""
    n = trans.shape[0]
    top = -np.inf
    for i in range(n):
        for j in range(n):
            T[i, j] = trans[j, i] if turned else trans[i, j]
            top = max(top, T[i, j])
    if top == -np.inf:
        top = 0.0
    for i in range(n):
        for j in range(n):
            E[i, j] = np.exp(T[i, j] - top)
    return top


@ordered
def _change(changes: StepChanges, t: int, high: float, T: Float64s, E: Float64s) -> None:
    """Write the scores of the pairs of position t to T, and exp(scores - high) to E.

    Exponentials that are too large are infinite.
    """
    change(changes, t, T)
    if changes.ptr.size:
        for q in range(changes.ptr[t], changes.ptr[t + 1]):
            r = changes.score[q] - high
            E[changes.source[q], changes.target[q]] = np.exp(r) if r <= _HIGH else np.inf


@ordered
def _step(a: Float64s, T: Float64s, E: Float64s, high: float, every: Int64s, out: Float64s) -> None:
    """Fill out[j] with the logarithm of the sum of exp(a[i] + T[i, j]) over all i."""
    n = a.shape[0]
    top = -np.inf
    for i in range(n):
        top = max(top, a[i])
        out[i] = 0.0
    for i in range(n):
        x = np.exp(a[i] - top) if a[i] > -np.inf else 0.0
        if x > 0.0:
            for j in range(n):
                out[j] += x * E[i, j]
    for j in range(n):
        if _SMALL < out[j] < np.inf:
            out[j] = np.log(out[j]) + high + top
        else:
            out[j] = _log_sum(a, T[:, j], every, 0, n)


@ordered
def _window(
    node: Float64s, trans: Float64s, step: int, changes: StepChanges, T: Float64s, across: Float64s,
    first: int, sets: Int64s, ptr: Int64s, labels: Int64s, alpha: Float64s, beta: Float64s,
    norm: Float64s, v: Float64s, u: Float64s, every: Int64s,
) -> float:  # fmt: skip
    """Probability of one window from row ``first`` on; messages are those of its own rows.

    T is a copy of the transitions that are shared, and ``across`` one that is transposed.
    """
    for j in labels[ptr[sets[0]] : ptr[sets[0] + 1]]:
        v[j] = alpha[0, j]
    n = sets.shape[0]
    for t in range(1, n):
        before, here = sets[t - 1], sets[t]
        table = T
        if step == 1:
            table = trans[first + t]
        change(changes, first + t, T)
        for j in labels[ptr[here] : ptr[here + 1]]:
            summed = _log_sum(v, table[:, j], labels, ptr[before], ptr[before + 1])
            u[j] = summed + node[first + t, j] - norm[t]
        change_back(changes, first + t, across, T)
        for j in labels[ptr[here] : ptr[here + 1]]:
            v[j] = u[j]
    last = sets[n - 1]
    met = _log_sum(v, beta[n - 1], labels, ptr[last], ptr[last + 1])
    # A window as good as certain may come out a rounding error above 1.
    every_way = _log_sum(alpha[n - 1], beta[n - 1], every, 0, every.shape[0])
    return float(np.exp(min(0.0, met - every_way)))


@ordered
def _messages(
    node: Float64s, trans: Float64s, step: int, changes: StepChanges, first: int, n: int,
    tables: Float64s, high: Float64s, every: Int64s, alpha: Float64s, beta: Float64s,
    norm: Float64s, w: Float64s, none: Float64s,
) -> float:  # fmt: skip
    """Fill the messages of the sample at row ``first``; -inf if it has no labelling, else 0.

    ``tables`` are T and E of the way there and of the way back, those of shared transitions filled
    by the caller.
    """
    n_labels = node.shape[1]
    for t in range(n):
        if t == 0:
            for j in range(n_labels):
                alpha[0, j] = node[first, j]
        else:
            if step == 1:
                high[0] = _exponentials(trans[first + t], False, tables[0], tables[1])
            _change(changes, first + t, high[0], tables[0], tables[1])
            _step(alpha[t - 1], tables[0], tables[1], high[0], every, alpha[t])
            for k in range(2):
                change_back(changes, first + t, tables[2 + k], tables[k])
            for j in range(n_labels):
                alpha[t, j] += node[first + t, j]
        norm[t] = _log_sum(alpha[t], none, every, 0, n_labels)
        if norm[t] == -np.inf:
            return -np.inf
        for j in range(n_labels):
            alpha[t, j] -= norm[t]
    back = turned(changes)
    for j in range(n_labels):
        beta[n - 1, j] = 0.0
    for t in range(n - 1, 0, -1):
        if step == 1:
            high[1] = _exponentials(trans[first + t], True, tables[2], tables[3])
        for j in range(n_labels):
            w[j] = beta[t, j] + node[first + t, j]
        _change(back, first + t, high[1], tables[2], tables[3])
        _step(w, tables[2], tables[3], high[1], every, beta[t - 1])
        for k in range(2):
            change_back(back, first + t, tables[k], tables[2 + k])
        top = -np.inf
        for i in range(n_labels):
            top = max(top, beta[t - 1, i])
        for i in range(n_labels):
            beta[t - 1, i] -= top
    return 0.0


@kernel
def window_probabilities(
    node: Float64s, trans: Float64s, offsets: Int64s, first: Int64s, sets: Int64s,
    set_offsets: Int64s, table: Bools, chances: Float64s, changes: StepChanges,
) -> Float64s:  # fmt: skip
    """Fill the probabilities of windows (M,); return -inf for samples without a labelling, else 0.

    Parameters
    ----------
    node, trans, offsets
        Scores of chains, transitions as (1, L, L) if shared and (N, L, L) with N > 1 if not.
    first : int64 (M,)
        Rows that the windows begin at, in order; each lies within one sample.
    sets, set_offsets
        Numbers of the label sets of a window, ``sets[set_offsets[m]:set_offsets[m + 1]]``.
    table : bool (K, L)
        The label sets.
    chances : float64 (M,)
        What is filled. Samples without a window are not looked at.
    changes : StepChanges
        Pairs that have other scores at some positions than shared transitions have.
    """
    n_labels = node.shape[1]
    step = 0 if trans.shape[0] == 1 else 1
    longest = longest_sample(offsets)
    alpha = np.empty((longest, n_labels))
    beta = np.empty((longest, n_labels))
    norm, w, v, u = np.empty(longest), np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    none, every = np.zeros(n_labels), np.arange(n_labels)
    ptr = np.zeros(table.shape[0] + 1, np.int64)
    labels = np.empty(table.size, np.int64)
    for k in range(table.shape[0]):
        ptr[k + 1] = ptr[k]
        for j in range(n_labels):
            if table[k, j]:
                labels[ptr[k + 1]] = j
                ptr[k + 1] += 1
    tables, high = np.empty((4, n_labels, n_labels)), np.zeros(2)
    for k in range(2):
        high[k] = _exponentials(trans[0], k == 1, tables[2 * k], tables[2 * k + 1])
    feasible = np.zeros(offsets.shape[0] - 1)
    m = 0
    for s in range(feasible.shape[0]):
        start, end = offsets[s], offsets[s + 1]
        if m == first.shape[0] or first[m] >= end:
            continue
        feasible[s] = _messages(
            node, trans, step, changes, start, end - start, tables, high, every, alpha, beta, norm,
            w, none,
        )  # fmt: skip
        while m < first.shape[0] and first[m] < end:
            if feasible[s] == 0.0:
                a = first[m] - start
                chances[m] = _window(
                    node, trans, step, changes, tables[0], tables[2], first[m],
                    sets[set_offsets[m] : set_offsets[m + 1]], ptr, labels, alpha[a:], beta[a:],
                    norm[a:], v, u, every,
                )  # fmt: skip
            m += 1
    return feasible
