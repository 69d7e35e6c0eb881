"""Data sets: the default made from Python's own source, artificial experts, and real data."""

from trellis.datasets.ads import artificial_experts
from trellis.datasets.cells import LABS, Lab, simulate_cells
from trellis.datasets.celltracking import load_cells
from trellis.datasets.experts import ExpertData, load_experts, load_pronunciations
from trellis.datasets.grids import TEXTURES, grid_edges, noisy_digits, textures
from trellis.datasets.ocr import load_ocr
from trellis.datasets.real import DataSet, data_folder, load
from trellis.datasets.regression import (
    RegressionData,
    load_medicare,
    load_sacramento,
    synthetic_graph_regression,
)
from trellis.datasets.roles import ROLES, Roles, source_roles, stdlib_roles
from trellis.datasets.trees import load_trees

__all__ = [
    "LABS",
    "ROLES",
    "TEXTURES",
    "DataSet",
    "ExpertData",
    "Lab",
    "RegressionData",
    "Roles",
    "artificial_experts",
    "data_folder",
    "grid_edges",
    "load",
    "load_cells",
    "load_experts",
    "load_medicare",
    "load_ocr",
    "load_pronunciations",
    "load_sacramento",
    "load_trees",
    "noisy_digits",
    "simulate_cells",
    "source_roles",
    "stdlib_roles",
    "synthetic_graph_regression",
    "textures",
]
