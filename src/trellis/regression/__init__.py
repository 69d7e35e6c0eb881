"""Regression on graphs: Gaussian CRFs, GLACER, network lasso, and baselines."""

from trellis.regression.areas import areas_graph, edges_graph
from trellis.regression.baselines import baselines
from trellis.regression.bases import default_bases, least_squares_boosting
from trellis.regression.collaboration import Swap
from trellis.regression.comparison import Evaluation, evaluate, mean_interval
from trellis.regression.data import RegressionData
from trellis.regression.distance_correlation import (
    CentredDistances,
    distance_correlation,
    distance_covariance,
)
from trellis.regression.gcrf import GCRF
from trellis.regression.geometric_median import geometric_median
from trellis.regression.glacer import GLACER
from trellis.regression.graph_matrix import check_graph, laplacian, normalise
from trellis.regression.network_lasso import NetworkLasso
from trellis.regression.objective import Objective
from trellis.regression.similarity import KNN, Full, Radius, full_graph, knn_graph, radius_graph
from trellis.regression.table_regressor import TableRegressor
from trellis.regression.variogram import Variogram, variogram

__all__ = [
    "GCRF",
    "GLACER",
    "KNN",
    "CentredDistances",
    "Evaluation",
    "Full",
    "NetworkLasso",
    "Objective",
    "Radius",
    "RegressionData",
    "Swap",
    "TableRegressor",
    "Variogram",
    "areas_graph",
    "baselines",
    "check_graph",
    "default_bases",
    "distance_correlation",
    "distance_covariance",
    "edges_graph",
    "evaluate",
    "full_graph",
    "geometric_median",
    "knn_graph",
    "laplacian",
    "least_squares_boosting",
    "mean_interval",
    "normalise",
    "radius_graph",
    "variogram",
]
