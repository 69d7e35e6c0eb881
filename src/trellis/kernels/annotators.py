"""Sums of EM over what annotators say (:mod:`trellis.experts.annotators`).

At position t expert j says ``codes[t, j]``, or nothing (-1). With two chances a label said,

    P(j says l | the truth is y) = hit[j, l] if l = y, else miss[j, l],

and equal chances of all L labels beforehand, every label that nobody says at t is as probable as
any other such label, so a position costs as many steps as experts, however large L is. With whole
confusion matrices, ``table[j, l, y]``, it costs L times as many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["add_confusions", "agreements", "likelihoods", "said_posteriors"]


@kernel
def agreements(codes: Any, gold: Any, gain: Any, miss: Any, right: Any) -> float:
    """Add to ``right`` (p, L) how often each expert is right with each label it says.

    Parameters
    ----------
    codes : int32 (N, p)
    gold : int32 (N,)
        The truth where it is known, else -1.
    gain, miss : float64 (p, L)
        log(hit / miss) and log(miss) of each expert and label.
    right : float64 (p, L)
        Gets the sums over positions of the posterior probability of what the expert says.

    Returns
    -------
    float
        Log-likelihood of all that is said.
    """
    p, n_labels = gain.shape
    score = np.zeros(n_labels)
    said = np.empty(p, np.int64)
    beforehand = -np.log(n_labels)
    total = 0.0
    for t in range(codes.shape[0]):
        n_said = 0
        base = beforehand
        for j in range(p):
            label = codes[t, j]
            if label >= 0:
                base += miss[j, label]
                new = True
                for k in range(n_said):
                    if said[k] == label:
                        new = False
                        break
                if new:
                    said[n_said] = label
                    score[label] = 0.0
                    n_said += 1
                score[label] += gain[j, label]
        if gold[t] >= 0:
            total += base
            for k in range(n_said):
                if said[k] == gold[t]:
                    total += score[said[k]]
            for j in range(p):
                if codes[t, j] >= 0 and codes[t, j] == gold[t]:
                    right[j, gold[t]] += 1.0
            continue
        top = 0.0  # score of the labels that nobody says
        for k in range(n_said):
            top = max(top, score[said[k]])
        mass = (n_labels - n_said) * np.exp(-top)
        for k in range(n_said):
            score[said[k]] = np.exp(score[said[k]] - top)
            mass += score[said[k]]
        total += base + top + np.log(mass)
        for j in range(p):
            label = codes[t, j]
            if label >= 0:
                right[j, label] += score[label] / mass
    return total


@kernel
def said_posteriors(codes: Any, gain: Any, posterior: Any, rest: Any) -> None:
    """Posterior of what each expert says, (N, p), and of each label that nobody says, (N,)."""
    p, n_labels = gain.shape
    score = np.zeros(n_labels)
    said = np.empty(p, np.int64)
    for t in range(codes.shape[0]):
        n_said = 0
        for j in range(p):
            label = codes[t, j]
            if label >= 0:
                new = True
                for k in range(n_said):
                    if said[k] == label:
                        new = False
                        break
                if new:
                    said[n_said] = label
                    score[label] = 0.0
                    n_said += 1
                score[label] += gain[j, label]
        top = 0.0
        for k in range(n_said):
            top = max(top, score[said[k]])
        mass = (n_labels - n_said) * np.exp(-top)
        for k in range(n_said):
            mass += np.exp(score[said[k]] - top)
        rest[t] = np.exp(-top) / mass
        for j in range(p):
            label = codes[t, j]
            posterior[t, j] = np.exp(score[label] - top) / mass if label >= 0 else -1.0


@kernel
def likelihoods(codes: Any, table: Any, scores: Any) -> None:
    """Add to ``scores`` (N, L) the log-likelihood of every label; ``table`` (p, L, L) is logs."""
    n_labels = scores.shape[1]
    for t in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            label = codes[t, j]
            if label >= 0:
                for y in range(n_labels):
                    scores[t, y] += table[j, label, y]


@kernel
def add_confusions(codes: Any, posterior: Any, counts: Any) -> None:
    """Add to ``counts`` (p, L, L) how often each expert says l where the truth is y."""
    n_labels = posterior.shape[1]
    for t in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            label = codes[t, j]
            if label >= 0:
                for y in range(n_labels):
                    counts[j, label, y] += posterior[t, y]
