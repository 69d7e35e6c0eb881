"""The averaged structured perceptron (Collins 2002) on chains, trees and graphs, on pieces."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trellis.domains import flag
from trellis.estimator import changed, fixed, parameter
from trellis.models.linear_model import LinearModel
from trellis.models.linear_parameters import ChainModel, GraphModel, TreeModel
from trellis.problems import LabelProblem, PerceptronLoss, Weights
from trellis.solvers import AveragedPerceptron
from trellis.solvers.passes import Learner

__all__ = ["ChainPerceptron", "GraphPerceptron", "Perceptron", "TreePerceptron"]


class Perceptron(LinearModel):
    """What all perceptrons have in common; not used by itself."""

    kind: ClassVar[str] = "perceptron"

    averaged: bool = parameter(
        flag,
        "Predict with the average of the weights over all visits, else with the last weights.",
        default=True,
    )
    tol = changed(
        default=0.0,
        help="Stop earlier, when the number of errors met falls relatively by less than this.",
    )

    max_passes = changed(help='Most passes over the data ("auto": 10).')

    def _learner(self, problem: LabelProblem, start: Weights, rng: np.random.Generator) -> Learner:
        return self._passes(self._visitor(problem, start), rng)

    def _visitor(self, problem: LabelProblem, start: Weights) -> AveragedPerceptron:
        return AveragedPerceptron(
            PerceptronLoss(problem, self._threads), start, batch_size=self.batch_size,
            averaged=self.averaged,
        )  # fmt: skip

    def _stream_learner(
        self, problem: LabelProblem, weights: Weights, rng: np.random.Generator
    ) -> Learner:
        visitor = self._visitor(problem, weights)
        if self._stream is not None:
            visitor.resume(self._stream)
        self._stream = visitor
        return self._passes(visitor, rng)


class ChainPerceptron(Perceptron, ChainModel):
    """Averaged structured perceptron for sequences: no penalty, no rate, a few fast passes.

    Attributes
    ----------
    classes_ : tuple
        The labels, sorted.
    history_ : list of PassRecord
        What each pass brought; the objective is the number of positions labelled wrong.
    weights_ : Weights
        Averaged node weights (F, L), transitions (L, L), and rich edge weights if there are any.

    Examples
    --------
    >>> from trellis import ChainPerceptron
    >>> X = [["the", "cat", "sat"], ["the", "dog", "ran"]] * 5
    >>> y = [["D", "N", "V"], ["D", "N", "V"]] * 5
    >>> ChainPerceptron(random_state=0).fit(X, y).predict([["the", "cat", "ran"]])
    [['D', 'N', 'V']]
    """


class TreePerceptron(Perceptron, TreeModel):
    """Averaged structured perceptron for trees: no penalty, no rate, a few fast passes.

    Examples
    --------
    >>> from trellis import TreePerceptron
    >>> X, y = [["cats", "sleep"], ["bark", "dogs"]] * 5, [["N", "V"], ["V", "N"]] * 5
    >>> model = TreePerceptron("word", random_state=0).fit(X, y, edges=[[(0, 1)], [(1, 0)]] * 5)
    >>> model.predict([["dogs", "sleep"]], edges=[[(0, 1)]])
    [['N', 'V']]
    """


class GraphPerceptron(Perceptron, GraphModel):
    """Averaged structured perceptron for graphs, trained on random spanning trees of pieces.

    Of each piece a spanning tree is learned from, so that the best labelling is found exactly.

    Examples
    --------
    >>> from trellis import GraphPerceptron
    >>> square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> X = [[["dark"], ["dark"], ["grey"], ["dark"]], [["light"], ["grey"], ["light"], ["light"]]]
    >>> model = GraphPerceptron(random_state=0).fit(X, [["A"] * 4, ["B"] * 4], edges=[square] * 2)
    >>> model.predict([[["dark"]] * 4], edges=[square])
    [['A', 'A', 'A', 'A']]
    """

    pieces: str = fixed("tree")
