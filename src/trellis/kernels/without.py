"""What all experts but one answer, for each of them (:mod:`trellis.experts.guarded`).

At position t expert j says ``codes[t, j]``, or nothing (-1). One expert less changes what one label
has, so the others are added up once for all experts. ``answers`` (p, N) gets in row j the answers
without expert j, -1 where all others sleep; of equals, what the first of them says. Nothing is
checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel

__all__ = ["probable_without", "probable_without_matrices", "voted_without"]


@kernel
def voted_without(codes: Any, n_labels: int, answers: Any) -> None:
    """The most frequent label."""
    p = codes.shape[1]
    votes = np.zeros(n_labels, np.int64)
    for t in range(codes.shape[0]):
        for j in range(p):
            if codes[t, j] >= 0:
                votes[codes[t, j]] += 1
        winner = _first_of(codes, t, votes, -1, _most(codes, t, votes))
        second = 0
        for j in range(p):
            if codes[t, j] >= 0 and codes[t, j] != winner:
                second = max(second, votes[codes[t, j]])
        for j in range(p):
            answers[j, t] = winner
            # Only one vote less for the winner can change anything.
            if winner >= 0 and codes[t, j] == winner and votes[winner] - 1 <= second:
                votes[winner] -= 1
                top = max(second, votes[winner])
                answers[j, t] = _first_of(codes, t, votes, j, top) if top > 0 else -1
                votes[winner] += 1
        for j in range(p):
            if codes[t, j] >= 0:
                votes[codes[t, j]] = 0


@subkernel
def _most(codes: Any, t: int, votes: Any) -> int:
    """Votes of the label at t that has the most."""
    top = 0
    for j in range(codes.shape[1]):
        if codes[t, j] >= 0:
            top = max(top, votes[codes[t, j]])
    return top


@subkernel
def _first_of(codes: Any, t: int, votes: Any, left_out: int, top: int) -> int:
    """What the first expert says, but for one, whose label has so many votes; -1: none has."""
    for j in range(codes.shape[1]):
        if j != left_out and codes[t, j] >= 0 and votes[codes[t, j]] == top:
            return int(codes[t, j])
    return -1


@kernel
def probable_without(codes: Any, prior: Any, gain: Any, equal: float, answers: Any) -> None:
    """The label said of the highest score, its prior and the gain of all experts that say it.

    Parameters
    ----------
    codes : int32 (N, p)
    prior : float64 (L,)
        Logarithms.
    gain : float64 (p, L)
    equal : float
        Scores closer than this are equal.
    answers : int32 (p, N)
    """
    p, n_labels = gain.shape
    score = np.empty(n_labels)
    last = np.full(n_labels, -1)
    for t in range(codes.shape[0]):
        for j in range(p):
            label = codes[t, j]
            if label >= 0:
                if last[label] != t:
                    last[label] = t
                    score[label] = prior[label]
                score[label] += gain[j, label]
        first, second, best = -np.inf, -np.inf, -1  # the two highest scores
        for j in range(p):
            label = codes[t, j]
            if label >= 0 and label != best:
                if score[label] > first:
                    first, second, best = score[label], first, label
                elif score[label] > second:
                    second = score[label]
        for j in range(p):
            left_out = codes[t, j]
            rest, others = -np.inf, 0  # of what it says, without it
            if left_out >= 0:
                total = prior[left_out]
                for i in range(p):
                    if codes[t, i] == left_out and i != j:
                        total += gain[i, left_out]
                        others += 1
                if others > 0:
                    rest = total
            top = max(rest, second if left_out == best else first)
            answers[j, t] = -1
            for i in range(p):
                label = codes[t, i]
                if label >= 0 and i != j:
                    mine = rest if label == left_out else score[label]
                    if mine >= top - equal:
                        answers[j, t] = label
                        break


@kernel
def probable_without_matrices(codes: Any, table: Any, scores: Any, answers: Any) -> None:
    """The label of the highest score, the first of equals, said or not.

    ``scores`` (N, L) are those by all experts; one that says l at t has added ``table[j, l]`` (L,).
    """
    n_labels = scores.shape[1]
    for t in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            label = codes[t, j]
            best, top = 0, -np.inf
            for y in range(n_labels):
                own = table[j, label, y] if label >= 0 else 0.0
                if scores[t, y] - own > top:
                    best, top = y, scores[t, y] - own
            answers[j, t] = best
