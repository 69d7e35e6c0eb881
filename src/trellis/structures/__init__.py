"""Structures and their exact inference: linear chains.

Each takes its potentials and gives the best labellings, marginals, samples and entropies, with
label sets and added costs.
"""

from __future__ import annotations

from trellis.structures.chain import (
    best,
    entropy,
    event_probability,
    kbest,
    labelling_score,
    marginals,
    pair_marginals,
    sample,
    span_probability,
)
from trellis.structures.chain_potentials import ChainPotentials

__all__ = [
    "ChainPotentials",
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
