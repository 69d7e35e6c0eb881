"""The averaged structured perceptron (Collins 2002) on chains, with structure regularisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Label
from trellis.models.chain_model import ChainModel
from trellis.objectives import ChainData, ChainWeights, PerceptronLoss
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
    max_passes : int
        Number of passes over the data.
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
    weights_ : ChainWeights
        Averaged node weights (F, L) and transitions (L, L).

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
        max_passes: int = 10,
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
        self.max_passes = max_passes
        self.tol = tol
        self.visit = visit
        self.scheme = scheme
        self.patience = patience
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def _learner(
        self, data: ChainData, start: ChainWeights, rng: np.random.Generator
    ) -> AveragedPerceptron:
        return AveragedPerceptron(PerceptronLoss(data), start)

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
        data, averaged, rng = self._next_batch(X, y, classes, sample_weight)
        learner = AveragedPerceptron(PerceptronLoss(data), averaged)
        if self._stream is not None:
            learner.resume(self._stream)
        self._stream = learner
        self._run(learner, rng, None, max_passes=1)
        return self
