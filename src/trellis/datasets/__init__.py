"""Data sets that need no files: Python's own source, and what is generated or comes with libraries.

Loaders of real data are in the package ``studies`` of the repository.
"""

from trellis.datasets.ads import artificial_experts
from trellis.datasets.cells import LABS, Lab, simulate_cells
from trellis.datasets.citations import Citations, citations
from trellis.datasets.grids import TEXTURES, grid_edges, noisy_digits, textures
from trellis.datasets.regression import synthetic_graph_regression
from trellis.datasets.rendered_cells import RenderedCells, render_cells, simulate_volume
from trellis.datasets.roles import ROLES, Roles, source_roles, stdlib_roles
from trellis.datasets.sentences import Sentences, stdlib_sentences
from trellis.datasets.snakes import snakes
from trellis.datasets.spatial import SpatialField, spatial_field

__all__ = [
    "LABS",
    "ROLES",
    "TEXTURES",
    "Citations",
    "Lab",
    "RenderedCells",
    "Roles",
    "Sentences",
    "SpatialField",
    "artificial_experts",
    "citations",
    "grid_edges",
    "noisy_digits",
    "render_cells",
    "simulate_cells",
    "simulate_volume",
    "snakes",
    "source_roles",
    "spatial_field",
    "stdlib_roles",
    "stdlib_sentences",
    "synthetic_graph_regression",
    "textures",
]
