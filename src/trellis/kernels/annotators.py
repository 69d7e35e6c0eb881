"""Sums of EM over what annotators say (:mod:`trellis.experts.annotators`).

At position t expert j says ``codes[t, j]``, or nothing (-1). With two chances a label said,

    P(j says l | the truth is y) = hit[j, l] if l = y, else miss[j, l],

the labels that nobody says at t keep their proportions, so a position costs as many steps as there
are experts, however large L is. With whole confusion matrices, ``table[j, l, y]``, it costs L times
as many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel

__all__ = ["add_confusions", "agreements", "likelihoods", "said_posteriors"]


@kernel
def agreements(
    codes: Any, gold: Any, prior: Any, gain: Any, miss: Any, right: Any, labels: Any
) -> float:  # fmt: skip
    """Add to ``right`` and ``labels`` how often experts are right, and how often labels are.

    Parameters
    ----------
    codes : int32 (N, p)
    gold : int32 (N,)
        The truth where it is known, else -1.
    prior : float64 (L,)
        Probabilities of the labels beforehand.
    gain, miss : float64 (p, L)
        log(hit / miss) and log(miss) of each expert and label.
    right : float64 (p, L)
        Gets the sums over positions of the posterior probability of what the expert says.
    labels : float64 (L,)
        Gets those of the posterior probability of each label.

    Returns
    -------
    float
        Log-likelihood of all that is said.
    """
    p, n_labels = gain.shape
    score = np.zeros(n_labels)
    said = np.empty(p, np.int64)
    total = 0.0
    unsaid = 0.0  # sum over positions of the factor that makes priors posteriors
    found = np.zeros(n_labels)
    for t in range(codes.shape[0]):
        for j in range(p):
            if codes[t, j] >= 0:
                total += miss[j, codes[t, j]]
        if gold[t] >= 0:
            total += np.log(prior[gold[t]])
            found[gold[t]] += 1.0
            for j in range(p):
                if codes[t, j] == gold[t]:
                    total += gain[j, gold[t]]
                    right[j, gold[t]] += 1.0
            continue
        n_said, top, mass, rest = _posterior(codes, t, prior, prior, gain, score, said)
        total += top + np.log(mass)
        unsaid += rest
        for k in range(n_said):
            label = said[k]
            found[label] += score[label] - rest * prior[label]
        for j in range(p):
            label = codes[t, j]
            if label >= 0:
                right[j, label] += score[label]
    for label in range(n_labels):
        labels[label] += max(0.0, found[label] + unsaid * prior[label])
    return total


@kernel
def said_posteriors(
    codes: Any, prior: Any, share: Any, gain: Any, posterior: Any, rest: Any
) -> None:  # fmt: skip
    """Posterior of what each expert says, (N, p), -1 where it says nothing.

    The posterior of a label that nobody says is ``share`` times ``rest`` (N,); ``share`` is the
    prior, but 0 for labels that the model does not know.
    """
    p, n_labels = gain.shape
    score = np.zeros(n_labels)
    said = np.empty(p, np.int64)
    for t in range(codes.shape[0]):
        rest[t] = _posterior(codes, t, prior, share, gain, score, said)[3]
        for j in range(p):
            label = codes[t, j]
            posterior[t, j] = score[label] if label >= 0 else -1.0


@subkernel
def _posterior(
    codes: Any, t: int, prior: Any, share: Any, gain: Any, score: Any, said: Any
) -> tuple[int, float, float, float]:  # fmt: skip
    """Leave the labels said in ``said`` and their posteriors in ``score``."""
    n_said = 0
    left = 1.0
    for j in range(codes.shape[1]):
        label = codes[t, j]
        if label >= 0:
            new = True
            for k in range(n_said):
                if said[k] == label:
                    new = False
                    break
            if new:
                said[n_said] = label
                n_said += 1
                score[label] = np.log(prior[label])
                left -= share[label]
            score[label] += gain[j, label]
    top = -np.inf
    for k in range(n_said):
        top = max(top, score[said[k]])
    if left > 1e-12:  # what is smaller is a rounding error
        top = max(top, np.log(left))
    mass = left * np.exp(-top) if left > 1e-12 else 0.0
    for k in range(n_said):
        score[said[k]] = np.exp(score[said[k]] - top)
        mass += score[said[k]]
    for k in range(n_said):
        score[said[k]] /= mass
    return n_said, top, mass, np.exp(-top) / mass if left > 1e-12 else 0.0


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
