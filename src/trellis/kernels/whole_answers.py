"""Whole answers to stretches of positions: which are the same, and which is the best.

At position t expert j says ``codes[t, j]``, or nothing (-1). A unit is the positions
``starts[u]:stops[u]``. The experts that say something at all of its positions give whole answers to
it; equal ones are one candidate, represented by the first expert that gives it. Where nobody gives
a whole answer, the first expert that says anything is the only candidate. Answers are told apart by
hashes first, since most of them differ. Nothing is checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel

__all__ = ["answer_features", "best_answers", "count_answers", "disputed_runs"]

_NONE = np.int32(2**31 - 1)
_ODD, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


@kernel
def disputed_runs(offsets: Any, codes: Any, starts: Any, stops: Any) -> int:
    """Fill in the longest runs of positions at which experts differ; return their number.

    Those that sleep do not differ from anybody; no run goes beyond a sample.
    """
    n = 0
    p = codes.shape[1]
    for s in range(len(offsets) - 1):
        inside = False
        for t in range(offsets[s], offsets[s + 1]):
            low, high = _NONE, np.int32(-1)
            for j in range(p):
                high = max(high, codes[t, j])
                low = min(low, codes[t, j] if codes[t, j] >= 0 else _NONE)
            disputed = bool(high > low)
            if disputed and not inside:
                starts[n] = t
            elif inside and not disputed:
                stops[n] = t
                n += 1
            inside = disputed
        if inside:
            stops[n] = offsets[s + 1]
            n += 1
    return n


@subkernel
def _distinct(codes: Any, a: int, b: int, hashes: Any, spoken: Any, like: Any, who: Any) -> int:
    """Find the candidates of the positions a to b; return their number.

    ``who`` gets the first expert of each, ``like`` (p,) the number of the candidate that an expert
    gives, -1 if none.
    """
    p = codes.shape[1]
    for j in range(p):
        hashes[j] = np.uint64(0)
        spoken[j] = 0
    for t in range(a, b):
        for j in range(p):
            mixed = (hashes[j] ^ np.uint64(codes[t, j] + 1)) * _ODD
            hashes[j] = mixed ^ (mixed >> _SHIFT)
            spoken[j] += codes[t, j] >= 0
    n = 0
    for j in range(p):
        like[j] = -1
        if spoken[j] < b - a:
            continue
        for c in range(n):
            if hashes[who[c]] != hashes[j]:
                continue
            same = True
            for t in range(a, b):
                if codes[t, who[c]] != codes[t, j]:
                    same = False
                    break
            if same:
                like[j] = c
                break
        if like[j] < 0:
            like[j] = n
            who[n] = j
            n += 1
    if n == 0:
        who[0] = 0
        for j in range(p - 1, -1, -1):
            if spoken[j] > 0:
                who[0] = j
        n = 1
    return n


@subkernel
def _agreements(codes: Any, a: int, b: int, expert: int, count: Any) -> None:
    """Fill in at how many positions from a to b each expert says what this one says."""
    p = codes.shape[1]
    for j in range(p):
        count[j] = 0
    for t in range(a, b):
        code = codes[t, expert]
        if code >= 0:
            for j in range(p):
                count[j] += codes[t, j] == code


@kernel
def count_answers(starts: Any, stops: Any, codes: Any, ends: Any) -> None:
    """Fill in the number of candidates up to each unit, ``ends`` (U + 1,)."""
    p = codes.shape[1]
    hashes, spoken = np.empty(p, np.uint64), np.empty(p, np.int32)
    like, who = np.empty(p, np.int32), np.empty(p, np.int32)
    ends[0] = 0
    for u in range(len(starts)):
        n = _distinct(codes, starts[u], stops[u], hashes, spoken, like, who)
        ends[u + 1] = ends[u] + n


@kernel
def answer_features(
    starts: Any, stops: Any, codes: Any, ends: Any, who: Any, equal: Any, agree: Any
) -> None:
    """Fill in the candidates: who gives each, who gives the same, and how far others agree.

    Parameters
    ----------
    starts, stops : int64 (U,)
    codes : int32 (N, p)
    ends : int64 (U + 1,)
        Of :func:`count_answers`: unit u has the candidates ``ends[u]:ends[u + 1]``.
    who : int64 (A,)
    equal : float64 (A, p)
        1 if an expert gives the same whole answer, else 0.
    agree : float64 (A, p) or (A, 0)
        Number of positions where an expert says the same.
    """
    p = codes.shape[1]
    hashes, spoken = np.empty(p, np.uint64), np.empty(p, np.int32)
    like, first, count = np.empty(p, np.int32), np.empty(p, np.int32), np.empty(p, np.int32)
    for u in range(len(starts)):
        a, b = starts[u], stops[u]
        n = _distinct(codes, a, b, hashes, spoken, like, first)
        for c in range(n):
            row = ends[u] + c
            who[row] = first[c]
            for j in range(p):
                equal[row, j] = 1.0 if like[j] == c else 0.0
            if agree.shape[1] > 0:
                _agreements(codes, a, b, first[c], count)
                for j in range(p):
                    agree[row, j] = count[j]


@kernel
def best_answers(
    starts: Any, stops: Any, codes: Any, plain: Any, same: Any, similar: Any, vote: float,
    equal: float, answer: Any,
) -> None:  # fmt: skip
    """Write the best candidate of each unit to ``answer`` (N,), the first of equals.

    Parameters
    ----------
    starts, stops : int64 (U,)
    codes : int32 (N, p)
    plain : int32 (N,) or empty
        The answer of one more expert, the last one.
    same : float64 (p,)
        What an expert that gives the same whole answer counts.
    similar : float64 (p,) or empty
        What one that agrees at all positions counts besides; less, if it agrees at fewer.
    vote : float
        What counts if the answer is that of ``plain``.
    equal : float
        Scores closer than this are equal.
    answer : int32 (N,)
    """
    p = codes.shape[1]
    m = p + 1 if plain.size > 0 else p
    hashes, spoken = np.empty(m, np.uint64), np.empty(m, np.int32)
    like, who, count = np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m, np.int32)
    score = np.empty(m)
    longest = 0
    for u in range(len(starts)):
        longest = max(longest, stops[u] - starts[u])
    said = np.empty((longest, m), codes.dtype)  # of one unit, the plain answer as one more expert
    for u in range(len(starts)):
        a, length = starts[u], stops[u] - starts[u]
        for t in range(length):
            for j in range(p):
                said[t, j] = codes[a + t, j]
            if m > p:
                said[t, p] = plain[a + t]
        n = _distinct(said, 0, length, hashes, spoken, like, who)
        for c in range(n):
            score[c] = 0.0
        for j in range(p):
            if like[j] >= 0:
                score[like[j]] += same[j]
        if m > p and like[p] >= 0:
            score[like[p]] += vote
        best, top = 0, -np.inf
        for c in range(n):
            if similar.size > 0 and n > 1:
                _agreements(said, 0, length, who[c], count)
                total = 0.0
                for j in range(p):
                    total += count[j] * similar[j]
                score[c] += total / length
            top = max(top, score[c])
        for c in range(n - 1, -1, -1):
            if not score[c] < top - equal * (1.0 + abs(top)):
                best = c
        for t in range(length):
            answer[a + t] = said[t, who[best]]
