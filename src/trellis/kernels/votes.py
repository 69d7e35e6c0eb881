"""Votes position by position: what wins, what each label has, who is wrong.

At position t expert j says ``codes[t, j]``, or nothing (-1). A table of all labels at all positions
would be mostly empty, so the votes of one position are added up in room that the next one uses
again: a position costs as many steps as there are experts, however many labels there are. Votes for
a label are always added in the order of the experts. Nothing is checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel

__all__ = [
    "add_first_votes",
    "best_said",
    "count_errors",
    "count_said",
    "most_voted",
    "said_scores",
    "stacked_features",
]


@kernel
def most_voted(
    codes: Any, weights: Any, order: Any, n_labels: int, equal: float, winner: Any
) -> None:
    """Fill in the label with the most weight at each position, -1 where all sleep.

    Parameters
    ----------
    codes : int32 (N, p)
    weights : float64 (N, p) or (1, p)
        If all that are awake are 0, the vote is unweighted.
    order : int64 (p,)
        Experts as they are asked: of labels with equal votes, the first that one of them says wins.
    n_labels : int
    equal : float
        Votes closer than this, relatively, are equal.
    winner : int32 (N,)
    """
    p = codes.shape[1]
    votes = np.zeros(n_labels)
    for t in range(codes.shape[0]):
        row = t if weights.shape[0] > 1 else 0
        others = 0
        for j in range(p):
            others += codes[t, j] != codes[t, 0]
        if others == 0:
            winner[t] = codes[t, 0]
            continue
        total = 0.0
        for k in range(p):
            code = codes[t, order[k]]
            if code >= 0:
                votes[code] += weights[row, order[k]]
                total += weights[row, order[k]]
        if not total > 0.0:
            for j in range(p):
                if codes[t, j] >= 0:
                    votes[codes[t, j]] = 0.0
            for j in range(p):
                if codes[t, j] >= 0:
                    votes[codes[t, j]] += 1.0
        top = 0.0
        for j in range(p):
            if codes[t, j] >= 0:
                top = max(top, votes[codes[t, j]])
        best = -1
        for k in range(p):
            code = codes[t, order[k]]
            if code >= 0 and votes[code] >= top * (1.0 - equal):
                best = code
                break
        winner[t] = best
        for j in range(p):
            if codes[t, j] >= 0:
                votes[codes[t, j]] = 0.0


@subkernel
def _said(codes: Any, t: int, table: Any, plain: Any, wins: float, score: Any, said: Any) -> int:
    """Leave the labels said at t in ``said``, sorted, and in ``score`` what they have."""
    n = 0
    for j in range(codes.shape[1]):
        code = codes[t, j]
        if code >= 0:
            k = n
            while k > 0 and said[k - 1] > code:
                k -= 1
            if k == 0 or said[k - 1] != code:
                for i in range(n, k, -1):
                    said[i] = said[i - 1]
                said[k] = code
                n += 1
                score[code] = 0.0
            score[code] += table[code, j]
    for k in range(n):
        if said[k] == plain[t]:
            score[said[k]] += wins
    return n


@kernel
def count_said(codes: Any, n_labels: int, ends: Any) -> None:
    """Fill in how many labels are said up to each position, ``ends`` (N + 1,)."""
    last = np.full(n_labels, -1)
    ends[0] = 0
    for t in range(codes.shape[0]):
        n = 0
        for j in range(codes.shape[1]):
            code = codes[t, j]
            if code >= 0 and last[code] != t:
                last[code] = t
                n += 1
        ends[t + 1] = ends[t] + n


@kernel
def said_scores(
    codes: Any, table: Any, plain: Any, wins: float, ends: Any, label: Any, scores: Any
) -> None:
    """Fill in the labels that are said at each position, sorted, and their scores.

    Parameters
    ----------
    codes : int32 (N, p)
    table : float64 (L, p)
        Weight of an expert that says a label.
    plain : int32 (N,)
        The label that has the weight ``wins`` besides.
    wins : float
    ends : int64 (N + 1,)
        Of :func:`count_said`: those of position t are ``ends[t]:ends[t + 1]``.
    label, scores : int64 and float64 (ends[-1],)
    """
    score = np.zeros(table.shape[0])
    said = np.empty(codes.shape[1], np.int64)
    for t in range(codes.shape[0]):
        n = _said(codes, t, table, plain, wins, score, said)
        for k in range(n):
            label[ends[t] + k] = said[k]
            scores[ends[t] + k] = score[said[k]]


@kernel
def best_said(codes: Any, table: Any, plain: Any, wins: float, equal: float, answer: Any) -> None:
    """Fill in the label with the highest score, the first of equals, -1 where all sleep.

    What is given is as for :func:`said_scores`; scores closer than ``equal`` are equal.
    """
    score = np.zeros(table.shape[0])
    said = np.empty(codes.shape[1], np.int64)
    for t in range(codes.shape[0]):
        n = _said(codes, t, table, plain, wins, score, said)
        top = -np.inf
        for k in range(n):
            top = max(top, score[said[k]])
        answer[t] = -1
        for k in range(n - 1, -1, -1):
            if not score[said[k]] < top - equal * (1.0 + abs(top)):
                answer[t] = said[k]


@kernel
def count_errors(codes: Any, truth: Any, offsets: Any, errors: Any) -> None:
    """Add to ``errors`` (S, p) at how many positions of each sample an expert errs.

    A position where it sleeps is half an error.
    """
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            for j in range(codes.shape[1]):
                if codes[t, j] < 0:
                    errors[s, j] += 0.5
                elif codes[t, j] != truth[t]:
                    errors[s, j] += 1.0


@kernel
def add_first_votes(slots: Any, times: int, votes: Any, first: Any, winner: Any) -> None:
    """Give every expert so many votes, one after the other, again and again.

    ``slots`` and the rest are those of :func:`trellis.kernels.experts.add_vote`, with no votes yet.
    """
    for t in range(slots.shape[0]):
        for j in range(slots.shape[1]):
            slot = slots[t, j]
            if slot >= 0:
                if votes[t, slot] == 0:
                    first[t, slot] = j
                votes[t, slot] += times
        best = -1
        for slot in range(votes.shape[1]):
            if votes[t, slot] > 0 and (
                best < 0
                or votes[t, slot] > votes[t, best]
                or (votes[t, slot] == votes[t, best] and first[t, slot] < first[t, best])
            ):
                best = slot
        winner[t] = best


@kernel
def stacked_features(
    offsets: Any, codes: Any, window: int, n_said: int, indptr: Any, ids: Any
) -> int:
    """Fill in who says what at each position and around it, as features; return their number.

    Expert j of p that says c k positions on is the feature ((k + window) p + j) n_said + c; beyond
    the sample everybody says ``n_said - 1``. ``indptr`` (N + 1,) gets where those of each position
    begin, ``ids`` the features.
    """
    p = codes.shape[1]
    n = 0
    indptr[0] = 0
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            for k in range(-window, window + 1):
                inside = offsets[s] <= t + k < offsets[s + 1]
                first = (k + window) * p * n_said
                for j in range(p):
                    code = codes[t + k, j] if inside else n_said - 1
                    if code >= 0:
                        ids[n] = first + j * n_said + code
                        n += 1
            indptr[t + 1] = n
    return n
