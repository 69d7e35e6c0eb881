"""The averaged structured perceptron (Collins 2002) on trees and, by spanning trees, on graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Label
from trellis.models.graph_model import GraphModel, TreeModel
from trellis.problems import ChainData, GraphData, GraphPerceptronLoss, Weights
from trellis.solvers import AveragedPerceptron

__all__ = ["GraphPerceptron", "TreePerceptron"]


class _PerceptronTraining(GraphModel):
    """What both have in common."""

    averaged: bool

    def _learner(
        self, data: ChainData, start: Weights, rng: np.random.Generator
    ) -> AveragedPerceptron:
        assert isinstance(data, GraphData)
        return AveragedPerceptron(
            GraphPerceptronLoss(data), start, batch_size=self.batch_size, averaged=self.averaged
        )

    def _pass_limit(self) -> int:
        return 10 if isinstance(self.max_passes, str) else self.max_passes

    def partial_fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        classes: Sequence[str] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> Self:
        """Learn from one batch of a stream: one pass over it, averaged with all batches before."""
        data, averaged, rng = self._batch(X, y, edges, edge_types, classes, sample_weight)
        learner = self._learner(data, averaged, rng)
        if self._stream is not None:
            learner.resume(self._stream)
        self._stream = learner
        self._run(learner, rng, None, max_passes=1)
        return self


class TreePerceptron(_PerceptronTraining, TreeModel):
    """Averaged structured perceptron for trees: no penalty, no rate, a few fast passes.

    Parameters
    ----------
    features
        As for :class:`trellis.TreeCRF`.
    piece_size : float or None
        Mean number of nodes n′ of the pieces of training; None: whole trees.
    directed : bool
        Whether the two ends of an edge play different parts.
    rich_edges, edge_pairs, edge_negatives, edge_min_share
        As for :class:`trellis.TreeCRF`.
    averaged : bool
        Predict with the average of the weights over all visits, else with the last weights.
    batch_size : int
        Pieces labelled with the same weights; part of the algorithm.
    max_passes, tol, visit, patience, warm_start, verbose, random_state
        As for :class:`trellis.ChainPerceptron`.

    Examples
    --------
    >>> from trellis import TreePerceptron
    >>> X, y = [["cats", "sleep"], ["bark", "dogs"]] * 5, [["N", "V"], ["V", "N"]] * 5
    >>> model = TreePerceptron("word", random_state=0).fit(X, y, edges=[[(0, 1)], [(1, 0)]] * 5)
    >>> model.predict([["dogs", "sleep"]], edges=[[(0, 1)]])
    [['N', 'V']]
    """

    def __init__(
        self,
        features: Any = "auto",
        *,
        piece_size: float | None = None,
        directed: bool = True,
        rich_edges: bool | str = False,
        edge_pairs: str = "auto",
        edge_negatives: int = 10,
        edge_min_share: float = 0.02,
        averaged: bool = True,
        batch_size: int = 1,
        max_passes: int | str = "auto",
        tol: float = 0.0,
        visit: str = "pooled",
        patience: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.piece_size = piece_size
        self.directed = directed
        self.rich_edges = rich_edges
        self.edge_pairs = edge_pairs
        self.edge_negatives = edge_negatives
        self.edge_min_share = edge_min_share
        self.averaged = averaged
        self.batch_size = batch_size
        self.max_passes = max_passes
        self.tol = tol
        self.visit = visit
        self.patience = patience
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state


class GraphPerceptron(_PerceptronTraining):
    """Averaged structured perceptron for graphs, trained on random spanning trees of pieces.

    Parameters
    ----------
    features
        As for :class:`trellis.GraphCRF`.
    piece_size : float or None
        Mean number of nodes n′ of the pieces of training; None: whole components. Of each piece a
        random spanning tree is learned from, so that the best labelling is found exactly.
    directed : bool
        Whether the two ends of an edge play different parts.
    inference
        As for :class:`trellis.GraphCRF`.
    rich_edges, edge_pairs, edge_negatives, edge_min_share
        As for :class:`trellis.GraphCRF`.
    averaged : bool
        Predict with the average of the weights over all visits, else with the last weights.
    batch_size : int
        Pieces labelled with the same weights; part of the algorithm.
    max_passes, tol, visit, patience, warm_start, verbose, random_state
        As for :class:`trellis.ChainPerceptron`.

    Examples
    --------
    >>> from trellis import GraphPerceptron
    >>> square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> X = [[["dark"], ["dark"], ["grey"], ["dark"]], [["light"], ["grey"], ["light"], ["light"]]]
    >>> model = GraphPerceptron(random_state=0).fit(X, [["A"] * 4, ["B"] * 4], edges=[square] * 2)
    >>> model.predict([[["dark"]] * 4], edges=[square])
    [['A', 'A', 'A', 'A']]
    """

    def __init__(
        self,
        features: Any = "auto",
        *,
        piece_size: float | None = None,
        directed: bool = False,
        inference: str = "auto",
        rich_edges: bool | str = False,
        edge_pairs: str = "auto",
        edge_negatives: int = 10,
        edge_min_share: float = 0.02,
        averaged: bool = True,
        batch_size: int = 1,
        max_passes: int | str = "auto",
        tol: float = 0.0,
        visit: str = "pooled",
        patience: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.piece_size = piece_size
        self.directed = directed
        self.inference = inference
        self.rich_edges = rich_edges
        self.edge_pairs = edge_pairs
        self.edge_negatives = edge_negatives
        self.edge_min_share = edge_min_share
        self.averaged = averaged
        self.batch_size = batch_size
        self.max_passes = max_passes
        self.tol = tol
        self.visit = visit
        self.patience = patience
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state
