"""Structures and their inference: linear chains, trees and forests, general graphs, assignments.

Each takes its potentials and gives the best labellings, marginals, samples and entropies, with
label sets and added costs.
"""

from __future__ import annotations

from trellis.structures.assignment import (
    Assignment,
    AssignmentSpace,
    best_assignment,
    best_incompatible_assignment,
    kbest_assignments,
    second_best_assignment,
)
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
from trellis.structures.forest import Forest, is_forest
from trellis.structures.graph_kbest import graph_kbest
from trellis.structures.graph_labelling import GraphBest, elimination_cost, graph_best
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.graph_probability import (
    GraphMarginals,
    graph_entropy,
    graph_marginals,
    graph_sample,
)
from trellis.structures.tree import (
    tree_best,
    tree_entropy,
    tree_event_probability,
    tree_kbest,
    tree_marginals,
    tree_pair_marginals,
    tree_sample,
    tree_score,
)

__all__ = [
    "Assignment",
    "AssignmentSpace",
    "ChainPotentials",
    "Forest",
    "GraphBest",
    "GraphMarginals",
    "GraphPotentials",
    "best",
    "best_assignment",
    "best_incompatible_assignment",
    "elimination_cost",
    "entropy",
    "event_probability",
    "graph_best",
    "graph_entropy",
    "graph_kbest",
    "graph_marginals",
    "graph_sample",
    "is_forest",
    "kbest",
    "kbest_assignments",
    "labelling_score",
    "marginals",
    "pair_marginals",
    "sample",
    "second_best_assignment",
    "span_probability",
    "tree_best",
    "tree_entropy",
    "tree_event_probability",
    "tree_kbest",
    "tree_marginals",
    "tree_pair_marginals",
    "tree_sample",
    "tree_score",
]
