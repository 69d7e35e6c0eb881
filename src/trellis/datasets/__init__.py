"""Data sets: the embedded default made from Python's own source, and loaders of real data."""

from trellis.datasets.real import DataSet, data_folder, load
from trellis.datasets.roles import ROLES, Roles, source_roles, stdlib_roles

__all__ = [
    "ROLES",
    "DataSet",
    "Roles",
    "data_folder",
    "load",
    "source_roles",
    "stdlib_roles",
]
