"""CRFs on general graphs with structure regularisation (Sun 2014, for arbitrary structures)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, as_graph_corpus
from trellis.errors import InfeasibleError
from trellis.features import Prepared
from trellis.models.graph_crf_training import GraphCRFTraining
from trellis.models.graph_predictor import _numbered
from trellis.structures import graph_marginals

__all__ = ["GraphCRF"]


class GraphCRF(GraphCRFTraining):
    """CRF on any graph: p(y | x) ∝ e^{s(x, y)}, trained on randomly drawn connected pieces.

    Parameters
    ----------
    features : str, list of str, Templates or "auto"
        As for :class:`trellis.ChainCRF`; windows go along the order of the nodes.
    piece_size : float or None
        Mean number of nodes n′ of the pieces that graphs are cut into for training, anew in each
        pass; None: whole components. Prediction is always on whole graphs.
    pieces : "tree" or "graph"
        Train on random spanning trees of the pieces, which keeps training exact and fast however
        loopy the graphs are; or on all edges between the nodes of a piece, whose marginals are
        exact if their treewidth allows it, else those of loopy belief propagation.
    directed : bool
        Whether the two ends of an edge play different parts; if not, transition weights are
        symmetric.
    inference : "auto", "exact", "elimination", "max-flow", "dual", "lp" or "ilp"
        How predictions are found (see :func:`trellis.structures.graph_best`); "exact": with an
        integer program where nothing cheaper is. :meth:`decode` says how good each is.
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
    edge_share_ : float
        Share ρ of the edges that a spanning tree has, on average; with ``pieces="tree"`` the scores
        of edges count ρ times at prediction, since there all edges speak. 1 on forests.
    history_ : list of PassRecord
        What each pass brought.
    weights_ : Weights
        Node weights (F, L), tables of transitions (K, L, L), one for each type of edges, and rich
        edge weights if there are any.
    stop_reason_ : str
        Why training ended.

    Examples
    --------
    Four corners of a square, each like its neighbours:

    >>> from trellis import GraphCRF
    >>> square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> X = [[["dark"], ["dark"], ["grey"], ["dark"]], [["light"], ["grey"], ["light"], ["light"]]]
    >>> y = [["A"] * 4, ["B"] * 4]
    >>> crf = GraphCRF(random_state=0, max_passes=30).fit(X * 5, y * 5, edges=[square] * 10)
    >>> crf.predict([[["grey"], ["dark"], ["grey"], ["dark"]]], edges=[square])
    [['A', 'A', 'A', 'A']]
    >>> crf.decode([[["grey"], ["dark"], ["grey"], ["dark"]]], edges=[square])[0].exact
    True
    """

    edge_share_: float = 1.0

    def __init__(
        self,
        features: Any = "auto",
        *,
        piece_size: float | None = None,
        pieces: str = "tree",
        directed: bool = False,
        inference: str = "auto",
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
        self.pieces = pieces
        self.directed = directed
        self.inference = inference
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

    def _learn_edges(self, corpus: Corpus | Prepared) -> None:
        super()._learn_edges(corpus)
        self.edge_share_ = 1.0
        if self.pieces == "tree" and isinstance(corpus, Corpus) and corpus.edges is not None:
            self.edge_share_ = _share_of_trees(corpus.n_positions, corpus.edges)

    def predict_marginals(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[NDArray[np.float64]]:
        """Probability of every label at every node, a list of (n, L) arrays.

        Exact where the graph allows it (see :func:`trellis.structures.graph_marginals`), else by
        loopy belief propagation; :meth:`marginals` says which.
        """
        found = self.marginals(X, edges=edges, edge_types=edge_types, constraints=constraints)
        return [array for array, _ in found]

    def marginals(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[tuple[NDArray[np.float64], bool]]:
        """Marginals (n, L) of each sample, and whether they are exact."""
        self._check_fitted()
        corpus = as_graph_corpus(X, None, edges, edge_types)
        result: list[tuple[NDArray[np.float64], bool]] = []
        encoded = self._encode(corpus)
        for p, first in self._potentials(corpus, encoded, self.weights_, constraints):
            try:
                found = graph_marginals(p)
            except InfeasibleError as error:
                raise _numbered(error, first) from None
            parts = np.split(found.node, p.offsets[1:-1])
            result += zip(parts, found.exact.tolist(), strict=True)
        return result


def _share_of_trees(n_nodes: int, edges: NDArray[np.int64]) -> float:
    """Share of the edges that are in a spanning forest; 1 if there is no loop."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(edges):
        return 1.0
    graph = coo_array((np.ones(len(edges)), edges.T), shape=(n_nodes, n_nodes))
    n_components, _ = connected_components(graph, directed=False)
    return float((n_nodes - n_components) / len(edges))
