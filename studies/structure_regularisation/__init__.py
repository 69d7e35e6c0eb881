"""The experiments of Sun (2014) on structure regularisation.

What is computed is in :mod:`~studies.structure_regularisation.protocol` (the grids and sizes) and
:mod:`~studies.structure_regularisation.study` (what is chosen, and from what).
"""

from studies.structure_regularisation.run import STUDY

__all__ = ["STUDY"]
