"""Structures beyond chains, measured: trees, grids, methods of inference, and max-margin learning.

Each experiment is a module: what it computes for each protocol, and what it says about it.
"""

from studies.experiments import study_of
from studies.structures.grids import GRIDS
from studies.structures.inference import INFERENCE
from studies.structures.letters import LETTERS
from studies.structures.tree_sizes import TREE_SIZES
from studies.structures.trees import TREES

__all__ = ["EXPERIMENTS", "STUDY"]

EXPERIMENTS = (TREES, TREE_SIZES, GRIDS, INFERENCE, LETTERS)
STUDY = study_of("Trees, grids and max-margin learning", EXPERIMENTS)
