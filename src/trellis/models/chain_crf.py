"""Linear-chain conditional random fields (Lafferty, McCallum & Pereira 2001) with structure
regularisation (Sun 2014): p(y | x) ∝ e^{s(x, y)}, trained on randomly cut mini-samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, as_corpus
from trellis.corpus.schemes import Scheme
from trellis.models.chain_model import ChainModel
from trellis.models.crf_training import CRFTraining
from trellis.structures import entropy, event_probability, marginals, sample

__all__ = ["ChainCRF"]


class ChainCRF(CRFTraining, ChainModel):
    """Linear-chain CRF.

    Minimises  Σ log-losses + l2 · ‖w‖² + l1 · ‖w‖₁ + group_lasso · Σ_g √|g| ‖w_g‖  over
    mini-samples.

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
    overlap : int
        Positions that a mini-sample goes on into the next one.
    rich_edges : False, "current", "both" or True
        Cross the features of every position with pairs of labels, too: those of the position where
        the pair ends ("current", True), or also those where it begins ("both"). False: only
        templates that say ``@ edge``.
    edge_pairs : "auto", "all" or "observed"
        Give every crossed feature all L² pairs, or those it was seen with and some random others;
        "auto": all up to 8 labels.
    edge_negatives : int
        Random pairs for each crossed feature that does not have all.
    edge_min_share : float
        Leave out pairs seen in less than this share of a feature's occurrences; 0 keeps all.
    l2 : float
        Strength of the L2 penalty (CRFsuite's ``c2``).
    l1 : float
        Strength of the L1 penalty, which makes weights exactly zero.
    group_lasso : float
        Strength of the group lasso, which drops whole templates.
    solver : "sgd", "adf", "lbfgs" or "auto"
        Stochastic gradient descent; the same with rates that adapt to the frequency of features;
        L-BFGS on the exact objective (pieces are then cut once); "auto": L-BFGS for whole
        sequences of little data, else SGD.
    states : "all" or "observed"
        With L-BFGS, "observed" leaves weights at zero whose feature and label were never seen
        together (CRFsuite's default).
    learning_rate : float or "auto"
        Initial rate; "auto" finds it by short trials on up to 1,000 sequences.
    decay : float
        Factor by which the rate falls in one pass; 1 is a fixed rate.
    batch_size : int
        Mini-samples whose gradients are taken at the same weights; part of the algorithm.
    n_jobs : int or None
        Threads (-1: one a core). They share the work of a batch, or of an L-BFGS gradient; the
        result is the same, bit by bit, for any number.
    lock_free : bool
        With SGD, let every thread take its own steps without waiting for the others: the result
        is not reproducible.
    max_passes : int or "auto"
        Number of passes over the data; "auto": 12, or 500 iterations of L-BFGS.
    tol : float
        Stop earlier, when the mean relative improvement of the objective over the last passes
        falls below this (the paper's rule is ``tol=1e-4`` with many passes); L-BFGS stops when an
        iteration improves it by less than a hundredth of this.
    visit : "pooled", "permutation" or "replacement"
        Visit each piece once a pass, in a random order that is kind to the processor's cache or
        in a uniformly random one, or draw pieces uniformly with replacement (see
        :func:`trellis.decompose.visits`).
    l2_once : bool
        Apply the penalty once a pass (as the paper's program does) instead of at every step.
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
        The labels, sorted; the order of the columns of marginals.
    history_ : list of PassRecord
        What each pass brought.
    learning_rate_ : float
        The initial rate used.
    weights_ : Weights
        Node weights (F, L), transitions (L, L), and rich edge weights if there are any.
    solver_ : str
        The solver used.
    stop_reason_ : str
        Why training ended.

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
        overlap: int = 0,
        rich_edges: bool | str = False,
        edge_pairs: str = "auto",
        edge_negatives: int = 10,
        edge_min_share: float = 0.02,
        l2: float = 1.0,
        l1: float = 0.0,
        group_lasso: float = 0.0,
        solver: str = "sgd",
        states: str = "all",
        learning_rate: float | str = "auto",
        decay: float = 0.75,
        batch_size: int = 1,
        n_jobs: int | None = None,
        lock_free: bool = False,
        max_passes: int | str = "auto",
        tol: float = 1e-4,
        visit: str = "pooled",
        l2_once: bool = False,
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
        self.l2 = l2
        self.l1 = l1
        self.group_lasso = group_lasso
        self.solver = solver
        self.states = states
        self.learning_rate = learning_rate
        self.decay = decay
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.lock_free = lock_free
        self.max_passes = max_passes
        self.tol = tol
        self.visit = visit
        self.l2_once = l2_once
        self.scheme = scheme
        self.patience = patience
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

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
        return self._learn_batch(*self._batch(X, y, classes, sample_weight))

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
        """Predicted spans of each sequence as (type, start, end, probability).

        The probability is that of the labels predicted for the span, with the span beginning and
        ending right there: a labelling in which it goes on does not count. If the model has a
        ``scheme``, a span can be written in one way only, and this is the span's probability.
        """
        self._check_fitted()
        corpus = as_corpus(X)
        rules = self._span_scheme(scheme)
        predicted = iter(self.predict(corpus))
        result: list[list[tuple[str, int, int, float]]] = []
        for _, _, p in self._potentials(corpus):
            for s in range(len(p.offsets) - 1):
                alone = p.alone(s)
                labels = next(predicted)
                result.append(
                    [
                        (kind, start, end, float(event_probability(alone, event)[0]))
                        for kind, start, end in rules.spans(labels)
                        for event in [self._span_event(rules, labels, kind, start, end)]
                    ]
                )
        return result

    def _span_event(
        self, rules: Scheme, labels: list[str], kind: str, start: int, end: int
    ) -> NDArray[np.bool_]:
        """Label sets (n, L) of the labellings that have a predicted span as it was predicted."""
        within, n = labels[start:end], end - start
        names = self.classes_
        allowed = np.ones((len(labels), len(names)), np.bool_)
        allowed[start:end] = [[name == label for name in names] for label in within]
        if start > 0:
            allowed[start - 1] = [(kind, 1, n + 1) in rules.spans([m, *within]) for m in names]
        if end < len(labels):
            allowed[end] = [(kind, 0, n) in rules.spans([*within, m]) for m in names]
        return allowed

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
