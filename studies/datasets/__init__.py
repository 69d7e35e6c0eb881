"""Loaders of the real data that studies and benchmarks use; the files are not in the repository."""

from studies.datasets.celltracking import drop_detections, load_cells
from studies.datasets.experts import ExpertData, load_experts, load_pronunciations
from studies.datasets.folder import data_folder
from studies.datasets.ocr import load_ocr
from studies.datasets.real import DataSet, load
from studies.datasets.regression import (
    load_kingcounty,
    load_medicare,
    load_sacramento,
    load_spatial,
)
from studies.datasets.trees import load_trees

__all__ = [
    "DataSet",
    "ExpertData",
    "data_folder",
    "drop_detections",
    "load",
    "load_cells",
    "load_experts",
    "load_kingcounty",
    "load_medicare",
    "load_ocr",
    "load_pronunciations",
    "load_sacramento",
    "load_spatial",
    "load_trees",
]
