"""Structures and their inference: linear chains, trees and forests, general graphs, assignments.

Each takes its potentials and gives the best labellings, marginals, samples and entropies, with
label sets and added costs. Chains, forests and graphs share one function for each question.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from trellis.estimator import old_arguments, warn_of_old
from trellis.structures.assignment import (
    Assignment,
    AssignmentSpace,
    best_assignment,
    best_incompatible_assignment,
    kbest_assignments,
    second_best_assignment,
)
from trellis.structures.chain_potentials import ChainPotentials
from trellis.structures.elimination import elimination_cost
from trellis.structures.factors import Factored, with_factors
from trellis.structures.forest import Forest, is_forest
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.labelling import best, kbest, labelling_score
from trellis.structures.mean_assignment import MeanAssignment, mean_assignment
from trellis.structures.probability import (
    entropy,
    event_probability,
    log_event_probability,
    marginals,
    most_probable,
    sample,
    span_probability,
)
from trellis.structures.results import Best, Marginals
from trellis.structures.step_changes import StepChanges
from trellis.structures.uai import read_uai, write_mpe, write_uai

__all__ = [
    "Assignment",
    "AssignmentSpace",
    "Best",
    "ChainPotentials",
    "Factored",
    "Forest",
    "GraphPotentials",
    "Marginals",
    "MeanAssignment",
    "StepChanges",
    "best",
    "best_assignment",
    "best_incompatible_assignment",
    "elimination_cost",
    "entropy",
    "event_probability",
    "is_forest",
    "kbest",
    "kbest_assignments",
    "labelling_score",
    "log_event_probability",
    "marginals",
    "mean_assignment",
    "most_probable",
    "read_uai",
    "sample",
    "second_best_assignment",
    "span_probability",
    "with_factors",
    "write_mpe",
    "write_uai",
]


def _pairs(p: ChainPotentials | GraphPotentials) -> Any:
    both = marginals(p, pairs=True)
    return both.log_z, both.pair


# Names of the last release: what they are called now, and what does what they did.
_OLD = {
    "GraphBest": ("Best", Best),
    "GraphMarginals": ("Marginals", Marginals),
    "graph_best": ("best", best),
    "graph_entropy": ("entropy", old_arguments(marginals="known")(entropy)),
    "graph_kbest": ("kbest", kbest),
    "graph_marginals": ("marginals(p, pairs=True)", partial(marginals, pairs=True)),
    "graph_sample": ("sample", sample),
    "pair_marginals": ("marginals(p, pairs=True)", _pairs),
    "tree_best": ("best", best),
    "tree_entropy": ("entropy", entropy),
    "tree_event_probability": ("event_probability", event_probability),
    "tree_kbest": ("kbest", kbest),
    "tree_marginals": ("marginals", marginals),
    "tree_pair_marginals": ("marginals(p, pairs=True)", _pairs),
    "tree_sample": ("sample", sample),
    "tree_score": ("labelling_score", labelling_score),
}


def __getattr__(name: str) -> Any:
    if name not in _OLD:
        raise AttributeError(f"module 'trellis.structures' has no attribute {name!r}")
    new, value = _OLD[name]
    warn_of_old(f"trellis.structures.{name} is now called {new}")
    return value
