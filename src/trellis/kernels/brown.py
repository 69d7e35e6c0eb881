"""Greedy merging of word clusters by their average mutual information (Brown et al. 1992).

With n(a, b) how often a word of cluster b follows one of a, l(a) and r(b) how often the words of a
and b stand left and right in any pair, N the number of pairs and A the clusters at hand,

    N I(A) = Σ_{a, b ∈ A} n(a, b) log (N n(a, b) / (l(a) r(b))).

Words come in by falling count. A *window* of C clusters is kept: each further word is a cluster of
its own until those two of the C + 1 clusters are merged whose merging loses least of N I(A); when
no word is left, the C clusters are merged down to one. With f(n) = n log n, g(x, y) = f(x) + f(y) −
f(x + y), and v(a) = Σ_{c ∈ A} n(a, c), merging a and b loses

    Σ_{c ≠ a, b} [g(n(a, c), n(b, c)) + g(n(c, a), n(c, b))] + f's of the corner {a, b}²
        + (v(a) + v(b)) log (l(a) + l(b)) − v(a) log l(a) − v(b) log l(b),  likewise of columns.

g is 0 where one of its counts is. So a word changes only losses of the clusters it stands beside,
of which most words have few: a step costs (neighbours · C) and not C² logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel

__all__ = ["brown_merges"]

Array = np.ndarray[Any, Any]


@subkernel
def _f(n: int, table: Array) -> float:
    """Return n log n; small numbers are looked up."""
    if n < table.size:
        return float(table[n])
    return n * math.log(n)


@subkernel
def _log(n: int, table: Array) -> float:
    """Return log n, and 0 for what never occurs, since it is a factor of 0."""
    return _f(n, table) / n if n > 0 else 0.0


@subkernel
def _g(x: int, y: int, table: Array) -> float:
    if x == 0 or y == 0:
        return 0.0
    return _f(x, table) + _f(y, table) - _f(x + y, table)


@kernel
def brown_merges(
    right_ptr: Array, right_word: Array, right_count: Array,
    left_ptr: Array, left_word: Array, left_count: Array,
    window: int, table: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Merges (V − 1, 2) of V words as (slot kept, slot freed), and what each loses (V − 1,).

    The words after word v, by rising number, are right_word[right_ptr[v]:right_ptr[v + 1]], so
    often as right_count says; those before it likewise. The first words are in the slots
    0 .. window − 1, word ``window`` in slot ``window``, each later one in the slot freed last.
    ``table`` holds n log n for n = 0, 1, 2, …
    """
    n_words = right_ptr.size - 1
    size = min(n_words, window + 1)
    n = np.zeros((size, size), np.int64)  # counts of pairs, and
    t = np.zeros((size, size), np.int64)  # their transpose
    inside = np.zeros((2, size), np.int64)  # sums of rows and columns of n
    total = np.zeros((2, size), np.int64)  # the same over all words, and
    log_total = np.zeros((2, size), np.float64)  # their logarithms
    distance = np.zeros((size, size), np.float64)  # Σ_c g + Σ_c g, with c = a, b
    loss = np.zeros((size, size), np.float64)
    alive = np.zeros(size, np.bool_)
    touched = np.zeros(size, np.bool_)
    slot_of = np.full(n_words, -1, np.int32)
    after = np.full(n_words, -1, np.int32)  # the words of a cluster, from first to end
    first = np.empty(size, np.int32)
    end = np.empty(size, np.int32)
    merges = np.empty((max(0, n_words - 1), 2), np.int32)
    losses = np.empty(max(0, n_words - 1), np.float64)
    free, done = 0, 0
    for word in range(n_words):
        slot = word if word < size else free
        slot_of[word] = slot
        alive[slot] = True
        first[slot] = end[slot] = word
        distance[slot, :] = 0
        distance[:, slot] = 0
        inside[:, slot] = 0
        total[0, slot] = right_count[right_ptr[word] : right_ptr[word + 1]].sum()
        total[1, slot] = left_count[left_ptr[word] : left_ptr[word + 1]].sum()
        for side in range(2):
            log_total[side, slot] = _log(total[side, slot], table)
        for p in range(right_ptr[word], right_ptr[word + 1]):
            if slot_of[right_word[p]] >= 0:  # of words that came before, and of itself
                n[slot, slot_of[right_word[p]]] += right_count[p]
        for p in range(left_ptr[word], left_ptr[word + 1]):
            if left_word[p] != word and slot_of[left_word[p]] >= 0:
                n[slot_of[left_word[p]], slot] += left_count[p]
        for c in range(size):
            t[c, slot], t[slot, c] = n[slot, c], n[c, slot]
            inside[0, slot] += n[slot, c]
            inside[1, slot] += n[c, slot]
            if c != slot:
                inside[0, c] += n[c, slot]
                inside[1, c] += n[slot, c]
            touched[c] = c == slot or n[slot, c] > 0 or n[c, slot] > 0
        _enter(n, t, distance, slot, table)
        _enter(t, n, distance, slot, table)
        _refresh(n, inside, total, log_total, distance, loss, alive, touched, table)
        if word >= window:
            free = _merge(
                n, t, inside, total, log_total, distance, loss, alive, touched, merges, losses,
                done, table,
            )  # fmt: skip
            _relabel(slot_of, after, first, end, merges[done, 0], free)
            done += 1
    while done < n_words - 1:
        _merge(
            n, t, inside, total, log_total, distance, loss, alive, touched, merges, losses, done,
            table,
        )  # fmt: skip
        done += 1
    return merges, losses


@subkernel
def _relabel(slot_of: Array, after: Array, first: Array, end: Array, kept: int, freed: int) -> None:
    """Move the words of one cluster into another."""
    word = first[freed]
    while word >= 0:
        slot_of[word] = kept
        word = after[word]
    after[end[kept]] = first[freed]
    end[kept] = end[freed]


@subkernel
def _enter(n: Array, t: Array, distance: Array, slot: int, table: Array) -> None:
    """Add what a new row brings to distances: as one of a pair, and as a term of other pairs."""
    size = n.shape[0]
    for c in range(size):
        x = n[slot, c]
        if x == 0:
            continue
        for b in range(size):
            if b != slot and t[c, b] > 0:
                gain = _g(x, t[c, b], table)
                distance[slot, b] += gain
                distance[b, slot] += gain
        if c == slot:
            continue
        for b in range(c):
            if b != slot and n[slot, b] > 0:
                gain = _g(x, n[slot, b], table)
                distance[c, b] += gain
                distance[b, c] += gain


@subkernel
def _merge_rows(
    n: Array, t: Array, distance: Array, touched: Array, kept: int, freed: int, table: Array,
) -> None:  # fmt: skip
    """Add row ``freed`` to row ``kept``, and follow in the distances."""
    size = n.shape[0]
    for c in range(size):
        y = n[freed, c]
        if y == 0:
            continue
        x = n[kept, c]
        fx, fy, fxy = _f(x, table), _f(y, table), _f(x + y, table)
        for b in range(size):  # the merged row as one of a pair: g(x + y, z) − g(x, z)
            z = t[c, b]
            if z > 0 and b not in (kept, freed):
                gain = fxy - fx - _f(x + y + z, table) + _f(x + z, table)
                distance[kept, b] += gain
                distance[b, kept] += gain
        if c == freed:
            continue
        touched[c] = True
        # and as a term of pairs of columns: g(x + y, u + v) − g(x, u) − g(y, v)
        for b in range(size):
            u, v = n[kept, b], n[freed, b]
            if u + v == 0 or b in (freed, c) or (v > 0 and b < c):
                continue
            gain = fxy - fx - _f(x + y + u + v, table) + _f(x + u, table)
            if v > 0:
                gain += _f(u + v, table) - _f(u, table) - _f(v, table) + _f(y + v, table) - fy
            distance[c, b] += gain
            distance[b, c] += gain
    for c in range(size):
        n[kept, c] += n[freed, c]
        n[freed, c] = 0
        t[c, kept] += t[c, freed]
        t[c, freed] = 0


@subkernel
def _refresh(
    n: Array, inside: Array, total: Array, log_total: Array, distance: Array, loss: Array,
    alive: Array, touched: Array, table: Array,
) -> None:  # fmt: skip
    """Losses of all pairs with a touched cluster, from their distances."""
    size = n.shape[0]
    for a in range(size):
        if not (touched[a] and alive[a]):
            continue
        for b in range(size):
            if b == a or not alive[b] or (touched[b] and b < a):
                continue
            ab, ba, aa, bb = n[a, b], n[b, a], n[a, a], n[b, b]
            value = distance[a, b]
            if ab + ba == 0:
                value += _g(aa, bb, table)
            else:  # the corner counts as one, not as four terms
                value += _f(aa + ba, table) + _f(ab + bb, table)
                value += _f(aa + ab, table) + _f(ba + bb, table)
                value -= _f(aa, table) + _f(ab, table) + _f(ba, table) + _f(bb, table)
                value -= _f(aa + ab + ba + bb, table)
            for side in range(2):
                u, v = inside[side, a], inside[side, b]
                value += (u + v) * _log(total[side, a] + total[side, b], table)
                value -= u * log_total[side, a] + v * log_total[side, b]
            loss[a, b] = value
            loss[b, a] = value


@subkernel
def _merge(
    n: Array, t: Array, inside: Array, total: Array, log_total: Array, distance: Array,
    loss: Array, alive: Array, touched: Array, merges: Array, losses: Array, done: int,
    table: Array,
) -> int:  # fmt: skip
    """Merge the two clusters that lose least; returns the slot that becomes free."""
    size = n.shape[0]
    least, kept, freed = np.inf, 0, 0
    for a in range(size):
        if alive[a]:
            for b in range(a + 1, size):
                if alive[b] and loss[a, b] < least:
                    least, kept, freed = loss[a, b], a, b
    entries = 0
    for c in range(size):  # the one with fewer neighbours moves
        entries += (n[kept, c] > 0) - (n[freed, c] > 0) + (n[c, kept] > 0) - (n[c, freed] > 0)
    if entries < 0:
        kept, freed = freed, kept
    touched[:] = False
    touched[kept] = True
    _merge_rows(n, t, distance, touched, kept, freed, table)
    _merge_rows(t, n, distance, touched, kept, freed, table)
    alive[freed] = False
    for side in range(2):
        inside[side, kept] += inside[side, freed]
        total[side, kept] += total[side, freed]
        log_total[side, kept] = _log(total[side, kept], table)
    _refresh(n, inside, total, log_total, distance, loss, alive, touched, table)
    merges[done, 0], merges[done, 1], losses[done] = kept, freed, least
    return freed
