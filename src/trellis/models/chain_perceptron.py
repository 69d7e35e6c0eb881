"""The averaged structured perceptron (Collins 2002) on chains, with structure regularisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Label
from trellis.models.chain_model import ChainModel
from trellis.problems import ChainData, PerceptronLoss, Weights
from trellis.solvers import AveragedPerceptron

__all__ = ["ChainPerceptron"]


class ChainPerceptron(ChainModel):
    """Averaged structured perceptron for sequences: no penalty, no rate, a few fast passes.

    Parameters
    ----------
    features : str, list of str, Templates or "auto"
        As for :class:`trellis.ChainCRF`.
    piece_size : float or None
        Mean size n′ of the mini-samples of training; None trains on whole sequences.
    overlap : int
        Positions that a mini-sample goes on into the next one.
    rich_edges, edge_pairs, edge_negatives, edge_min_share
        As for :class:`trellis.ChainCRF`.
    averaged : bool
        Predict with the average of the weights over all visits, else with the last weights.
    batch_size : int
        Mini-samples labelled with the same weights; part of the algorithm.
    n_jobs : int or None
        Threads that share the work of a batch (-1: one a core); the result is the same, bit by
        bit, for any number.
    max_passes : int or "auto"
        Number of passes over the data; "auto": 10.
    tol : float
        Stop earlier, when the number of errors met falls relatively by less than this.
    visit : "pooled", "permutation" or "replacement"
        Visit each piece once a pass, in a random order that is kind to the processor's cache or
        in a uniformly random one, or draw pieces uniformly with replacement (see
        :func:`trellis.decompose.visits`).
    scheme : "BIO", "BILOU", "IOBES", "BMES" or None
        Predict only label sequences that are valid in this tag scheme.
    patience : int or None
        With ``dev`` data: stop after so many passes without a better score.
    warm_start : bool
        Go on from the present weights when ``fit`` is called again; new features are added.
    verbose : bool
        One line for each pass, if standard error is a terminal.
    random_state : int or None
        Seed; the same seed gives the same bits.

    Attributes
    ----------
    classes_ : tuple of str
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

    def __init__(
        self,
        features: Any = "auto",
        *,
        piece_size: float | None = None,
        overlap: int = 0,
        rich_edges: bool | str = False,
        edge_pairs: str = "auto",
        edge_negatives: int = 10,
        edge_min_share: float = 0.02,
        averaged: bool = True,
        batch_size: int = 1,
        n_jobs: int | None = None,
        max_passes: int | str = "auto",
        tol: float = 0.0,
        visit: str = "pooled",
        scheme: str | None = None,
        patience: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.piece_size = piece_size
        self.overlap = overlap
        self.rich_edges = rich_edges
        self.edge_pairs = edge_pairs
        self.edge_negatives = edge_negatives
        self.edge_min_share = edge_min_share
        self.averaged = averaged
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.max_passes = max_passes
        self.tol = tol
        self.visit = visit
        self.scheme = scheme
        self.patience = patience
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def _learner(
        self, data: ChainData, start: Weights, rng: np.random.Generator
    ) -> AveragedPerceptron:
        return AveragedPerceptron(
            PerceptronLoss(data, self._threads), start, batch_size=self.batch_size,
            averaged=self.averaged,
        )  # fmt: skip

    def _pass_limit(self) -> int:
        return 10 if isinstance(self.max_passes, str) else self.max_passes

    def partial_fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        classes: Sequence[str] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> Self:
        """Learn from one batch of a stream: one pass over it, averaged with all batches before.

        Features not seen before are added; the labels are fixed by the first call.
        """
        data, averaged, rng = self._batch(X, y, classes, sample_weight)
        learner = self._learner(data, averaged, rng)
        if self._stream is not None:
            learner.resume(self._stream)
        self._stream = learner
        self._run(learner, rng, None, max_passes=1)
        return self
