"""CRFs on trees with structure regularisation (Sun 2014): edges cut at random, anew each pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Label, as_graph_corpus
from trellis.errors import InfeasibleError
from trellis.models.graph_crf_training import GraphCRFTraining
from trellis.models.graph_model import TreeModel
from trellis.models.graph_predictor import _numbered
from trellis.structures import GraphPotentials, tree_entropy, tree_marginals, tree_sample

__all__ = ["TreeCRF"]


class TreeCRF(GraphCRFTraining, TreeModel):
    """CRF on trees (or forests): p(y | x) ∝ e^{s(x, y)}; training and inference are exact.

    Parameters
    ----------
    features : str, list of str, Templates or "auto"
        As for :class:`trellis.ChainCRF`; windows go along the order of the nodes.
    piece_size : float or None
        Mean number of nodes n′ of the pieces that trees are cut into for training, anew in each
        pass; None: whole trees. Prediction is always on whole trees.
    directed : bool
        Whether the two ends of an edge play different parts, as a word and its head do; if not,
        transition weights are symmetric.
    rich_edges : False, "current", "both" or True
        Cross features with pairs of labels, too: those of the second end of each edge ("current",
        True), or also those of the first ("both"). Without direction the features of both ends
        are crossed. False: only templates that say ``@ edge``.
    edge_pairs, edge_negatives, edge_min_share
        As for :class:`trellis.ChainCRF`.
    l2, l1, group_lasso : float
        Strengths of the penalties, as for :class:`trellis.ChainCRF`.
    solver : "sgd", "adf", "lbfgs" or "auto"
        As for :class:`trellis.ChainCRF`.
    states, learning_rate, decay
        As for :class:`trellis.ChainCRF`.
    batch_size : int
        Pieces whose gradients are taken at the same weights; part of the algorithm.
    n_jobs : int or None
        Threads (-1: one a core) that share the work of a batch, or of an L-BFGS gradient, if
        pieces are trees; the result is the same, bit by bit, for any number.
    max_passes, tol, visit, l2_once, patience, warm_start, verbose, random_state
        As for :class:`trellis.ChainCRF`.

    Attributes
    ----------
    classes_ : tuple of str
        The labels, sorted; the order of the columns of marginals.
    edge_types_ : tuple of str
        The types of edges, sorted; empty if they have none.
    history_ : list of PassRecord
        What each pass brought.
    weights_ : Weights
        Node weights (F, L), tables of transitions (K, L, L), one for each type of edges, and rich
        edge weights if there are any.
    stop_reason_ : str
        Why training ended.

    Examples
    --------
    >>> from trellis import TreeCRF
    >>> X = [["cats", "sleep"], ["dogs", "that", "bark", "sleep"]] * 5
    >>> y = [["N", "V"], ["N", "P", "V", "V"]] * 5
    >>> heads = [[(0, 1)], [(0, 3), (1, 2), (2, 0)]] * 5  # (dependent, head)
    >>> crf = TreeCRF("word", random_state=0).fit(X, y, edges=heads)
    >>> crf.predict([["dogs", "sleep"]], edges=[[(0, 1)]])
    [['N', 'V']]
    >>> crf.predict_marginals([["dogs", "sleep"]], edges=[[(0, 1)]])[0].shape
    (2, 3)
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
        l2: float = 1.0,
        l1: float = 0.0,
        group_lasso: float = 0.0,
        solver: str = "sgd",
        states: str = "all",
        learning_rate: float | str = "auto",
        decay: float = 0.75,
        batch_size: int = 1,
        n_jobs: int | None = None,
        max_passes: int | str = "auto",
        tol: float = 1e-4,
        visit: str = "pooled",
        l2_once: bool = False,
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
        self.l2 = l2
        self.l1 = l1
        self.group_lasso = group_lasso
        self.solver = solver
        self.states = states
        self.learning_rate = learning_rate
        self.decay = decay
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.max_passes = max_passes
        self.tol = tol
        self.visit = visit
        self.l2_once = l2_once
        self.patience = patience
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def predict_marginals(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[NDArray[np.float64]]:
        """Probability of every label at every node, a list of (n, L) arrays; exact."""
        result: list[NDArray[np.float64]] = []
        for p, first in self._trees(X, edges, edge_types, constraints):
            try:
                _, node = tree_marginals(p)
            except InfeasibleError as error:
                raise _numbered(error, first) from None
            result += np.split(node, p.offsets[1:-1])
        return result

    def sample(
        self,
        X: Any,
        n_samples: int = 1,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        random_state: int | None = None,
    ) -> list[list[list[str]]]:
        """Labellings drawn from p(y | x): for each sample, ``n_samples`` of them."""
        rng = np.random.default_rng(random_state)
        result: list[list[list[str]]] = []
        for p, _ in self._trees(X, edges, edge_types, None):
            names = np.array(self.classes_, object)
            drawn = tree_sample(p, n_samples, rng)
            for a, b in zip(p.offsets[:-1], p.offsets[1:], strict=True):
                result.append(names[drawn[:, a:b]].tolist())
        return result

    def entropy(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
    ) -> NDArray[np.float64]:
        """Entropy of p(y | x) of each sample, in nats: how unsure the model is."""
        parts = [tree_entropy(p) for p, _ in self._trees(X, edges, edge_types, None)]
        return np.concatenate([np.zeros(0), *parts])

    def _trees(
        self,
        X: Any,
        edges: Sequence[Any] | None,
        edge_types: Sequence[Sequence[str]] | None,
        constraints: Sequence[Sequence[Label]] | None,
    ) -> Iterator[tuple[GraphPotentials, int]]:
        self._check_fitted()
        corpus = as_graph_corpus(X, None, edges, edge_types)
        return self._potentials(corpus, self._encode(corpus), self.weights_, constraints)
