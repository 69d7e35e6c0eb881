"""Brute force over all labellings of a tiny chain: the oracle of the chain tests.

Nothing here is clever: every labelling is listed, scored and weighed on its own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np


@dataclass
class Enumeration:
    """The feasible labellings of one sample, best first; ties by the last label, then back."""

    labellings: list[tuple[int, ...]]
    scores: list[float]

    @property
    def log_z(self) -> float:
        if not self.scores:
            return -math.inf
        top = max(self.scores)
        return top + math.log(math.fsum(math.exp(s - top) for s in self.scores))

    @property
    def probabilities(self) -> list[float]:
        log_z = self.log_z
        return [math.exp(s - log_z) for s in self.scores]

    @property
    def entropy(self) -> float:
        log_z = self.log_z
        return math.fsum(math.exp(s - log_z) * (log_z - s) for s in self.scores)

    def probability(self, event) -> float:
        """Probability of the labellings for which ``event(labelling)`` holds."""
        pairs = zip(self.labellings, self.probabilities, strict=True)
        return math.fsum(p for y, p in pairs if event(y))


def score(node, trans, y) -> float:
    """Score of a labelling; ``trans`` is (L, L), or (n, L, L) with a matrix into each position."""
    total = 0.0
    for t, label in enumerate(y):
        total += float(node[t, label])
        if t > 0:
            into = trans if trans.ndim == 2 else trans[t]
            total += float(into[y[t - 1], label])
    return total


def enumerate_sample(node, trans) -> Enumeration:
    n, n_labels = node.shape
    scored = [
        (s, y)
        for y in itertools.product(range(n_labels), repeat=n)
        if (s := score(node, trans, y)) > -math.inf
    ]
    scored.sort(key=lambda sy: (-sy[0], sy[1][::-1]))
    return Enumeration([y for _, y in scored], [s for s, _ in scored])


def enumerate_chain(node, trans, offsets) -> list[Enumeration]:
    """One enumeration for each of the stacked samples."""
    node, trans = np.asarray(node), np.asarray(trans)
    return [
        enumerate_sample(node[first:stop], trans if trans.ndim == 2 else trans[first:stop])
        for first, stop in itertools.pairwise(offsets)
    ]
