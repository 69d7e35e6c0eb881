"""Linear-chain conditional random fields (Lafferty, McCallum & Pereira 2001) with structure
regularisation (Sun 2014): p(y | x) ∝ e^{s(x, y)}, trained on randomly cut mini-samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, as_corpus
from trellis.decompose import partitioner
from trellis.errors import DataError
from trellis.models.chain_model import ChainModel
from trellis.objectives import ChainData, ChainWeights, LogLikelihood
from trellis.solvers import StochasticGradient, calibrate
from trellis.structures import entropy, marginals, sample, span_probability

__all__ = ["ChainCRF"]


class ChainCRF(ChainModel):
    """Linear-chain CRF.

    Minimises  Σ log-losses + l2 · ‖w‖²  over mini-samples by stochastic gradient descent.

    Parameters
    ----------
    features : str, list of str, Templates or "auto"
        Templates over the corpus's columns: the name of a set (``"chunking"``, ``"pos"``,
        ``"ner"``, ``"wordseg"``), template text (see :mod:`trellis.features.templates`) or
        :class:`trellis.Templates`. ``"auto"``: the samples' own features if they have any, else
        windows, neighbour pairs, affixes and shapes of all columns.
    piece_size : float or None
        Mean size n′ of the mini-samples that sequences are cut into for training, anew in each
        pass; None trains on whole sequences. Prediction is always on whole sequences.
    l2 : float
        Strength of the L2 penalty (CRFsuite's ``c2``).
    learning_rate : float or "auto"
        Initial rate; "auto" finds it by short trials on up to 1,000 sequences.
    decay : float
        Factor by which the rate falls in one pass; 1 is a fixed rate.
    max_passes : int
        Number of passes over the data.
    tol : float
        Stop earlier, when the mean relative improvement of the objective over the last passes
        falls below this (the paper's rule is ``tol=1e-4`` with many passes).
    visit : "permutation" or "replacement"
        Visit each piece once a pass in random order, or draw pieces uniformly with replacement.
    l2_once : bool
        Apply the penalty once a pass (as the paper's program does) instead of at every step.
    scheme : "BIO", "BILOU", "BMES" or None
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
        The labels, sorted; the order of the columns of marginals.
    history_ : list of PassRecord
        What each pass brought.
    learning_rate_ : float
        The initial rate used.
    weights_ : ChainWeights
        Node weights (F, L) and transitions (L, L).

    Examples
    --------
    >>> from trellis import ChainCRF
    >>> X = [["the", "cat", "sat"], ["the", "dog", "ran"]] * 5
    >>> y = [["D", "N", "V"], ["D", "N", "V"]] * 5
    >>> crf = ChainCRF(features="word; suffix(word, 1)", random_state=0).fit(X, y)
    >>> crf.predict([["the", "cat", "ran"]])
    [['D', 'N', 'V']]
    >>> crf.predict_marginals([["the", "cat", "ran"]])[0].shape
    (3, 3)
    """

    def __init__(
        self,
        features: Any = "auto",
        *,
        piece_size: float | None = None,
        l2: float = 1.0,
        learning_rate: float | str = "auto",
        decay: float = 0.8,
        max_passes: int = 12,
        tol: float = 1e-4,
        visit: str = "permutation",
        l2_once: bool = False,
        scheme: str | None = None,
        patience: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.piece_size = piece_size
        self.l2 = l2
        self.learning_rate = learning_rate
        self.decay = decay
        self.max_passes = max_passes
        self.tol = tol
        self.visit = visit
        self.l2_once = l2_once
        self.scheme = scheme
        self.patience = patience
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (math.isfinite(self.l2) and self.l2 >= 0):
            raise DataError(f"l2 must be a number of at least 0, got {self.l2!r}")
        if not 0 < self.decay <= 1:
            raise DataError(f"decay must lie in (0, 1], got {self.decay!r}")
        rate = self.learning_rate
        if rate != "auto" and not (isinstance(rate, int | float) and 0 < rate < math.inf):
            raise DataError(f"learning_rate must be 'auto' or a positive number, got {rate!r}")

    def _rate(self, data: ChainData, rng: np.random.Generator) -> float:
        if isinstance(self.learning_rate, str):
            return calibrate(data, partitioner(self.piece_size), rng, l2=self.l2)
        return float(self.learning_rate)

    def _learner(
        self, data: ChainData, start: ChainWeights, rng: np.random.Generator
    ) -> StochasticGradient:
        self.learning_rate_ = self._rate(data, rng)
        return StochasticGradient(
            LogLikelihood(data),
            start,
            learning_rate=self.learning_rate_,
            decay=self.decay,
            l2=self.l2,
            l2_once=self.l2_once,
        )

    def partial_fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        classes: Sequence[str] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> Self:
        """Learn from one batch of a stream: one pass over it at the initial rate.

        Features not seen before are added. The labels are fixed by the first call: pass all of
        them as ``classes`` unless the first batch holds them all. The penalty's share of a batch
        is its share of the sequences seen so far.
        """
        corpus = self._check_partial(X, y, classes)
        data, weights = self._learn_features(corpus, sample_weight)
        calls = getattr(self, "n_batches_", 0)
        rng = np.random.default_rng([calls, self.random_state or 0])
        if calls == 0:
            self.learning_rate_ = self._rate(data, rng)
        self.n_seen_ = getattr(self, "n_seen_", 0) + len(corpus)
        learner = StochasticGradient(
            LogLikelihood(data),
            weights,
            learning_rate=self.learning_rate_,
            decay=1.0,
            l2=self.l2 * len(corpus) / self.n_seen_,
        )
        self._run(learner, rng, None, max_passes=1)
        self.n_batches_ = calls + 1
        return self

    def predict_marginals(
        self, X: Any, *, constraints: Sequence[Sequence[Label]] | None = None
    ) -> list[NDArray[np.float64]]:
        """Probability of every label at every position.

        Returns
        -------
        list of arrays (n, L)
            Columns in the order of ``classes_``; rows sum to one.
        """
        self._check_fitted()
        corpus = as_corpus(X)
        result: list[NDArray[np.float64]] = []
        for _, _, p in self._potentials(corpus, constraints):
            _, node = marginals(p)
            result += np.split(node, p.offsets[1:-1])
        return result

    def predict_spans(
        self, X: Any, *, scheme: str | None = None
    ) -> list[list[tuple[str, int, int, float]]]:
        """Predicted spans (type, start, end, probability of exactly this span) of each sequence."""
        self._check_fitted()
        corpus = as_corpus(X)
        rules = self._span_scheme(scheme)
        predicted = self.predict(corpus)
        code = {name: i for i, name in enumerate(self.classes_)}
        result: list[list[tuple[str, int, int, float]]] = []
        done = 0
        for _, _, p in self._potentials(corpus):
            for s in range(len(p.offsets) - 1):
                labels = predicted[done + s]
                spans = []
                for kind, start, end in rules.spans(labels):
                    ids = [code[label] for label in labels[start:end]]
                    longer = [
                        i
                        for name, i in code.items()
                        if (kind, start, end + 1) in rules.spans([*labels[:end], name])
                    ]
                    probability = span_probability(p, s, start, ids, not_followed_by=longer)
                    spans.append((kind, start, end, probability))
                result.append(spans)
            done += len(p.offsets) - 1
        return result

    def sample(
        self, X: Any, n_samples: int = 1, *, random_state: int | None = None
    ) -> list[list[list[str]]]:
        """Labellings drawn from p(y | x): for each sequence, ``n_samples`` of them."""
        self._check_fitted()
        corpus = as_corpus(X)
        rng = np.random.default_rng(random_state)
        names = np.array(self.classes_, object)
        result: list[list[list[str]]] = []
        for _, _, p in self._potentials(corpus):
            drawn = sample(p, n_samples, rng)
            for a, b in zip(p.offsets[:-1], p.offsets[1:], strict=True):
                result.append(names[drawn[:, a:b]].tolist())
        return result

    def entropy(self, X: Any) -> NDArray[np.float64]:
        """Entropy of p(y | x) of each sequence, in nats: how unsure the model is."""
        self._check_fitted()
        corpus = as_corpus(X)
        parts = [entropy(p) for _, _, p in self._potentials(corpus)]
        return np.concatenate([np.zeros(0), *parts])

    def _marginals_or_none(self, corpus: Corpus) -> NDArray[np.float64] | None:
        found = self.predict_marginals(corpus)
        return found[0] if found else None
